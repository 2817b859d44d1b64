"""A tool: its name, what it is for, the JSON Schema of its arguments, and perhaps the Python callable behind it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias, get_type_hints

from stream.errors import MissingFeatureError, StreamTypeError, StreamValueError

__all__ = ["ChoiceWord", "Tool", "ToolLike", "as_tools", "tool_choice_field"]

ToolLike: TypeAlias = "Tool | Mapping[str, Any] | Callable[..., Any]"
ChoiceWord: TypeAlias = Literal["auto", "none", "required"]

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-/:]{0,63}")
CHOICE_WORDS = {"auto": "auto", "none": "none", "required": "required", "any": "required"}
"""`any` is Mistral's word for what OpenAI, vLLM and llama-server call `required`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What a model is offered, and what may run when it calls.

    Attributes
    ----------
    name : letters, digits and ``_ . - / :``, at most 64, starting with a letter or ``_``.
    description : when and for what to use it; the model reads this.
    parameters : JSON Schema of the arguments, of type `object`.
    function : called with the arguments as keywords, sync or async; `None` where somebody else runs the tool.
    group : where the tool comes from, such as an MCP server's name, for `ToolTiers`; `""` if unknown.

    Examples
    --------
    >>> Tool(name="get_time", description="The time in a zone").openai()["function"]["name"]
    'get_time'
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    function: Callable[..., Any] | None = None
    group: str = ""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(str(self.name)):
            raise StreamValueError(
                f"name is {self.name!r}; a tool's name is 1 to 64 letters, digits or _ . - / : and starts with a letter"
            )
        if not isinstance(self.parameters, Mapping):
            raise StreamTypeError(f"parameters of {self.name} is {self.parameters!r}; it must be a JSON Schema object")
        if self.parameters.get("type", "object") != "object":
            raise StreamValueError(
                f"parameters of {self.name} has type {self.parameters['type']!r}; arguments are always an object"
            )
        if not isinstance(self.group, str):
            raise StreamTypeError(f'group of {self.name} is {self.group!r}; it must be text, or "" if unknown')

    def openai(self) -> dict[str, Any]:
        """The tool as both endpoints take it in `tools`."""
        schema = {"type": "object", "properties": {}, **self.parameters}
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": schema},
        }

    @classmethod
    def of(cls, source: ToolLike) -> Self:
        """A tool from a `Tool`, a dict (OpenAI's, a bare function object, or an MCP listing) or a Python function.

        Raises
        ------
        StreamTypeError, StreamValueError : it is none of these, or has no usable name or schema.
        """
        if isinstance(source, cls):
            return source
        if isinstance(source, Mapping):
            return cls._of_mapping(source)
        if hasattr(source, "inputSchema"):
            return cls.of_mcp(source)
        if callable(source):
            return cls.of_function(source)
        raise StreamTypeError(
            f"a tool is {type(source).__name__}; it must be a stream.Tool, a dict, a function or an MCP tool"
        )

    @classmethod
    def _of_mapping(cls, source: Mapping[str, Any]) -> Self:
        inner = source.get("function", source)
        if not isinstance(inner, Mapping) or "name" not in inner:
            raise StreamValueError(f"a tool dict has the keys {sorted(source)}; it needs `function` with a `name`")
        schema = inner.get("parameters") or inner.get("inputSchema") or {"type": "object", "properties": {}}
        return cls(name=inner["name"], description=inner.get("description") or "", parameters=schema)

    @classmethod
    def of_mcp(cls, listed: Any, call: Callable[[str, dict[str, Any]], Any] | None = None, *, group: str = "") -> Self:
        """A tool from one entry of an MCP server's `tools/list`.

        Parameters
        ----------
        listed : the entry: an object or a dict with `name`, `description` and `inputSchema`.
        call : runs it, such as an MCP session's `call_tool(name, arguments)`; `None` where nothing of ours runs it.
        group : the server's name, such as ``"zwave"``.
        """
        entry: Any = listed if isinstance(listed, Mapping) else {key: getattr(listed, key, None) for key in MCP_FIELDS}
        if not isinstance(entry.get("inputSchema"), Mapping):
            raise StreamValueError(f"an MCP tool has inputSchema {entry.get('inputSchema')!r}; it must be an object")
        name = entry["name"]
        function = None if call is None else lambda **arguments: call(name, arguments)
        description = entry.get("description") or entry.get("title") or ""
        return cls(name=name, description=description, parameters=entry["inputSchema"], function=function, group=group)

    @classmethod
    def of_function(cls, function: Callable[..., Any]) -> Self:
        """A tool from a function with type hints: its schema by pydantic, its description from the docstring.

        `Annotated[str, "what it is"]` describes an argument. Arguments are converted to the hinted types at the call.

        Raises
        ------
        MissingFeatureError : pydantic, which the `services` extra brings, is not installed.
        StreamTypeError : the function takes positional-only or variable arguments, or a hint has no JSON Schema.
        """
        name = getattr(function, "__name__", type(function).__name__)
        return cls(
            name=name,
            description=inspect.cleandoc(function.__doc__ or "").split("\n\n")[0].replace("\n", " "),
            parameters=_schema(name, function),
            function=_validated(function),
        )


