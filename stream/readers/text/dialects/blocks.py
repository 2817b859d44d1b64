"""Text that is not a call: turn tokens, stray closing markers, invented results, and code fences."""

from __future__ import annotations

import re

from stream.readers.text.dialect import CutOff, Dialect, NotACall, Reading, dropped_if
from stream.readers.text.dialects.pythonic import CODE
from stream.readers.text.parser import Parser
from stream.readers.text.patterns import SPACE, Run, Shape, is_token, normalize

__all__ = ["CITATIONS", "RESULTS", "ROWS", "drop", "drop_after_call", "drop_part", "drop_result", "drop_stray",
           "to_end_of_fence"]  # fmt: skip

# Invented results of tools, and what a prompt holds before the conversation.
RESULTS = {
    "✿RESULT✿": "✿RETURN✿:",
    "<tool_response>": "</tool_response>",
    "[TOOL_RESULTS]": "[/TOOL_RESULTS]",
    "[AVAILABLE_TOOLS]": "[/AVAILABLE_TOOLS]",
    "<|tool_outputs_begin|>": "<|tool_outputs_end|>",
}
# Tokens before the name of a role, and the token that ends the name, if there is one.
_ROLE_HEADERS = {
    "<|im_start|>": "",
    "<start_of_turn>": "",
    "<|turn>": "",
    "<|begin|>": "",
    "<|start_header_id|>": "<|end_header_id|>",
    "<|start_of_role|>": "<|end_of_role|>",
}
_LABELS = ("**Tool Call:**", "Tool call:", "Function call:", "Action:", "-> tool/function_call")
# Decorations around the words to speak.
_WRAPPERS = {f"<{word}>": f"</{word}>" for word in ("response", "answer", "assistant")} | {
    "[BEGIN FINAL RESPONSE]": "[END FINAL RESPONSE]"
}
_IDS = Run(r"[\d,:\[\]]{1,32}")
CITATIONS: tuple[tuple[str, ...], ...] = (("<co: ", _IDS, ">"), ("</co: ", _IDS, ">"))
# Gemma's tokens that wait for a result.
_PENDING = {"<|tool_response>": "<tool_response|>", "<start_function_response>": "<end_function_response>"}
_INVENTED = Shape("response:")
_RESULT_BODY = Shape(Run(r"[ \t]{0,8}"), (["{"], ["["], ["\n"], ["\r"], [Run(r"\w")]))
_ROLE = Shape((["assistant"], ["user"], ["system"], ["tool"], ["model"], ["developer"]))
_PLAIN_PARTS = frozenset({"</parameter>", "</invoke>", "</function>"})


@dropped_if
def drop(parser: Parser, row: Dialect, marker: str) -> bool:
    """Drop a token that is never spoken."""
    parser.cites |= marker[2:-2].isupper()  # as Cohere's models write theirs
    return True


@dropped_if
def _drop_first(parser: Parser, row: Dialect, marker: str) -> bool:
    """Drop a token that begins the text, first or after a call or block; elsewhere it is a tag, such as HTML's."""
    return parser.line.fresh and not parser.line.previous


@dropped_if
def drop_stray(parser: Parser, row: Dialect, marker: str) -> bool:
    """Drop a closing marker at the start of a line, after a call, or if a call on this line lacks it."""
    counts = marker not in parser.spoken and (parser.line.fresh or row.token or marker in parser.line.unclosed)
    parser.line.unclosed.discard(marker)
    parser.spoken.discard(marker)
    return counts


@dropped_if
def drop_part(parser: Parser, row: Dialect, marker: str) -> bool:
    """Drop the closing marker of a part of a call, after a call; a plain one at the start of a line as well."""
    return parser.is_after_call or (parser.line.fresh and marker in _PLAIN_PARTS)


@dropped_if
def drop_after_call(parser: Parser, row: Dialect, marker: str) -> bool:
    """Drop the closing token of a pair after a call."""
    return parser.is_after_call


@dropped_if
def _drop_wrapper(parser: Parser, row: Dialect, marker: str) -> bool:
    """Drop what opens the words to speak: a tag as the first thing after reasoning, brackets at the start of a line."""
    counts = parser.line.fresh if marker[0] == "[" else parser.line.only_reasoning
    if counts:
        parser.wrapped.add(_WRAPPERS[marker])
    return counts


