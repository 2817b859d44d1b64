"""The message format with channels, with its tokens and as a server leaves it that has removed them."""

from __future__ import annotations

import re

from stream.readers.text.dialect import CutOff, Dialect, Draft, NotACall, Reading, Unreadable, clean_name
from stream.readers.text.dialects.pythonic import code_body
from stream.readers.text.dialects.reasoning import reasoning_block
from stream.readers.text.parser import Parser
from stream.readers.text.patterns import SPACE, Part, Run, Shape, marker_pattern, normalize

__all__ = ["GLUED", "HEADER", "ROWS", "STRIPPED", "begins_stripped"]

_MESSAGE_ENDS = ("<|end|>", "<|start|>", "<|channel|>", "<|call|>", "<|return|>", "<|eom|>", "<|eot|>")
_GLUED_TO = "assistant to="
_GLUED = ("assistantcommentary", "assistantfinal", "assistantanalysis", _GLUED_TO)

_HEADER_END = re.compile(r"[<>\n{}]")
_HEADER_MARKS = (Shape("<|message|>"), Shape("<|channel|>"), Shape("<|constrain|>"))
_RECIPIENT = re.compile(r"(?:^|[\s>])to=([^\s<]+)(?=[\s<])")
_NOBODY = frozenset({"assistant", "user", "all", "self"})
_MESSAGE_END = marker_pattern(*_MESSAGE_ENDS)
_LONGEST_HEADER = 256


def _read_message(parser: Parser, row: Dialect, size: int, begun: str = "") -> Reading[None]:
    """Read a message's header, and its body unless that is spoken: then it is text like any other."""
    header = begun + normalize(parser.take(size))
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
    yield from parser.arguments_or_none(draft)


def _body(parser: Parser, header: str) -> Reading[None]:
    _, has_channel, channel = header.rpartition("<|channel|>")
    if _role(header) != "assistant":
        yield from parser.find(*_MESSAGE_END, 0)  # a turn that is not the model's, invented by it
    elif (has_channel and channel.split()[:1] == ["analysis"]) or " to=self" in f" {header}":
        yield from reasoning_block(parser, *_MESSAGE_END)
    elif not parser.sink.silent:
        parser.sink.text("\n")


# --- without its tokens ---------------------------------------------------------------------------------------------

_FINAL = "assistantfinal"
_CHANNELS = ("commentary", "analysis", "final")
_CHANNEL = f"(?:{'|'.join(_CHANNELS)})"
_GAP = Run(r"\s{0,4}")
_BODY: tuple[list[Part], ...] = (
    ["json", _GAP, "{"], ["code", _GAP, "{"], ["<|constrain|>json", _GAP, "{"], ["{"]
)  # fmt: skip
_SPACED: list[list[Part]] = [[channel, _GAP, _BODY] for channel in _CHANNELS]
_RECIPIENT_CHARACTERS = r"[^\W\d][\w.\-/:]{0,95}"
_TO: list[Part] = ["to=", Run(_RECIPIENT_CHARACTERS), _GAP, (*_BODY, *_SPACED)]
_CALL = Shape(_GAP, *_TO)
# Before its channel a recipient counts if it is a function, or if the channel follows at once.
_TO_TOOL: list[Part] = [
    "to=",
    Run(rf"(?:functions\.[\w.\-/:]{{1,85}}|{_RECIPIENT_CHARACTERS}{_CHANNEL}(?:json|code)?)", _RECIPIENT_CHARACTERS),
    _GAP,
    (*_BODY, *_SPACED),
]
_ADDRESSED_CALL = Shape("assistant", Run(r"\s{1,4}"), *_TO_TOOL)
_MARK = (["<|message|>"], ["<|channel|>"], ["<|constrain|>"])
_TO_ANYONE: list[Part] = ["to=", Run(r"[^\s<>]{1,64}"), Run(r"(?: [a-z]{0,16})?")]
_BODY_MARK = (["<|message|>"], ["<|channel|>"], ["<|constrain|>", Run(r"[a-z]{1,16}"), _GAP, "<|message|>"])
_FROM_CHANNEL: list[list[Part]] = [[word, _GAP, (["<|message|>"], [*_TO_ANYONE, _BODY_MARK])] for word in _CHANNELS]
# A server, or the prompt, has kept the first tokens: a mark tells such an answer from words.
_FIRST_MISSING = (
    Shape(Run(" ?"), *_TO_ANYONE, _MARK),
    Shape((*_FROM_CHANNEL, ["assistant", _GAP, (["<|channel|>"], [*_TO_ANYONE, _BODY_MARK], *_FROM_CHANNEL)])),
)
# After thoughts in a field of their own, the answer begins with the role of its message.
_BEGUN = (*_CHANNELS, "assistantcommentary", "assistantanalysis", _FINAL)
_STRIPPED = (
    # Glued to a capital letter. Other scripts have none: `analysisは…` explains the word.
    Shape(tuple([word] for word in _BEGUN), Run(r"[A-ZÀ-ÖØ-ÞЀ-Я]")),
    *(Shape(word, Run(r"\s{1,4}"), *_TO) for word in _BEGUN if not word.endswith("final")),
    _ADDRESSED_CALL,
    Shape(Run(" ?"), *_TO_TOOL),
)
_FIRST = (*_BEGUN, "assistant", "")
# A result that the model invents behind its call.
_RESULT = Shape(SPACE, "functions.", Run(r"[\w.\-/:]{1,85}"), Run(r"\s{1,4}"), "to=assistant")
_HALF_RESULT = re.compile(r"\s*functions\.")
_HALF_HEADER = re.compile(r"commentary\s+to=|to=functions\.")
_WHOLE_RECIPIENT = re.compile(r"\s*to=([^\s{<]+)[\s<]")
_GLUED_ENDING = re.compile(rf"(?:{_CHANNEL}|json|code)\Z")
_BEFORE_CHANNEL = re.compile(rf"(.+){_CHANNEL}(?:json|code)?")
_GLUED_END = marker_pattern(*_GLUED)


