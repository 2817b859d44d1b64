"""The tool names that are known: declared ones, and those of a server that runs tools of its own."""

from collections.abc import Collection
from fnmatch import fnmatchcase

from stream.checks import check_patterns
from stream.events import AskedAgain, InvalidToolCall, TaskStatus, TextDelta, ToolCallEnd, ToolCallStart, ToolResult

__all__ = ["SERVER_TOOLS", "KnownInStream", "KnownTools", "is_server_tool"]

SERVER_TOOLS = ("mcp_*",)
"""Patterns for tools that a server offers and runs itself, such as `mcp_discover` of an Ollama fork."""

_MOST_NAMES = 256  # A cap, because the names come from a model.


def is_server_tool(name: str, patterns: Collection[str] = SERVER_TOOLS) -> bool:
    """Whether a name matches one of the patterns.

    >>> is_server_tool("mcp_discover"), is_server_tool("read_file")
    (True, False)
    """
    return any(fnmatchcase(name, pattern) for pattern in patterns)


class KnownTools:
    """Tells known tools from invented ones, across the streams of one conversation.

    `declared` has the names of the declared tools; with `None` every name is known. `server_tools` are patterns for
    tools that the server runs (`("*",)` matches every name); another type raises a `StreamTypeError`.
    """

    __slots__ = ("_declared", "discovered", "patterns", "server_reports")

    def __init__(self, declared: Collection[str] | None, server_tools: Collection[str] = SERVER_TOOLS) -> None:
        check_patterns("server_tools", server_tools, SERVER_TOOLS[0])
        self._declared, self.patterns = declared, tuple(server_tools)
        self.discovered: set[str] = set()  # names that the server used in one stream: it keeps its discovered tools
        self.server_reports = False  # whether it reported on tools that it runs; it runs them in later streams, too

    def knows(self, name: str) -> bool:
        """Whether a name is known at the start of a stream."""
        return (
            self._declared is None
            or name in self._declared
            or name in self.discovered
            or self.server_reports
            or is_server_tool(name, self.patterns)
        )


class KnownInStream:
    """The known tools in one stream, which may show that the server runs tools.

    Such a server also runs undeclared tools, which the model discovers while it answers (just-in-time discovery). After
    a `TaskStatus` without a name, a `ToolResult` of the server, or a call that matches a pattern, every name in the
    stream is known. A server that reports nothing shows by text after a call that it ran it: that name is known then.
    A fallback has its own tools, whose runner checks the calls: while it is `in_fallback`, every name is known.
    """

    __slots__ = ("_all_known", "_known", "_unanswered", "in_fallback")

    def __init__(self, known: KnownTools) -> None:
        self._known, self._all_known, self.in_fallback = known, False, False
        self._unanswered: set[str] = set()  # complete calls of unknown tools, since the last text or result

    def note(self, event: object) -> None:
        """Look at an event of the stream, before `knows` is called about it."""
        # A status with a name is of a tool of the server's own, beside the client's.
        is_report = isinstance(event, TaskStatus) and not event.tool_name
        if is_report or (isinstance(event, ToolResult) and event.by_server):
            self._known.server_reports = True
        elif isinstance(event, AskedAgain):
            self.in_fallback = self.in_fallback or event.how == "fallback"
        elif isinstance(event, ToolCallStart):
            if self._all_known:
                self._discover({event.tool_name})
            elif is_server_tool(event.tool_name, self._known.patterns):
                self._all_known = True
        elif isinstance(event, ToolCallEnd) and self.may_be_discovered(event):
            if len(self._unanswered) < _MOST_NAMES:
                self._unanswered.add(event.tool_name)
        elif isinstance(event, TextDelta) and event.text.strip():
            self._discover(self._unanswered)
            self._unanswered = set()
        elif isinstance(event, (InvalidToolCall, ToolResult)):
            self._unanswered = set()

    def _discover(self, names: set[str]) -> None:
        if len(self._known.discovered) < _MOST_NAMES:
            self._known.discovered |= names

    def may_be_discovered(self, call: ToolCallEnd) -> bool:
        """Whether a call is of an unknown tool that the server may have, run, and answer in this stream."""
        named = bool(call.tool_name and self._known.patterns) and not call.told
        return named and call.status == "ok" and not self.knows(call.tool_name)

    def knows(self, name: str) -> bool:
        """Whether a name is known at this point of the stream."""
        return self._all_known or self.in_fallback or self._known.knows(name)
