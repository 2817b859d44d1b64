"""Validation of calls: the tool is registered, the arguments are JSON and fit its schema."""

import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

from cues.extras import needed
from stream.checks import check_choice
from stream.errors import MissingFeatureError, StreamValueError
from stream.events import (
    Finish,
    InvalidToolCall,
    ReasoningDelta,
    ServiceEvent,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from stream.known_tools import SERVER_TOOLS, KnownInStream, KnownTools
from stream.readers.calls.arguments import canonical, spelled_out
from stream.redaction import logged_list, logged_name
from stream.services.tool import Tool, ToolLike, as_tools

__all__ = ["Strictness", "Validator"]

Strictness: TypeAlias = Literal["off", "on", "strict"]
Reason: TypeAlias = Literal["unknown_tool", "not_json", "schema"]


logger = logging.getLogger(__name__)


class Validator:
    """A validator that marks the end of an invalid call as malformed.

    Parameters
    ----------
    tools : Iterable
        The registered tools.
    strictness : {"off", "on", "strict"}
        `"off"` checks nothing. `"on"` rejects calls that cannot run, but accepts text that spells a number, boolean or
        object, because some dialects have no other form. `"strict"` rejects such text, and arguments that the schema
        does not name.
    model : str
        Name in the log.
    server_tools : Collection[str]
        Patterns for tools that the server offers and runs by itself. Their calls do not count as invented, nor do later
        calls in a stream that shows that the server runs the tools; see `KnownInStream`.

    Raises
    ------
    StreamValueError
        If a tool's schema is not a JSON Schema, or `strictness` is unknown.
    StreamTypeError
        If `server_tools` is not a collection of patterns.
    """

    def __init__(
        self,
        tools: Iterable[ToolLike],
        *,
        strictness: Strictness = "on",
        model: str = "",
        server_tools: Collection[str] = SERVER_TOOLS,
    ) -> None:
        check_choice("strictness", strictness, ("off", "on", "strict"))
        self.strictness = strictness
        self._model = model
        self._tools = {tool.name: tool for tool in as_tools(tools)}
        self._known = KnownTools(self._tools, server_tools)
        self._checkers = {name: _checker(tool, strictness) for name, tool in self._tools.items()}

    def check(self, call: ToolCallEnd, known: KnownInStream | None = None) -> InvalidToolCall | None:
        """The problem of a call; `None` if it is valid or not checked. `known` are the tools known in its stream."""
        if self.strictness == "off" or call.status == "incomplete" or call.told:
            return None
        found = self._problem(call, known or KnownInStream(self._known))
        if found is None:
            return None
        reason, message = found
        near = _near(call.tool_name, self._tools) if reason == "unknown_tool" else ()
        return InvalidToolCall(call.tool_name, call.tool_call_id, call.index, reason, message, near)

    def arguments(self, call: ToolCallEnd) -> dict[str, Any]:
        """A new copy of a valid call's arguments; text that spells a value of the schema's type is converted."""
        given = json.loads(call.arguments_json)  # a copy: a tool may change its arguments
        tool = self._tools.get(call.tool_name)
        values = given if isinstance(given, dict) else {}
        is_as_given = tool is None or self.strictness == "strict"
        return values if is_as_given else _spelled_out(values, self._checkers[call.tool_name])

    async def watch(self, events: AsyncIterable[ServiceEvent]) -> AsyncGenerator[ServiceEvent, None]:
        """The events of one stream; the end of an invalid call is malformed and follows an `InvalidToolCall`.

        The end of an unknown tool's call waits for text or the end of the stream: a server that answers it has the
        tool. All invalid calls of an answer are one WARNING in the log, with the names of the model and the tools.
        """
        known, problems, rejected = KnownInStream(self._known), list[InvalidToolCall](), False
        waiting: list[ServiceEvent] = []
        try:
            async for event in events:
                known.note(event)
                may_wait = waiting or (isinstance(event, ToolCallEnd) and known.may_be_discovered(event))
                if may_wait and not rejected and isinstance(event, (ToolCallEnd, Finish, Usage)):
                    waiting.append(event)
                    continue
                ready = [event]
                if not (isinstance(event, (ToolCallStart, ReasoningDelta)) or _is_blank(event)):
                    ready, waiting = [*waiting, event], []
                for each in ready if rejected else self._judged(ready, known, problems):
                    yield each
                rejected = isinstance(event, InvalidToolCall)  # by another validator: do not report it twice
            for each in self._judged(waiting, known, problems):
                yield each
        finally:
            if problems:
                listed = logged_list(f"{logged_name(problem.tool_name)} ({problem.reason})" for problem in problems)
                model = self._model or "a model"
                logger.warning("Filtered %d invalid tool calls from %s: %s", len(problems), model, listed)

    def _judged(
        self, events: Iterable[ServiceEvent], known: KnownInStream, problems: list[InvalidToolCall]
    ) -> Iterator[ServiceEvent]:
        for event in events:
            if isinstance(event, ToolCallEnd) and (problem := self.check(event, known)):
                problems.append(problem)
                yield problem
                yield replace(event, status="malformed")
            else:
                yield event

    def _problem(self, call: ToolCallEnd, known: KnownInStream) -> tuple[Reason, str] | None:
        if not call.tool_name:
            return "not_json", "the call has no name that can be read"
        tool = self._tools.get(call.tool_name)
        if tool is None and not known.knows(call.tool_name):
            return "unknown_tool", self.unknown(call.tool_name)
        arguments = call.arguments
        if arguments is None:
            return "not_json", f"the arguments of {call.tool_name} are not a JSON object"
        if tool is None:
            return None  # The server's own tool: only the server knows its schema.
        if self.strictness == "on":
            arguments = _spelled_out(arguments, self._checkers[call.tool_name])
        # The first error by depth is reported. Its own message would quote values, so we write another.
        try:
            errors = self._checkers[call.tool_name].iter_errors(arguments)
            error = min(errors, key=lambda one: (len(one.path), [str(step) for step in one.path]), default=None)
            return None if error is None else ("schema", _words(call.tool_name, error))
        except re.error:  # JavaScript's patterns differ; the tool checks its arguments itself
            return None
        except (RecursionError, ArithmeticError, ValueError):  # raised by a schema that recurses, or by its arithmetic
            return "schema", f"the arguments of {call.tool_name} nest too deep, or a number in them is infinite"
        except Exception:  # noqa: BLE001  (jsonschema's own for a reference to nothing, any other for one to no schema)
            return (
                "schema",
                f"{call.tool_name} cannot be called: its schema refers to something outside of it, or to no schema",
            )

    def unknown(self, name: str) -> str:
        """The message to a model that called a tool that is not registered."""
        near = _near(name, self._tools)
        hint = f"; did you mean {' or '.join(near)}" if near else f"; there is {', '.join(self._tools) or 'none'}"
        return f"there is no tool {name[:64]!r}{hint}"


def _checker(tool: Tool, strictness: Strictness) -> Any:
    jsonschema = needed("jsonschema", "services", "validation needs jsonschema", MissingFeatureError)
    schema = dict(tool.parameters)
    if strictness == "strict":
        schema.setdefault("additionalProperties", False)
    try:
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema, format_checker=jsonschema.FormatChecker(()))  # JavaScript's patterns are formats, too
    except (jsonschema.SchemaError, AttributeError, TypeError, RecursionError) as error:  # of any `$schema`, any depth
        why = getattr(error, "message", error)
        raise StreamValueError(f"the parameters of {tool.name} are not a JSON Schema: {why}") from error
    kind = jsonschema.validators.extend(kind, {"uniqueItems": _unique_items})
    known = needed("jsonschema_specifications", "services", "validation needs jsonschema", MissingFeatureError)
    return kind(schema, registry=known.REGISTRY)  # without one, the package fetches what a schema refers to


