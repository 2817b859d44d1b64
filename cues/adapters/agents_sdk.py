"""Cues in OpenAI's Agents SDK: a `RealtimeSession` over a WebSocket.

Tested with openai-agents 0.24.
"""

import re
from collections import deque
from collections.abc import AsyncIterable, Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cues.adapters.realtime import RealtimeCues
from cues.extras import require
from stream.events import Event, Finish, InvalidToolCall, StreamFailed, ToolCallEnd, ToolCallStart, ToolResult

AGENTS = require("agents")

from agents import Handoff  # noqa: E402  (report a missing package first)
from agents.realtime import RealtimePlaybackTracker  # noqa: E402
from agents.realtime.model import RealtimePlaybackState  # noqa: E402

__all__ = ["AgentCues", "is_failure", "result_of"]

_FAILURE = re.compile(r"An error occurred while |Tool '.*' (timed out after|not found)")


def is_failure(output: Any) -> bool:
    """Whether a tool's output is the SDK's message for a tool that raised, timed out or does not exist."""
    return _FAILURE.match(str(output)) is not None


def result_of(output: Any, is_error: Callable[[Any], bool], *, call_id: str = "", tool_name: str = "") -> ToolResult:
    """The result of a tool that the SDK has run; without id and name it belongs to the oldest call."""
    return ToolResult(tool_name=tool_name, tool_call_id=call_id, is_error=is_error(output), content=str(output))


class AgentCues(RealtimeCues):
    """The audio of a `RealtimeSession` with cues.

    Give `playback_tracker` to the session, in its model's configuration: at a barge-in the SDK truncates the answer
    after the part that was heard. Then `await listen(session)`, beside `run`.

    Parameters
    ----------
    write : callable
        As in `RealtimeCues`.
    is_error : callable
        Whether a tool's output is a failure: the SDK reports an exception as text.
    **options
        As in `RealtimeCues`.
    """

    def __init__(
        self,
        write: Callable[[NDArray[np.float32]], None],
        *,
        is_error: Callable[[Any], bool] = is_failure,
        **options: Any,
    ) -> None:
        super().__init__(write, None, **options)
        self._is_error = is_error
        self._running: deque[str] = deque(maxlen=64)  # names of the calls that have no outcome yet
        self.playback_tracker = _HeardHere(self)

    async def listen(self, session: AsyncIterable[Any]) -> None:
        """Follow the events of a session to its end."""
        async for event in session:
            await self.follow(event)

    async def follow(self, event: Any) -> None:
        """Take one event of a session, for programs that iterate its events themselves."""
        if event.type == "raw_model_event" and event.data.type == "raw_server_event":
            told = await self.feed(event.data.data)
            self._running += [end.tool_name for end in told if isinstance(end, ToolCallEnd) and end.status == "ok"]
        elif event.type == "tool_end":
            self._ended(event.output, event.tool.name)
        elif event.type == "handoff":  # does not name its tool, which may have a name of the program's
            own = {tool.name for tool in event.from_agent.tools}
            wanted = [Handoff.default_tool_name(event.to_agent), *(name for name in self._running if name not in own)]
            self._ended("", next((name for name in wanted if name in self._running), ""))
        elif event.type == "error":
            self._fail(event.error)
        elif event.type == "audio_interrupted":
            await self.barge_in()

    def _ended(self, output: Any, tool_name: str) -> None:
        self._forget(tool_name)
        self.router.handle(result_of(output, self._is_error, tool_name=tool_name))

    def _forget(self, tool_name: str) -> None:
        if tool_name in self._running:
            self._running.remove(tool_name)

    def _take_aside(self, events: list[Event]) -> list[Event]:
        """Take events of a response out of band in text: the SDK runs its calls, too, and asks for a spoken answer."""
        for told in events:
            if isinstance(told, ToolCallEnd) and told.status == "ok" and not told.told:
                for event in (ToolCallStart(told.tool_name, told.tool_call_id), told, Finish("completed")):
                    self.router.handle(event)
        return events

    def _fail(self, error: Any) -> None:
        """Take an error of the session; the server's own errors come as raw events."""
        text = str(error.get("message", "")) if isinstance(error, dict) else ""
        if unknown := re.fullmatch(r"Tool (.*) not found", text):
            self._forget(unknown[1])
            self.router.handle(InvalidToolCall(unknown[1], "", 0, "unknown_tool", text))
            if not self.router.waits:
                self.router.end_stream()  # the session asks for no answer
        elif text.startswith("Tool call task failed"):
            self.router.handle(StreamFailed(text))


class _HeardHere(RealtimePlaybackTracker):  # type: ignore[misc]  # the package may be absent where types are checked
    def __init__(self, cues: AgentCues) -> None:
        super().__init__()
        self._cues = cues

    def get_state(self) -> RealtimePlaybackState:
        """The item that plays, and how much of it was heard, milliseconds."""
        item_id, index, heard_ms = None, None, None
        if items := self._cues.unheard_items():
            item, heard_ms = items[0]
            item_id, index = item.item_id, item.content_index
        return {"current_item_id": item_id, "current_item_content_index": index, "elapsed_ms": heard_ms}
