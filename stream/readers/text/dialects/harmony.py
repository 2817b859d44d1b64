"""The message format with channels, with its tokens and as a server leaves it that has removed them."""

from __future__ import annotations

import re

from stream.readers.text.dialect import CutOff, Dialect, Draft, Reading, Unreadable
from stream.readers.text.dialects.pythonic import code_body
from stream.readers.text.dialects.reasoning import reasoning_block
from stream.readers.text.parser import Parser
from stream.readers.text.patterns import NAME, SPACE, Part, Run, Shape, marker_pattern, normalize

__all__ = ["GLUED", "HEADER", "ROWS", "STRIPPED", "begins_stripped"]

_MESSAGE_ENDS = ("<|end|>", "<|start|>", "<|channel|>", "<|call|>", "<|return|>", "<|eom|>", "<|eot|>")
_GLUED = ("assistantcommentary", "assistantfinal", "assistantanalysis")

_HEADER_END = re.compile(r"[<>\n{}]")
_HEADER_MARKS = (Shape("<|message|>"), Shape("<|channel|>"), Shape("<|constrain|>"))
_RECIPIENT = re.compile(r"(?:^|[\s>])to=([^\s<]+)(?=[\s<])")
_NOBODY = frozenset({"assistant", "user", "all", "self"})
_MESSAGE_END = marker_pattern(*_MESSAGE_ENDS)
_LONGEST_HEADER = 256


