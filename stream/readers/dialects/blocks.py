"""What is no call: turn tokens, stray closing markers, invented results, and code fences."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stream.readers.parse.markers import marker_pattern, normalize
from stream.readers.parse.shapes import Part, Run, Shape
from stream.readers.parse.tape import CutOff, NotACall, Reading

if TYPE_CHECKING:
    from stream.readers.dialects import Dialect
    from stream.readers.machine import TextMachine

__all__ = ["RESULTS", "ROLE_HEADERS", "drop", "drop_result", "drop_role", "drop_stray", "read_fence"]

# Invented results of tools, and what a prompt holds before the conversation.
RESULTS = {
    "<tool_response>": "</tool_response>",
    "[TOOL_RESULTS]": "[/TOOL_RESULTS]",
    "[AVAILABLE_TOOLS]": "[/AVAILABLE_TOOLS]",
    "<|tool_outputs_begin|>": "<|tool_outputs_end|>",
}
# Tokens before the name of a role, and what ends the name where a token does.
ROLE_HEADERS = {
    "<|im_start|>": "",
    "<start_of_turn>": "",
    "<|turn>": "",
    "<|start_header_id|>": "<|end_header_id|>",
    "<|start_of_role|>": "<|end_of_role|>",
}
_RESULT_ENDS = {opener: marker_pattern(closer) for opener, closer in RESULTS.items()}
_RESULT_BODY = Shape(Run(r"[ \t]{0,8}"), (["{"], ["["], ["\n"], ["\r"], [Run(r"\w")]))
_HEADER_ENDS = {opener: marker_pattern(closer) for opener, closer in ROLE_HEADERS.items() if closer}
_ROLE = Shape((["assistant"], ["user"], ["system"], ["tool"], ["model"], ["developer"]))
_LONGEST_ROLE = 64


def drop(machine: TextMachine, row: Dialect, size: int) -> Reading[None]:
    """Drop a token that is never spoken."""
    machine.take(size)
    machine.commit()
    yield from ()


def drop_stray(machine: TextMachine, row: Dialect, size: int) -> Reading[None]:
    """Drop a closing marker at the start of a line, behind a call, or behind text that came before it."""
    marker = normalize(machine.take(size))
    if not (machine.fresh or row.token or marker in machine.unclosed):
        raise NotACall
    machine.unclosed.discard(marker)
    machine.commit()
    yield from ()


def drop_role(machine: TextMachine, row: Dialect, size: int) -> Reading[None]:
    """Drop a token and the name of the role behind it."""
    marker = normalize(machine.take(size))
    machine.commit()
    if marker in _HEADER_ENDS:
        _, end = yield from machine.find(*_HEADER_ENDS[marker], _LONGEST_ROLE)
        machine.take(len(end))
    else:
        yield from machine.read(_ROLE)


def drop_result(machine: TextMachine, row: Dialect, size: int) -> Reading[None]:
    """Drop a block of results; in the middle of a line it must look like one."""
    marker = normalize(machine.take(size))
    if not row.token and not machine.fresh:
        body = yield from machine.test(_RESULT_BODY)
        if not body or (body[1].group(1) and body[1].group()[-1].isalnum()):
            raise NotACall
    machine.commit()
    _, end = yield from machine.find(*_RESULT_ENDS[marker], 0)
    machine.take(len(end))


# --- code fences ----------------------------------------------------------------------------------------------------

_LINE_END: list[Part] = [Run(r"[ \t\r]{0,8}"), "\n"]
_LANGUAGES = ("", "json", "xml", "tool_call", "tool_calls")
_LANGUAGE = Shape(tuple([language, *_LINE_END] for language in _LANGUAGES))
_LONGEST_CLOSING_LINE = 200


def read_fence(machine: TextMachine, row: Dialect, size: int) -> Reading[None]:
    """Read a fence: swallowed if all that is in it is calls, else text to its end."""
    machine.take(size)
    mark = "".join(machine.held)[-1]
    while (yield from machine.peek()) == mark:
        machine.take(1)
        size += 1
    yield from _read_body(machine, mark * size)


def _read_body(machine: TextMachine, fence: str) -> Reading[None]:
    if (yield from machine.read(_LANGUAGE)):
        try:
            machine.fenced = True
            yield from _calls(machine, fence)
        except NotACall:
            machine.draft = None
        else:
            return
        finally:
            machine.fenced = False
    machine.release()
    yield from _text_to(machine, fence)


def _calls(machine: TextMachine, fence: str) -> Reading[None]:
    """Read the calls of a fence's body, and its end."""
    found = False
    while True:
        yield from machine.skip_space()
        if found and (yield from _ends(machine, fence)):
            machine.ended_call = True
            return
        match = machine.table.at_start.match(machine.buffer, machine.position)
        row = machine.row_at(match) if match else None
        if match and row is None:
            yield from machine.more()
            continue
        if row is None or row.fence or not (row.calls or (found and not row.weak)):
            raise NotACall
        machine.fresh = True
        yield from machine.attempt(row, len(match.group()) if match else 0)
        found = True


def _ends(machine: TextMachine, fence: str) -> Reading[bool]:
    try:
        return (yield from machine.accept(fence))
    except CutOff:
        machine.commit()  # half of the fence's end is no text either
        machine.take_to(None)
        raise


def _text_to(machine: TextMachine, fence: str) -> Reading[None]:
    """Pass text up to the line that closes the fence."""
    closing = re.compile(rf" {{0,3}}{fence}{fence[0]}*[ \t\r]*\n?")
    line = ""
    while True:
        end = machine.buffer.find("\n", machine.position) + 1
        piece = machine.buffer[machine.position : end or len(machine.buffer)]
        machine.pass_text(len(piece))
        line += piece[:_LONGEST_CLOSING_LINE]
        if end:
            if closing.fullmatch(line):
                return
            line = ""
        else:
            line = line[: _LONGEST_CLOSING_LINE + 1]
            yield from machine.more()
