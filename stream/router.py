"""Which cue, and when: events in, mixer commands out.

The router decides and the mixer obeys. Its clock is the mixer's own count of samples, so the same events at the same
positions give the same sounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from stream.events import StreamFailed, TextDelta, ToolCallEnd, ToolCallStart, ToolResult

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from cues import Cue, Mixer, Voice
    from stream.events import Event

__all__ = ["DEFAULT_RULES", "CueRouter", "CueRules", "Played", "RouterStats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CueRules:
    """What sounds for what. `None` for a cue's name means silence.

    Attributes
    ----------
    tools : pairs of a pattern for the tool's name (`read_*`) and a cue; the first that fits is taken.
    tool_call : the cue of a tool that no pattern names.
    success, error : the cues of a tool's result; `error` also of a call that was cut off, cannot be read, or names a
        tool that was never declared.
    working : the loop that sounds while a tool runs.
    working_after_s : how long a tool runs before the loop begins, seconds.
    coalesce_ms : the same cue within this time sounds once.
    burst : so many cues may come at once; beyond that, `sustained_per_s` a second.
    sustained_per_s : cues a second in the long run.
    """

    tools: tuple[tuple[str, str | None], ...] = ()
    tool_call: str | None = "tool_call"
    success: str | None = "success"
    error: str | None = "error"
    working: str | None = "working"
    working_after_s: float = 3.5
    coalesce_ms: float = 300.0
    burst: int = 3
    sustained_per_s: float = 1.0

    def cue_for_tool(self, tool_name: str) -> str | None:
        """The cue that announces a call of `tool_name`.

        Examples
        --------
        >>> DEFAULT_RULES.cue_for_tool("delegate"), DEFAULT_RULES.cue_for_tool("read_file")
        ('agent', 'tool_call')
        """
        for pattern, cue in self.tools:
            if fnmatchcase(tool_name, pattern):
                return cue
        return self.tool_call


DEFAULT_RULES = CueRules(tools=(("spawn_agent", "agent"), ("delegate", "agent"), ("run_sub_agent", "agent")))


@dataclass(frozen=True, slots=True)
class Played:
    """A cue that the router has started.

    Attributes
    ----------
    cue : its name.
    event : what it sounds for.
    onset_samples : the output sample at which it begins.
    """

    cue: str
    event: Event
    onset_samples: int


@dataclass(slots=True)
class RouterStats:
    """Counts of what the router decided: cues started, sounded once for several, thinned out of a burst, muted."""

    played: int = 0
    coalesced: int = 0
    thinned: int = 0
    muted: int = 0


@dataclass(slots=True)
class _Pending:
    """The calls whose results are awaited, and the waiting sound that they share."""

    calls: set[tuple[str, str]] = field(default_factory=set)
    sound: Voice | None = None


class CueRouter:
    """Turns the events of a stream into cues.

    Parameters
    ----------
    bank : cues by name; a name that it does not hold is silent. Where it has rules of its own (`bank.rules`, from a
        pack), they come before those of `rules`.
    mixer : what plays the cues; its position is the router's clock.
    rules : what sounds for what.
    tools : names of the declared tools; a call of any other is announced with the error cue. `None`: not known.
    """

    def __init__(
        self,
        bank: Mapping[str, Cue],
        mixer: Mixer,
        *,
        rules: CueRules = DEFAULT_RULES,
        tools: Collection[str] | None = None,
    ) -> None:
        self._bank, self._mixer, self._rules = bank, mixer, rules
        self._tools = None if tools is None else frozenset(tools)
        self._pack_rules: tuple[tuple[str, str], ...] = tuple(getattr(bank, "rules", ()))
        self._pending = _Pending()
        self._last_onset: dict[str, int] = {}
        self._tokens = float(rules.burst)
        self._tokens_at = mixer.position
        self.muted = False
        self.stats = RouterStats()

    def handle(self, event: Event) -> Played | None:
        """Do what the rules say for one event; returns the cue that it started, if it did."""
        match event:
            case ToolCallStart():
                return self._call_known(event)
            case ToolCallEnd() if event.status != "ok":
                self._done(event.tool_call_id, event.tool_name)
                return self._play(self._rules.error, event)
            case ToolResult():
                self._done(event.tool_call_id, event.tool_name)
                return self._play(self._rules.error if event.is_error else self._rules.success, event)
            case TextDelta():
                # Speech ends the wait, also where the server never tells a result.
                if event.text.strip():
                    self._stop_waiting()
            case StreamFailed():
                self._stop_waiting()
                return self._play(self._rules.error, event)
        return None

    def cancel(self) -> None:
        """Forget the calls under way and end their waiting sound (a barge-in)."""
        self._stop_waiting()

    def _call_known(self, event: ToolCallStart) -> Played | None:
        self._wait_for(event)
        if self._tools is not None and event.tool_name not in self._tools:
            return self._play(self._rules.error, event)
        return self._play(self._cue_for_tool(event.tool_name), event)

    def _cue_for_tool(self, tool_name: str) -> str | None:
        for pattern, cue in self._pack_rules:
            if fnmatchcase(tool_name, pattern):
                return cue
        return self._rules.cue_for_tool(tool_name)

    def _play(self, name: str | None, event: Event) -> Played | None:
        if name is None or name not in self._bank:
            return None
        if self.muted:
            self.stats.muted += 1
            return None
        if not self._allowed(name):
            return None
        onset = self._mixer.position
        self._mixer.play(self._bank[name])
        self._last_onset[name] = onset
        self.stats.played += 1
        return Played(name, event, onset)

    def _allowed(self, name: str) -> bool:
        """Whether a cue may sound now: not the same one again within `coalesce_ms`, and not one of a long burst."""
        now, rate = self._mixer.position, self._mixer.sample_rate
        last = self._last_onset.get(name)
        if last is not None and (now - last) * 1000.0 < self._rules.coalesce_ms * rate:
            self.stats.coalesced += 1
            return False
        refill = (now - self._tokens_at) / rate * self._rules.sustained_per_s
        self._tokens = min(self._tokens + refill, float(self._rules.burst))
        self._tokens_at = now
        if self._tokens < 1.0:
            self.stats.thinned += 1
            return False
        self._tokens -= 1.0
        return True

    def _wait_for(self, event: ToolCallStart) -> None:
        """Await a result; the first call awaited schedules the waiting sound."""
        self._pending.calls.add((event.tool_call_id, event.tool_name))
        name = self._rules.working
        if self._pending.sound is not None or self.muted or name is None or name not in self._bank:
            return
        at = self._mixer.position + round(self._rules.working_after_s * self._mixer.sample_rate)
        self._pending.sound = self._mixer.play(self._bank[name], at=at, loop=True)

    def _done(self, call_id: str, tool_name: str) -> None:
        """A call is over; the last one ends the waiting sound."""
        self._pending.calls.discard((call_id, tool_name))
        if not self._pending.calls:
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._pending.sound is not None:
            self._pending.sound.stop()
        self._pending = _Pending()