def _read_message(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read a message's header, and its body unless that is spoken: then it is text like any other."""
    header = normalize(parser.take(size))
    parser.commit()
    draft: Draft | None = None
    while True:
        match = _HEADER_END.search(parser.buffer, parser.position)
        size = (match.start() if match else len(parser.buffer)) - parser.position
        header += parser.take(min(size, max(_LONGEST_HEADER + 1 - len(header), 0)))
        following = parser.buffer[parser.position : parser.position + 1]
        recipient = _RECIPIENT.search(header + following)
        if recipient and draft is None and _role(header) == "assistant" and recipient.group(1) not in _NOBODY:
            draft = parser.call(recipient.group(1))
        if len(header) > _LONGEST_HEADER:
            raise Unreadable
        if match is None:
            yield from parser.more()
            continue
        mark = yield from parser.read(*_HEADER_MARKS)
        if mark is None or normalize(mark.group()) == "<|message|>":
            break
        header += normalize(mark.group())
    if draft and mark and (yield from parser.skip_space()) == "<":
        inner, _ = yield from parser.dispatcher.row_here()
        if inner and inner.calls:  # the call in the body is the one that counts
            parser.addressed, parser.draft = draft, None
            return
    if draft:
        yield from _call_body(parser, draft)
    elif mark:
        yield from _body(parser, header)


def _role(header: str) -> str:
    """Return who speaks: the word after the start token."""
    words = header.removeprefix("<|start|>").split("<|", 1)[0].split()
    return "assistant" if not words or words[0].startswith("to=") else words[0]


def _call_body(parser: Parser, draft: Draft) -> Reading[None]:
    if draft.name == "python":
        yield from code_body(parser, draft)
        return
    if (yield from parser.skip_space()) == "<":  # an empty body: no arguments
        parser.settle(draft, "")
        return
    yield from parser.json_arguments(draft)


def _body(parser: Parser, header: str) -> Reading[None]:
    _, has_channel, channel = header.rpartition("<|channel|>")
    if _role(header) != "assistant":
        yield from parser.find(*_MESSAGE_END, 0)  # a turn that is not the model's, invented by it
    elif (has_channel and channel.split()[:1] == ["analysis"]) or " to=self" in f" {header}":
        yield from reasoning_block(parser, *_MESSAGE_END)
    elif not parser.sink.silent:
        parser.sink.text("\n")


# --- without its tokens ---------------------------------------------------------------------------------------------

_ANALYSIS = Shape("analysis", Run(r"[A-Z]"))
_BODY = (["json", Run(r"\s{0,4}"), "{"], ["code", Run(r"\s{0,4}"), "{"], ["{"])
_TO: list[Part] = ["to=", NAME, Run(r"\s{0,4}"), _BODY]
_CALL = Shape(Run(r"\s{0,4}"), *_TO)
_MARK = (["<|message|>"], ["<|channel|>"], ["<|constrain|>"])
_ADDRESSED = Shape(Run(" ?"), "to=", Run(r"[^\s<>]{1,64}"), Run(r"(?: [a-z]{0,16})?"), _MARK)
# After thoughts in a field of their own, the answer begins with the role of its message.
_COMMENTARY = tuple(Shape(word, Run(r"\s{1,4}"), *_TO) for word in ("commentary", "assistantcommentary"))
_FINAL = "assistantfinal"
_STRIPPED = (_ANALYSIS, Shape(_FINAL, Run(r"[A-Z]")), *_COMMENTARY)
_FIRST = ("analysis", "commentary", "assistantcommentary", _FINAL)
_TO_SOMEONE = re.compile(r"\sto=")
_WHOLE_RECIPIENT = re.compile(r"\s*to=([^\s{]+)\s")
_GLUED_END = marker_pattern(*_GLUED)


def begins_stripped(parser: Parser) -> Reading[Dialect | None]:
    """Return the row of a round that begins like an answer that has lost its tokens, or its first one."""
    char = yield from parser.peek()
    if char not in "ac t":
        return None
    try:
        found = yield from parser.test(*_STRIPPED, _ADDRESSED)
    except CutOff:
        half = parser.buffer[parser.position :]
        if (
            char in " t"
            or _FINAL.startswith(half)
            or (not _cut_call(parser) and not _TO_SOMEONE.search(half) and not parser.dispatcher.drops(half))
        ):
            parser.pass_text(len(half))
        raise
    return None if found is None else STRIPPED if found[0] < len(_STRIPPED) else _ADDRESSED_ROW


def _read_stripped(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read the first message of such an answer."""
    begun = next(word for word in _FIRST if parser.buffer.startswith(word, parser.position))
    parser.take(len(begun))
    parser.commit()
    if begun.endswith("commentary"):
        yield from _glued_call(parser)
    elif begun == "analysis":
        yield from reasoning_block(parser, *_GLUED_END)


def _read_glued(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read the message after a role and a channel without a token between them."""
    channel = parser.take(size)
    parser.commit()
    if channel == "assistantanalysis":
        yield from reasoning_block(parser, *_GLUED_END)
        return
    try:
        is_call = channel == "assistantcommentary" and (yield from parser.test(_CALL))
    except CutOff:
        _cut_call(parser)
        raise
    if is_call:
        yield from _glued_call(parser)
    elif not parser.sink.silent:
        parser.sink.text("\n")


def _read_header(parser: Parser, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read a header with a recipient and its body in a block of another dialect."""
    yield from parser.accept("assistant")
    yield from _glued_call(parser)


HEADER = (Shape(SPACE, (["assistant", Run(r"\s{1,4}"), *_TO], _TO)), _read_header)


def _cut_call(parser: Parser) -> bool:
    """Note the call of a header that was cut off after its recipient; return whether there is one."""
    recipient = _WHOLE_RECIPIENT.search(parser.buffer, parser.position)
    if recipient:
        parser.sink.finish(parser.call(recipient.group(1)).call, "incomplete")
    parser.draft = None
    return recipient is not None


def _glued_call(parser: Parser) -> Reading[None]:
    found = yield from parser.test(_CALL)
    assert found is not None
    parser.take(found[1].end(2) - parser.position)
    draft = parser.call(found[1].group(2))
    if not (yield from parser.accept("json")):
        yield from parser.accept("code")
    yield from _call_body(parser, draft)


STRIPPED = Dialect(name="harmony_stripped", markers=("",), read=_read_stripped, calls=False)
GLUED = Dialect(name="harmony_glued", markers=_GLUED, read=_read_glued, calls=False)
_ADDRESSED_ROW = Dialect(name="harmony_addressed", markers=("",), read=_read_message, calls=False)
ROWS = (
    Dialect(name="harmony", markers=("<|start|>", "<|channel|>"), read=_read_message, closers=("<|call|>", "<|end|>"),
            calls=False),
)  # fmt: skip
