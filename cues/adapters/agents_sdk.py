"""Cues in OpenAI's Agents SDK: a `RealtimeSession` over a WebSocket, and the streamed runs of its voice pipeline.

Tested with openai-agents 0.22.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cues.adapters._packages import require
from cues.adapters.realtime import RealtimeCues
from stream.events import ToolCallEnd, ToolCallStart, ToolResult

AGENTS = require("openai-agents", at_least="0.22", below="1", extra="agents")

from agents.realtime import RealtimePlaybackTracker  # noqa: E402  (report a missing package first)

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable

    import numpy as np
    from agents.realtime.model import RealtimePlaybackState
    from numpy.typing import NDArray

    from stream.routing.router import CueRouter

__all__ = ["AgentCues", "handle_run_event"]


class AgentCues(RealtimeCues):
    """The audio of a `RealtimeSession` with cues.

    Give `playback_tracker` to the session, in its model's configuration: at a barge-in the SDK truncates the answer
    after the part that was heard. Then `await listen(session)`, beside `run`.

    Parameters
    ----------
    write : callable
        As in `RealtimeCues`.
    is_error : callable
        Whether a tool's output is a failure: the SDK gives text to the model when a tool raises.
    **options
        As in `RealtimeCues`.
    """

    def __init__(
        self,
        write: Callable[[NDArray[np.float32]], None],
        *,
        is_error: Callable[[Any], bool] = lambda output: str(output).startswith("An error occurred"),
        **options: Any,
    ) -> None:
        super().__init__(write, None, **options)
        self._is_error = is_error
        self.playback_tracker = _HeardHere(self)

    async def listen(self, session: AsyncIterable[Any]) -> None:
        """Follow the events of a session to its end."""
        async for event in session:
            await self.follow(event)

    async def follow(self, event: Any) -> None:
        """Take one event of the session, where you iterate it yourself."""
        if event.type == "raw_model_event" and event.data.type == "raw_server_event":
            await self.feed(event.data.data)
        elif event.type == "tool_end":
            output = str(event.output)
            self.router.handle(ToolResult("", event.tool.name, is_error=self._is_error(event.output), content=output))
        elif event.type == "audio_interrupted":
            await self.barge_in()


class _HeardHere(RealtimePlaybackTracker):  # type: ignore[misc]  # the package may be absent where types are checked
    """The heard part of the answer, for the SDK."""

    def __init__(self, cues: AgentCues) -> None:
        super().__init__()
        self._cues = cues

    def get_state(self) -> RealtimePlaybackState:
        """The item that plays, and how much of it was heard, milliseconds."""
        items = self._cues.unheard_items()
        if not items:
            return {"current_item_id": None, "current_item_content_index": None, "elapsed_ms": None}
        item, heard_ms = items[0]
        index = item.content_index
        return {"current_item_id": item.item_id, "current_item_content_index": index, "elapsed_ms": heard_ms}


def handle_run_event(router: CueRouter, event: Any, *, is_error: Callable[[Any], bool] = lambda _: False) -> None:
    """Play the cue for an event of `Runner.run_streamed(…).stream_events()`, in a workflow of `VoicePipeline`, say."""
    if event.type != "run_item_stream_event":
        return
    item = event.item
    raw = item.raw_item
    call_id = raw.get("call_id", "") if isinstance(raw, dict) else getattr(raw, "call_id", "")
    if event.name == "tool_called":
        name = raw.get("name", "") if isinstance(raw, dict) else getattr(raw, "name", "")
        router.handle(ToolCallStart(name, call_id))
        router.handle(ToolCallEnd(name, call_id))
    elif event.name == "tool_output":
        router.handle(ToolResult(call_id, "", is_error=is_error(item.output), content=str(item.output)))
