"""The options that the readers have in common."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias, get_args

from stream.checks import check_choice
from stream.errors import StreamTypeError

__all__ = [
    "LONGEST_NAME",
    "MAX_ARGUMENT_CHARS",
    "MAX_LINE_CHARS",
    "MOST_KEPT",
    "Start",
    "Tools",
    "checked_start",
    "declared_name",
    "declared_names",
    "kept",
]

LONGEST_NAME = 1024  # characters of a name, an id or a key; in fields longer ones are cut
MAX_ARGUMENT_CHARS = 1 << 20
MAX_LINE_CHARS = 1 << 22  # of JSON lines; a line may hold several calls, and a result beside them
MOST_KEPT = 1 << 14  # calls, blocks and the like that are open or remembered

# Names, OpenAI tool dicts, or objects with a `name`; or a mapping by name.
Tools: TypeAlias = "Iterable[str | Mapping[str, Any] | Any] | None"


# What the text of an answer begins with; "reasoning" if the prompt ends with the opening tag of a block of thoughts.
Start: TypeAlias = Literal["text", "reasoning"]


def checked_start(start: Start) -> Start:
    """Return `start`; anything but its values raises `StreamValueError`."""
    check_choice("start", start, get_args(Start))
    return start


def declared_names(tools: Tools) -> frozenset[str] | None:
    """Return the names of the declared tools, None if they are not known; anything else raises `StreamTypeError`."""
    if tools is None:
        return None
    if isinstance(tools, str | bytes):
        raise StreamTypeError(f"tools: {tools!r} is one text, not a collection of tools")
    if isinstance(tools, Mapping) and tools.get("type") in ("function", "custom"):
        raise StreamTypeError(f"tools: {tools!r} is one tool, not a collection of tools")
    if not isinstance(tools, Iterable):
        raise StreamTypeError(f"tools: {tools!r} is not a collection of names, tool dicts or objects with a name")
    return frozenset(map(declared_name, tools))


def kept(tools: Tools) -> Tools:
    """Return tools that can be read more than once: an iterator's are listed."""
    return tuple(tools) if isinstance(tools, Iterator) else tools


def declared_name(tool: object) -> str:
    """Return the name of a declared tool; raises `StreamTypeError` if it has none."""
    name: object = tool
    if isinstance(tool, Mapping):
        inner = tool.get("function", tool.get("custom"))
        name = (inner if isinstance(inner, Mapping) else tool).get("name")
    elif not isinstance(tool, str):
        name = getattr(tool, "name", None)
    if not isinstance(name, str) or not name:
        raise StreamTypeError(f"tools: {tool!r} is neither a name, nor a tool dict, nor an object with a name")
    return name
