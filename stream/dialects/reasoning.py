"""Blocks of reasoning, and the calls in them: rehearsals, unless nothing follows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stream.events import TextDelta, ToolCallEnd, ToolCallStart
from stream.markers import marker_pattern, normalize
from stream.rounds import Call
from stream.tape import CutOff, NotACall
from stream.turn import Turn

if TYPE_CHECKING:
    from stream.dialects import Dialect
    from stream.tape import Reading
    from stream.text_machine import TextMachine

__all__ = ["BLOCKS", "read_block", "reasoning_block", "template_block"]

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
    del row
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
        end = match.start() if match else len(machine.buffer)
        inside.feed(machine.take(end - machine.position))
        if match and normalize(match.group()) in known:
            inside.close()
            return match.group()
        try:
            yield from machine.more()
        except CutOff:
            inside.feed(machine.take(len(machine.buffer) - machine.position))
            inside.stay_open()
            raise


class _Inside:
    """The inside of a block: a machine of its own looks for calls, once there is something to look at."""

    def __init__(self, machine: TextMachine) -> None:
        self._outer = machine
        self._inner: TextMachine | None = None
        self._turn = Turn(max_argument_chars=machine.max_argument_chars, reasoning=False)
        self._raw: list[str] = []  # what may be the text of calls
        self._calls: list[Call] = []
        self._last: list[Call] = []  # the calls behind which nothing came yet

    def feed(self, text: str) -> None:
        if not text:
            return
        if self._inner is None:
            if not self._outer.table.pattern.search(text):
                self._outer.turn.reasoning(text)
                return
            self._inner = type(self._outer)(self._turn, self._outer.table, nested=True)
        self._raw.append(text)
        self._inner.feed(text)
        self._sort()
        if self._inner.clean and not self._last:
            self._pass_raw()

    def _sort(self) -> None:
        """Take in what the inner machine has found."""
        leads = not self._last
        for event in self._turn.take():
            if isinstance(event, ToolCallStart):
                leads = False
            elif isinstance(event, ToolCallEnd):
                call = Call(event.tool_name, event.tool_call_id, status=event.status)
                call.arguments_json = event.arguments_json
                call.token = ("id", call.id) if call.id else None
                call.array = self._outer.turn.new_array()
                self._last.append(call)
                leads = False
            elif isinstance(event, TextDelta):
                if leads:
                    self._pass_lead(event.text)
                elif self._last and not event.text.isspace():
                    self._calls += self._last
                    self._last = []

    def _pass_lead(self, text: str) -> None:
        """Pass the reasoning on that stands before a call, as far as it is what came."""
        raw = "".join(self._raw)
        if raw.startswith(text):
            self._outer.turn.reasoning(text)
            self._raw = [raw[len(text) :]]

    def _pass_raw(self) -> None:
        if any(self._raw):
            self._outer.turn.reasoning("".join(self._raw))
        self._raw = []

    def close(self) -> None:
        """The block is closed: its calls were rehearsals, unless they end it and nothing follows them."""
        if self._inner is None:
            return
        self._inner.close(was_cut=False)
        self._sort()
        calls = [call for call in self._last if call.status == "ok"]
        if calls and len(calls) == len(self._last):
            self._outer.turn.rehearse("".join(self._raw), calls)
        else:
            self._pass_raw()

    def stay_open(self) -> None:
        """The stream has ended in the block: its calls are real."""
        if self._inner is None:
            return
        self._inner.close(was_cut=self._outer.was_cut)
        self._sort()
        if not self._last:
            self._pass_raw()
        for call in self._calls + self._last:
            self._outer.turn.replay(call)
