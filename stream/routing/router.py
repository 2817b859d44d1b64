"""Events in, mixer commands out: which cue sounds, and when.

The router decides and the mixer obeys. The mixer's position is the clock, so the same events at the same positions
give the same sounds.
"""

from __future__ import annotations

import warnings
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from stream.errors import StreamTypeError
from stream.events import (
    AskedAgain,
    Finish,
    InvalidToolCall,
    ServiceEvent,
    StreamFailed,
    TaskStatus,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
)
from stream.known_tools import KnownInStream, KnownTools
from stream.readers.options import declared_names
from stream.routing.calls import CallsUnderWay
from stream.routing.checks import check_bank, check_cue_names, check_mixer, check_rules
from stream.routing.player import FADE_MS, CuePlayer, Played, RouterStats
from stream.routing.rules import DEFAULT_RULES, MOTIF, CueRules
from stream.routing.waiting import WaitingSound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cues import Cue, Mixer
    from stream.readers.options import Tools
    from stream.routing.calls import CallUnderWay
    from stream.routing.spans import Spans

__all__ = ["DEFAULT_RULES", "CueRouter", "CueRules", "Played", "RouterStats"]

_OUTCOME_PRIORITY = 1  # When voices run out, the cue for a call's end wins over one for a start.
# After one of these finish reasons the client runs the calls; after any other they are over.
_TOOLS_FOLLOW = ("tool_calls", "function_call")