def _unique_items(validator: Any, wanted: Any, items: Any, _: Any) -> Iterator[Exception]:
    """The package's own check takes time that grows with the square of the items, which a model writes."""
    from jsonschema import ValidationError

    is_array = wanted and validator.is_type(items, "array")
    if is_array and len({canonical(json.dumps(item)) for item in items}) < len(items):
        yield ValidationError("an item is there twice")


def _near(name: str, tools: Iterable[str]) -> tuple[str, ...]:
    """Registered names close to `name`; case, `-`, `.` and `_` do not matter."""
    alike = str.maketrans("-.", "__")
    plain = {other.lower().translate(alike): other for other in tools}
    return tuple(plain[one] for one in get_close_matches(name.lower().translate(alike), plain, n=3))


def _words(name: str, error: Any) -> str:
    """An error in terms of the schema; it quotes no value."""
    where = ".".join(str(step) for step in error.path)
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return f"{name} lacks {', '.join(missing)}{f' in {where}' if where else ''}"
    if error.validator == "additionalProperties":
        known = ", ".join(error.schema.get("properties", {})) or "none"
        return f"{name} has an argument that it does not know; it knows {known}"
    return f"{name}: {where or 'the arguments'} must satisfy {error.validator}: {json.dumps(error.validator_value)}"


def _spelled_out(arguments: Mapping[str, Any], checker: Any) -> dict[str, Any]:
    """The arguments; text that the schema rejects is replaced by the value that it spells, if the schema takes that."""

    def fits(key: str, value: Any) -> bool:
        return not any(error.path and error.path[0] == key for error in checker.iter_errors({key: value}))

    with suppress(Exception):  # of any schema; a check tells of it, and a tool checks its arguments itself
        return spelled_out(arguments, fits)
    return dict(arguments)


def _is_blank(event: ServiceEvent) -> bool:
    return isinstance(event, TextDelta) and not event.text.strip()
