"""Text that is not a call: turn tokens, stray closing markers, invented results, and code fences."""

from __future__ import annotations

import re

from stream.readers.text.dialect import CutOff, Dialect, NotACall, Reading
from stream.readers.text.dialects.pythonic import CODE
from stream.readers.text.parser import Parser
from stream.readers.text.patterns import SPACE, Run, Shape, marker_pattern, normalize

__all__ = [
    "CITATIONS",
    "LABELS",
    "RESULTS",
    "ROLE_HEADERS",
    "WRAPPERS",
    "drop",
    "drop_citation",
    "drop_part",
    "drop_pending",
    "drop_result",
    "drop_role",
    "drop_stray",
    "drop_wrapper",
    "drop_wrapper_end",
    "read_fence",
    "read_label",
]

# Invented results of tools, and what a prompt holds before the conversation.
RESULTS = {
    "✿RESULT✿": "✿RETURN✿:",
    "<tool_response>": "</tool_response>",
    "[TOOL_RESULTS]": "[/TOOL_RESULTS]",
    "[AVAILABLE_TOOLS]": "[/AVAILABLE_TOOLS]",
    "<|tool_outputs_begin|>": "<|tool_outputs_end|>",
}
# Tokens before the name of a role, and the token that ends the name, if there is one.
ROLE_HEADERS = {
    "<|im_start|>": "",
    "<start_of_turn>": "",
    "<|turn>": "",
    "<|start_header_id|>": "<|end_header_id|>",
    "<|start_of_role|>": "<|end_of_role|>",
}
LABELS = ("**Tool Call:**", "Tool call:", "Function call:", "Action:", "-> tool/function_call")
# Decorations around the words to speak.
WRAPPERS = {f"<{word}>": f"</{word}>" for word in ("response", "answer", "assistant")} | {
    "[BEGIN FINAL RESPONSE]": "[END FINAL RESPONSE]"
}
_IDS = Run(r"[\d,:\[\]]{1,32}")
CITATIONS: tuple[tuple[str, ...], ...] = (("<co: ", _IDS, ">"), ("</co: ", _IDS, ">"))
_INVENTED = Shape("response:")
_RESULT_ENDS = {opener: marker_pattern(closer) for opener, closer in RESULTS.items()}
_RESULT_BODY = Shape(Run(r"[ \t]{0,8}"), (["{"], ["["], ["\n"], ["\r"], [Run(r"\w")]))
_HEADER_ENDS = {opener: marker_pattern(closer) for opener, closer in ROLE_HEADERS.items() if closer}
_ROLE = Shape((["assistant"], ["user"], ["system"], ["tool"], ["model"], ["developer"]))
_LONGEST_ROLE = 64
_PLAIN_PARTS = frozenset({"</parameter>", "</invoke>", "</function>"})