MCP_FIELDS = ("name", "title", "description", "inputSchema")


def as_tools(sources: Iterable[ToolLike] | None) -> tuple[Tool, ...]:
    """Every source as a `Tool`; `None` is none at all.

    Raises
    ------
    StreamValueError : two tools have one name.
    """
    tools = tuple(Tool.of(source) for source in sources or ())
    names = [tool.name for tool in tools]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise StreamValueError(f"two tools are called {twice[0]!r}; a model tells tools apart by name alone")
    return tools


def tool_choice_field(choice: str | Mapping[str, Any] | None, names: tuple[str, ...]) -> str | dict[str, Any] | None:
    """`tool_choice` as it goes on the wire: a word, or the form that forces one function.

    Parameters
    ----------
    choice : `None`, `"auto"`, `"none"`, `"required"` (also `"any"`), a tool's name, or the wire's own object.
    names : the tools that are offered.

    Raises
    ------
    StreamValueError : it names a tool that is not offered.
    """
    if choice is None:
        return None
    if isinstance(choice, str) and choice in CHOICE_WORDS:
        return CHOICE_WORDS[choice]
    function = choice.get("function") if isinstance(choice, Mapping) else None
    name = choice if isinstance(choice, str) else function.get("name") if isinstance(function, Mapping) else None
    if name not in names:
        raise StreamValueError(f"tool_choice is {choice!r}; it must be one of {sorted(CHOICE_WORDS)} or of {names}")
    return {"type": "function", "function": {"name": name}}


def _schema(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    """The JSON Schema of a function's arguments, without the titles that cost tokens and say nothing."""
    pydantic = _pydantic()
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise StreamTypeError(f"{name} takes {parameter}; a tool's arguments are passed by keyword and have names")
        hint = hints.get(parameter.name, Any)
        words = [word for word in getattr(hint, "__metadata__", ()) if isinstance(word, str)]
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hint, pydantic.Field(default, description=words[0] if words else None))
    try:
        schema = pydantic.create_model(name, **fields).model_json_schema()
    except (pydantic.errors.PydanticUserError, pydantic.errors.PydanticSchemaGenerationError, TypeError) as error:
        raise StreamTypeError(f"{name} has an argument that no JSON can be: {error}") from error
    return {"type": "object", "properties": {}, **_untitled(schema)}


def _untitled(schema: Any) -> Any:
    """The schema without pydantic's made-up titles; a property that is called `title` stays."""
    if isinstance(schema, list):
        return [_untitled(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key != "title" or not isinstance(value, str)}
    return {
        key: {name: _untitled(one) for name, one in value.items()}
        if key in ("properties", "$defs")
        else _untitled(value)
        for key, value in kept.items()
    }


def _validated(function: Callable[..., Any]) -> Callable[..., Any]:
    validated: Callable[..., Any] = _pydantic().validate_call(function)
    return validated


def _pydantic() -> Any:
    try:
        import pydantic
    except ImportError as error:
        raise MissingFeatureError("tools from functions need pydantic: pip install 'cue-engine[services]'") from error
    return pydantic
