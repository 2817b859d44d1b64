"""Blocks of reasoning, and the calls in them: rehearsals, unless nothing follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream.readers.parse.markers import marker_pattern, normalize
from stream.readers.parse.tape import CutOff, NotACall, Reading

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from stream.events import CallStatus
    from stream.readers.dialects import Dialect
    from stream.readers.machine import TextMachine
    from stream.readers.rounds import Call
    from stream.readers.turn import Turn

__all__ = ["BLOCKS", "Rehearsals", "read_block", "reasoning_block", "template_block"]

# Opening and closing markers. The first three also occur in prose, so they count at the start of a line only.
BLOCKS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<reasoning>": "</reasoning>",
    "[THINK]": "[/THINK]",
    "<seed:think>": "</seed:think>",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|inner_prefix|>": "<|inner_suffix|>",
}
_IN_PROSE = frozenset({"<think>", "<thinking>", "<reasoning>"})
_ENDS = {opener: marker_pattern(closer) for opener, closer in BLOCKS.items()}
_ANY_END = marker_pattern(*BLOCKS.values())


def read_block(machine: TextMachine, row: Dialect, size: int) -> Reading[None]:
    """Read a block of reasoning to its closing marker."""
    opener = normalize(machine.take(size))
    if machine.nested or (opener in _IN_PROSE and not machine.fresh):
        raise NotACall
    machine.commit()
    marker = yield from reasoning_block(machine, *_ENDS[opener])
    machine.take(len(marker))


def template_block(machine: TextMachine) -> Reading[None]:
    """Read a block that the prompt has opened."""
    machine.commit()
    marker = yield from reasoning_block(machine, *_ANY_END)
    machine.take(len(marker))
    machine.recording = True


def reasoning_block(machine: TextMachine, pattern: re.Pattern[str], known: frozenset[str]) -> Reading[str]:
    """Read reasoning up to a marker, which stays; return it."""
    inside = _Inside(machine)
    while True:
        match = pattern.search(machine.buffer, machine.position)
        inside.feed(machine.take_to(match))
        if match and normalize(match.group()) in known:
            inside.close()
            return match.group()
        try:
            yield from machine.more()
        except CutOff:
            inside.feed(machine.take_to(None))
            inside.stay_open()
            raise


class Rehearsals:
    """The calls inside a block: stands where a turn does for the machine that reads the inside."""

    silent = True

    def __init__(self, turn: Turn | Rehearsals) -> None:
        self.max_argument_chars: int = turn.max_argument_chars
        self.new_array: Callable[[], int] = turn.new_array
        self.calls: list[Call] = []
        self.last: list[Call] = []  # the calls behind which nothing came yet

    @property
    def has_calls(self) -> bool:
        """Whether the block has a call."""
        return bool(self.last or self.calls)

    def text(self, text: str) -> None:
        """Take notice of text behind calls."""
        if self.last and not text.isspace():
            self.calls += self.last
            self.last = []

    def reasoning(self, text: str) -> None:
        """Take no notice: the block passes all of its text on."""

    def rehearse(self, raw: str, calls: list[Call]) -> None:
        """Take no notice: there are no blocks in a block."""

    def replay(self, call: Call) -> None:
        """Take no notice, as above."""

    def begin(self, call: Call) -> None:
        """Take no notice: a rehearsal has to be complete."""

    def finish(self, call: Call, status: CallStatus, arguments: str = "") -> None:
        """Take in the end of a call."""
        call.status, call.arguments_json = status, arguments
        self.last.append(call)


class _Inside:
    """The inside of a block: a machine of its own looks for calls."""

    def __init__(self, machine: TextMachine) -> None:
        self._outer = machine
        self._found = Rehearsals(machine.turn)
        self._inner = type(machine)(self._found, machine.table, nested=True)
        self._raw: list[str] = []  # what may be the text of calls
        self._raw_start = 0  # where it starts in what the inner machine was fed

    def feed(self, text: str) -> None:
        if not text:
            return
        self._raw.append(text)
        self._inner.feed(text)
        self._pass_on(everything=self._inner.clean)

    def _pass_on(self, *, everything: bool) -> None:
        """Pass the reasoning on that stands before the last calls."""
        last = self._found.last
        if not (last or everything):
            return
        raw = "".join(self._raw)
        size = max(last[0].offset - self._raw_start, 0) if last else len(raw)
        if size:
            self._outer.turn.reasoning(raw[:size])
        self._raw = [raw[size:]]
        self._raw_start += size

    def close(self) -> None:
        """The block is closed: its calls were rehearsals, unless they end it and nothing follows them."""
        self._inner.close(was_cut=False)
        calls = self._found.last
        complete = bool(calls) and all(call.status == "ok" for call in calls)
        self._pass_on(everything=not complete)
        if complete:
            self._outer.turn.rehearse("".join(self._raw), calls)
        elif calls:
            self._outer.turn.reasoning("".join(self._raw))

    def stay_open(self) -> None:
        """The stream has ended in the block: its calls are real."""
        self._inner.close(was_cut=self._outer.was_cut)
        self._pass_on(everything=True)
        for call in self._found.calls + self._found.last:
            self._outer.turn.replay(call)
