"""The scheduler of one mixer: applies queued commands and writes the row that the kernels read.

Any thread queues commands at the end of a list, and the thread that mixes takes them from its start: both are one step
for the interpreter. It applies them at the start of the next `mix`; it alone writes to the row, but for the wake mark.
All changes happen at absolute samples, independent of the frame size; extra calls of `plan` change nothing.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from cues._kernels import layout
from cues.errors import CueValueError
from cues.mixing.backends import selection
from cues.mixing.level import SpeechLevel
from cues.mixing.limiter import Limiter
from cues.mixing.slots import STEAL_FADE_MS, Slots
from cues.mixing.speech_gain import DEEPEST, SpeechBus
from cues.mixing.waiting import WaitingVoices
from cues.units import db_to_gain, ms_to_samples

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from cues.mixing.parameters import MixerOptions
    from cues.mixing.state import Row
    from cues.mixing.voice import Playback

__all__ = ["Scheduler"]

LEAST_SHARE = 0.25
"""Other cues reduce a cue's gain at most to this factor (−12 dB)."""
MAX_WAITING = 65_536
"""Most commands and cues queued in one session: a session that is never mixed must not fill the memory."""
_COUNTERS = struct.Struct("=ii")
_COUNTERS_AT = 4 * layout.LIMITED_I32
_COUNTERS_I64 = layout.LIMITED_I32 // 2
_IDLE = layout.FLAG_GUARD | layout.FLAG_FOLLOW
"""Flags of a session whose frames pass."""


