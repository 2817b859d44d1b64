"""Voices that have not begun: scheduled ones, those that wait for a pause in the speech, and waiting sounds."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from functools import cache
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

from cues._kernels import layout
from cues.mixing.state import PAUSE_MS
from cues.units import ms_to_samples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cues.mixing.voice import Playback, Wait

__all__ = ["WaitingVoices", "earliest"]

_NOTHING: list[Any] = []  # of every session in which nothing waits; never changed
_samples = cache(ms_to_samples)  # one number for all sessions


@dataclass(slots=True, eq=False)
class WaitingVoices:
    """The waiting voices of one session, in order of their start; `gap_limit_ms` is the longest wait for a pause."""

    sample_rate: InitVar[int]
    gap_limit_ms: InitVar[float]
    _gap_limit: int = field(init=False)
    _pause: int = field(init=False)
    _scheduled: list[tuple[int, int, Playback]] = field(default_factory=lambda: _NOTHING)
    _for_pause: Sequence[tuple[int, Playback]] = ()
    _for_quiet: Sequence[Playback] = ()
    _order: int = 0
    _listening_since: int = 0
    _stopped: bool = False

    def __post_init__(self, sample_rate: int, gap_limit_ms: float) -> None:
        self._gap_limit, self._pause = _samples(gap_limit_ms, sample_rate), _samples(PAUSE_MS, sample_rate)

    def __len__(self) -> int:
        """How many voices wait."""
        return len(self._scheduled) + len(self._for_pause) + len(self._for_quiet)

    def __iter__(self) -> Iterator[Playback]:
        """The voices that wait, in no order, and those that were stopped since `pop_due`."""
        yield from (voice for _, _, voice in self._scheduled)
        yield from (voice for _, voice in self._for_pause)
        yield from self._for_quiet

    @property
    def listening(self) -> bool:
        """Whether a voice waits for a pause."""
        return bool(self._for_pause or self._for_quiet)

    def add(self, voice: Playback, due: int) -> None:
        """Schedule the voice at sample `due`, after earlier voices of that sample."""
        voice.order = self._order = self._order + 1
        if voice.wait is not None:
            self._for_quiet = [*self._for_quiet, voice]
        elif self._scheduled:
            heappush(self._scheduled, (due, voice.order, voice))
        else:
            self._scheduled = [(due, voice.order, voice)]

    def stop(self, voice: Playback) -> None:
        """Cancel the voice; the next `pop_due` removes all stopped entries in one pass."""
        voice.state = "done"
        self._stopped = True

    def stop_all(self) -> None:
        """Cancel all waiting voices."""
        for voice in self:
            self.stop(voice)

    def pop_due(self, now: int, heard: int, quiet_from: int) -> list[Playback]:
        """Remove and return the voices that begin at sample `now`."""
        # Speech was last heard before sample `heard`; nothing is heard from `quiet_from` on, if nothing more comes.
        if self._stopped:
            self._drop_stopped()
        due = []
        while self._scheduled and self._scheduled[0][0] <= now:
            voice = heappop(self._scheduled)[2]
            if voice.placement == "in_pause":
                self._listening_since = self._listening_since if self._for_pause else now
                self._for_pause = [*self._for_pause, (now + self._gap_limit, voice)]
            else:
                due.append(voice)
        if self._for_quiet:
            due += self._pop_after_quiet(now, heard, quiet_from)
        return due + self._pop_after_pause(now, heard) if self._for_pause else due

    def next_due(self, heard: int, quiet_from: int) -> int:
        """The sample at which to call `pop_due` again."""
        wake = self._scheduled[0][0] if self._scheduled else layout.NEVER
        for voice in self._for_quiet:
            if (wait := voice.wait) is not None:
                wake = min(wake, earliest(wait, quiet_from), wait.give_up_at)
        if self._for_pause:
            wake = min(wake, self._pause_end(heard), *(limit for limit, _ in self._for_pause))
        return wake

    def _drop_stopped(self) -> None:
        self._stopped = False
        self._scheduled = [entry for entry in self._scheduled if entry[2].state == "waiting"]
        heapify(self._scheduled)
        self._for_pause = [entry for entry in self._for_pause if entry[1].state == "waiting"]
        self._for_quiet = [voice for voice in self._for_quiet if voice.state == "waiting"]

    def _pause_end(self, heard: int) -> int:
        """The sample at which a pause is found if no speech comes before it."""
        return max(heard, self._listening_since) + self._pause

    def _pop_after_pause(self, now: int, heard: int) -> list[Playback]:
        """Remove and return the voices whose pause or limit was reached."""
        pause = now >= self._pause_end(heard)
        due = [voice for limit, voice in self._for_pause if pause or limit <= now]
        if due:
            self._for_pause = [entry for entry in self._for_pause if not pause and entry[0] > now]
        return due

    def _pop_after_quiet(self, now: int, heard: int, quiet_from: int) -> list[Playback]:
        """Remove the waiting sounds that were answered or given up; remove and return those that begin."""
        due: list[Playback] = []
        still: list[Playback] = []
        for voice in self._for_quiet:
            if (wait := voice.wait) is None or heard > wait.until_heard_from or now >= wait.give_up_at:
                voice.state = "done"
            else:
                (due if earliest(wait, quiet_from) <= now else still).append(voice)
        self._for_quiet = still
        return due


def earliest(wait: Wait, quiet_from: int) -> int:
    """The sample at which a waiting sound begins if it is quiet from `quiet_from` on."""
    return max(wait.not_before, quiet_from + wait.patience)