@dropped_if
def _drop_wrapper_end(parser: Parser, row: Dialect, marker: str) -> bool:
    """Drop what closes them: a tag if its opener was dropped, brackets at the start of a line or behind a word."""
    is_open, line = marker in parser.wrapped, parser.line
    parser.wrapped.discard(marker)
    return is_open if marker[0] != "[" else line.fresh or not line.previous.isspace()


@dropped_if
def _drop_citation(parser: Parser, row: Dialect, marker: str) -> bool:
    """Drop a mark of a citation, in the answer of a model that makes them."""
    return parser.cites


def _drop_pending(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Drop a token that waits for a result, and the result if the model invents it."""
    marker = normalize(parser.take(size))
    parser.commit()
    if (yield from parser.test(_INVENTED)):
        yield from parser.text_to(_PENDING[marker], 0)


def _drop_role(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Drop a token and the name of the role after it."""
    marker = normalize(parser.take(size))
    parser.commit()
    if end := _ROLE_HEADERS[marker]:
        yield from parser.text_to(end, 0)
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
    yield from parser.text_to(RESULTS.get(marker) or row.closers[0], 0)


# --- code fences ----------------------------------------------------------------------------------------------------

_RESULT = Shape("tool_output", Run("s?"), Run(r"[ \t\r]{0,8}"), "\n")
_CODE = Shape("tool_code", Run(r"[ \t\r]{0,8}"), "\n")
_LANGUAGES = ("", "json", "xml", "tool_call", "tool_calls")
_LANGUAGE = Shape(tuple([language, Run(r"[ \t\r]{0,8}"), "\n"] for language in _LANGUAGES))
_OPENING_LINE = Shape(Run(r"[^`\n]{0,80}"), (["\n"], ["`"]))
_BEHIND_WORDS = Shape(Run(r"[A-Za-z{.][^`\n]{0,80}"), "\n")
_LONGEST_CLOSING_LINE = 200
_LONGEST_FENCE = 64


def _read_fence(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read a fence: swallowed if all that is in it is calls, else text to its end."""
    fresh = parser.line.fresh
    begins = fresh or parser.line.is_marked
    parser.take(size)
    mark = "".join(parser.held)[-1]
    while size < _LONGEST_FENCE and (yield from parser.peek()) == mark:
        parser.take(1)
        size += 1
    fence = mark * size
    if mark == "`" and not (yield from _opens(parser, begins=begins)):
        raise NotACall
    if parser.is_after_call and (yield from parser.read(_RESULT)):
        parser.commit()
        yield from to_end_of_fence(parser, fence, spoken=False)
        return
    in_code = yield from parser.read(_CODE)
    if in_code or (yield from parser.read(_LANGUAGE)):
        try:
            parser.fenced = True
            yield from (_code if in_code else _calls)(parser, fence)
        except NotACall:
            parser.draft = None
            if in_code and parser.declared:  # other code: a malformed call
                draft, parser.draft = parser.new_draft(), None
                parser.commit()
                parser.sink.finish(draft.call, "malformed")
                yield from to_end_of_fence(parser, fence, spoken=False)
                return
        else:
            return
        finally:
            parser.fenced = False
    parser.release()
    yield from to_end_of_fence(parser, fence, before=r"[ \t]{0,16}" if fresh else r"[ \t>]{0,16}")


def _opens(parser: Parser, *, begins: bool) -> Reading[bool]:
    """Return whether backticks open a fence, and no inline code.

    Where a line `begins`, after the marks of quotes and lists too, they do unless more of them follow in it. Behind
    words a language must follow: those without one may close.
    """
    if not begins:
        return (yield from parser.test(_BEHIND_WORDS)) is not None
    found = yield from parser.test(_OPENING_LINE)
    return found is None or not found[1].group().endswith("`")


def _calls(parser: Parser, fence: str) -> Reading[None]:
    found = False
    while True:
        yield from parser.skip_space()
        try:
            if found and (yield from parser.accept(fence, after_space=False)):
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
    if not found:  # Gemma writes lists of calls and JSON there, too
        yield from _calls(parser, fence)
        return
    parser.fence = fence
    yield from read(parser, None, found[1])
    yield from parser.end_fence()


_BEHIND_SPACE = Shape(SPACE, Run(r"\S"))


def _read_label(parser: Parser, row: Dialect, size: int) -> Reading[None]:
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


def to_end_of_fence(parser: Parser, fence: str, *, spoken: bool = True, before: str = r"[ \t]{0,16}") -> Reading[None]:
    """Pass, or drop, text up to the line that closes the fence, or to a marker right behind what closes it."""
    closing = re.compile(rf"{before}{fence}{fence[0]}*[ \t\r]*")
    line, pass_on = "", parser.pass_text if spoken else parser.take
    while True:
        end = parser.buffer.find("\n", parser.position) + 1
        piece = parser.buffer[parser.position : end or len(parser.buffer)]
        closer = closing.match(line + piece) if len(line) <= _LONGEST_CLOSING_LINE else None
        if closer and 0 <= (size := closer.end() - len(line)) < len(piece) and piece[size] in "<[":
            pass_on(size)
            row, _ = yield from parser.dispatcher.row_here()
            if row is not None and not row.weak:
                parser.line.fresh, parser.line.odd_ticks = True, False
                return
            line = closer.group() + parser.buffer[parser.position]
            pass_on(1)
            continue
        pass_on(len(piece))
        line += piece[:_LONGEST_CLOSING_LINE]
        if end:
            if closing.fullmatch(line.removesuffix("\n")):
                return
            line = ""
        else:
            line = line[: _LONGEST_CLOSING_LINE + 1]
            yield from parser.more()


ROWS = (
    # Forms without a marker.
    Dialect(name="label", markers=_LABELS, read=_read_label, calls=False, weak=True, fresh=True),
    Dialect(name="fenced_json", markers=("```", "~~~"), read=_read_fence, calls=False, weak=True, fence=True,
            fresh=True),
    # No calls.
    Dialect(name="wrapper", markers=tuple(_WRAPPERS), read=_drop_wrapper, calls=False),
    Dialect(name="wrapper_end", markers=tuple(_WRAPPERS.values()), read=_drop_wrapper_end, calls=False),
    Dialect(name="citation", markers=("<co>", "</co>"), read=_drop_citation, calls=False),
    Dialect(name="pending_result", markers=tuple(_PENDING), read=_drop_pending, calls=False),
    # By two rows: a row with a token counts anywhere.
    Dialect(name="result", markers=tuple(marker for marker in RESULTS if not is_token(marker)), read=drop_result,
            calls=False),
    Dialect(name="result_tokens", markers=tuple(filter(is_token, RESULTS)), read=drop_result, calls=False),
    Dialect(name="role", markers=tuple(_ROLE_HEADERS), read=_drop_role, calls=False),
    Dialect(name="first_token", markers=("<s>", "<bos>"), read=_drop_first, calls=False),
    Dialect(name="gemini_token", calls=False, read=drop, markers=tuple(
        marker for number in range(100) if (marker := f"<ctrl{number}>") not in ("<ctrl42>", "<ctrl94>", "<ctrl95>"))),
    Dialect(name="turn_token", calls=False, read=drop, markers=(
        "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>", "</s>", "<|end_of_sentence|>",
        "<end_of_turn>", "<turn|>", "<|begin_of_text|>", "<|begin_of_sentence|>", "<|end|>", "<|return|>", "<|call|>",
        "<|message|>", "<|assistant|>", "<|user|>", "<|system|>", "<|observation|>", "<|User|>", "<|Assistant|>",
        "<|END_OF_TURN_TOKEN|>", "<|START_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>", "<|START_RESPONSE|>",
        "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>", "<|assistant_end|>", "<|assistant_start|>",
        "<|end_of_turn|>", "<|eos|>", "<|tool_sep|>", "<|tool_call_argument_begin|>", "<|action_start|>",
        "<|tool_output_begin|>", "<|tool_output_end|>", "<|eom|>", "<|eot|>", "<|plamo:tag|>", "<|role_sep|>",
        "<|begin_of_box|>", "<|end_of_box|>", "<|begin_of_solution|>", "<|end_of_solution|>",
        "<end_function_response>", "<|content|>", '<|"|>', "<tool_response|>",
        "</think>")),
)  # fmt: skip
