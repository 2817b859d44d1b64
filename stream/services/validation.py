"""Calls checked against what was offered: is there such a tool, are the arguments JSON, do they fit its schema."""

from __future__ import annotations

import json
import logging
from collections import Counter
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from stream.errors import MissingFeatureError, StreamValueError
from stream.events import AskedAgain, InvalidToolCall, ToolCallEnd
from stream.known_tools import SERVER_TOOLS, KnownInStream, KnownTools
from stream.services.redaction import logged_list, logged_name
from stream.services.tool import Tool, as_tools

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, Collection, Iterable, Mapping, Sequence

    from stream.events import ServiceEvent
    from stream.services.tool import ToolLike

__all__ = ["Strictness", "Validator"]

Strictness: TypeAlias = Literal["off", "on", "strict"]

logger = logging.getLogger(__name__)


class Validator:
    """Checks calls, counts what was wrong with them, and marks the end of an invalid call as malformed.

    Parameters
    ----------
    tools : the registered tools.
    strictness : `"off"` lets everything pass. `"on"` rejects a call that cannot be run; text in place of a number,
        boolean or object that it spells is taken for that value, because some models have no other way to write it.
        `"strict"` takes no text for a number and no argument that the schema does not name.
    model : the name under which the counts stand.
    server_tools : patterns for tools that the server offers and runs by itself. A call of one is not invented, and
        neither is any later call in a stream that shows that the server runs the tools; see `KnownInStream`.

    Raises
    ------
    StreamValueError : a tool's schema is not a JSON Schema, or `strictness` is unknown.
    StreamTypeError : `server_tools` is not a collection of patterns.
    """

    def __init__(
        self,
        tools: Iterable[ToolLike],
        *,
        strictness: Strictness = "on",
        model: str = "",
        server_tools: Collection[str] = SERVER_TOOLS,
    ) -> None:
        if strictness not in ("off", "on", "strict"):
            raise StreamValueError(f"strictness is {strictness!r}; it must be 'off', 'on' or 'strict'")
        self.strictness = strictness
        self._model = model
        self._tools = {tool.name: tool for tool in as_tools(tools)}
        self._known = KnownTools(self._tools, server_tools)
        self._checkers = {name: _checker(tool, strictness) for name, tool in self._tools.items()}
        self._counts: Counter[tuple[str, str]] = Counter()

    @property
    def counts(self) -> dict[tuple[str, str], int]:
        """How many calls were checked and found bad, by model and outcome (`"ok"` or a reason)."""
        return dict(self._counts)

    def check(self, call: ToolCallEnd) -> InvalidToolCall | None:
        """What is wrong with a call; `None` if nothing is, or if nothing is checked."""
        return self._checked(call, KnownInStream(self._known))

    def arguments(self, call: ToolCallEnd) -> dict[str, Any]:
        """The arguments of a good call as values of its own; text that spells what the schema wants is that value."""
        given = json.loads(call.arguments_json)  # not the event's: a tool may change what it is given
        tool = self._tools.get(call.tool_name)
        values = given if isinstance(given, dict) else {}
        return values if tool is None or self.strictness == "strict" else _spelled_out(values, tool.parameters)

    async def watch(self, events: AsyncIterable[ServiceEvent]) -> AsyncGenerator[ServiceEvent, None]:
        """The events of one stream, with an `InvalidToolCall` before each invalid call's end, which is then malformed.

        The invalid calls of an answer are logged in one line: a WARNING with the model and the tools' names.
        """
        known, problems, rejected = KnownInStream(self._known), list[InvalidToolCall](), False
        try:
            async for event in events:
                known.note(event)
                if isinstance(event, AskedAgain) and event.how == "fallback":
                    known.trust()  # The fallback has tools of its own, and a runner that checks their calls.
                if isinstance(event, ToolCallEnd) and not rejected and (problem := self._checked(event, known)):
                    problems.append(problem)
                    yield problem
                    yield replace(event, status="malformed")
                else:
                    yield event
                rejected = isinstance(event, InvalidToolCall)  # by another validator: it is not reported twice
        finally:
            self._log(problems)

    def _checked(self, call: ToolCallEnd, known: KnownInStream) -> InvalidToolCall | None:
        if self.strictness == "off" or call.status == "incomplete":
            return None
        problem = self._problem(call, known)
        self._counts[self._model, "ok" if problem is None else problem.reason] += 1
        return problem

    def _log(self, problems: Sequence[InvalidToolCall]) -> None:
        if problems:
            names = logged_list(f"{logged_name(problem.tool_name)} ({problem.reason})" for problem in problems)
            logger.warning("Filtered %d invalid tool calls from %s: %s", len(problems), self._model or "a model", names)

    def _problem(self, call: ToolCallEnd, known: KnownInStream) -> InvalidToolCall | None:
        def bad(reason: Literal["unknown_tool", "not_json", "schema"], message: str) -> InvalidToolCall:
            near = _near(call.tool_name, self._tools) if reason == "unknown_tool" else ()
            return InvalidToolCall(call.tool_name, call.tool_call_id, call.index, reason, message, near)

        if not call.tool_name:
            return bad("not_json", "the call has no name that can be read")
        tool = self._tools.get(call.tool_name)
        if tool is None and not known.knows(call.tool_name):
            return bad("unknown_tool", self.unknown(call.tool_name))
        arguments = call.arguments
        if arguments is None:
            return bad("not_json", f"the arguments of {call.tool_name} are not a JSON object")
        if tool is None:
            return None  # The server's own tool: it has the schema.
        if self.strictness == "on":
            arguments = _spelled_out(arguments, tool.parameters)
        # The deepest error is the telling one; its own message would repeat values, so it is put in words here.
        try:
            error = next(iter(sorted(self._checkers[call.tool_name].iter_errors(arguments), key=_order)), None)
        except (RecursionError, ArithmeticError, ValueError):  # by a schema that follows them, or counts with them
            return bad("schema", f"the arguments of {call.tool_name} nest too deep, or a number in them is infinite")
        return None if error is None else bad("schema", _words(call.tool_name, error))

    def unknown(self, name: str) -> str:
        """What to tell a model that called a tool which is not registered."""
        near = _near(name, self._tools)
        hint = f"; did you mean {' or '.join(near)}" if near else f"; there is {', '.join(self._tools) or 'none'}"
        return f"there is no tool {name[:64]!r}{hint}"


