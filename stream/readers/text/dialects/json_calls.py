"""Calls written as JSON: bare objects, arrays and wrappers of them, and the bodies of marked blocks."""

from __future__ import annotations

import json
import re
from contextlib import suppress

from stream.readers.text.dialect import Dialect, Draft, NotACall, Reading, Unreadable
from stream.readers.text.parser import Parser
from stream.readers.text.patterns import FENCE, NAME, SPACE, Part, Run, Shape, shape_of
from stream.readers.text.scanner import KEY, VALUE, JsonScanner

__all__ = ["ALIAS", "ALIASES", "ARRAY", "JSON", "NAMED", "OBJECT", "ROWS", "call_array", "json_block"]

# With a Python dict's quotes it is a call that cannot be read. Some templates show the model doubled braces.
OBJECT = Shape(SPACE, "{", SPACE, (['"'], ["'"], ["{", SPACE, '"']))
ARRAY = Shape(SPACE, "[", SPACE, "{")
_DIRECT = (Shape('{"'), Shape("[{"))

_NAME = Shape('"', Run(r"(?:[\w.\-/:]|\\(?:/|u[0-9a-fA-F]{0,4}|\Z)){1,64}"), '"')
_PLAIN_NAME = re.compile(NAME)
# Values of members that a call may have and that do not make one.
_HARMLESS = {
    "type": Shape('"', (["function", '"'], ["function_call", '"'], ["tool_call", '"'], ["tool_use", '"'])),
    "role": Shape('"assistant"'),
    "content": Shape((['""'], ["null"])),
}
_DOUBLED = Shape("{", SPACE, "{")
_PARALLEL = Shape(SPACE, "{", SPACE, '"tool_uses"')
_NEXT_ITEM = Shape(SPACE, ",", SPACE, "{")
_MORE_MEMBERS = Shape(",", SPACE, '"')
_USUAL_KEYS = ("name", "tool_name", "function", "recipient_name", "arguments", "parameters")
_NAME_KEYS = ("name", "tool_name", "tool", "action", "function_name", "recipient_name")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "params", "input", "inputs", "kwargs", "tool_input", "tool_args",
                  "action_input", "function_args")  # fmt: skip
_WRAPPERS = ("tool_calls", "tool_uses")
_WRAPPERS_OF_ONE = ("tool_call", "function_call", "functionCall")
_DEEPEST = 16  # brackets around a wrapper; a call stands in two or three
_THOUGHTS = ("thought", "thoughts")  # beside calls
_ID_KEYS = ("id", "tool_call_id")
_NO_ARGUMENTS = ("index", *_ID_KEYS, *_THOUGHTS)  # beside a name
_ARGUMENT_TAGS = ("arguments>", "parameters>", "input>")
_ARGUMENTS, _ARGUMENTS_END = (Shape(SPACE, lead, tuple([tag] for tag in _ARGUMENT_TAGS)) for lead in ("<", "</"))
_NAME_TAG = Shape(
    SPACE, "<name>", SPACE, NAME, SPACE, "</name>", SPACE, "<",
    tuple([tag, SPACE, (["{"], ["</"], [*FENCE, "{"])] for tag in _ARGUMENT_TAGS),
)  # fmt: skip
_SCALAR = re.compile(r'["\-0-9n]')
_KEYS = sorted({*_NAME_KEYS, *_ARGUMENT_KEYS, *_ID_KEYS, *_WRAPPERS, *_THOUGHTS, "function", "index", "type",
                *_WRAPPERS_OF_ONE, "role", "content"})  # fmt: skip
_KEY = Shape('"', tuple([key + '"'] for key in _KEYS))
_CALL_KEYS = [key for key in _KEYS if key not in ("role", "content", *_THOUGHTS)]
_NEXT_OBJECT: tuple[list[Part], ...] = tuple(
    ["{", SPACE, quote, tuple([key + quote] for key in _CALL_KEYS)] for quote in "\"'"
)
_NEXT_IN_BLOCK = Shape(Run(r"[\s,;}\]]{0,32}"), (*_NEXT_OBJECT, ["[", SPACE, "{"]))


