"""The phases of a call: what its events change, and which cue they play."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from stream.events import InvalidToolCall, TaskStatus, ToolCallEnd, ToolCallStart, ToolResult
from stream.routing.rules import MOTIF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stream.events import ServiceEvent
    from stream.known_tools import KnownInStream
    from stream.routing.expected_silence import Expected, ExpectedSilence
    from stream.routing.player import CuePlayer, Played
    from stream.routing.rules import CueRules, Profile
    from stream.routing.tool_times import ToolTimes
    from stream.routing.turn_state import CallUnderWay, TurnState

__all__ = ["OUTCOME_PRIORITY", "CallCues"]

OUTCOME_PRIORITY = 1
"""When voices run out, the cue for a call's end wins over one for a start."""
_AFTER_WORDS_S = 0.3  # A cue that follows words comes where a speaker would take a breath.


class CallCues:
    """Follows the calls of a router. A pack's rules come before those of the router."""

    def __init__(
        self,
        turn: TurnState,
        player: CuePlayer,
        rules: CueRules,
        *,
        times: ToolTimes,
        silence: ExpectedSilence,
        expect: Callable[[], Expected],
        patience_s: Callable[[], float],
    ) -> None:
        self._turn, self._calls, self._player, self._rules = turn, turn.calls, player, rules
        self._times, self._silence, self._expect, self._patience_s = times, silence, expect, patience_s

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
                self._calls.refused.clear()  # some pipelines give no `Finish` before the result
                call = self._calls.end(event.tool_call_id, event.tool_name, event.index)
                if call is not None and self._calls.in_answer and not call.is_settled:
                    self._calls.answered.append(call)
                return self._ended(call, event, event.is_error)
            case TaskStatus(status="working"):
                return self._task_begun(event)
            case TaskStatus():
                return self._task_ended(event)
        return None

    def _begun(self, event: ToolCallStart, known: KnownInStream) -> Played | None:
        call = self._calls.begin(event.tool_call_id, event.tool_name, event.index)
        if call is None:
            return None
        call.is_settled, call.from_text = not known.knows(event.tool_name), event.from_text
        self._calls.in_answer = True
        self._called(call)
        if call.is_settled:
            return self._player.play(self._rules.invented, event, priority=OUTCOME_PRIORITY)
        return self._announced(event)

    def _called(self, call: CallUnderWay) -> None:
        call.began_s = self._player.now_s
        self._silence.called(call.began_s)
        self._turn.call()

    def _announced(self, event: ToolCallStart | TaskStatus) -> Played | None:
        """Play the cue for a call, by the profile of its tool: at once, or when it has been silent for a while."""
        cue, profile = self._cue_for_tool(event.tool_name), self._profile_of(event.tool_name)
        if not profile.silence_s:
            return self._player.play(cue, event)
        silence_s, speech_s = self._expect()
        most = profile.most_per_minute
        is_long = silence_s > profile.silence_s if silence_s is not None else profile.unknown and not speech_s
        if is_long and not speech_s:
            return self._player.play(cue, event, most_per_minute=most)
        quiet_s = _AFTER_WORDS_S if is_long else profile.after_s
        if quiet_s >= self._patience_s():
            return None
        after_s = profile.after_s
        return self._player.play(cue, event, most_per_minute=most, quiet_s=quiet_s, speech_s=speech_s, after_s=after_s)

    def _profile_of(self, tool_name: str) -> Profile:
        return self._rules.profile_of(tool_name, getattr(self._player.bank, "profiles", ()))

    def _arguments_ended(self, event: ToolCallEnd) -> Played | None:
        call = self._calls.find_open(event.tool_call_id, event.tool_name, event.index)
        if call is not None:
            call.has_ended, call.is_complete = True, call.is_complete or event.status == "ok"
        if event.status == "ok":
            return None
        cue = self._rules.incomplete if event.status == "incomplete" else self._rules.malformed
        return self._cannot_run(call, event, cue)

    def _invalid(self, event: InvalidToolCall) -> Played | None:
        place = event.tool_call_id, event.tool_name, event.index
        call = self._calls.find_invalid(*place)  # of an earlier answer, if it is refused after its end
        if call is None:
            call, self._calls.in_answer = self._calls.begin(*place), True
        if call is not None:
            self._calls.refused.append(call)
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
        name = event.tool_name
        if call is not None:
            name, now_s = call.tool_name, self._player.now_s
            if not call.is_over:
                self._turn.outcome()
                self._silence.ask(now_s)
            if call.is_settled:
                return None
            self._times.note(name, now_s - call.began_s)
        success = self._rules.success if self._profile_of(name).success else None
        cue = self._rules.error if is_error else success
        return self._player.play(cue, event, priority=OUTCOME_PRIORITY)

    def _task_begun(self, event: TaskStatus) -> Played | None:
        """A tool that the server runs by itself; without a name, all that it runs in this answer."""
        call = self._calls.begin(event.task_id, event.tool_name) if event.tool_name else None
        if call is None:
            return None
        call.has_ended = call.is_complete = call.is_task = True
        self._called(call)
        return self._announced(event)

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
