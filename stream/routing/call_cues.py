"""The phases of a call: what its events change, and which cue they play."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from stream.events import InvalidToolCall, TaskStatus, ToolCallEnd, ToolCallStart, ToolResult
from stream.routing.rules import MOTIF

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream.events import ServiceEvent
    from stream.known_tools import KnownInStream
    from stream.routing.player import CuePlayer, Played
    from stream.routing.rules import CueRules
    from stream.routing.turn_state import CallUnderWay, TurnState

__all__ = ["OUTCOME_PRIORITY", "CallCues"]

OUTCOME_PRIORITY = 1
"""When voices run out, the cue for a call's end wins over one for a start."""


class CallCues:
    """Follows the calls of a router. A pack's rules come before those of the router."""

    def __init__(self, turn: TurnState, player: CuePlayer, rules: CueRules) -> None:
        self._turn, self._calls, self._player, self._rules = turn, turn.calls, player, rules

    def prepare(self, tool_names: Iterable[str]) -> None:
        """Have the bank make the cues of these tools now, so that no first call waits for its motif."""
        for cue in filter(None, map(self._cue_for_tool, tool_names)):
            self._player.bank.get(cue)

    def handle(self, event: ServiceEvent, known: KnownInStream) -> Played | None:
        """Follow an event of a call; others do nothing."""
        match event:
            case ToolCallStart():
                return self._begun(event, known)
            case ToolCallEnd():
                return self._arguments_ended(event)
            case InvalidToolCall():
                return self._invalid(event)
            case ToolResult():
                return self._ended(self._calls.end(event.tool_call_id, event.tool_name), event, event.is_error)
            case TaskStatus(status="working"):
                return self._task_begun(event)
            case TaskStatus():
                return self._task_ended(event)
        return None

    def _begun(self, event: ToolCallStart, known: KnownInStream) -> Played | None:
        call = self._calls.begin(event.tool_call_id, event.tool_name)
        if call is None:
            return None
        call.is_settled = not known.knows(event.tool_name)
        self._calls.in_answer = True
        self._turn.call()
        if call.is_settled:
            return self._player.play(self._rules.invented, event, priority=OUTCOME_PRIORITY)
        return self._player.play(self._cue_for_tool(event.tool_name), event)

    def _arguments_ended(self, event: ToolCallEnd) -> Played | None:
        call = self._calls.find(event.tool_call_id, event.tool_name)
        if event.status == "ok":
            if call is not None:
                call.is_complete = True
            return None
        cue = self._rules.incomplete if event.status == "incomplete" else self._rules.malformed
        return self._cannot_run(call, event, cue)

    def _invalid(self, event: InvalidToolCall) -> Played | None:
        self._calls.in_answer = True
        found = self._calls.find(event.tool_call_id, event.tool_name)
        call = found or self._calls.begin(event.tool_call_id, event.tool_name)
        cue = self._rules.invented if event.reason == "unknown_tool" else self._rules.malformed
        return self._cannot_run(call, event, cue)

    def _cannot_run(
        self, call: CallUnderWay | None, event: ToolCallEnd | InvalidToolCall, cue: str | None
    ) -> Played | None:
        if call is not None:
            if call.is_settled:
                return None
            call.is_settled = True
            self._turn.call()
        return self._player.play(cue, event, priority=OUTCOME_PRIORITY)

    def _ended(self, call: CallUnderWay | None, event: ToolResult | TaskStatus, is_error: bool) -> Played | None:
        if call is not None:
            if not call.is_over:
                self._turn.outcome()
            if call.is_settled:
                return None
        cue = self._rules.error if is_error else self._rules.success
        return self._player.play(cue, event, priority=OUTCOME_PRIORITY)

    def _task_begun(self, event: TaskStatus) -> Played | None:
        """A tool that the server runs by itself; without a name, all that it runs in this answer."""
        call = self._calls.begin(event.task_id, event.tool_name) if event.tool_name else None
        if call is None:
            return None
        call.is_complete = call.is_task = True
        self._turn.call()
        return self._player.play(self._cue_for_tool(event.tool_name), event)

    def _task_ended(self, event: TaskStatus) -> Played | None:
        task = self._calls.end(event.task_id, event.tool_name, is_task=True)
        if task is not None:
            return self._ended(task, event, event.status == "failed")
        if not event.tool_name:
            self._calls.clear(tasks=False)
            if not self._calls.awaited:
                self._turn.finish(speech_follows=True)
        return None

    def _cue_for_tool(self, tool_name: str) -> str | None:
        pack_rules = getattr(self._player.bank, "rules", ())
        of_pack = (name for pattern, name in pack_rules if fnmatchcase(tool_name, pattern))
        cue = next(of_pack, self._rules.cue_for_tool(tool_name))
        return f"{MOTIF}:{tool_name}" if cue == MOTIF else cue
