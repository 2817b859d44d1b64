"""The planner behind one mixer: it turns commands and the passing of time into a row that the loops can mix.

Commands come from any thread through a deque (its `append` and `popleft` are atomic) and are carried out at the start
of the next `mix`, by the thread that mixes; nothing else writes to the row. Whatever the planner does happens at an
absolute sample that does not depend on how the speech was cut into frames, and planning again in between changes
nothing.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from cues._kernels import layout as at
from cues.errors import CueValueError
from cues.mixing import engine
from cues.mixing.bus import DEEPEST, SpeechBus
from cues.mixing.following import SpeechLevel
from cues.mixing.numpy_mixing import smoothstep
from cues.mixing.pauses import PauseFinder
from cues.mixing.sounds import Sound
from cues.units import ms_to_samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from cues.mixing.limiter import Limiter
    from cues.mixing.state import Row
    from cues.mixing.voices import Voice

__all__ = ["Session"]

STEAL_FADE_MS = 5.0
GAIN_RAMP_MS = 10.0
LEAST_SHARE = 0.25
"""A cue is turned down by no more than this factor (12 dB) where others leave no room."""
MAX_WAITING = 65_536
"""Commands and cues that one session may have waiting: a session that nobody mixes must not fill the memory."""


class Session:
    """State and plan of one session.

    Parameters
    ----------
    row : its memory, as `cues.mixing.state.new_table` makes it.
    voices : how many may sound at once.
    limiter : what the output goes through, if anything.
    duck_db : level of the speech under a cue.
    gap_limit_ms : how long a cue waits for a pause at most.
    follow_speech : whether a cue's level follows that of the speech.
    """

    def __init__(
        self,
        row: Row,
        sample_rate: int,
        *,
        voices: int,
        limiter: Limiter | None,
        duck_db: float,
        gap_limit_ms: float,
        follow_speech: bool = False,
    ) -> None:
        self.row = row
        self.sample_rate = sample_rate
        self.voices = voices
        self.limiter = limiter
        if limiter is not None:
            row.words[at.LIMITER_I64] = limiter.address
            row.ints[at.FLAGS_I32] |= at.FLAG_LIMITER
        self.bus = SpeechBus(row, sample_rate, duck_db)
        self.sounds: list[Sound | None] = [None] * (voices + 1)
        self.playing: list[Voice | None] = [None] * voices
        self.started = self.late = self.stolen = self.silence_frames = 0
        self.closed = False
        self._speech = SpeechLevel(sample_rate) if follow_speech else None
        if follow_speech:
            row.words[at.WAKE_I64] = -1
        self._planned_to = at.NEVER
        self._inbox: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._scheduled: list[tuple[int, int, Voice]] = []
        self._order = count()
        self._gap_limit = ms_to_samples(gap_limit_ms, sample_rate)
        self._waiting_for_pause: list[tuple[int, Voice]] = []
        self._pauses = PauseFinder(sample_rate)

    # From any thread.

    def post(self, command: Callable[..., None], *arguments: Any) -> None:
        """Have `command` carried out at the start of the next `mix`; after `end` nothing is any more."""
        if self.closed:
            return
        if len(self._inbox) + len(self._scheduled) + len(self._waiting_for_pause) >= MAX_WAITING:
            raise CueValueError(f"{MAX_WAITING} cues and commands wait already; call mix first")
        self._send(command, *arguments)

    def end(self) -> None:
        """Have the session closed at the start of the next `mix`."""
        if not self.closed:
            self.closed = True
            self._send(self.close)

    def _send(self, command: Callable[..., None], *arguments: Any) -> None:
        self._inbox.append((command, arguments))
        self.row.words[at.WAKE_I64] = -1

    @property
    def active(self) -> bool:
        """Whether anything plays or is scheduled."""
        return bool(
            self.row.sounding()
            or self._scheduled
            or self._waiting_for_pause
            or any(command == self.schedule for command, _ in list(self._inbox))
        )

    def sounds_in(self, voice: Voice) -> bool:
        """Whether the voice still has its slot."""
        held = voice.slot >= 0 and self.playing[voice.slot] is voice
        return held and bool(self.row.voice(voice.slot)[0][at.VOICE_SOUND_I64])

    # In the thread that mixes.

    def move_to(self, row: Row) -> None:
        """Go on in another row, which holds a copy of this one."""
        self.row = row
        self.bus.move_to(row)

    def passes(self, n_samples: int) -> bool:
        """Whether the next samples pass as they are, unheard; plans first if a command is waiting."""
        row = self.row
        if self._due(n_samples):
            self.plan()
        flags = int(row.ints[at.FLAGS_I32]) & ~at.FLAG_GUARD
        return flags == 0 and row.position + n_samples <= int(row.words[at.WAKE_I64])

    def _due(self, n_samples: int) -> bool:
        """Whether something is to be planned within the next samples."""
        return bool(self._inbox) or self.row.position + n_samples > self._planned_to

    def mix(self, source: NDArray[np.float32], target: NDArray[np.float32]) -> None:
        """Mix `source` into `target` (contiguous, of equal length; may be the same array)."""
        done = 0
        while done < len(source):
            step = len(source) - done
            if self._due(step):
                step = min(step, self.plan() - self.row.position)
            part = source[done : done + step]
            if self._waiting_for_pause:
                self._pauses.hear(part)
            if self._speech is not None:
                self._speech.hear(part, self.row.position)
            engine.mix_row(self.row, self.sounds, self.limiter, part, target[done : done + step])
            done += step

    def plan(self) -> int:
        """Carry out what is due at the session's position; the sample up to which nothing else is."""
        row = self.row
        row.words[at.WAKE_I64] = at.NEVER
        for _ in range(len(self._inbox)):  # not until it is empty: a busy thread must not hold up the sound
            command, arguments = self._inbox.popleft()
            command(*arguments)
        now = row.position
        self._reap()
        while self._scheduled and self._scheduled[0][0] <= now:
            self._onset(heappop(self._scheduled)[2])
        self._end_waits(now)
        wakes = [now + (1 << 30), self._change_waiting_gains(now)]
        wakes.append(self.bus.plan(now))
        if self._scheduled:
            wakes.append(self._scheduled[0][0])
        if self._waiting_for_pause:
            wakes += [self._pauses.next_check(now), *(limit for limit, _ in self._waiting_for_pause)]
        row.mark_busy(self.sounds)
        horizon = min(wakes)
        self._planned_to = horizon if horizon < wakes[0] else at.NEVER
        # Where speech is listened to, every frame has to come by.
        hears = self._speech is not None or self._waiting_for_pause
        row.words[at.WAKE_I64] = -1 if hears else self._planned_to
        if self._inbox:  # posted meanwhile: its mark may just have been overwritten
            row.words[at.WAKE_I64] = -1
        return horizon

    # Commands.

    def schedule(self, voice: Voice) -> None:
        """Start the voice at its sample, or now if that has passed."""
        now = self.row.position
        if voice.state != "waiting":
            return
        if voice.at is not None and voice.at < now:
            self.late += 1
        voice.order = next(self._order)
        due = now if voice.at is None else max(voice.at, now)
        heappush(self._scheduled, (due, voice.order, voice))

    def stop(self, voice: Voice, fade_ms: float) -> None:
        """Fade the voice out, or cancel it."""
        if voice.state == "sounding":
            self._fade_out(voice, ms_to_samples(fade_ms, self.sample_rate))
        elif voice.state == "waiting":
            voice.state = "done"
            self._scheduled = [entry for entry in self._scheduled if entry[2] is not voice]
            heapify(self._scheduled)
            self._waiting_for_pause = [entry for entry in self._waiting_for_pause if entry[1] is not voice]

    def change_gain(self, voice: Voice) -> None:
        """Bring a sounding voice to its gain; while another ramp runs, after that."""
        if voice.state != "sounding" or not self.sounds_in(voice):
            return
        words, ints, floats = self.row.voice(voice.slot)
        flags = int(ints[at.VOICE_N_I32])
        if flags & at.VOICE_ENDS:
            return
        now = self.row.position
        if self._ramp_end(voice.slot) > now:
            voice.gain_waits = True
            return
        voice.gain_waits = False
        n = max(1, ms_to_samples(GAIN_RAMP_MS, self.sample_rate))
        self._rebase(voice, now)
        ints[at.VOICE_T0_I32] = now - int(words[at.VOICE_START_I64])
        ints[at.VOICE_N_I32] = n | (flags & at.VOICE_LOOPS)
        floats[at.VOICE_G0_F32] = floats[at.VOICE_G1_F32]
        floats[at.VOICE_G1_F32] = self._fitted_gain(voice, voice.slot)

    def release(self, fade_ms: float) -> None:
        """Fade everything out and keep silent."""
        n = ms_to_samples(fade_ms, self.sample_rate)
        self.cancel()
        for voice in self.playing:
            if voice is not None:
                self._fade_out(voice, n)
        self.bus.release(self.row.position, n)

    def resume(self) -> None:
        """Let the speech pass again."""
        self.bus.resume()

    def cancel(self) -> None:
        """Forget what has not begun."""
        for voice in [entry[2] for entry in self._scheduled] + [entry[1] for entry in self._waiting_for_pause]:
            voice.state = "done"
        self._scheduled.clear()
        self._waiting_for_pause.clear()

    def close(self) -> None:
        """Fade the voices out for good; the speech goes on."""
        self.cancel()
        for voice in self.playing:
            if voice is not None:
                self._fade_out(voice, ms_to_samples(STEAL_FADE_MS, self.sample_rate))
        self.bus.resume()

    # The parts of a plan.

    def _reap(self) -> None:
        """Let go of the voices that have ended."""
        held = set(self.row.sounding())
        for slot, voice in enumerate(self.playing):
            if voice is not None and slot not in held:
                voice.state = "done"
                self.playing[slot] = self.sounds[slot] = None
                self.bus.ended(voice)
        if self.voices not in held:
            self.sounds[self.voices] = None

    def _onset(self, voice: Voice) -> None:
        """The time of a scheduled voice has come."""
        if voice.placement == "gap":
            if not self._waiting_for_pause:
                self._pauses.reset(self.row.position)
            self._waiting_for_pause.append((self.row.position + self._gap_limit, voice))
        else:
            self._start(voice)

    def _end_waits(self, now: int) -> None:
        """Start the voices that waited for a pause, if it is one or they waited long enough."""
        pause = bool(self._waiting_for_pause) and self._pauses.found(now)
        due = [entry for entry in self._waiting_for_pause if pause or entry[0] <= now]
        if due:
            self._waiting_for_pause = [entry for entry in self._waiting_for_pause if entry not in due]
            for _, voice in due:
                self._start(voice)

    def _start(self, voice: Voice) -> None:
        """Give the voice a slot, which another may have to leave."""
        slot = self._slot_for(voice)
        if slot is None:
            voice.state = "done"
            self.stolen += 1
            return
        words, ints, floats = self.row.voice(slot)
        now = self.row.position
        soft = voice.sound.soft_start
        n = 0 if soft else max(1, ms_to_samples(STEAL_FADE_MS, self.sample_rate))
        if self._speech is not None:
            voice.offset_db = self._speech.offset_db
        self.bus.begin(voice, at.NEVER if voice.loop else now + voice.sound.length)
        gain = self._fitted_gain(voice, slot)
        words[at.VOICE_START_I64] = now
        words[at.VOICE_SOUND_I64] = voice.sound.address
        ints[at.VOICE_T0_I32] = 0
        ints[at.VOICE_N_I32] = n | (at.VOICE_LOOPS if voice.loop else 0)
        floats[at.VOICE_G0_F32] = gain if soft else 0.0
        floats[at.VOICE_G1_F32] = gain
        self.playing[slot], self.sounds[slot] = voice, voice.sound
        voice.slot, voice.state, voice.onset = slot, "sounding", now
        self.started += 1

    def _fitted_gain(self, voice: Voice, slot: int) -> float:
        """The voice's gain, lower where there is no room for it beside the others; and the bus makes what room it can.

        All samples of a cue are known, so what the cues can reach from now on is known too: the sum of their largest
        magnitudes to come. What it leaves to full scale is left to the speech.
        """
        others = sum(self._reach(other) for other in range(self.voices) if other != slot)
        asked = float(voice.sound.peak) * voice.gain
        room = max(1.0 - DEEPEST - others, LEAST_SHARE * asked)
        self.bus.make_room(others + min(asked, room))
        return voice.gain if asked <= room else voice.gain * room / asked

    def _reach(self, slot: int) -> float:
        """The largest magnitude that a slot can still add."""
        sound = self.sounds[slot]
        if sound is None:
            return 0.0
        words, ints, floats = self.row.voice(slot)
        gain = max(float(floats[at.VOICE_G0_F32]), float(floats[at.VOICE_G1_F32]))
        loops = int(ints[at.VOICE_N_I32]) & at.VOICE_LOOPS
        peak = sound.peak if loops else sound.peak_from(self.row.position - int(words[at.VOICE_START_I64]))
        return gain * float(peak)

    def _slot_for(self, voice: Voice) -> int | None:
        """A free slot, or the one of the least important voice, or None where this voice is that."""
        for slot, holder in enumerate(self.playing):
            if holder is None:
                return slot
        loser = min((v for v in self.playing if v is not None), key=lambda v: (v.priority, v.order))
        if loser.priority > voice.priority:
            return None
        self.stolen += 1
        slot = loser.slot
        self._move_tail(slot)
        loser.state = "done"
        self.bus.ends(loser, self.row.position)
        self.bus.ended(loser)
        return slot

    def _fade_out(self, voice: Voice, n: int) -> None:
        """End the voice over `n` samples, unless it ends earlier by itself."""
        if not self.sounds_in(voice):
            return
        slot, now = voice.slot, self.row.position
        end = self._end(slot)
        if end <= now + n and int(self.row.voice(slot)[1][at.VOICE_N_I32]) & at.VOICE_ENDS:
            return
        if self._ramp_end(slot) > now:
            self._put_finished(slot, Sound(self._tail(slot, n)))
        else:
            self._rebase(voice, now)
            words, ints, floats = self.row.voice(slot)
            ints[at.VOICE_T0_I32] = now - int(words[at.VOICE_START_I64])
            ints[at.VOICE_N_I32] = n | at.VOICE_ENDS | (int(ints[at.VOICE_N_I32]) & at.VOICE_LOOPS)
            floats[at.VOICE_G0_F32] = floats[at.VOICE_G1_F32]
            floats[at.VOICE_G1_F32] = 0.0
        self.bus.ends(voice, min(end, now + n))

    def _put_finished(self, slot: int, sound: Sound) -> None:
        """Let samples sound once, as they are, from now on in this slot."""
        words, ints, floats = self.row.voice(slot)
        words[at.VOICE_START_I64] = self.row.position
        words[at.VOICE_SOUND_I64] = sound.address
        ints[at.VOICE_T0_I32] = 0
        ints[at.VOICE_N_I32] = 0
        floats[at.VOICE_G0_F32] = floats[at.VOICE_G1_F32] = 1.0
        self.sounds[slot] = sound

    def _move_tail(self, slot: int) -> None:
        """Let what sounds in `slot` fade in the slot for tails, together with what fades there already."""
        n = max(1, ms_to_samples(STEAL_FADE_MS, self.sample_rate))
        tail = self._tail(slot, n)
        if self.row.voice(self.voices)[0][at.VOICE_SOUND_I64]:
            older = self._rest_of(self.voices)
            longest = np.zeros(max(len(tail), len(older)), dtype=np.float32)
            longest[: len(tail)] += tail
            longest[: len(older)] += older
            tail = longest
        self._put_finished(self.voices, Sound(tail))

    def _rest_of(self, slot: int) -> NDArray[np.float32]:
        """What a slot that plays finished samples has still to play."""
        sound = self.sounds[slot]
        assert sound is not None
        return sound.samples[self.row.position - int(self.row.voice(slot)[0][at.VOICE_START_I64]) :]

    def _tail(self, slot: int, n: int) -> NDArray[np.float32]:
        """The next `n` samples of a voice under its own ramp and a fade out to 0."""
        sound = self.sounds[slot]
        assert sound is not None
        words, ints, floats = self.row.voice(slot)
        offsets = np.arange(n) + (self.row.position - int(words[at.VOICE_START_I64]))
        flags = int(ints[at.VOICE_N_I32])
        length = max(1, flags & at.RAMP_MASK)
        u = np.clip((offsets - int(ints[at.VOICE_T0_I32])) / length, 0.0, 1.0).astype(np.float32)
        gain = floats[at.VOICE_G0_F32] + (floats[at.VOICE_G1_F32] - floats[at.VOICE_G0_F32]) * smoothstep(u)
        index = offsets % sound.length
        samples = np.where((offsets < sound.length) | bool(flags & at.VOICE_LOOPS), sound.samples[index], np.float32(0))
        fade = smoothstep((np.arange(n, 0, -1) / n).astype(np.float32))
        tail: NDArray[np.float32] = samples * gain * fade
        return tail

    def _ramp_end(self, slot: int) -> int:
        words, ints, _ = self.row.voice(slot)
        ramp = int(ints[at.VOICE_N_I32]) & at.RAMP_MASK
        return int(words[at.VOICE_START_I64]) + int(ints[at.VOICE_T0_I32]) + ramp if ramp else 0

    def _end(self, slot: int) -> int:
        """The sample at which a voice will have ended."""
        sound = self.sounds[slot]
        assert sound is not None
        return self.row.voice_end(slot, sound.length)

    def _rebase(self, voice: Voice, now: int) -> None:
        """Move a loop's start by whole turns, so that ramps are told from it in 32 bits after weeks."""
        if voice.loop:
            words, _, _ = self.row.voice(voice.slot)
            turns = (now - int(words[at.VOICE_START_I64])) // voice.sound.length
            words[at.VOICE_START_I64] += turns * voice.sound.length

    def _change_waiting_gains(self, now: int) -> int:
        """Begin the gain changes that waited for a ramp to end; the sample at which the next one can."""
        wake = at.NEVER
        for voice in self.playing:
            if voice is not None and voice.gain_waits:
                self.change_gain(voice)
                if voice.gain_waits:
                    wake = min(wake, max(now + 1, self._ramp_end(voice.slot)))
        return wake