# More than 20 methods: ten of them are what a pipeline calls, and each kind of event has one of a few lines.
class CueRouter:
    """Plays cues for the events of a stream.

    Parameters
    ----------
    bank : Mapping[str, Cue]
        From `cues.load_bank`, or your own. It must hold the cues that you set in `rules`; a default that it lacks is
        silent. Its own rules (`bank.rules`, from a pack) take precedence over `rules`.
    mixer : Mixer
        Plays the cues.
    rules : CueRules
    tools : Tools
        The declared tools, as in `stream.read`; `None` if not known. A call of any other tool plays the cue for
        invented tools, unless the server runs the tools (`CueRules.server_tools`).
    now_samples : callable or None
        The time in samples for coalescing and bursts. The default, the mixer's position, is right if frames flow
        without a pause.

    Raises
    ------
    StreamTypeError, StreamValueError
        If a parameter has the wrong type, or `rules` names a cue that is not in the bank.
    """

    def __init__(
        self,
        bank: Mapping[str, Cue],
        mixer: Mixer,
        *,
        rules: CueRules = DEFAULT_RULES,
        tools: Tools = None,
        now_samples: Callable[[], int] | None = None,
    ) -> None:
        check_rules(rules)
        check_bank(bank, rules)
        check_mixer(mixer)
        self._rules = rules
        self._tools = KnownTools(declared_names(tools), rules.server_tools)
        self._known = KnownInStream(self._tools)
        self._calls = CallsUnderWay()
        self._spoke_at = 0
        self._connect(bank, mixer, now_samples)

    def _connect(
        self,
        bank: Mapping[str, Cue],
        mixer: Mixer,
        now_samples: Callable[[], int] | None,
        after: CuePlayer | None = None,
    ) -> None:
        """Play on `mixer`, in place of the player `after` if there is one."""
        self._bank, self._mixer, self._given_clock = bank, mixer, now_samples
        self._pack_rules: tuple[tuple[str, str], ...] = tuple(getattr(bank, "rules", ()))
        self._player = CuePlayer(bank, mixer, self._rules, now_samples or (lambda: mixer.position))
        if after is not None:
            self._player.succeed(after)
        self._waiting = WaitingSound(
            mixer,
            self._player.spans,
            self._working_cue,
            after_s=self._rules.working_after_s,
            pause_s=self._rules.working_pause_s,
        )

    def use_mixer(self, mixer: Mixer, bank: Mapping[str, Cue] | None = None) -> None:
        """Continue on another mixer; switches, counts and subscribers stay, calls under way are forgotten.

        Errors are those of `CueRouter`; the router is then unchanged.
        """
        check_mixer(mixer)
        if bank is not None:
            check_bank(bank, self._rules)
        self.barge_in()
        self._spoke_at = 0
        self._connect(self._bank if bank is None else bank, mixer, self._given_clock, after=self._player)

    def move_to(self, mixer: Mixer, bank: Mapping[str, Cue] | None = None) -> None:
        """Old name of `use_mixer`; it goes in 0.3."""
        warnings.warn("CueRouter.move_to is now use_mixer; the old name goes in 0.3", DeprecationWarning, stacklevel=2)
        self.use_mixer(mixer, bank)

    # Events.

    def handle(self, event: ServiceEvent) -> Played | None:
        """Apply the rules to one event; returns the cue that it started, if it started at once."""
        self.poll()
        self._known.note(event)
        match event:
            case ToolCallStart():
                return self._call_known(event)
            case ToolCallEnd():
                return self._arguments_ended(event)
            case ToolResult():
                return self._result_known(event)
            case InvalidToolCall():
                return self._invalid(event)
            case TextDelta():
                # Speech ends the wait, because some servers never send a result.
                if event.text.strip():
                    self._spoke_at = self._mixer.position
                    self._waiting.disarm()
            case AskedAgain(how="fallback"):
                self._known.trust()  # the fallback has its own tools
            case TaskStatus(status="completed"):
                self._all_over()
            case Finish():
                self._finished(event)
            case StreamFailed():
                self._all_over()
                return self._player.play(self._rules.failed, event, priority=_OUTCOME_PRIORITY)
            case _ if not isinstance(event, ServiceEvent):
                raise StreamTypeError(f"event is {event!r}; it must be an event, as stream.read yields them")
        return None

    def end_call(self, tool_call_id: str, tool_name: str = "") -> None:
        """End a call without an outcome (cancelled, say): no cue sounds for it."""
        self._calls.end(tool_call_id, tool_name)
        self._wait_if_awaited()

    @property
    def waits(self) -> bool:
        """Whether the outcome of a call is awaited."""
        return bool(self._calls.awaited)

    # Speech, turns and barge-in.

    def speech(self, until: int) -> None:
        """Note that speech lasts up to an output sample: the waiting sound stops for it.

        Call it whenever speech is queued or mixed; the router hears no speech itself.
        """
        self.poll()
        self._waiting.speech(until)

    def poll(self) -> None:
        """Note and publish the cues that have started in a pause; `handle` and `speech` do so, too.

        Call it after each frame, so that these cues are published at once.
        """
        self._player.poll()

    def begin_turn(self) -> None:
        """Start a new turn: its first cue sounds even within `coalesce_ms` of the last turn's last cue."""
        self._player.begin_turn()
        self._known = KnownInStream(self._tools)

    def cancel(self) -> None:
        """End the turn: forget the calls under way and stop the waiting sound."""
        self._player.end_turn()
        self._all_over()

    def barge_in(self, fade_ms: float = 30.0) -> None:
        """End the turn and its cues: sounding cues fade, waiting ones are cancelled, late results are silent."""
        self._calls.give_up()
        self.cancel()
        self._player.silence(fade_ms)

    def hush(self, fade_ms: float = 30.0) -> None:
        """Fade every cue, but still await outcomes: the user speaks while the tools run on."""
        self._player.end_turn()
        self._waiting.disarm()
        self._player.silence(fade_ms)

    # Mute switches, counts and spans.

    @property
    def muted(self) -> bool:
        """Whether all cues are off. Setting it fades the cues that sound, and cancels those that wait."""
        return self._player.muted

    @muted.setter
    def muted(self, muted: bool) -> None:
        self._player.muted = bool(muted)
        if muted:
            self._player.silence(FADE_MS)
            self._waiting.disarm()

    def mute(self, *cues: str) -> None:
        """Mute cues by name; a name that neither bank nor rules know raises a `StreamError`."""
        check_cue_names(cues, self._bank, self._rules)
        self._player.mute(cues)
        if self._rules.working in cues:
            self._waiting.disarm()

    def unmute(self, *cues: str) -> None:
        """Unmute cues by name, as in `mute`; without names, all."""
        check_cue_names(cues, self._bank, self._rules)
        self._player.unmute(cues)

    @property
    def stats(self) -> RouterStats:
        """Counts of the decisions so far."""
        return self._player.stats

    @property
    def spans(self) -> Spans:
        """When the cues sound."""
        return self._player.spans

    def tell(
        self,
        *,
        after_words: Callable[[Callable[[int], None]], None] | None = None,
        on_played: Callable[[Played], None] | None = None,
    ) -> None:
        """Connect the router with a session.

        Parameters
        ----------
        after_words : callable or None
            Takes a callback, and calls it with the output sample at which the words sent so far end, once that is
            known. Without it a cue placed after the words waits for a pause.
        on_played : callable or None
            Gets every cue that sounds.
        """
        self._player.after_words, self._player.on_played = after_words, on_played

    # The phases of a call.

    def _call_known(self, event: ToolCallStart) -> Played | None:
        call = self._calls.begin(event.tool_call_id, event.tool_name, self._mixer.position)
        if call is None:
            return None
        if not self._known.knows(event.tool_name):
            call.is_settled = True
            return self._player.play(self._rules.invented, event, priority=_OUTCOME_PRIORITY)
        self._wait_if_awaited()
        return self._player.play(self._cue_for_tool(event.tool_name), event)

    def _arguments_ended(self, event: ToolCallEnd) -> Played | None:
        if event.status == "ok":
            return None
        call = self._calls.find(event.tool_call_id, event.tool_name)
        if call is not None and call.is_settled:
            return None
        self._fail(call)
        cue = self._rules.incomplete if event.status == "incomplete" else self._rules.malformed
        return self._player.play(cue, event, priority=_OUTCOME_PRIORITY)

    def _result_known(self, event: ToolResult) -> Played | None:
        call = self._calls.end(event.tool_call_id, event.tool_name)
        self._wait_if_awaited()
        if call is not None and call.is_settled:
            return None
        cue = self._rules.error if event.is_error else self._rules.success
        return self._player.play(cue, event, priority=_OUTCOME_PRIORITY)

    def _invalid(self, event: InvalidToolCall) -> Played | None:
        call = self._calls.find(event.tool_call_id, event.tool_name)
        if call is not None and call.is_settled:
            return None
        self._fail(call)
        cue = self._rules.invented if event.reason == "unknown_tool" else self._rules.malformed
        return self._player.play(cue, event, priority=_OUTCOME_PRIORITY)

    def _finished(self, event: Finish) -> None:
        if event.reason in _TOOLS_FOLLOW:
            self._wait_if_awaited()
        else:
            self._all_over()

    def _fail(self, call: CallUnderWay | None) -> None:
        if call is not None:
            call.is_settled = True
        self._wait_if_awaited()

    def _all_over(self) -> None:
        self._calls.clear()
        self._waiting.disarm()

    def _wait_if_awaited(self) -> None:
        if awaited := self._calls.awaited:
            self._waiting.arm(max(awaited[0].known_at, self._spoke_at))
        else:
            self._waiting.disarm()

    # Cues.

    def _cue_for_tool(self, tool_name: str) -> str | None:
        cue = self._rules.cue_for_tool(tool_name)
        for pattern, name in self._pack_rules:
            if fnmatchcase(tool_name, pattern):
                cue = name
                break
        return f"{MOTIF}:{tool_name}" if cue == MOTIF else cue

    def _working_cue(self) -> Cue | None:
        name = self._rules.working
        if name is None or name not in self._bank or self._player.is_silent(name):
            return None
        return self._bank[name]
