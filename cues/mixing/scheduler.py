"""The scheduler of one mixer: applies queued commands and writes the row that the kernels read.

Any thread queues commands in a deque, whose `append` and `popleft` are atomic. The thread that mixes applies them at
the start of the next `mix`; only it writes to the row, except for the wake mark. All changes happen at absolute
samples, independent of the frame size; extra calls of `plan` change nothing.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from cues._kernels import layout
from cues.errors import CueValueError
from cues.mixing.backends import selection
from cues.mixing.level import SpeechLevel
from cues.mixing.limiter import Limiter
from cues.mixing.slots import STEAL_FADE_MS, Slots
from cues.mixing.speech_gain import DEEPEST, SpeechBus
from cues.mixing.waiting import WaitingVoices
from cues.units import ms_to_samples

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from cues.mixing.parameters import MixerOptions
    from cues.mixing.sound import Sound
    from cues.mixing.state import Row
    from cues.mixing.voice import Playback

__all__ = ["Scheduler"]

LEAST_SHARE = 0.25
"""Other cues reduce a cue's gain at most to this factor (−12 dB)."""
MAX_WAITING = 65_536
"""Most commands and cues queued in one session: a session that is never mixed must not fill the memory."""


# More than 20 methods: commands, their effects and the plan change one state, and a frame passes one object, not three.
class Scheduler:
    """Scheduler of one session on a row of `cues.mixing.state.new_table`."""

    def __init__(self, row: Row, options: MixerOptions) -> None:
        self.row = row
        self.sample_rate = options.sample_rate
        self.limiter = Limiter(options.sample_rate) if options.limiter else None
        if self.limiter is not None:
            row.words[layout.LIMITER_I64] = self.limiter.address
            row.ints[layout.FLAGS_I32] |= layout.FLAG_LIMITER
        self.bus = SpeechBus(row, options.sample_rate, options.duck_db)
        self.started = self.late = self.stolen = self.silence_frames = 0
        self.closed = False
        self._over = False  # `close` was applied
        self.level = SpeechLevel(options.sample_rate) if options.follow_speech else None
        if self.level is not None:
            row.words[layout.LEVEL_I64] = self.level.address
            row.ints[layout.FLAGS_I32] |= layout.FLAG_FOLLOW
        self._planned_to = layout.NEVER
        self._inbox: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._listener: Callable[[NDArray[np.float32]], None] | None = None
        self._waiting = WaitingVoices(options.sample_rate, options.gap_limit_ms)
        self._slots = Slots(row, options.sample_rate, options.voices)

    # From any thread.

    def post(self, command: Callable[..., None], *arguments: Any) -> None:
        """Queue `command` for the next `mix`; ignored after `end`.

        Without a lock between the check of `closed` and the append, a late command can follow `close`: `plan` drops it.
        """
        if self.closed:
            return
        if len(self._inbox) + len(self._waiting) >= MAX_WAITING:
            raise CueValueError(f"{MAX_WAITING} cues and commands are waiting, the most allowed; call mix first")
        self._send(command, *arguments)

    def end(self) -> None:
        """Queue `close`."""
        if not self.closed:
            self.closed = True
            self._send(self.close)

    def _send(self, command: Callable[..., None], *arguments: Any) -> None:
        self._inbox.append((command, arguments))
        self.row.words[layout.WAKE_I64] = -1

    @property
    def active(self) -> bool:
        """Whether a cue sounds or is scheduled."""
        return bool(self.row.sounding()) or (not self.closed and self._anything_waits())

    def _anything_waits(self) -> bool:
        return len(self._waiting) > 0 or any(command == self.schedule for command, _ in self._inbox.copy())

    @property
    def sounds(self) -> list[Sound | None]:
        """The sound in each slot; the last slot holds the tails of stolen voices."""
        return self._slots.sounds

    def sounds_in(self, voice: Playback) -> bool:
        """Whether the voice still has its slot."""
        return self._slots.holds(voice)

    # In the thread that mixes.

    def move_to(self, row: Row) -> None:
        """Continue in another row, a copy of this one."""
        self.row = row
        self.bus.move_to(row)
        self._slots.move_to(row)
        row.words[layout.WAKE_I64] = -1  # a command queued meanwhile set its mark in the old row

    def passes(self, n_samples: int) -> bool:
        """Whether the next samples pass unchanged, apart from a guard; plans first if needed."""
        row = self.row
        if self._due(n_samples):
            self.plan()
        flags = int(row.ints[layout.FLAGS_I32]) & ~(layout.FLAG_GUARD | layout.FLAG_FOLLOW)
        return flags == 0 and row.position + n_samples <= int(row.words[layout.WAKE_I64])

    def let_pass(self, n_samples: int, speech: Callable[[], NDArray[np.float32]]) -> None:
        """Advance over samples that pass unchanged; calls `speech` only if the level is measured."""
        if self.level is not None:
            self.level.hear(speech(), self.row.position)
        self.row.words[layout.POSITION_I64] += n_samples

    def _due(self, n_samples: int) -> bool:
        """Whether `plan` is due within the next samples."""
        if self._inbox or self.row.position + n_samples > self._planned_to:
            return True
        # A command may be applied before its mark is set; only `plan` clears the mark.
        return self.row.words.item(layout.WAKE_I64) < 0

    def mix(self, source: NDArray[np.float32], target: NDArray[np.float32]) -> None:
        """Mix `source` into `target` (contiguous, of equal length; may be the same array)."""
        if self._inbox:
            self.plan()  # the listener may be new
        if self._listener is not None:
            self._listener(source)
        done = 0
        while done < len(source):
            step = len(source) - done
            if self._due(step):
                step = min(step, self.plan() - self.row.position)
            part = slice(done, done + step)
            selection.mix_row(self.row, self.sounds, self.limiter, self.level, source[part], target[part])
            done += step

    def plan(self) -> int:
        """Apply what is due at the session's position; return the sample of the next change."""
        row = self.row
        row.words[layout.WAKE_I64] = layout.NEVER
        for _ in range(len(self._inbox)):  # not until empty: a busy thread must not delay the sound
            command, arguments = self._inbox.popleft()
            if not self._over:
                command(*arguments)
        now = row.position
        self._reap()
        heard = int(row.words[layout.HEARD_I64])
        for voice in self._waiting.pop_due(now, heard):
            self._start(voice)
        horizon = min(
            self._change_waiting_gains(now), self.bus.plan(now, heard), *self._waiting.next_due(heard), layout.NEVER
        )
        row.mark_busy(self.sounds, listen=self._waiting.listening)
        self._planned_to = horizon
        row.words[layout.WAKE_I64] = horizon if self._listener is None else -1  # it gets every frame
        if self._inbox:  # queued meanwhile: its mark may be overwritten
            row.words[layout.WAKE_I64] = -1
        return horizon

    # Commands.

    def schedule(self, voice: Playback) -> None:
        """Start the voice at its sample, or now if it has passed."""
        now = self.row.position
        if voice.state != "waiting":
            return
        if voice.at is not None and voice.at < now:
            self.late += 1
        self._waiting.add(voice, now if voice.at is None else max(voice.at, now))

    def stop(self, voice: Playback, fade_ms: float) -> None:
        """Fade the voice out, or cancel it."""
        if voice.state == "sounding":
            self._fade_out(voice, fade_ms)
        elif voice.state == "waiting":
            self._waiting.stop(voice)

    def change_gain(self, voice: Playback) -> None:
        """Ramp a sounding voice to its gain, after a running ramp ends."""
        if voice.state != "sounding" or not self._slots.holds(voice) or self._slots.ends(voice):
            return
        voice.gain_waits = self._slots.ramp_end(voice) > self.row.position
        if not voice.gain_waits:
            self._slots.change_gain(voice, self._fitted_gain(voice, voice.slot))

    def release(self, fade_ms: float) -> None:
        """Fade out cues and speech, and mute the speech."""
        self._end_all(fade_ms)
        self.bus.release(self.row.position, ms_to_samples(fade_ms, self.sample_rate))

    def observe(self, listener: Callable[[NDArray[np.float32]], None] | None) -> None:
        """Call `listener` with the speech of each frame, before it is mixed."""
        self._listener = listener

    def resume(self) -> None:
        """Unmute the speech."""
        self.bus.resume()

    def close(self) -> None:
        """Fade out the voices and drop later commands; the speech continues."""
        self._over = True
        self._listener = None
        self._end_all(STEAL_FADE_MS)
        self.bus.resume()

    def _end_all(self, fade_ms: float) -> None:
        """Cancel waiting voices and fade out the others."""
        self._waiting.stop_all()
        for voice in self._slots.playing:
            if voice is not None:
                self._fade_out(voice, fade_ms)

    # The parts of a plan.

    def _reap(self) -> None:
        """Release the voices that ended."""
        for voice in self._slots.reap():
            voice.state = "done"
            self.bus.ended(voice)

    def _start(self, voice: Playback) -> None:
        """Give the voice a slot, stolen if necessary."""
        slot = self._slot_for(voice)
        if slot is None:
            voice.state = "done"
            self.stolen += 1
            return
        now = self.row.position
        if self.level is not None:
            voice.offset_db = self.level.offset_db
        voice.begin(now)
        self.bus.begin(voice, now)
        self._slots.begin(voice, slot, self._fitted_gain(voice, slot))
        self.started += 1

    def _fitted_gain(self, voice: Playback, slot: int) -> float:
        """The voice's gain, reduced if the other cues leave no headroom; ducks the speech for the rest.

        The cues' samples are known, so the sum of their remaining peaks bounds their mix; the speech gets the headroom.
        """
        others = self._slots.reach_beside(slot)
        peak = float(voice.sound.peak) * voice.gain
        room = max(1.0 - DEEPEST - others, LEAST_SHARE * peak)
        self.bus.make_room(others + min(peak, room))
        return voice.gain if peak <= room else voice.gain * room / peak

    def _slot_for(self, voice: Playback) -> int | None:
        """A free slot, or that of the least important voice; None if this voice is the least important."""
        slot = self._slots.free()
        if slot is not None:
            return slot
        loser = self._slots.least()
        if loser.priority > voice.priority and not self._slots.ends(loser):
            return None
        self.stolen += 1
        loser.state = "done"
        loser.end = self.row.position
        self.bus.ended(loser)
        return self._slots.steal(loser)

    def _fade_out(self, voice: Playback, fade_ms: float) -> None:
        """Fade out the voice unless it ends sooner."""
        if self._slots.holds(voice):
            voice.end = self._slots.fade_out(voice, ms_to_samples(fade_ms, self.sample_rate))

    def _change_waiting_gains(self, now: int) -> int:
        """Start gain changes whose ramp has ended; return the sample at which the next can start."""
        wake = layout.NEVER
        for voice in self._slots.playing:
            if voice is not None and voice.gain_waits:
                self.change_gain(voice)
                if voice.gain_waits:
                    wake = min(wake, max(now + 1, self._slots.ramp_end(voice)))
        return wake
