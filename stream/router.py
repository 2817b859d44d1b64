"""Which cue, and when: events in, mixer commands out.

The router decides and the mixer obeys. Its clock is the mixer's own count of samples, so the same events at the same
positions give the same sounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import ceil
from typing import TYPE_CHECKING

from stream.calls import CallsUnderWay
from stream.cue_rules import DEFAULT_RULES, CueRules, Placement
from stream.events import Finish, StreamFailed, TaskStatus, TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from stream.services.notices import InvalidToolCall
from stream.spans import Spans
from stream.throttle import Throttle
from stream.waiting_sound import WaitingSound

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from cues import Cue, Mixer, Voice
    from stream.calls import CallUnderWay
    from stream.services.notices import ServiceEvent
    from stream.spans import Span

__all__ = ["DEFAULT_RULES", "CueRouter", "CueRules", "Played", "RouterStats"]

_MOTIF = "motif"
_OUTCOME_PRIORITY = 1  # Where voices are short, how it ended counts more than that it began.
# A stream that ends with one of these leaves its calls to whoever reads it; any other reason means that they are over.
_TOOLS_FOLLOW = ("tool_calls", "function_call")


@dataclass(frozen=True, slots=True)
class Played:
    """A cue that the router has started.

    Attributes
    ----------
    cue : its name.
    event : what it sounds for.
    onset_samples : the output sample at which it begins.
    placement : where the rules put it.
    """

    cue: str
    event: ServiceEvent
    onset_samples: int
    placement: Placement = "now"


@dataclass(slots=True)
class RouterStats:
    """Counts of what the router decided: cues started, sounded once for several, thinned out of a burst, muted."""

    played: int = 0
    coalesced: int = 0
    thinned: int = 0
    muted: int = 0


class CueRouter:
    """Turns the events of a stream into cues.

    Parameters
    ----------
    bank : cues by name; a name that it does not hold is silent. Where it has rules of its own (`bank.rules`, from a
        pack), they come before those of `rules`.
    mixer : what plays the cues; its position is the router's clock.
    rules : what sounds for what.
    tools : names of the declared tools; a call of any other is announced with the cue for invented ones. `None`: not
        known.
    now_samples : the time that coalescing and bursts are counted in, samples; where frames flow without a pause that is
        the mixer's position, and the default.

    Attributes
    ----------
    stats : counts of its decisions.
    spans : when its cues sound.
    after_words : set by whoever knows where the words end: takes a function and calls it with the output sample after
        the last word that was to be spoken so far, as soon as that is known. Without it a cue that is to come after the
        words waits for a pause.
    on_played : is told of every cue that starts.
    """

    def __init__(
        self,
        bank: Mapping[str, Cue],
        mixer: Mixer,
        *,
        rules: CueRules = DEFAULT_RULES,
        tools: Collection[str] | None = None,
        now_samples: Callable[[], int] | None = None,
    ) -> None:
        self._bank, self._mixer, self._rules = bank, mixer, rules
        self._tools = None if tools is None else frozenset(tools)
        self._pack_rules: tuple[tuple[str, str], ...] = tuple(getattr(bank, "rules", ()))
        self._calls = CallsUnderWay()
        self._now_samples = now_samples or (lambda: mixer.position)
        self._throttle = Throttle(rules, mixer.sample_rate, self._now_samples())
        self._muted = False
        self._muted_cues: set[str] = set()
        self._sounding: list[tuple[Voice, Span]] = []
        self._in_pause: list[tuple[Voice, str, ServiceEvent]] = []
        self._turn = self._spoke_at = 0
        self.stats = RouterStats()
        self.spans = Spans(mixer.sample_rate)
        self.after_words: Callable[[Callable[[int], None]], None] | None = None
        self.on_played: Callable[[Played], None] | None = None
        self._waiting = WaitingSound(
            mixer, self.spans, self._working_cue, after_s=rules.working_after_s, pause_s=rules.working_pause_s
        )

    # What the stream says.

    def handle(self, event: ServiceEvent) -> Played | None:
        """Do what the rules say for one event; returns the cue that it started, if it did so at once."""
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
                # Speech ends the wait, also where the server never tells a result.
                if event.text.strip():
                    self._spoke_at = self._mixer.position
                    self._waiting.disarm()
            case TaskStatus(status="completed"):
                self._all_over()
            case Finish():
                self._finished(event)
            case StreamFailed():
                self._all_over()
                return self._play(self._rules.failed, event, priority=_OUTCOME_PRIORITY)
        return None

    def end_call(self, tool_call_id: str, tool_name: str = "") -> None:
        """Note that a call is over without an outcome (cancelled, say): its phase ends without a sound."""
        self._calls.end(tool_call_id, tool_name)
        self._wait_if_awaited()

    @property
    def waits(self) -> bool:
        """Whether the outcome of a call is awaited."""
        return bool(self._calls.awaited)

    # What the listener hears and does.

    def speech(self, until: int) -> None:
        """Take note that speech passes up to an output sample: the waiting sound makes way for it."""
        self._waiting.speech(until)

    def poll(self) -> None:
        """Take note of cues that have found their pause; to be called after frames were mixed."""
        if not self._in_pause:
            return
        waiting = self._in_pause
        self._in_pause = [entry for entry in waiting if entry[0].onset is None and entry[0].active]
        for voice, name, event in waiting:
            if voice.onset is not None:
                self._note(voice, Played(name, event, voice.onset, "in_pause"))

    def begin_turn(self) -> None:
        """Let a new turn's first cue sound, however short the last turn's last one is past."""
        self._throttle.forget()

    def cancel(self) -> None:
        """Forget the calls under way and end their waiting sound: the turn is over."""
        self._turn += 1
        self._all_over()

    def barge_in(self, fade_ms: float = 30.0) -> None:
        """End the turn and every cue of it: what sounds fades, what waits never begins, what comes late is silent."""
        self._calls.give_up()
        self.cancel()
        self._silence(fade_ms, keep=())

    def hush(self, fade_ms: float = 30.0) -> None:
        """End every cue, the waiting sound too, but await the outcomes: the user speaks, and the tools may run on."""
        self._turn += 1
        self._waiting.disarm()
        self._silence(fade_ms, keep=())

    # The switch.

    @property
    def muted(self) -> bool:
        """Whether cues are off. Switching them off ends those that sound or wait; they stay off until switched on."""
        return self._muted

    @muted.setter
    def muted(self, muted: bool) -> None:
        self._muted = bool(muted)
        if self._muted:
            self._silence(30.0, keep=())
            self._waiting.disarm()

    def mute(self, *cues: str) -> None:
        """Switch some cues off for good, by name."""
        self._muted_cues.update(cues)
        self._silence(30.0, keep=[name for name in self._bank if name not in cues])
        if self._rules.working in cues:
            self._waiting.disarm()

    def unmute(self, *cues: str) -> None:
        """Switch some cues on again; without names, all."""
        self._muted_cues.difference_update(cues or tuple(self._muted_cues))

    # The phases of a call.

    def _call_known(self, event: ToolCallStart) -> Played | None:
        call = self._calls.begin(event.tool_call_id, event.tool_name, self._mixer.position)
        if call is None:
            return None
        if self._tools is not None and event.tool_name not in self._tools:
            call.is_told = True
            return self._play(self._rules.invented, event, priority=_OUTCOME_PRIORITY)
        self._wait_if_awaited()
        return self._play(self._cue_for_tool(event.tool_name), event)

    def _arguments_ended(self, event: ToolCallEnd) -> Played | None:
        if event.status == "ok":
            return None
        call = self._calls.find(event.tool_call_id, event.tool_name)
        if call is not None and call.is_told:
            return None
        self._fail(call)
        cue = self._rules.incomplete if event.status == "incomplete" else self._rules.malformed
        return self._play(cue, event, priority=_OUTCOME_PRIORITY)

    def _result_known(self, event: ToolResult) -> Played | None:
        call = self._calls.end(event.tool_call_id, event.tool_name)
        self._wait_if_awaited()
        if call is not None and call.is_told:
            return None
        cue = self._rules.error if event.is_error else self._rules.success
        return self._play(cue, event, priority=_OUTCOME_PRIORITY)

    def _invalid(self, event: InvalidToolCall) -> Played | None:
        """A call that must not run: its failure is told now, once."""
        call = self._calls.find(event.tool_call_id, event.tool_name)
        if call is not None and call.is_told:
            return None
        self._fail(call)
        cue = self._rules.invented if event.reason == "unknown_tool" else self._rules.malformed
        return self._play(cue, event, priority=_OUTCOME_PRIORITY)

    def _finished(self, event: Finish) -> None:
        if event.reason in _TOOLS_FOLLOW:
            self._wait_if_awaited()
        else:
            self._all_over()

    def _fail(self, call: CallUnderWay | None) -> None:
        if call is not None:
            call.is_told = True
        self._wait_if_awaited()

    def _all_over(self) -> None:
        self._calls.clear()
        self._waiting.disarm()

    def _wait_if_awaited(self) -> None:
        if awaited := self._calls.awaited:
            self._waiting.arm(max(awaited[0].known_at, self._spoke_at))
        else:
            self._waiting.disarm()

    # The sound.

    def _cue_for_tool(self, tool_name: str) -> str | None:
        cue = self._rules.cue_for_tool(tool_name)
        for pattern, name in self._pack_rules:
            if fnmatchcase(tool_name, pattern):
                cue = name
                break
        return f"{_MOTIF}:{tool_name}" if cue == _MOTIF else cue

    def _working_cue(self) -> Cue | None:
        name = self._rules.working
        silent = self._muted or name is None or name in self._muted_cues or name not in self._bank
        return None if silent or name is None else self._bank[name]

    def _play(self, name: str | None, event: ServiceEvent, priority: int = 0) -> Played | None:
        if name is None or name not in self._bank:
            return None
        if self._muted or name in self._muted_cues:
            self.stats.muted += 1
            return None
        verdict = self._throttle.admit(name, self._now_samples())
        if verdict != "play":
            self.stats.coalesced += verdict == "coalesce"
            self.stats.thinned += verdict == "thin"
            return None
        placement = self._rules.placement_of(name)
        if placement == "after_words" and self.after_words is not None:
            turn = self._turn
            self.after_words(lambda at: self._start_later(name, event, at, priority, turn))
            return None
        if placement != "now":
            voice = self._mixer.play(self._bank[name], priority=priority, placement="gap")
            self._in_pause.append((voice, name, event))
            return None
        return self._start(name, event, None, priority, placement)

    def _start_later(self, name: str, event: ServiceEvent, at: int, priority: int, turn: int) -> None:
        """Start a cue whose place was not known before, unless the turn or the cue has been given up since."""
        if turn == self._turn and not self._muted and name not in self._muted_cues:
            self._start(name, event, at, priority, "after_words")

    def _start(self, name: str, event: ServiceEvent, at: int | None, priority: int, placement: Placement) -> Played:
        onset = self._mixer.position if at is None else max(at, self._mixer.position)
        voice = self._mixer.play(self._bank[name], at=None if at is None else onset, priority=priority)
        return self._note(voice, Played(name, event, onset, placement))

    def _note(self, voice: Voice, played: Played) -> Played:
        """Count and publish a cue that sounds, or will at a sample that is known."""
        cue = self._bank[played.cue]
        n_samples = ceil(len(cue) * self._mixer.sample_rate / cue.sample_rate)
        span = self.spans.begin(played.cue, played.onset_samples, played.onset_samples + n_samples)
        self._sounding = [pair for pair in self._sounding if pair[0].active]
        self._sounding.append((voice, span))
        self.stats.played += 1
        if self.on_played is not None:
            self.on_played(played)
        return played

    def _silence(self, fade_ms: float, keep: Collection[str]) -> None:
        """Stop the cues that sound or wait, except those named."""
        now = self._mixer.position
        fade = round(fade_ms * self._mixer.sample_rate / 1000.0)
        for voice, span in self._sounding:
            if span.cue not in keep:
                voice.stop(fade_ms=fade_ms)
                self.spans.end(span.number, now + fade if span.start_samples <= now else now)
        self._sounding = [pair for pair in self._sounding if pair[1].cue in keep]
        for voice, name, _ in self._in_pause:
            if name not in keep:
                voice.stop(fade_ms=fade_ms)
        self._in_pause = [entry for entry in self._in_pause if entry[1] in keep]
