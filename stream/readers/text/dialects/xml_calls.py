"""Calls written as tags: `<function=…>`, `<invoke name="…">` and their values, and key and value tags."""

from __future__ import annotations

import re
from collections.abc import Container
from functools import lru_cache

from stream.readers.text.dialect import Dialect, Draft, NotACall, Reading, Unreadable, Values
from stream.readers.text.dialects.json_calls import ALIAS, ALIASES, ARRAY, OBJECT, json_block
from stream.readers.text.parser import Parser
from stream.readers.text.patterns import FENCE, NAME, SPACE, Part, Run, Shape, marker_pattern, normalize, shape_of, trie
from stream.readers.text.tags import BLOCKS, PREFIX, SUFFIX, Tag, tag_of, words

__all__ = [
    "FUNCTIONS",
    "INSIDE",
    "INVOKE",
    "KEYED",
    "ROWS",
    "WITH_ATTRIBUTES",
    "read_bare_tags",
    "read_separated",
    "read_tags",
]

_TITLE = Run(r"[^<>\r\n]{1,64}")
_ATTRIBUTES = Run(r"[^<>]{0,96}")
_ATTRIBUTES_END = Shape(_ATTRIBUTES, ">")
_BREAK = Run(r"\s{1,8}")
INVOKE = Shape(SPACE, "<", PREFIX, "invoke", SUFFIX, _BREAK, "name=")
_INSIDE = Shape(SPACE, "<", PREFIX, (["function="], ["invoke", SUFFIX, _BREAK, "name="], *words(*BLOCKS, "calls")))
_NEXT = Shape(SPACE, "<", PREFIX, (["function="], ["invoke", SUFFIX, _BREAK]))
_CALL = Shape(SPACE, "<", PREFIX, (["function=", _TITLE, ">"], ["invoke", SUFFIX, _BREAK, _ATTRIBUTES, ">"]))
# Llama 3 also writes the arguments into the tag, or leaves out its end.
_FILLED = Shape(SPACE, "<", PREFIX, "function=", NAME, Run(r"[ \t]{0,4}"), (['{"'], ["{}"]))
_NAMED_END = Shape("</", PREFIX, "function=", NAME, ">")
# A call without a marker before it: a named opening tag, and the beginning of a body, up to the end of a tag's suffix.
_NAMED: list[Part] = [
    _BREAK, "name=", Run(r"[\"']?\s{0,4}"), Run(r"[^<>\"'\s][^<>\"']{0,63}"), Run(r"[\"']?\s{0,4}")
]  # fmt: skip
_FENCED: list[Part] = [*FENCE, "{"]
_PARAMETER = (["parameter", SUFFIX, Run(r"(?=[^\w.\-:])")],)
_BARE = tuple(
    Shape("<", PREFIX, *head, ">", SPACE, (["{"], _FENCED, ["<", PREFIX, _PARAMETER], ["</", PREFIX, words(end)]))
    for head, end in ((["function=", _TITLE], "function"), (["invoke", SUFFIX, *_NAMED], "invoke"))
)
_KEY_TAGS = words("arg_key", "tool_sep")
_KEYED = Shape(
    Run(r"[\r\n]{0,4}"), NAME, Run(r"[ \t]{0,4}[\r\n]{0,4}"), "<", (["/", PREFIX, words(*BLOCKS)], [PREFIX, _KEY_TAGS])
)
# A blank before the name counts only before a key: `<tool> hammer </tool>` is another language's.
_KEYED_BEHIND_BLANK = Shape(Run(r"[ \t]{1,4}"), NAME, Run(r"[ \t]{0,4}[\r\n]{0,4}"), "<", PREFIX, _KEY_TAGS)
_NAME_AND_BODY = Shape(SPACE, NAME, SPACE, (["{", SPACE, (['"'], ["}"])], _FENCED))
_ALMOST_JSON = Shape(SPACE, (["{", SPACE, "name"], ['"name"']), SPACE, ":")  # without its quotes, or its outer braces
_NAMED_AGAIN = Shape(SPACE, "{", SPACE, '"name"', SPACE, ":", SPACE, '"', NAME, '"')
_LABELS = ("json", "function", "tool", *BLOCKS)  # what models write before a call that has its name inside
_KEYED_PART = Shape("<", PREFIX, words("arg_key", "tool_sep", "arg_type", "arg_value"))
_ATTRIBUTE = re.compile(r"""([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"']+))""")
_LINE_ENDS = re.compile(r"\A\r?\n|\r?\n\Z")
_BODIES = "{`~"  # what arguments in JSON begin with, fenced or not
_LONGEST_KEY = 256


