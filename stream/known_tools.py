"""Which names of tools are known: those that were declared, and those of a server that runs tools of its own."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from stream.checks import check_patterns
from stream.events import TaskStatus, ToolCallStart, ToolResult

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["SERVER_TOOLS", "KnownInStream", "KnownTools", "is_server_tool"]

SERVER_TOOLS = ("mcp_*",)
"""Patterns for the tools that a server offers and runs by itself, such as the `mcp_discover` of an Ollama fork."""

_MOST_NAMES = 256  # Names come from a model: no more of them are kept.


def is_server_tool(name: str, patterns: Collection[str] = SERVER_TOOLS) -> bool:
    """Return whether a name fits one of the patterns.

    Examples
    --------
    >>> is_server_tool("mcp_discover"), is_server_tool("read_file")
    (True, False)
    """
    return any(fnmatchcase(name, pattern) for pattern in patterns)


class KnownTools:
    """Tells known tools from invented ones.

    Parameters
    ----------
    declared : names of the declared tools; `None` if they are not known, and then every name is known.
    server_tools : patterns for tools that the server runs; `("*",)` fits every name, `()` fits none.

    Raises
    ------
    StreamTypeError : `server_tools` is not a collection of patterns.
    """

    __slots__ = ("_declared", "_discovered", "_server_reports", "patterns")

    def __init__(self, declared: Collection[str] | None, server_tools: Collection[str] = SERVER_TOOLS) -> None:
        check_patterns("server_tools", server_tools, SERVER_TOOLS[0])
        self._declared, self.patterns = declared, tuple(server_tools)
        self._discovered: set[str] = set()
        self._server_reports = False

    def knows(self, name: str) -> bool:
        """Return whether a name is known at the beginning of a stream."""
        return (
            self._declared is None
            or name in self._declared
            or name in self._discovered
            or self._server_reports
            or is_server_tool(name, self.patterns)
        )

    def discovered(self, name: str) -> None:
        """Keep a name that the server knew in one stream: it remembers what it discovered."""
        if len(self._discovered) < _MOST_NAMES:
            self._discovered.add(name)

    def server_reports(self) -> None:
        """Note that the server has reported on tools that it runs: it runs them in later streams, too."""
        self._server_reports = True


class KnownInStream:
    """The same in one stream, which may show that the server runs the tools.

    Such a server also runs tools that nobody declared: the model discovers them while it answers (just-in-time
    discovery). It shows itself by a `TaskStatus`, by a `ToolResult` of its own, or by a call that fits a pattern; from
    then on every name in the stream is known.
    """

    __slots__ = ("_all_known", "_known")

    def __init__(self, known: KnownTools) -> None:
        self._known, self._all_known = known, False

    def note(self, event: object) -> None:
        """Look at an event of the stream, before `knows` is asked about it."""
        if isinstance(event, TaskStatus) or (isinstance(event, ToolResult) and event.by_server):
            self._known.server_reports()
        elif isinstance(event, ToolCallStart):
            if self._all_known:
                self._known.discovered(event.tool_name)
            elif is_server_tool(event.tool_name, self._known.patterns):
                self._all_known = True

    def trust(self) -> None:
        """Take every name in the rest of the stream as known: somebody else judges its calls."""
        self._all_known = True

    def knows(self, name: str) -> bool:
        """Return whether a name is known, as far as the stream has come."""
        return self._all_known or self._known.knows(name)