def drop(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Drop a token that is never spoken."""
    parser.cites |= parser.take(size)[2:-2].isupper()  # as Cohere's models write theirs
    parser.commit()
    yield from ()


def drop_stray(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Drop a closing marker at the start of a line, after a call, or if a call on this line lacks it."""
    marker = normalize(parser.take(size))
    if not (parser.line.fresh or row.token or marker in parser.line.unclosed):
        raise NotACall
    parser.line.unclosed.discard(marker)
    parser.commit()
    yield from ()


def drop_part(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Drop the closing marker of a part of a call, after a call; a plain one at the start of a line as well."""
    marker = normalize(parser.take(size))
    if not (parser.is_after_call or (parser.line.fresh and marker in _PLAIN_PARTS)):
        raise NotACall
    parser.commit()
    yield from ()


def drop_wrapper(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Drop what opens the words to speak: a tag as the first thing after reasoning, brackets at the start of a line."""
    marker = parser.take(size)
    if not (parser.line.fresh if marker[0] == "[" else parser.line.only_reasoning):
        raise NotACall
    parser.wrapped.add(WRAPPERS[marker])
    parser.commit()
    yield from ()


def drop_wrapper_end(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Drop what closes them: a tag if its opener was dropped, brackets at the start of a line or behind a word."""
    marker, before = parser.take(size), parser.line.previous
    if not (marker in parser.wrapped if marker[0] != "[" else parser.line.fresh or not before.isspace()):
        raise NotACall
    parser.wrapped.discard(marker)
    parser.commit()
    yield from ()


def drop_citation(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Drop a mark of a citation, in the answer of a model that makes them."""
    parser.take(size)
    if not parser.cites:
        raise NotACall
    parser.commit()
    yield from ()


def drop_pending(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Drop a token that waits for a result, and the result if the model invents it."""
    parser.take(size)
    parser.commit()
    if (yield from parser.test(_INVENTED)):
        _, end = yield from parser.find(*marker_pattern("<tool_response|>"), 0)
        parser.take(len(end))


def drop_role(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Drop a token and the name of the role after it."""
    marker = normalize(parser.take(size))
    parser.commit()
    if marker in _HEADER_ENDS:
        _, end = yield from parser.find(*_HEADER_ENDS[marker], _LONGEST_ROLE)
        parser.take(len(end))
    else:
        yield from parser.read(_ROLE)


def drop_result(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Drop a block of results; in the middle of a line it must look like one."""
    marker = normalize(parser.take(size))
    if not row.token and not parser.line.fresh:
        body = yield from parser.test(_RESULT_BODY)
        if not body or (body[1].group(1) and body[1].group()[-1].isalnum()):
            raise NotACall
    parser.commit()
    _, end = yield from parser.find(*(_RESULT_ENDS.get(marker) or marker_pattern(*row.closers)), 0)
    parser.take(len(end))


# --- code fences ----------------------------------------------------------------------------------------------------

_RESULT = Shape("tool_output", Run("s?"), Run(r"[ \t\r]{0,8}"), "\n")
_CODE = Shape("tool_code", Run(r"[ \t\r]{0,8}"), "\n")
_LANGUAGES = ("", "json", "xml", "tool_call", "tool_calls")
_LANGUAGE = Shape(tuple([language, Run(r"[ \t\r]{0,8}"), "\n"] for language in _LANGUAGES))
_LONGEST_CLOSING_LINE = 200
_LONGEST_FENCE = 64


def read_fence(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read a fence: swallowed if all that is in it is calls, else text to its end."""
    parser.take(size)
    mark = "".join(parser.held)[-1]
    while size < _LONGEST_FENCE and (yield from parser.peek()) == mark:
        parser.take(1)
        size += 1
    fence = mark * size
    if parser.is_after_call and (yield from parser.read(_RESULT)):
        parser.commit()
        yield from _text_to(parser, fence, spoken=False)
        return
    in_code = yield from parser.read(_CODE)
    if in_code or (yield from parser.read(_LANGUAGE)):
        try:
            parser.fenced = True
            yield from (_code if in_code else _calls)(parser, fence)
        except NotACall:
            parser.draft = None
        else:
            return
        finally:
            parser.fenced = False
    parser.release()
    yield from _text_to(parser, fence)


def _calls(parser: Parser, fence: str) -> Reading[None]:
    found = False
    while True:
        yield from parser.skip_space()
        try:
            if found and (yield from parser.accept(fence)):
                parser.ended_call = True
                return
        except CutOff:
            parser.commit()  # half of the fence's end isn't text either
            parser.take_to(None)
            raise
        row, size = yield from parser.dispatcher.row_here()
        if row is None or row.fence or not (row.calls or (found and not row.weak)):
            raise NotACall
        parser.line.fresh = True
        yield from parser.dispatcher.attempt(row, size)
        found = True


def _code(parser: Parser, fence: str) -> Reading[None]:
    shape, read = CODE
    found = yield from parser.test(shape)
    if not found:
        raise NotACall
    yield from read(parser, None, found[1])
    yield from parser.skip_space()
    yield from parser.accept(fence)


_BEHIND_SPACE = Shape(SPACE, Run(r"\S"))


def read_label(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read a label and the call after it, if there is one."""
    parser.take(size)
    space = yield from parser.test(_BEHIND_SPACE)
    if not space:
        raise NotACall
    parser.take(space[1].end(1) - parser.position)
    found, size = yield from parser.dispatcher.row_here()
    if found is None or not found.weak or found is row:
        raise NotACall
    parser.labelled = True
    try:
        yield from parser.dispatcher.attempt(found, size)
    finally:
        parser.labelled = False


def _text_to(parser: Parser, fence: str, *, spoken: bool = True) -> Reading[None]:
    """Pass, or drop, text up to the line that closes the fence."""
    closing = re.compile(rf" {{0,3}}{fence}{fence[0]}*[ \t\r]*\n?")
    line = ""
    while True:
        end = parser.buffer.find("\n", parser.position) + 1
        piece = parser.buffer[parser.position : end or len(parser.buffer)]
        (parser.pass_text if spoken else parser.take)(len(piece))
        line += piece[:_LONGEST_CLOSING_LINE]
        if end:
            if closing.fullmatch(line):
                return
            line = ""
        else:
            line = line[: _LONGEST_CLOSING_LINE + 1]
            yield from parser.more()
