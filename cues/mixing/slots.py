"""The voice slots of a session: allocation, gain ramps and stealing.

A slot is a part of the session's row (`cues._kernels.layout`). One extra slot holds the tails of stolen voices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cues._kernels import layout
from cues.mixing.sound import Sound
from cues.signal.fades import smoothstep
from cues.units import ms_to_samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cues.mixing.state import Row
    from cues.mixing.voice import Playback

__all__ = ["STEAL_FADE_MS", "Slots"]

STEAL_FADE_MS = 5.0
GAIN_RAMP_MS = 10.0


class Slots:
    """The voice slots of one session.

    Attributes
    ----------
    sounds : list of Sound or None
        The sound in each slot; the last slot is for tails.
    playing : list of Playback or None
        The voice in each slot.
    """

    def __init__(self, row: Row, sample_rate: int, voices: int) -> None:
        self._row = row
        self._tails = voices
        self.sounds: list[Sound | None] = [None] * (voices + 1)
        self.playing: list[Playback | None] = [None] * voices
        self._steal_fade = max(1, ms_to_samples(STEAL_FADE_MS, sample_rate))
        self._gain_ramp = max(1, ms_to_samples(GAIN_RAMP_MS, sample_rate))

    def move_to(self, row: Row) -> None:
        """Continue in another row, a copy of this one."""
        self._row = row

    def holds(self, voice: Playback) -> bool:
        """Whether the voice still sounds in its slot."""
        held = voice.slot >= 0 and self.playing[voice.slot] is voice
        return held and bool(self._row.sound_of(voice.slot))

    def reap(self) -> list[Playback]:
        """Free the slots of ended voices, and return these voices."""
        held = set(self._row.sounding())
        ended = [voice for slot, voice in enumerate(self.playing) if voice is not None and slot not in held]
        for voice in ended:
            self.playing[voice.slot] = self.sounds[voice.slot] = None
        if self._tails not in held:
            self.sounds[self._tails] = None
        return ended

    def free(self) -> int | None:
        """The first free slot."""
        return next((slot for slot, voice in enumerate(self.playing) if voice is None), None)

    def least(self) -> Playback:
        """The voice to steal first: one that fades out, then the lowest priority, then the oldest."""
        holders = [voice for voice in self.playing if voice is not None]
        return min(holders, key=lambda voice: (not self.ends(voice), voice.priority, voice.order))

    def steal(self, voice: Playback) -> int:
        """Move a voice's fade-out to the slot for tails, and return the freed slot."""
        self._add_tail(self._tail(voice.slot, self._steal_fade))
        self.playing[voice.slot] = self.sounds[voice.slot] = None
        return voice.slot

    def begin(self, voice: Playback, slot: int, gain: float) -> None:
        """Start the voice in a free slot, with a fade-in if its first samples are hard."""
        words, ints, floats = self._row.voice(slot)
        soft = voice.sound.soft_start
        words[layout.VOICE_START_I64] = self._row.position
        words[layout.VOICE_SOUND_I64] = voice.sound.address
        ints[layout.VOICE_T0_I32] = 0
        ints[layout.VOICE_N_I32] = (0 if soft else self._steal_fade) | (layout.VOICE_LOOPS if voice.loop else 0)
        floats[layout.VOICE_G0_F32] = gain if soft else 0.0
        floats[layout.VOICE_G1_F32] = gain
        self.playing[slot], self.sounds[slot] = voice, voice.sound
        voice.slot = slot

    def ends(self, voice: Playback) -> bool:
        """Whether the voice ends with its ramp."""
        return bool(self._row.flags_of(voice.slot) & layout.VOICE_ENDS)

    def ramp_end(self, voice: Playback) -> int:
        """The sample at which a voice's ramp ends or ended."""
        words, ints, _ = self._row.voice(voice.slot)
        ramp = int(ints[layout.VOICE_N_I32]) & layout.RAMP_MASK
        return int(words[layout.VOICE_START_I64]) + int(ints[layout.VOICE_T0_I32]) + ramp if ramp else 0

    def change_gain(self, voice: Playback, gain: float) -> None:
        """Ramp a voice without a running ramp to another gain."""
        self._ramp(voice, self._gain_ramp, gain)

    def fade_out(self, voice: Playback, n: int) -> int:
        """Fade out over `n` samples unless the voice ends sooner; return the sample at which it ends."""
        slot, now = voice.slot, self._row.position
        sound = self.sounds[slot]
        assert sound is not None
        end = self._row.voice_end(slot, sound.length)
        if end <= now + n and self.ends(voice):
            return end
        if self.ramp_end(voice) > now:
            self._put_finished(slot, self._tail(slot, n))
        else:
            self._ramp(voice, n | layout.VOICE_ENDS, 0.0)
        return min(end, now + n)

    def reach_beside(self, slot: int) -> float:
        """The largest magnitude that all other slots can still reach together."""
        return sum(self._reach(other) for other in range(len(self.playing)) if other != slot)

    def _reach(self, slot: int) -> float:
        """The largest magnitude that a slot can still reach."""
        sound = self.sounds[slot]
        if sound is None:
            return 0.0
        words, ints, floats = self._row.voice(slot)
        gain = max(float(floats[layout.VOICE_G0_F32]), float(floats[layout.VOICE_G1_F32]))
        loops = int(ints[layout.VOICE_N_I32]) & layout.VOICE_LOOPS
        peak = sound.peak if loops else sound.peak_from(self._row.position - int(words[layout.VOICE_START_I64]))
        return gain * float(peak)

    def _ramp(self, voice: Playback, n: int, gain: float) -> None:
        """Start a ramp from the voice's constant gain; `n` may hold `VOICE_ENDS`."""
        words, ints, floats = self._row.voice(voice.slot)
        now = self._row.position
        loops = int(ints[layout.VOICE_N_I32]) & layout.VOICE_LOOPS
        if loops:  # move its start by whole periods: offsets from it must fit 32 bits after weeks
            words[layout.VOICE_START_I64] += (
                (now - int(words[layout.VOICE_START_I64])) // voice.sound.length * voice.sound.length
            )
        ints[layout.VOICE_T0_I32] = now - int(words[layout.VOICE_START_I64])
        ints[layout.VOICE_N_I32] = n | loops
        floats[layout.VOICE_G0_F32] = floats[layout.VOICE_G1_F32]
        floats[layout.VOICE_G1_F32] = gain

    def _put_finished(self, slot: int, samples: NDArray[np.float32]) -> None:
        """Play samples once in this slot, starting now; the voice in it ends with them."""
        sound = Sound(samples)
        words, ints, floats = self._row.voice(slot)
        words[layout.VOICE_START_I64] = self._row.position
        words[layout.VOICE_SOUND_I64] = sound.address
        ints[layout.VOICE_T0_I32] = sound.length
        ints[layout.VOICE_N_I32] = layout.VOICE_ENDS
        floats[layout.VOICE_G0_F32] = floats[layout.VOICE_G1_F32] = 1.0
        self.sounds[slot] = sound

    def _add_tail(self, tail: NDArray[np.float32]) -> None:
        """Play a tail in the slot for tails, added to the tails already there."""
        older = self.sounds[self._tails] if self._row.sound_of(self._tails) else None
        if older is not None:
            rest = older.samples[self._row.position - int(self._row.voice(self._tails)[0][layout.VOICE_START_I64]) :]
            longest = np.zeros(max(len(tail), len(rest)), dtype=np.float32)
            longest[: len(tail)] += tail
            longest[: len(rest)] += rest
            tail = longest
        self._put_finished(self._tails, tail)

    def _tail(self, slot: int, n: int) -> NDArray[np.float32]:
        """The next `n` samples of a voice under its ramp and a fade-out."""
        sound = self.sounds[slot]
        assert sound is not None
        words, ints, floats = self._row.voice(slot)
        offsets = np.arange(n) + (self._row.position - int(words[layout.VOICE_START_I64]))
        flags = int(ints[layout.VOICE_N_I32])
        length = max(1, flags & layout.RAMP_MASK)
        u = np.clip((offsets - int(ints[layout.VOICE_T0_I32])) / length, 0.0, 1.0).astype(np.float32)
        gain = floats[layout.VOICE_G0_F32] + (floats[layout.VOICE_G1_F32] - floats[layout.VOICE_G0_F32]) * smoothstep(u)
        index = offsets % sound.length
        samples = np.where(
            (offsets < sound.length) | bool(flags & layout.VOICE_LOOPS), sound.samples[index], np.float32(0)
        )
        fade = smoothstep((np.arange(n, 0, -1) / n).astype(np.float32))
        tail: NDArray[np.float32] = samples * gain * fade
        return tail
