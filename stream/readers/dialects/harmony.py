"""The message format with channels, with its tokens and as a server leaves it that has removed them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stream.readers.parse.markers import marker_pattern, normalize
from stream.readers.parse.shapes import NAME, Part, Run, Shape
from stream.readers.parse.tape import CutOff, Reading, Unreadable

from .pythonic import code_body
from .reasoning import reasoning_block

if TYPE_CHECKING:
    from stream.readers.dialects import Dialect
    from stream.readers.machine import TextMachine
    from stream.readers.parse.draft import Draft

__all__ = ["GLUED", "MESSAGE_ENDS", "begins_stripped", "read_glued", "read_message", "read_stripped"]

MESSAGE_ENDS = ("<|end|>", "<|start|>", "<|channel|>", "<|call|>", "<|return|>")
GLUED = ("assistantcommentary", "assistantfinal", "assistantanalysis")

_HEADER_END = re.compile(r"[<>\n{}]")
_HEADER_MARKS = marker_pattern("<|message|>", "<|channel|>", "<|constrain|>", *MESSAGE_ENDS)
_INNER_MARKS = ("<|channel|>", "<|constrain|>")
_RECIPIENT = re.compile(r"(?:^|[\s>])to=([^\s<]+)(?=[\s<])")
_NOBODY = frozenset({"assistant", "user", "all"})
_MESSAGE_END = marker_pattern(*MESSAGE_ENDS)
_LONGEST_HEADER = 256


def read_message(machine: TextMachine, row: Dialect, size: int) -> Reading[None]:
    """Read a message's header, and its body unless that is spoken: then it is text like any other."""
    header = normalize(machine.take(size))
    machine.commit()
    draft: Draft | None = None
    mark = ""
    while not mark:
        header += machine.take_to(_HEADER_END.search(machine.buffer, machine.position))
        following = machine.buffer[machine.position : machine.position + 1]
        recipient = _RECIPIENT.search(header + following)
        if recipient and draft is None and _role(header) == "assistant" and recipient.group(1) not in _NOBODY:
            draft = machine.call(recipient.group(1))
        if len(header) > _LONGEST_HEADER:
            raise Unreadable
        mark = yield from _mark(machine)
        if mark in _INNER_MARKS:
            header += mark
            mark = ""
    if draft:
        yield from _call_body(machine, draft)
    elif mark == "<|message|>":
        yield from _body(machine, header)


def _mark(machine: TextMachine) -> Reading[str]:
    """Read a mark that belongs to a header; return it, `"?"` for what ends the header and stays, `""` for text."""
    pattern, known = _HEADER_MARKS
    if machine.position == len(machine.buffer):
        yield from machine.more()
        return ""
    found = pattern.match(machine.buffer, machine.position)
    mark = normalize(found.group()) if found else "?"
    if mark != "?" and mark not in known:
        yield from machine.more()
        return ""
    if mark not in ("<|message|>", *_INNER_MARKS):
        return "?"
    machine.take(len(mark))
    return mark


def _role(header: str) -> str:
    """Return who speaks: the word behind the start token."""
    words = header.removeprefix("<|start|>").split("<|", 1)[0].split()
    return "assistant" if not words or words[0].startswith("to=") else words[0]


def _call_body(machine: TextMachine, draft: Draft) -> Reading[None]:
    if draft.name == "python":
        yield from code_body(machine, draft)
        return
    if (yield from machine.skip_space()) == "<":  # an empty body: no arguments
        machine.settle(draft, "")
        return
    yield from machine.json_arguments(draft)


def _body(machine: TextMachine, header: str) -> Reading[None]:
    _, has_channel, channel = header.rpartition("<|channel|>")
    if _role(header) != "assistant":
        yield from machine.find(*_MESSAGE_END, 0)  # a turn that is not the model's, invented by it
    elif has_channel and channel.split()[:1] == ["analysis"]:
        yield from reasoning_block(machine, *_MESSAGE_END)
    elif not machine.turn.silent:
        machine.turn.text("\n")


# --- without its tokens ---------------------------------------------------------------------------------------------

_ANALYSIS = Shape("analysis", Run(r"[A-Z]"))
_TO: list[Part] = ["to=", NAME, Run(r"\s{0,4}"), (["json", Run(r"\s{0,4}"), "{"], ["{"])]
_CALL = Shape(Run(r"\s{0,4}"), *_TO)
_COMMENTARY = Shape("commentary", Run(r"\s{1,4}"), *_TO)
_TO_SOMEONE = re.compile(r"\sto=")
_WHOLE_RECIPIENT = re.compile(r"\s*to=([^\s{]+)\s")
_GLUED_END = marker_pattern(*GLUED)


def begins_stripped(machine: TextMachine) -> Reading[bool]:
    """Look whether a round begins like an answer that has lost its tokens."""
    if (yield from machine.peek()) not in "ac":
        return False
    try:
        found = yield from machine.test(_ANALYSIS, _COMMENTARY)
    except CutOff:
        half = machine.buffer[machine.position :]
        if not _cut_call(machine) and not _TO_SOMEONE.search(half) and not machine.drops(half):
            machine.pass_text(len(half))
        raise
    return found is not None


def read_stripped(machine: TextMachine, row: Dialect, size: int) -> Reading[None]:
    """Read the first message of such an answer."""
    is_call = machine.buffer.startswith("commentary", machine.position)
    machine.take(len("commentary" if is_call else "analysis"))
    machine.commit()
    if is_call:
        yield from _glued_call(machine)
    else:
        yield from reasoning_block(machine, *_GLUED_END)


def read_glued(machine: TextMachine, row: Dialect, size: int) -> Reading[None]:
    """Read the message behind a role and a channel that stand there without a token between them."""
    channel = machine.take(size)
    machine.commit()
    if channel == "assistantanalysis":
        yield from reasoning_block(machine, *_GLUED_END)
    elif channel == "assistantcommentary" and (yield from _is_call(machine)):
        yield from _glued_call(machine)
    elif not machine.turn.silent:
        machine.turn.text("\n")


def _is_call(machine: TextMachine) -> Reading[bool]:
    try:
        return (yield from machine.test(_CALL)) is not None
    except CutOff:
        _cut_call(machine)
        raise


def _cut_call(machine: TextMachine) -> bool:
    """Note the call of a header that was cut off behind its recipient; return whether there is one."""
    recipient = _WHOLE_RECIPIENT.search(machine.buffer, machine.position)
    if recipient:
        machine.turn.finish(machine.call(recipient.group(1)).call, "incomplete")
    machine.draft = None
    return recipient is not None


def _glued_call(machine: TextMachine) -> Reading[None]:
    found = yield from machine.test(_CALL)
    assert found is not None
    machine.take(found[1].end(2) - machine.position)
    draft = machine.call(found[1].group(2))
    yield from machine.skip_space()
    yield from machine.accept("json")
    yield from _call_body(machine, draft)