@lru_cache(maxsize=64)
class _Markup:
    """The tags of a call as its opening tag is decorated: with a title after `=` in `function`, else with a `name`.

    A `function` may also be `named`.
    """

    def __init__(self, tag: Tag, part: str = "parameter", *, named: bool = False) -> None:
        self.named, self._titled = named, tag.word == "function" and not named
        self.word = tag.word
        self.end, self.value_end = tag.closer, tag._replace(word=part).closer
        opener = f"<{tag.prefix}{part}" + ("=" if self._titled else tag.suffix)
        self.next_value = opener + ("" if self._titled else " name=")
        self.parameter = Shape(opener, *([_TITLE] if self._titled else [_BREAK, _ATTRIBUTES]), ">")

    def title(self, head: re.Match[str]) -> tuple[str, bool]:
        """Return the name that an opening tag gives, and whether its value is text; else it is JSON."""
        inside = head[head.lastindex or 0]
        if self._titled:
            return inside.strip().strip("\"'"), True
        attributes = {key: double or single or bare for key, double, single, bare in _ATTRIBUTE.findall(inside)}
        return attributes.get("name", ""), attributes.get("string") != "false"


def _tag(match: re.Match[str], lead: str = "") -> Tag:
    """Return the tag that a shape has found; a shape knows of a word and what decorates it, but not of both at once."""
    text = match.group().removeprefix(lead)
    tag = tag_of(text[text.index("<") :])
    if tag is None:
        raise NotACall
    return tag


