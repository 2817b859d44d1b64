"""The voice slots of a session: allocation, gain ramps and stealing.

A slot is a part of the session's row (`cues._kernels.layout`). One extra slot holds the tails of stolen voices. What a
slot holds is known from its voice, in Python numbers: the row is written here, and read by the kernels alone.
"""

import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cues._kernels import layout
from cues.mixing.sound import Sound
from cues.mixing.state import Row
from cues.mixing.voice import Playback
from cues.signal.fades import smoothstep
from cues.units import ms_to_samples

__all__ = ["STEAL_FADE_MS", "Slots"]

STEAL_FADE_MS = 5.0
GAIN_RAMP_MS = 10.0

_SLOT = struct.Struct("=qqiiff")  # as `layout` has a voice


class Slots:
    """The voice slots of one session; `voices` are those in slots, in order of their start.

    A voice that has ended stays until the next plan: the loops know its end.
    """

    __slots__ = ("_free", "_gain_ramp", "_n", "_row", "_steal_fade", "_tail", "_tail_start", "voices")

    def __init__(self, row: Row, sample_rate: int, voices: int) -> None:
        self._row = row
        self._n = voices
        self._free = (1 << voices) - 1  # a bit for each free slot
        self.voices: list[Playback] = []
        self._tail: Sound | None = None
        self._tail_start = 0
        self._steal_fade = max(1, ms_to_samples(STEAL_FADE_MS, sample_rate))
        self._gain_ramp = max(1, ms_to_samples(GAIN_RAMP_MS, sample_rate))

    def playing(self) -> Iterator[tuple[Sound, int, int, int, float, float, int, bool]]:
        """Each slot in use, in the row's order: sound, start, t0, n, g0, g1, end, and whether it loops."""
        for v in sorted(self.voices, key=lambda voice: voice.slot):
            yield v.sound, v.start, v.t0, v.n, v.g0, v.g1, v.end, v.loop
        if self._tail is not None:
            length = self._tail.length
            yield self._tail, self._tail_start, length, 0, 1.0, 1.0, self._tail_start + length, False

    @property
    def end(self) -> int:
        """The sample at which the last voice or tail ends."""
        end = 0 if self._tail is None else self._tail_start + self._tail.length
        for voice in self.voices:
            end = max(end, voice.end)
        return end

    def remove(self, voice: Playback) -> None:
        """Free the slot of an ended voice."""
        self.voices.remove(voice)
        self._free |= 1 << voice.slot
        self._clear(voice.slot)

    def free(self) -> int | None:
        """The first free slot."""
        return (self._free & -self._free).bit_length() - 1 if self._free else None

    def least(self) -> Playback:
        """The voice to steal first: one that fades out, then the lowest priority, then the oldest."""
        return min(self.voices, key=lambda voice: (not voice.ends, voice.priority, voice.order))

    def steal(self, voice: Playback, now: int) -> int:
        """Move a voice's fade-out to the slot for tails, and return the freed slot."""
        self._add_tail(_tail(voice, now, self._steal_fade), now)
        self.remove(voice)
        return voice.slot

    def begin(self, voice: Playback, slot: int, gain: float, now: int) -> None:
        """Start the voice in a free slot, with a fade-in if its first samples are hard."""
        soft = voice.sound.soft_start
        voice.slot, voice.start, voice.t0 = slot, now, 0
        voice.n, voice.g0, voice.g1 = (0, gain, gain) if soft else (self._steal_fade, 0.0, gain)
        self._free ^= 1 << slot
        self.voices.append(voice)
        self._write(voice)

    def change_gain(self, voice: Playback, gain: float, now: int) -> None:
        """Ramp a voice without a running ramp to another gain."""
        self._ramp(voice, self._gain_ramp, gain, now)

    def fade_out(self, voice: Playback, n: int, now: int) -> None:
        """Fade out over `n` samples unless the voice ends sooner."""
        if voice.ends and voice.end <= now + n:
            return
        running = voice.ramp_end > now
        voice.ends, voice.gain_waits = True, False
        if running:
            self._put(voice.slot, sound := Sound(_tail(voice, now, n)), now)
            voice.sound, voice.start, voice.t0, voice.n = sound, now, n, 0
            voice.g0 = voice.g1 = 1.0
            voice.loop, voice.end = False, now + n
        else:
            self._ramp(voice, n, 0.0, now)
            voice.end = min(voice.end, now + n)

    def reach_beside(self, slot: int, now: int) -> float:
        """The largest magnitude that all other slots can still reach together."""
        reach = 0.0
        for voice in self.voices:
            if voice.slot != slot:
                reach += voice.reach(now)
        return reach

    def drop_tail(self, now: int) -> None:
        """Forget the tails once they have ended."""
        if self._tail is not None and self._tail_start + self._tail.length <= now:
            self._tail = None
            self._clear(self._n)

    def _clear(self, slot: int) -> None:
        self._row.words[(layout.BUS_BYTES + layout.VOICE_BYTES * slot) // 8 + layout.VOICE_SOUND_I64] = 0

    def _ramp(self, voice: Playback, n: int, gain: float, now: int) -> None:
        """Start a ramp from the voice's constant gain."""
        if voice.loop:  # move its start by whole periods: offsets from it must fit 32 bits after weeks
            voice.start += (now - voice.start) // voice.sound.length * voice.sound.length
        voice.t0, voice.n = now - voice.start, n
        voice.g0, voice.g1 = voice.g1, gain
        self._write(voice)

    def _write(self, voice: Playback) -> None:
        flags = voice.n | (layout.VOICE_LOOPS if voice.loop else 0) | (layout.VOICE_ENDS if voice.ends else 0)
        at = layout.BUS_BYTES + layout.VOICE_BYTES * voice.slot
        _SLOT.pack_into(self._row.words, at, voice.start, voice.sound.address, voice.t0, flags, voice.g0, voice.g1)

    def _put(self, slot: int, sound: Sound, now: int) -> None:
        """Play finished samples once in this slot, starting now."""
        at = layout.BUS_BYTES + layout.VOICE_BYTES * slot
        _SLOT.pack_into(self._row.words, at, now, sound.address, sound.length, layout.VOICE_ENDS, 1.0, 1.0)

    def _add_tail(self, tail: NDArray[np.float32], now: int) -> None:
        """Play a tail in the slot for tails, added to the tails already there."""
        if self._tail is not None:
            rest = self._tail.samples[now - self._tail_start :]
            longest = np.zeros(max(len(tail), len(rest)), dtype=np.float32)
            longest[: len(tail)] += tail
            longest[: len(rest)] += rest
            tail = longest
        self._tail, self._tail_start = Sound(tail), now
        self._put(self._n, self._tail, now)


def _tail(voice: Playback, now: int, n: int) -> NDArray[np.float32]:
    """The next `n` samples of a voice under its ramp and a fade-out."""
    sound = voice.sound
    offsets = np.arange(n) + (now - voice.start)
    u = np.clip((offsets - voice.t0) / max(1, voice.n), 0.0, 1.0).astype(np.float32)
    gain = np.float32(voice.g0) + np.float32(voice.g1 - voice.g0) * smoothstep(u)
    samples = np.where((offsets < sound.length) | voice.loop, sound.samples[offsets % sound.length], np.float32(0))
    fade = smoothstep((np.arange(n, 0, -1) / n).astype(np.float32))
    tail: NDArray[np.float32] = samples * gain * fade
    return tail