def _checker(tool: Tool, strictness: Strictness) -> Any:
    try:
        import jsonschema
    except ImportError as error:
        raise MissingFeatureError("validation needs jsonschema: pip install 'cue-engine[services]'") from error
    schema = dict(tool.parameters)
    if strictness == "strict":
        schema.setdefault("additionalProperties", False)
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise StreamValueError(f"the parameters of {tool.name} are not a JSON Schema: {error.message}") from error
    return kind(schema)


def _near(name: str, tools: Iterable[str]) -> tuple[str, ...]:
    """Registered names close to `name`, without regard to case, `-` or `.`."""
    plain = {other.lower().replace("-", "_").replace(".", "_"): other for other in tools}
    close = get_close_matches(name.lower().replace("-", "_").replace(".", "_"), plain, n=3, cutoff=0.6)
    return tuple(plain[one] for one in close)


def _order(error: Any) -> tuple[int, list[str]]:
    return len(error.path), [str(step) for step in error.path]


def _words(name: str, error: Any) -> str:
    """What is wrong, by the schema's words and never by the value's."""
    where = ".".join(str(step) for step in error.path)
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return f"{name} lacks {', '.join(missing)}{f' in {where}' if where else ''}"
    if error.validator == "additionalProperties":
        known = ", ".join(error.schema.get("properties", {})) or "none"
        return f"{name} has an argument that it does not know; it knows {known}"
    return f"{name}: {where or 'the arguments'} must satisfy {error.validator}: {json.dumps(error.validator_value)}"


def _spelled_out(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with text that spells a value of the wanted type as that value."""
    properties = schema.get("properties", {})
    return {key: _spelled(value, properties.get(key, {})) for key, value in arguments.items()}


def _spelled(value: Any, schema: Any) -> Any:
    kinds = schema.get("type") if isinstance(schema, dict) else None
    wanted = {kinds} if isinstance(kinds, str) else set(kinds or ())
    if not isinstance(value, str) or not wanted or "string" in wanted:
        return value
    try:
        read = json.loads(value.lower() if value in ("True", "False", "None") else value)
    except (ValueError, RecursionError):
        return value
    return read if wanted & _KINDS_OF.get(type(read), frozenset()) else value


_KINDS_OF = {
    bool: frozenset({"boolean"}),
    int: frozenset({"integer", "number"}),
    float: frozenset({"number"}),
    dict: frozenset({"object"}),
    list: frozenset({"array"}),
    type(None): frozenset({"null"}),
}