def _read_inside(parser: Parser, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read the tags in a block, whose head was found: calls, or one more block."""
    block, tag = tag_of(row.markers[0]), _tag(match)
    if block and not block.holds(tag):
        raise NotACall
    if tag.word in ("invoke", "function"):
        yield from read_tags(parser, row)
        return
    if parser.nested:
        raise NotACall
    parser.take(match.end(1) - parser.position)
    inner, size = yield from parser.dispatcher.row_here()
    assert inner is not None
    parser.nested = True
    try:
        yield from parser.dispatcher.attempt(inner, size)
    finally:
        parser.nested = False


def read_tags(parser: Parser, row: Dialect, match: re.Match[str] | None = None) -> Reading[None]:
    """Read `<function=NAME>` or `<invoke name="NAME">`, or as many of them as a block holds."""
    while True:
        found = yield from parser.test(_FILLED, _CALL)
        if not found:
            yield from parser.skip_space()
            parser.take(1)  # no call begins here any more
            raise Unreadable
        is_filled, head = not found[0], found[1]
        parser.take(head.end(3 if is_filled else 0) - parser.position)
        markup = _Markup(_tag(head))
        draft = parser.call(head.group(3) if is_filled else markup.title(head)[0])
        if (yield from parser.skip_space()) in _BODIES:
            yield from parser.json_arguments(draft)
            if is_filled:
                yield from parser.accept(">", after_space=False)
            yield from parser.skip_space()
            yield from parser.read(shape_of(markup.end), _NAMED_END)
        else:
            yield from _parameters(parser, row, draft, markup)
        if not row.wraps or not (yield from parser.test(_NEXT)):
            return


def _read_with_attributes(parser: Parser, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read `<tool_call name="NAME">` with its arguments as JSON or as parameters, or a whole call as JSON."""
    head, tag = (yield from parser.expect(_ATTRIBUTES_END)), tag_of(row.markers[0])
    name = _INVOKE.title(head)[0]
    if not name:
        yield from parser.begin_fence()
        yield from json_block(parser, row)
        yield from parser.end_fence()
    elif (yield from parser.skip_space()) in _BODIES:
        yield from parser.json_arguments(parser.call(name))
    elif tag:
        yield from _parameters(parser, row, parser.call(name), _Markup(tag))


def read_bare_tags(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read a call in tags that no marker announces; its head must be followed by a body."""
    found = yield from parser.test(_FILLED, *_BARE)
    if found and not found[0]:
        yield from read_tags(parser, row)
        return
    if found:
        call, text = _tag(found[1]), found[1].group()
        part = tag_of(text[text.rindex("<") :] + " " * (text[-1] != ">"))
        if text.endswith("{") or (part and (part._replace(closing="") == call if part.closing else call.holds(part))):
            yield from read_tags(parser, row)
            return
    parser.take(size)
    raise NotACall


_FUNCTIONS = {part: _Markup(Tag("", "", "function", ""), part, named=True) for part in ("param", "parameter")}
_CDATA = ("<![CDATA[", "]]>")
_FUNCTION: list[Part] = [
    "<function", *_NAMED, ">", SPACE, (["<param name="], ["<parameter name="], ["</function>"])
]  # fmt: skip
_NAMED_FUNCTION, _FUNCTIONS_INSIDE = Shape(*_FUNCTION), Shape(SPACE, *_FUNCTION)


def _read_function(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read `<function name="NAME"><param name="KEY">value</param></function>`, or with `parameter`."""
    head = yield from parser.test(_NAMED_FUNCTION)
    if not head:
        parser.take(size)
        raise NotACall
    yield from _function(parser, row, head[1])


def _function(parser: Parser, row: Dialect, head: re.Match[str]) -> Reading[None]:
    parser.take(parser.buffer.index(">", parser.position) + 1 - parser.position)
    markup = _FUNCTIONS["parameter" if head.group().endswith("<parameter name=") else "param"]
    yield from _parameters(parser, row, parser.call(head.group(3).strip()), markup)


def _read_functions(parser: Parser, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read as many of them as a block holds."""
    parser.take(match.end(1) - parser.position)
    while head := (yield from parser.test(_NAMED_FUNCTION)):
        yield from _function(parser, row, head[1])
        yield from parser.skip_space()


_MCP_TAG = Shape(SPACE, "<", (["server_name>"], ["tool_name>"], ["arguments>"], ["/use_mcp_tool>"]))
_MCP = Shape(SPACE, "<", (["server_name>"], ["tool_name>"]))


def _read_mcp(parser: Parser, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read `<server_name>`, `<tool_name>`, and `<arguments>` with JSON."""
    draft: Draft | None = None
    while tag := (yield from parser.read(_MCP_TAG)):
        word = tag.group().strip()[1:-1]
        if word in ("arguments", "/use_mcp_tool"):
            break
        text = yield from parser.text_to(f"</{word}>", _LONGEST_KEY)
        if word == "tool_name":
            draft = parser.call(text.strip())
    if not draft:
        raise Unreadable
    if tag and word == "arguments":
        yield from parser.json_arguments(draft)
        yield from parser.read(shape_of(SPACE, "</arguments>"))
        yield from parser.read(shape_of(SPACE, "</use_mcp_tool>"))
    else:
        parser.settle(draft, "")


# --- tags behind separators -------------------------------------------------------------------------------------------

_SPACES = Run(r"\s{0,8}")
_SEPARATED_CLOSER = Shape("</", Run(r"[^\s<>]{1,64}"), ">")
_SEPARATED_CALL = ("<", PREFIX, "invoke", SUFFIX, _BREAK, _ATTRIBUTES, ">")
_SEPARATED_PARAMETER = ("<", Run(r"[^\s<>/][^\s<>]{0,63}"), Run(r"(?:\s[^<>]{0,96})?"), ">")
_INVOKE = _Markup(Tag("", "", "invoke", ""))


class _Endings(tuple[str, ...]):
    """The markers that end so."""

    __slots__ = ()

    def __contains__(self, marker: object) -> bool:
        return str(marker).endswith(self)


@lru_cache(maxsize=256)
def _separated(lead: str, *closers: str) -> tuple[re.Pattern[str], Container[str]]:
    return re.compile(trie((lead, _SPACES, closer) for closer in closers)), _Endings(closers)


def read_separated(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read calls in which a separator stands before every tag; in them a tag is the parameter of its name."""
    lead = parser.take(size - 1).rstrip()
    if (yield from parser.read(_SEPARATED_CLOSER)):
        if not parser.line.fresh:
            raise NotACall
        parser.commit()
        return
    before: tuple[Part, ...] = ()
    for _ in range(2):
        if (yield from parser.read(shape_of(*before, "<", PREFIX, words(*BLOCKS)))):
            before = (SPACE, lead, _SPACES)
    found = yield from parser.test(shape_of(*before, *_SEPARATED_CALL), *((OBJECT, ARRAY) if before else ()))
    if not found:
        raise NotACall
    if found[0]:
        yield from json_block(parser, row)
        return
    while head := (yield from parser.read(shape_of(*before, *_SEPARATED_CALL))):
        closer = _tag(head, head.group(1) + lead if before else "").closer
        before = (SPACE, lead, _SPACES)
        yield from _separated_values(parser, lead, parser.call(_INVOKE.title(head)[0]), closer)
    yield from parser.read(shape_of(*before, "</", PREFIX, words(*BLOCKS)))


def _separated_values(parser: Parser, lead: str, draft: Draft, closer: str) -> Reading[None]:
    values = Values(parser.max_argument_chars)
    while True:
        yield from parser.skip_space()
        if (yield from parser.read(shape_of(lead, _SPACES, closer))):
            break
        head = yield from parser.expect(shape_of(lead, _SPACES, *_SEPARATED_PARAMETER))
        word, inside = head.group(2), head.group(3)
        own = f"</{word}>"
        value, end = yield from parser.find(*_separated(lead, own, closer), values.left)
        if end.endswith(own):
            parser.take(len(end))
        values.put(_INVOKE.title(head)[0] if inside else word, value)
    parser.settle(draft, values.json)


def _parameters(parser: Parser, row: Dialect, draft: Draft, markup: _Markup) -> Reading[None]:
    """Read parameters up to the call's own end, or to the end of its block after a value."""
    values = Values(parser.max_argument_chars)
    plain = markup if markup.named else _Markup(Tag("", "", markup.word, ""))
    while True:
        yield from parser.skip_space()
        found = yield from parser.test(shape_of(markup.end), markup.parameter, plain.parameter)
        if found:
            parser.take(found[1].end() - parser.position)
            if not found[0]:
                break
            own = plain if found[0] > 1 else markup
            ends = marker_pattern(own.value_end, own.next_value, markup.end)
            value, end = yield from parser.find(*ends, values.left)
            if end == normalize(own.value_end):
                parser.take(len(end))
            key, is_text = own.title(found[1])
            if value.startswith(_CDATA[0]) and value.endswith(_CDATA[1]) and markup.named:
                value = value[len(_CDATA[0]) : -len(_CDATA[1])]
            values.put(key, _LINE_ENDS.sub("", value) if is_text else value, is_text=is_text)
        elif values.some and (yield from parser.test(*row.ends)):
            break
        else:
            raise Unreadable
    parser.settle(draft, values.json)


def _keyed(parser: Parser, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read a name and its `<arg_key>` and `<arg_value>` tags up to the closing marker, which must come."""
    block, tag, name = tag_of(row.markers[0]), _tag(match), match.group(2)
    assert block is not None
    if tag.closing:
        # A word in front is little to tell a tag of another language by.
        told = block == tag._replace(closing="") and (not block.prefix.endswith("_") or name in (parser.declared or ()))
    else:
        told = block.holds(tag)
    if not told:
        raise NotACall
    parser.take(match.end(3) - parser.position)
    draft = parser.call(name)
    values = Values(parser.max_argument_chars)
    key: str | None = None
    while True:
        yield from parser.skip_space()
        if (yield from parser.read(shape_of(row.closers[0]))):
            break
        head = yield from parser.read(_KEYED_PART)
        tag = _tag(head) if head else tag._replace(word="arg_value")  # this opening tag may lack
        if not block.holds(tag) or (tag.word == "arg_value" and key is None):
            raise Unreadable
        if tag.word == "tool_sep":
            continue
        is_value = tag.word == "arg_value"
        ends = marker_pattern(tag.closer, *([row.closers[0]] if is_value else []))
        text, end = yield from parser.find(*ends, values.left if is_value else _LONGEST_KEY)
        if end == normalize(tag.closer):
            parser.take(len(end))
        if tag.word == "arg_key":
            key = text.strip()
            if len(text) > _LONGEST_KEY:
                raise Unreadable
        elif is_value and key is not None:
            values.put(key, text)
            key = None
    parser.settle(draft, values.json)


def _name_and_body(parser: Parser, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read a tool's name and its arguments as JSON, or a label and a whole call as JSON; in a code fence or not."""
    parser.take(match.end(3) - parser.position)
    name = match.group(2).rstrip(":")
    again = yield from parser.test(_NAMED_AGAIN)
    is_label = name in _LABELS and name not in (parser.declared or ())
    if is_label or (again and again[1].group(5) == name):
        yield from parser.begin_fence()
        yield from json_block(parser, row)
        yield from parser.end_fence()
    else:
        yield from parser.json_arguments(parser.call(name))


# Heads of tags that are known by their shape.
INSIDE = (_INSIDE, _read_inside)
KEYED = ((_KEYED, _keyed), (_KEYED_BEHIND_BLANK, _keyed), (_NAME_AND_BODY, _name_and_body), (_ALMOST_JSON, json_block))
FUNCTIONS = (_FUNCTIONS_INSIDE, _read_functions)
WITH_ATTRIBUTES = (
    Shape(_ATTRIBUTES, ">", (["{"], ["\n{"], ["\r\n{"], [SPACE, *_FENCED], [SPACE, "<", PREFIX, _PARAMETER])),
    _read_with_attributes,
)
_WORDS = ("function_call", *ALIASES)
ROWS = (
    Dialect(name="tag_with_more", markers=tuple(f"<{word} " for word in _WORDS), heads=(*ALIAS, WITH_ATTRIBUTES),
            closers=(">", *(f"</{word}>" for word in _WORDS))),
    Dialect(name="named_function", markers=("<function name=",), read=_read_function, closers=("</function>",)),
    Dialect(name="mcp_tool", markers=("<use_mcp_tool>",), heads=((_MCP, _read_mcp),), closers=("</use_mcp_tool>",)),
)  # fmt: skip