def begins_stripped(parser: Parser) -> Reading[Dialect | None]:
    """Return the row of a round that begins like an answer that has lost its tokens, or its first ones."""
    char = yield from parser.peek()
    if char not in "acf t":
        return None
    try:
        found = yield from parser.test(*_STRIPPED, *_FIRST_MISSING)
    except CutOff:
        half = parser.buffer[parser.position :]
        if _HALF_HEADER.search(half):
            _cut_call(parser, channel_first=char == "c" or half.startswith("assistantc"))
        elif not parser.dispatcher.drops(half) or (
            "<" not in half and (char in "f t" or _FINAL.startswith(half.replace(" ", "")))
        ):
            parser.pass_text(len(half))
        raise
    return None if found is None else STRIPPED if found[0] < len(_STRIPPED) else _WITHOUT_FIRST


def _read_without_first(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read the first message of an answer that has lost its first tokens only."""
    yield from parser.accept("assistant", after_space=False)
    yield from _read_message(parser, row, size, "<|channel|> ")


def _read_stripped(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read the first message of such an answer."""
    begun = next(word for word in _FIRST if parser.buffer.startswith(word, parser.position))
    parser.take(len(begun))
    parser.commit()
    if not begun.endswith(_CHANNELS):
        yield from _glued_call(parser)
    elif (yield from parser.test(_CALL)):
        yield from _glued_call(parser, channel_first=True)
    elif begun.endswith("analysis"):
        yield from _thoughts(parser)


def _read_glued(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read the message after a role and a channel, or a recipient, without a token between them."""
    if parser.buffer.startswith(_GLUED_TO, parser.position):
        if not (yield from _comes_call(parser, _ADDRESSED_CALL)):
            parser.take(size)
            raise NotACall
        parser.take(len("assistant"))
        parser.commit()
        yield from _glued_call(parser)
        return
    channel = parser.take(size)
    parser.commit()
    if channel != _FINAL and (yield from _comes_call(parser, _CALL, channel_first=True)):
        yield from _glued_call(parser, channel_first=True)
    elif channel == "assistantanalysis":
        yield from _thoughts(parser)
    elif not parser.sink.silent:
        parser.sink.text("\n")


def _thoughts(parser: Parser) -> Reading[None]:
    """Read reasoning up to the next message; a recipient that is only mentioned belongs to it."""
    while (yield from reasoning_block(parser, *_GLUED_END)) == _GLUED_TO:
        if (yield from _comes_call(parser, _ADDRESSED_CALL)):
            return
        parser.sink.reasoning(parser.take(len(_GLUED_TO)))


def _comes_call(parser: Parser, shape: Shape, *, channel_first: bool = False) -> Reading[bool]:
    """Return whether a call's header comes next; one that is cut off is not spoken."""
    try:
        return (yield from parser.test(shape)) is not None
    except CutOff:
        parser.commit()
        _cut_call(parser, channel_first=channel_first)
        raise


def _read_header(parser: Parser, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read a header with a recipient and its body in a block of another dialect."""
    yield from parser.accept("assistant")
    yield from _glued_call(parser)


HEADER = (Shape(SPACE, (["assistant", Run(r"\s{1,4}"), *_TO], _TO)), _read_header)


def _cut_call(parser: Parser, *, channel_first: bool) -> None:
    """Note the call of a header that was cut off after its recipient."""
    recipient = _WHOLE_RECIPIENT.search(parser.buffer, parser.position)
    name = recipient and _tool_name(parser, recipient.group(1), channel_first=channel_first)
    if name:
        parser.sink.finish(parser.call(name).call, "incomplete")
    parser.draft = None


def _glued_call(parser: Parser, *, channel_first: bool = False) -> Reading[None]:
    found = yield from parser.test(_CALL)
    assert found is not None
    parser.take(found[1].end() - len("{") - parser.position)
    draft = parser.call(_tool_name(parser, found[1].group(2), channel_first=channel_first))
    yield from _call_body(parser, draft)
    try:
        while (yield from parser.read(_RESULT)):
            yield from parser.find(*_GLUED_END, 0)
    except CutOff:
        if _HALF_RESULT.match(parser.buffer, parser.position):
            parser.take_to(None)
            parser.commit()
        raise


def _tool_name(parser: Parser, recipient: str, *, channel_first: bool) -> str:
    """Return the tool's name in a recipient, to which its channel and the type of the body may be glued."""
    name = clean_name(recipient)
    declared = parser.declared or frozenset()
    shorter, ending = name, _GLUED_ENDING.search(name)
    while shorter not in declared and ending:
        shorter = shorter[: ending.start()]
        ending = _GLUED_ENDING.search(shorter)
    if shorter in declared:
        return shorter
    before = None if channel_first else _BEFORE_CHANNEL.fullmatch(name)
    return before.group(1) if before else name


STRIPPED = Dialect(name="harmony_stripped", markers=("",), read=_read_stripped, calls=False)
GLUED = Dialect(name="harmony_glued", markers=_GLUED, read=_read_glued, calls=False)
_WITHOUT_FIRST = Dialect(name="harmony_without_first", markers=("",), read=_read_without_first, calls=False)
ROWS = (
    Dialect(name="harmony", markers=("<|start|>", "<|channel|>"), read=_read_message, closers=("<|call|>", "<|end|>"),
            calls=False),
)  # fmt: skip