def _read_object(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read a bare object that may be a call."""
    yield from call_item(parser, strong=False)


def json_block(parser: Parser, row: Dialect, match: re.Match[str] | None = None) -> Reading[None]:
    """Read the body of a marked block: objects and arrays, with commas, semicolons or white space between them."""
    while True:
        yield from _calls(parser, strong=True)
        # Without a closing marker in the table, nothing after the first value belongs to the block. If the marker may
        # be missing, only an object that begins like a call does.
        found = (yield from parser.test(_NEXT_IN_BLOCK, *row.ends)) if row.closers else None
        if not found:
            return
        parser.take(len(found[1].group(1)))
        if found[0]:
            return


def _weak_block(parser: Parser, row: Dialect, match: re.Match[str] | None = None) -> Reading[None]:
    """Read a tag's body that is a call only if the object in it has the shape of one."""
    yield from _calls(parser, strong=False)


def _alias_block(parser: Parser, row: Dialect, match: re.Match[str] | None = None) -> Reading[None]:
    """Read the body of a tag that holds nothing but calls: a name is enough to make one."""
    yield from _calls(parser, strong=False, named=True)
    if row.closers[:1] == (">",):  # it counts only here; other closing tags are dropped wherever they stray
        yield from parser.read(row.ends[0])


def _named_block(parser: Parser, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read `<name>NAME</name>`, and JSON in a tag for arguments."""
    parser.take(match.end(5) - parser.position)
    draft = parser.call(match.group(3))
    yield from parser.read(_ARGUMENTS)
    yield from parser.arguments_or_none(draft)
    yield from parser.read(_ARGUMENTS_END)


def _parallel_block(parser: Parser, row: Dialect, match: re.Match[str] | None = None) -> Reading[None]:
    """Read the argument of `multi_tool_use.parallel(`, an object of calls."""
    yield from _calls(parser, strong=True)
    yield from parser.read(shape_of(SPACE, ")"))


def _calls(parser: Parser, *, strong: bool, named: bool = False) -> Reading[None]:
    read = call_array if (yield from parser.skip_space()) == "[" else call_item
    yield from read(parser, strong=strong, named=named)


def call_array(parser: Parser, *, strong: bool, stack: str = "", named: bool = False) -> Reading[None]:
    """Read an array of calls; the first one decides whether it is one."""
    parser.take(1)
    array = parser.sink.new_array()
    stack += "["
    char = yield from parser.skip_space()
    if char == "]" and "{" in stack and not strong:  # a wrapper of nothing
        parser.take(1)
        parser.draft = None
        return
    if char != "{":
        raise (Unreadable if strong else _text(stack))
    yield from call_item(parser, array, strong=strong, stack=stack, named=named)
    while found := (yield from parser.test(_NEXT_ITEM)):
        parser.take(found[1].end() - 1 - parser.position)
        yield from call_item(parser, array, strong=True, stack=stack)
    yield from parser.accept("]")


def _text(stack: str, state: int = VALUE) -> NotACall:
    """Return the outcome for JSON that isn't a call: all of it is text, to the end of its outermost value."""
    return NotACall(JsonScanner(state, stack, lenient=False))


def call_item(parser: Parser, array: int = 0, *, strong: bool, stack: str = "", named: bool = False) -> Reading[None]:
    """Read one object that is a call or a wrapper of calls."""
    draft = parser.new_draft(array, strong=strong)
    draft.begun |= "{" in stack
    draft.named |= named or "{" in stack  # inside of a wrapper
    yield from _members(parser, draft, stack)
    if parser.draft is not draft:
        return  # it was a wrapper
    if not draft.announced:
        declared = parser.declared
        if not strong and (draft.unusual or not draft.name or declared is None or draft.name not in declared):
            raise NotACall
        parser.announce(draft)
    arguments = draft.beside.json if draft.arguments is None and draft.beside.some else draft.arguments or ""
    parser.settle(draft, arguments)


def _members(parser: Parser, draft: Draft, stack: str, *, in_function: bool = False) -> Reading[None]:
    yield from _open(parser, strong=draft.strong)
    stack += "{"
    char = yield from parser.skip_space()
    while char != "}":
        key = yield from _key(parser, draft, stack)
        char = yield from parser.skip_space()
        if char != ":":
            raise Unreadable
        parser.take(1)
        draft.begun = True
        char = yield from parser.skip_space()
        yield from _member(parser, draft, key, char, stack, in_function=in_function)
        char = yield from parser.skip_space()
        if char == ",":
            if draft.complete and not (yield from parser.test(_MORE_MEMBERS)):
                return
            parser.take(1)
            if (yield from parser.skip_space()) != '"':
                raise Unreadable
        elif char != "}":
            if parser.draft is draft and (char == ":" or not draft.complete or _is_cut(draft.arguments or "")):
                raise Unreadable
            return  # a lost bracket does not matter
    parser.take(1)


def _is_cut(arguments: str) -> bool:
    """Whether they are an object in a text that the object's own quotes have ended: `"{"city": …}"`."""
    text = str(json.loads(arguments, strict=False)).lstrip() if arguments.startswith('"') else ""
    if text.startswith("{"):
        try:
            json.loads(text, strict=False)
        except (ValueError, RecursionError):
            return True
    return False


def _open(parser: Parser, *, strong: bool) -> Reading[None]:
    """Read the brace of an object, or two; a second one at its end does not matter."""
    parser.take(1)
    if strong and (yield from parser.skip_space()) == "{":
        parser.take(1)


def _key(parser: Parser, draft: Draft, stack: str) -> Reading[str]:
    if (yield from parser.peek()) != '"':
        raise Unreadable
    if draft.strong or draft.announced:
        return (yield from parser.json_scalar())  # type: ignore[no-any-return]  # a string
    found = yield from parser.test(_KEY)
    if not found:
        raise _text(stack, KEY)
    return parser.take(len(found[1].group()))[1:-1]


def _member(parser: Parser, draft: Draft, key: str, char: str, stack: str, *, in_function: bool) -> Reading[None]:
    if key == "recipient_name" and len(stack) == 1 and not draft.strong:
        raise _text(stack)
    if len(stack) > _DEEPEST:  # each wrapper in a wrapper takes a piece of Python's own stack
        raise (Unreadable if draft.strong or draft.announced else _text(stack))
    draft.unusual |= key in _NAME_KEYS + _ARGUMENT_KEYS and key not in _USUAL_KEYS
    if key == "function" and char == "{" and not in_function:
        yield from _members(parser, draft, stack, in_function=True)
    elif key in _WRAPPERS_OF_ONE and char == "{" and not (draft.name or in_function):
        yield from call_item(parser, strong=draft.strong, stack=stack)
        draft.strong = True
    elif key in _WRAPPERS and char == "[" and not (draft.name or in_function):
        yield from call_array(parser, strong=draft.strong, stack=stack)
        draft.strong = True
    elif (key in _NAME_KEYS or (key == "function" and not in_function)) and not draft.name:
        yield from _name(parser, draft, stack)
    elif key in _ARGUMENT_KEYS and not draft.arguments_begun:
        yield from _arguments(parser, draft, char, stack)
    elif key in _ID_KEYS and _SCALAR.match(char):
        value = yield from parser.json_scalar()
        draft.call.id = "" if value is None else str(value)
    elif (draft.strong or draft.announced) and key not in _NO_ARGUMENTS:
        if key not in _HARMLESS or not (yield from parser.read(_HARMLESS[key])):
            draft.beside.put(key, (yield from parser.json_value(draft.beside.left)), is_text=False)
    elif (
        draft.strong
        or draft.announced
        or (key == "index" and _SCALAR.match(char))
        or (key in _THOUGHTS and char == '"' and not draft.name)
    ):
        yield from parser.json_value()
    elif key not in _HARMLESS or not (found := (yield from parser.read(_HARMLESS[key]))):
        raise _text(stack)
    else:
        draft.is_use |= "use" in found.group()


def _name(parser: Parser, draft: Draft, stack: str) -> Reading[None]:
    if draft.strong:
        if (yield from parser.peek()) != '"':
            raise Unreadable
        draft.name = str((yield from parser.json_scalar()))
    else:
        found = yield from parser.test(_NAME)
        name = ""
        if found:
            with suppress(ValueError):  # half an escape
                name = json.loads(found[1].group())
        if not found or not _PLAIN_NAME.fullmatch(name):
            raise _text(stack)
        parser.take(len(found[1].group()))
        draft.name = name
    if draft.named or draft.arguments_begun:
        _announce(parser, draft, stack)


def _announce(parser: Parser, draft: Draft, stack: str) -> None:
    """Announce a call; under unusual keys, and with no mark that it is one, only a declared tool is called."""
    if draft.unusual and not (draft.strong or draft.is_use or draft.name in (parser.declared or ())):
        raise _text(stack)
    parser.announce(draft)


def _arguments(parser: Parser, draft: Draft, char: str, stack: str) -> Reading[None]:
    is_certain = draft.strong or draft.announced
    if char not in '{"n' and not (char == "'" and is_certain):
        raise (Unreadable if is_certain else _text(stack))
    draft.arguments_begun = True
    if draft.unusual and not draft.strong and char != "{":
        raise _text(stack)
    if draft.name and not draft.announced:
        _announce(parser, draft, stack)
    # The object may have doubled braces, or stand in a Python text.
    end = "'" if char == "'" else "}" if char == "{" and (yield from parser.test(_DOUBLED)) else ""
    if end:
        parser.take(1)
        yield from parser.skip_space()
    draft.arguments = yield from parser.json_value()
    if end:
        yield from parser.accept(end)


# Heads of marked blocks: of any, of those whose tag may be text, and of those that hold nothing but calls.
JSON, _WEAK, ALIAS = (((OBJECT, read), (ARRAY, read)) for read in (json_block, _weak_block, _alias_block))
NAMED = (_NAME_TAG, _named_block)
ALIASES = ("function-call", "functioncall", "tool-call", "toolcall", "tool_use", "TOOL_CALL")

ROWS = (
    Dialect(name="gigachat", markers=("function call<|role_sep|>",), heads=JSON, closers=("<|message_sep|>",),
            fresh=True),
    Dialect(name="pangu", markers=("[unused11]",), heads=tuple((shape, json_block) for shape in _DIRECT),
            closers=("[unused12]",)),
    Dialect(name="phi4", markers=("functools",), heads=JSON),
    Dialect(name="parallel", markers=("multi_tool_use.parallel(",), heads=((_PARALLEL, _parallel_block),)),
    Dialect(name="nemotron", markers=("<TOOLCALL>",), heads=JSON, closers=("</TOOLCALL>",)),
    Dialect(name="internlm", markers=("<|action_start|><|plugin|>",), heads=JSON, closers=("<|action_end|>",)),
    Dialect(name="command_r7b", markers=("<|START_ACTION|>",), heads=JSON, closers=("<|END_ACTION|>",)),
    *(Dialect(name="tag_alias", markers=(f"<{tag}>",), heads=(*ALIAS, NAMED), closers=(f"</{tag}>",))
      for tag in ALIASES),
    Dialect(name="lm_studio", markers=("[TOOL_REQUEST]",), heads=ALIAS, closers=("[END_TOOL_REQUEST]",)),
    Dialect(name="bracket_alias", markers=("[TOOL_CALL]",), heads=ALIAS, closers=("[/TOOL_CALL]",)),
    Dialect(name="tools_tag", markers=("<tools>",), heads=_WEAK, closers=("</tools>",)),
    Dialect(name="tool_tag", markers=("<tool>",), heads=(*_WEAK, NAMED), closers=("</tool>",)),
    Dialect(name="function_tag", markers=("<function>",), heads=_WEAK, closers=("</function>",)),
    Dialect(name="bare_json", markers=("{",), read=_read_object, weak=True),
)  # fmt: skip