# More than 20 methods: commands, their effects and the plan change one state, and a frame passes one object, not three.
class Scheduler:
    """Scheduler of one session on a row of `cues.mixing.state.new_table`."""

    __slots__ = (
        "_flags",
        "_inbox",
        "_listener",
        "_over",
        "_planned_at",
        "_planned_to",
        "_slots",
        "_waiting",
        "bus",
        "closed",
        "late",
        "level",
        "limited",
        "limiter",
        "nonfinite",
        "row",
        "sample_rate",
        "silence_frames",
        "started",
        "stolen",
    )

    def __init__(self, row: Row, options: MixerOptions) -> None:
        self.row = row
        self.sample_rate = options.sample_rate
        self.limiter = Limiter(options.sample_rate) if options.limiter else None
        self.level = SpeechLevel(options.sample_rate) if options.follow_speech else None
        self._flags = row.flags
        for part, at, flag in (
            (self.limiter, layout.LIMITER_I64, layout.FLAG_LIMITER),
            (self.level, layout.LEVEL_I64, layout.FLAG_FOLLOW),
        ):
            if part is not None:
                row.words[at] = part.address
                self._flags |= flag
        row.ints[layout.FLAGS_I32] = self._flags
        self.started = self.late = self.stolen = self.silence_frames = self.limited = self.nonfinite = 0
        self.closed = False
        self._over = False  # `close` was applied
        self._planned_to, self._planned_at = layout.NEVER, 0
        self._inbox: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._listener: Callable[[NDArray[np.float32]], None] | None = None
        self._waiting = WaitingVoices(options.sample_rate, options.gap_limit_ms)
        self._slots = Slots(row, options.sample_rate, options.voices)
        self.bus = SpeechBus(row, self._slots.voices, options.sample_rate, options.duck_db)

    # From any thread.

    def post(self, command: Callable[..., None], *arguments: Any) -> None:
        """Queue `command` for the next `mix`; ignored after `end`.

        Without a lock between the check of `closed` and the append, a late command can follow `close`: `plan` drops it.
        """
        if self.closed:
            return
        if len(self._inbox) + len(self._waiting) >= MAX_WAITING:
            raise CueValueError(f"{MAX_WAITING} cues and commands are waiting, the most allowed; call mix first")
        self._inbox.append((command, arguments))
        self.row.words[layout.WAKE_I64] = -1

    def end(self) -> None:
        """Queue `close`."""
        if not self.closed:
            self.closed = True
            self._inbox.append((self.close, ()))
            self.row.words[layout.WAKE_I64] = -1

    @property
    def active(self) -> bool:
        """Whether a cue sounds or is scheduled."""
        sounds = self._slots.end > self.row.position
        if sounds or self.closed:
            return sounds
        return len(self._waiting) > 0 or any(command == self.schedule for command, _ in self._inbox.copy())

    @property
    def counters(self) -> tuple[int, int]:
        """Limited and non-finite samples."""
        limited, nonfinite = _COUNTERS.unpack_from(self.row.words, _COUNTERS_AT)
        return self.limited + limited, self.nonfinite + nonfinite

    def sounds_in(self, voice: Playback) -> bool:
        """Whether the voice still sounds."""
        return voice.state == "sounding" and voice.end > self.row.position

    # In the thread that mixes.

    def passes(self, n_samples: int) -> bool:
        """Whether the next samples pass unchanged, apart from a guard; plans first if needed."""
        row = self.row
        return self.is_planned(n_samples) and row.flags & ~_IDLE == 0

    def let_pass(self, n_samples: int, speech: Callable[[], NDArray[np.float32]]) -> None:
        """Advance over samples that pass unchanged; calls `speech` only if the level is measured."""
        if self.level is not None:
            self.level.hear(speech(), self.row.position)
        self.row.words[layout.POSITION_I64] += n_samples

    def is_planned(self, n_samples: int) -> bool:
        """Whether nothing changes within the next samples, and nobody listens to them; plans first if needed."""
        if self._listener is not None:
            return False  # `mix` plans
        end = self.row.words[layout.POSITION_I64] + n_samples
        planned = self.planned() >= end
        # What waits for a pause waits longer if speech was heard since.
        if not planned and self.row.words[layout.HEARD_I64] > self._planned_at:
            planned = self.plan() >= end
        return planned and self._listener is None

    @property
    def listens(self) -> bool:
        """Whether somebody listens to the speech."""
        return self._listener is not None

    def planned(self) -> int:
        """The sample of the next change; plans first if one is due now."""
        words = self.row.words
        # A command may be applied before its mark is set; only `plan` clears the mark.
        if words[layout.WAKE_I64] < 0 or words[layout.POSITION_I64] >= self._planned_to or self._inbox:
            return self.plan()
        return self._planned_to

    def mix(self, source: NDArray[np.float32], target: NDArray[np.float32]) -> None:
        """Mix `source` into `target` (contiguous, of equal length; may be the same array)."""
        if self._inbox:
            self.plan()  # the listener may be new
        if self._listener is not None:
            self._listener(source)
        done = 0
        while done < len(source):
            end = min(len(source), done + self.planned() - self.row.words[layout.POSITION_I64])
            part = slice(done, end)
            selection.mix_row(self.row, self._slots, self.limiter, self.level, source[part], target[part])
            done = end

    def plan(self) -> int:
        """Apply what is due at the session's position; return the sample of the next change."""
        slots, waiting, bus, words = self._slots, self._waiting, self.bus, self.row.words
        if self._inbox:
            self._apply()
        now, heard = words[layout.POSITION_I64], words[layout.HEARD_I64]
        gain_change = self._settle(now)
        horizon, flags = layout.NEVER, self._flags
        if waiting:
            for voice in waiting.pop_due(now, heard):
                self._start(voice, now)
            horizon = waiting.next_due(heard)
            flags |= layout.FLAG_LISTEN if waiting.listening else 0
        horizon = min(horizon, gain_change, bus.plan(now, heard))
        if slots.voices or bus.end > now or slots.end > now:
            flags |= layout.FLAG_BUSY
        bus.write(horizon, flags)
        self._planned_to, self._planned_at = horizon, now
        if words[_COUNTERS_I64]:  # of 32 bits in the row
            self.limited, self.nonfinite = self.counters
            words[_COUNTERS_I64] = 0
        # A listener gets every frame. The mark of what was queued meanwhile may be overwritten.
        if self._inbox or self._listener is not None:
            words[layout.WAKE_I64] = -1
        return horizon

    def _apply(self) -> None:
        """Apply the commands queued so far; later ones wait, as a busy thread must not delay the sound."""
        n = len(self._inbox)
        commands = self._inbox[:n]
        del self._inbox[:n]
        for command, arguments in commands:
            if not self._over:
                command(*arguments)

    # Commands.

    def schedule(self, voice: Playback) -> None:
        """Start the voice at its sample, or now if it has passed."""
        now, at = self.row.words[layout.POSITION_I64], voice.at
        if voice.state != "waiting":
            return
        if at is None:
            at = now
        elif at < now:
            self.late += 1
            at = now
        self._waiting.add(voice, at)

    def stop(self, voice: Playback, fade_ms: float) -> None:
        """Fade the voice out, or cancel it."""
        if voice.state == "sounding":
            self._fade_out(voice, fade_ms)
        elif voice.state == "waiting":
            self._waiting.stop(voice)

    def change_gain(self, voice: Playback, gain: float) -> None:
        """Ramp a sounding voice to `gain`, after a running ramp ends; a waiting voice begins with it."""
        voice.gain = gain
        self._ramp_to_gain(voice)

    def _ramp_to_gain(self, voice: Playback) -> None:
        now = self.row.position
        if voice.ends or not self.sounds_in(voice):
            voice.gain_waits = False
            return
        voice.gain_waits = voice.ramp_end > now
        if not voice.gain_waits:
            self._slots.change_gain(voice, self._fitted_gain(voice, voice.slot, now), now)

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
        for voice in self._slots.voices:
            self._fade_out(voice, fade_ms)

    # The parts of a plan.

    def _settle(self, now: int) -> int:
        """Release voices that ended, and begin gain changes that waited; return the sample of the next one."""
        wake, ended = layout.NEVER, None
        for voice in self._slots.voices:
            if voice.end <= now:
                ended = [voice, *(ended or ())]
            elif voice.gain_waits:
                self._ramp_to_gain(voice)
                if voice.gain_waits:
                    wake = min(wake, voice.ramp_end)
        for voice in ended or ():
            voice.state = "done"
            self._slots.remove(voice)
            self.bus.ended(voice)
        self._slots.drop_tail(now)
        return wake

    def _start(self, voice: Playback, now: int) -> None:
        """Give the voice a slot, stolen if necessary."""
        slot = self._slot_for(voice, now)
        if slot is None:
            voice.state = "done"
            self.stolen += 1
            return
        if self.level is not None:
            voice.follow_gain = db_to_gain(self.level.offset_db)
        self.bus.begin(now)
        voice.begin(now)
        self._slots.begin(voice, slot, self._fitted_gain(voice, slot, now), now)
        self.started += 1

    def _fitted_gain(self, voice: Playback, slot: int, now: int) -> float:
        """The voice's gain, reduced if the other cues leave no headroom; ducks the speech for the rest.

        The cues' samples are known, so the sum of their remaining peaks bounds their mix; the speech gets the headroom.
        """
        others = self._slots.reach_beside(slot, now) if self._slots.voices else 0.0
        gain = voice.gain * voice.follow_gain
        peak = voice.sound.peak * gain
        room = max(1.0 - DEEPEST - others, LEAST_SHARE * peak)
        self.bus.make_room(others + min(peak, room))
        return gain if peak <= room else gain * room / peak

    def _slot_for(self, voice: Playback, now: int) -> int | None:
        """A free slot, or that of the least important voice; None if this voice is the least important."""
        slot = self._slots.free()
        if slot is not None:
            return slot
        loser = self._slots.least()
        if loser.priority > voice.priority and not loser.ends:
            return None
        self.stolen += 1
        loser.state = "done"
        loser.end = now
        self.bus.ended(loser)
        return self._slots.steal(loser, now)

    def _fade_out(self, voice: Playback, fade_ms: float) -> None:
        """Fade out the voice unless it ends sooner."""
        if self.sounds_in(voice):
            self._slots.fade_out(voice, ms_to_samples(fade_ms, self.sample_rate), self.row.position)
