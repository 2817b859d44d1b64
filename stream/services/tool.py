"""Tools: name, description, JSON Schema of the arguments, and a Python function to run."""

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Annotated, Any, Self, TypeAlias, get_type_hints

from cues.extras import needed
from stream.checks import check_number
from stream.errors import MissingFeatureError, StreamTypeError, StreamValueError
from stream.readers.calls.values import fields_of
from stream.services.mcp_forms import mcp_field

__all__ = ["Tool", "ToolLike", "as_tools", "tool_choice_field"]

ToolLike: TypeAlias = "Tool | Mapping[str, Any] | Callable[..., Any]"

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-/:]{0,63}")
NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}
CHOICE_WORDS = {"auto": "auto", "none": "none", "required": "required", "any": "required"}
"""Mistral says `any` for the `required` of OpenAI, vLLM and llama-server."""
PYDANTIC = ("pydantic", "services", "tools from functions need pydantic", MissingFeatureError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool to offer to a model, and the function to run when the model calls it.

    Attributes
    ----------
    name : str
        1 to 64 letters, digits or ``_ . - / :``, starting with a letter or ``_``.
    description : str
        When to use the tool, for the model.
    parameters : Mapping[str, Any]
        JSON Schema of the arguments, of type `object`.
    function : Callable or None
        Called with the arguments as keywords, sync or async; `None` if it runs elsewhere.
    group : str
        Origin of the tool, such as the name of an MCP server, for `ToolTiers`; `""` if unknown.
    expected_s : float or None
        What it usually takes, seconds: a router's first guess, until it has learned it.
    strict : bool or None
        Whether the server shall hold the model to `parameters`, as OpenAI's can; `None` does not ask for it.

    Examples
    --------
    >>> Tool(name="get_time", description="The time in a zone").openai()["function"]["name"]
    'get_time'
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=NO_ARGUMENTS.copy)
    function: Callable[..., Any] | None = None
    group: str = ""
    expected_s: float | None = None
    strict: bool | None = None

    def __post_init__(self) -> None:
        name: Any = self.name
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise StreamValueError(
                f"name is {self.name!r}; it must be 1 to 64 letters, digits or _ . - / :, starting with a letter or _"
            )
        if self.expected_s is not None and not 0.0 <= check_number("expected_s", self.expected_s) < math.inf:
            raise StreamValueError(
                f"expected_s of {self.name} is {self.expected_s!r}; it must be 0 or more, and finite"
            )
        if not isinstance(self.strict, bool | None):
            raise StreamTypeError(f"strict of {self.name} is {self.strict!r}; it must be a bool or None")
        if not isinstance(self.parameters, Mapping):
            raise StreamTypeError(f"parameters of {self.name} is {self.parameters!r}; it must be a JSON Schema object")
        if self.parameters.get("type", "object") != "object":
            raise StreamValueError(
                f"parameters of {self.name} has type {self.parameters['type']!r}; it must be 'object'"
            )

    def openai(self) -> dict[str, Any]:
        """The tool's definition in a request's `tools`, for both endpoints."""
        schema = {**NO_ARGUMENTS, "required": [], **self.parameters}
        function: dict[str, Any] = {"name": self.name, "description": self.description, "parameters": schema}
        if self.strict is not None:  # Some servers refuse a field that they do not know.
            function["strict"] = self.strict
        return {"type": "function", "function": function}

    @classmethod
    def of(cls, source: ToolLike) -> Self:
        """A tool from a `Tool`, a dict or a Python function.

        A dict is as OpenAI has it, its function object, an MCP listing, or as in Gemini CLI (in `schema`).

        Raises
        ------
        StreamTypeError, StreamValueError
            If `source` is of another type, or has no usable name or schema.
        """
        if isinstance(source, cls):
            return source
        if isinstance(source, Mapping):
            inner = source.get("function", source)
            if not isinstance(inner, Mapping) or "name" not in inner:
                raise StreamValueError(f"a tool dict has the keys {sorted(source)}; it needs `function` with a `name`")
            schema = _parameters(inner) or _parameters(fields_of(inner.get("schema"))) or NO_ARGUMENTS
            description, strict = inner.get("description") or "", inner.get("strict")
            return cls(name=inner["name"], description=description, parameters=schema, strict=strict)
        if hasattr(source, "inputSchema") or hasattr(source, "input_schema"):
            return cls.of_mcp(source)
        if callable(source):
            return cls.of_function(source)
        raise StreamTypeError(
            f"a tool is {type(source).__name__}; it must be a stream.Tool, a dict, a function or an MCP tool"
        )

    @classmethod
    def of_mcp(cls, listed: Any, call: Callable[[str, dict[str, Any]], Any] | None = None, *, group: str = "") -> Self:
        """A tool from one entry of an MCP server's `tools/list`, an object or a dict.

        `call(name, arguments)` runs it, such as an MCP session's `call_tool`; `group` is the server's name.
        """
        name, schema = mcp_field(listed, "name"), mcp_field(listed, "inputSchema")
        if not isinstance(schema, Mapping):
            raise StreamValueError(f"an MCP tool has inputSchema {schema!r}; it must be an object")
        function = None if call is None else lambda **arguments: call(name, arguments)
        description = mcp_field(listed, "description") or mcp_field(listed, "title") or ""
        return cls(name=name, description=description, parameters=schema, function=function, group=group)

    @classmethod
    def of_function(cls, function: Callable[..., Any]) -> Self:
        """A tool from a function with type hints: its schema by pydantic, its description from the docstring.

        `Annotated[str, "what it is"]` describes an argument, and so does pydantic's `Field(description=…)`. Calls
        convert the arguments to the hinted types. The function may be a `functools.partial`, whose own arguments the
        model neither sees nor replaces, or an object to call, whose tool has the name of its class.

        Raises
        ------
        MissingFeatureError
            If pydantic (`services` extra) is not installed.
        StreamTypeError
            If the function takes positional-only or variable arguments, or a hint cannot be read or has no JSON Schema.
        """
        outer = function if isinstance(function, partial) else partial(function)
        named: Any = outer.func
        name = getattr(named, "__name__", type(named).__name__)
        called = _plain(named)
        parameters, pydantic = _schema(name, called, outer), needed(*PYDANTIC)
        try:
            run = pydantic.validate_call(called)
        except pydantic.errors.PydanticUserError as error:
            raise StreamTypeError(f"{name} cannot be a tool: {error}") from error
        return cls(
            name=name,
            description=inspect.cleandoc(named.__doc__ or called.__doc__ or "").split("\n\n")[0].replace("\n", " "),
            parameters=parameters,
            function=partial(_with_bound, run, outer) if outer.args or outer.keywords else run,
        )


def _parameters(fields: Mapping[Any, Any]) -> Any:
    return fields.get("parameters") or fields.get("parametersJsonSchema") or mcp_field(fields, "inputSchema")


def as_tools(sources: Iterable[ToolLike] | None) -> tuple[Tool, ...]:
    """Each source as a `Tool`, `()` for `None`; two of one name raise `StreamValueError`."""
    if not isinstance(sources, Iterable | None):
        raise StreamTypeError(f"tools is {sources!r}; it must be a list of tools")
    tools = tuple(Tool.of(source) for source in sources or ())
    names = [tool.name for tool in tools]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise StreamValueError(f"two tools are called {twice[0]!r}; names must differ")
    return tools


def tool_choice_field(choice: str | Mapping[str, Any] | None, names: tuple[str, ...]) -> str | dict[str, Any] | None:
    """`tool_choice` as sent: a word, or the object that forces a function; `StreamValueError` if it is not offered."""
    if choice is None:
        return None
    if isinstance(choice, str) and choice in CHOICE_WORDS:
        return CHOICE_WORDS[choice]
    function = choice.get("function") if isinstance(choice, Mapping) else None
    name = choice if isinstance(choice, str) else function.get("name") if isinstance(function, Mapping) else None
    if name not in names:
        raise StreamValueError(f"tool_choice is {choice!r}; it must be one of {sorted(CHOICE_WORDS)} or of {names}")
    return {"type": "function", "function": {"name": name}}


def _plain(function: Any) -> Any:
    """Return a plain Python function for a cached function, and a bound method for an object to call."""
    if any(is_one(function) for is_one in (inspect.isfunction, inspect.ismethod, inspect.isbuiltin, inspect.isclass)):
        return function
    if not inspect.isfunction(getattr(function, "__wrapped__", None)):
        return function.__call__

    @wraps(function)
    def called(*args: Any, **arguments: Any) -> Any:
        return function(*args, **arguments)

    return called


def _with_bound(run: Callable[..., Any], outer: partial[Any], /, **arguments: Any) -> Any:
    return run(*outer.args, **{**arguments, **outer.keywords})


def _schema(name: str, function: Callable[..., Any], outer: partial[Any]) -> dict[str, Any]:
    """The JSON Schema of the arguments that a partial leaves open, without titles, which cost tokens."""
    pydantic = needed(*PYDANTIC)
    from pydantic.json_schema import GenerateJsonSchema

    try:
        hints, signature = get_type_hints(function, include_extras=True), inspect.signature(outer)
    except (NameError, TypeError, ValueError) as error:
        raise StreamTypeError(f"the arguments of {name} cannot be read: {error}") from error
    fields: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        if parameter.name in outer.keywords:
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise StreamTypeError(f"{name} takes {parameter}; a tool's arguments are passed by keyword")
        hint = hints.get(parameter.name, Any)
        words = [word for word in getattr(hint, "__metadata__", ()) if isinstance(word, str)]
        described = Annotated[hint, pydantic.Field(description=words[0])] if words else hint
        fields[parameter.name] = (described, ... if parameter.default is parameter.empty else parameter.default)

    class Untitled(GenerateJsonSchema):
        def field_title_should_be_set(self, _: Any) -> bool:
            return False

    try:
        schema = pydantic.create_model(name, **fields).model_json_schema(schema_generator=Untitled)
    except (pydantic.errors.PydanticUserError, pydantic.errors.PydanticSchemaGenerationError, TypeError) as error:
        raise StreamTypeError(f"{name} has an argument without a JSON Schema: {error}") from error
    return {"properties": {}, **{key: value for key, value in schema.items() if key != "title"}}
