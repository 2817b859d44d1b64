"""The scheduler of one mixer: applies queued commands and writes the row that the kernels read.

Any thread queues commands at the end of a list, and the thread that mixes takes them from its start: both are one step
for the interpreter. It applies them at the start of the next `mix`; it alone writes to the row, but for the wake mark.
All changes happen at absolute samples, independent of the frame size; extra calls of `plan` change nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import InitVar, dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from cues._kernels import layout
from cues.arrays import Samples
from cues.errors import CueValueError
from cues.mixing.level import SpeechLevel
from cues.mixing.limiter import Limiter
from cues.mixing.slots import STEAL_FADE_MS, Slots
from cues.mixing.speech_gain import DEEPEST, SpeechBus
from cues.mixing.state import MixerOptions, Row, speech_bits
from cues.mixing.voice import PHRASE_FADE_MS, WAIT_FADE_MS, Playback, Wait
from cues.mixing.waiting import WaitingVoices, earliest
from cues.units import db_to_gain, ms_to_samples

__all__ = ["Scheduler"]

LEAST_SHARE = 0.25
"""Other cues reduce a cue's gain at most to this factor (−12 dB)."""
MAX_WAITING = 65_536
"""Most commands and cues queued in one session: a session that is never mixed must not fill the memory."""
_COUNTERS_I64 = layout.LIMITED_I32 // 2
_NO_TURNS: Mapping[str, int] = MappingProxyType({})  # one for all sessions without phrases


# More than 20 methods: commands, their effects and the plan change one state, and a frame passes one object, not three.
@dataclass(slots=True, eq=False)
class Scheduler:
    """Scheduler of one session on its row."""

    row: Row
    options: InitVar[MixerOptions]
    sample_rate: int = field(init=False)
    channels: int = field(init=False)
    limiter: Limiter | None = field(init=False)
    level: SpeechLevel | None = field(init=False)
    slots: Slots = field(init=False)
    bus: SpeechBus = field(init=False)
    started: int = 0
    late: int = 0
    stolen: int = 0
    silence_frames: int = 0
    closed: bool = False
    _flags: int = field(init=False)
    _limited: int = 0
    _nonfinite: int = 0
    _over: bool = False  # `close` was applied
    _planned_to: int = layout.NEVER
    _planned_at: int = 0
    _inbox: list[tuple[Callable[..., None], tuple[Any, ...]]] = field(default_factory=list)
    _waiting: WaitingVoices = field(init=False)  # of any cue that has not begun
    _waits_in_slots: Sequence[Playback] = ()  # the waiting sounds that have begun
    _cues_end: int = 0  # of those that have ended
    _turns: Mapping[str, int] = field(default_factory=lambda: _NO_TURNS)  # phrases begun, by the name of their cue

    def __post_init__(self, options: MixerOptions) -> None:
        row, self.sample_rate, self.channels = self.row, options.sample_rate, options.channels
        self.limiter = Limiter(options.sample_rate, options.channels) if options.limiter else None
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
        self._waiting = WaitingVoices(options.sample_rate, options.gap_limit_ms)
        self.slots = Slots(row, options.sample_rate, options.voices)
        self.bus = SpeechBus(row, self.slots.voices, options.sample_rate, options.duck_db)

    # From any thread.

    def post(self, command: Callable[..., None], *arguments: Any) -> None:
        """Queue `command` for the next `mix`; ignored after `end`."""
        # Without a lock between the check of `closed` and the append, a late command can follow `close`: `plan` drops
        # it.
        if self.closed:
            return
        if len(self._inbox) + len(self._waiting) >= MAX_WAITING:
            raise CueValueError(f"{MAX_WAITING} cues and commands are waiting, the most allowed; call mix first")
        self._inbox.append((command, arguments))
        self.wake()

    def end(self) -> None:
        """Queue `close`."""
        if not self.closed:
            self.closed = True
            self._inbox.append((self.close, ()))
            self.wake()

    @property
    def sounds(self) -> bool:
        """Whether a cue sounds."""
        return self.slots.end > self.row.position or any(voice.again for voice in self._waits_in_slots)

    @property
    def active(self) -> bool:
        """Whether a cue sounds or is scheduled."""
        if (sounds := self.sounds) or self.closed:
            return sounds
        if any(voice.counts for voice in self._waiting):
            return True
        return any(command == self.schedule and arguments[0].counts for command, arguments in self._inbox.copy())

    @property
    def counters(self) -> tuple[int, int]:
        """Limited and non-finite samples."""
        limited, nonfinite = self.row.ints[layout.LIMITED_I32 : layout.NONFINITE_I32 + 1].tolist()
        return self._limited + limited, self._nonfinite + nonfinite

    @property
    def muted_from(self) -> int:
        """The sample at which the fade of a release ends; −1 if the speech is not muted."""
        if not self._inbox:
            return self.bus.muted_from
        bus, now = copy(self.bus), self.row.position
        for command, arguments in self._inbox.copy():
            if command == self.release:
                (fade_ms,) = arguments
                bus.release(now, ms_to_samples(fade_ms, self.sample_rate))
            elif command == self.resume:
                bus.resume()
        return bus.muted_from

    def sounds_in(self, voice: Playback) -> bool:
        """Whether the voice still sounds."""
        return voice.state == "sounding" and (voice.again or voice.end > self.row.position)

    def earliest(self, wait: Wait) -> int:
        """The sample at which a waiting sound begins if nothing more is heard."""
        return earliest(wait, self._quiet_from(self.row.words[layout.HEARD_I64]))

    @property
    def listens(self) -> bool:
        """Whether the speech is read while idle, too."""
        return bool(self._flags & layout.FLAG_LISTEN)

    def wake(self) -> None:
        """Plan before the next sample."""
        self.row.words[layout.WAKE_I64] = -1

    # In the thread that mixes.

    def planned(self) -> int:
        """The sample of the next change; plans first if one is due now."""
        words = self.row.words
        # A command may be applied before its mark is set; only `plan` clears the mark.
        if words[layout.WAKE_I64] < 0 or self._inbox:
            self.plan()
        while words[layout.POSITION_I64] >= self._planned_to:  # a waiting sound that was stolen may begin at once
            self.plan()
        return self._planned_to

    def hear(self, speech: Samples) -> None:
        """Take the speech of the next frame; what is mixed does not count as speech from now on."""
        words = self.row.words
        self._flags |= layout.FLAG_APART
        self.row.ints[layout.FLAGS_I32] |= layout.FLAG_APART
        if not len(speech):
            return
        bits, position = speech_bits(speech), words[layout.POSITION_I64]
        if self.level is not None:
            self.level.hear(bits.view(np.float32), position)
        heard = np.flatnonzero(bits > layout.SPEECH_BITS)
        if len(heard):
            words[layout.HEARD_I64] = position + int(heard[-1]) + 1
            if self._waits_in_slots:
                self.wake()

    def plan(self) -> int:
        """Apply what is due at the session's position; return the sample of the next change.

        The end of a cue is no change: the loops know it, and the next plan frees the slot. The end of a waiting sound
        is one, because the sound may wait again.
        """
        waiting, bus, words = self._waiting, self.bus, self.row.words
        if self._inbox:
            self._apply()
        now, heard = words[layout.POSITION_I64], words[layout.HEARD_I64]
        gain_change = self._settle(now)
        horizon, flags = layout.NEVER, self._flags
        if waiting:
            quiet_from = self._quiet_from(heard) if waiting.listening else 0
            for voice in waiting.pop_due(now, heard, quiet_from):
                self._start(voice, now)
            horizon = waiting.next_due(heard, quiet_from)
            flags |= layout.FLAG_LISTEN if waiting.listening else 0
        if self._waits_in_slots:
            change, yields = self._tend_waits(now, heard)
            horizon = min(horizon, change)
            flags |= layout.FLAG_YIELD if yields else 0
        horizon = min(horizon, gain_change, bus.plan(now, heard))
        if self.busy_until > now:
            flags |= layout.FLAG_BUSY
        bus.write(horizon, flags)
        self._planned_to, self._planned_at = horizon, now
        if words[_COUNTERS_I64]:  # of 32 bits in the row
            self._limited, self._nonfinite = self.counters
            words[_COUNTERS_I64] = 0
        if self._inbox:  # the mark of what was queued meanwhile may be overwritten
            self.wake()
        return horizon

    @property
    def busy_until(self) -> int:
        """The sample from which speech passes unchanged if nothing else is planned."""
        return max(self.bus.end, self.slots.end)

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
            self.slots.change_gain(voice, self._fitted_gain(voice, voice.slot, now), now)

    def release(self, fade_ms: float) -> None:
        """Fade out cues and speech, and mute the speech."""
        self._end_all(fade_ms)
        self.bus.release(self.row.position, ms_to_samples(fade_ms, self.sample_rate))

    def listen(self, is_on: bool) -> None:
        """Read the speech while idle, too."""
        self._flags = self._flags | layout.FLAG_LISTEN if is_on else self._flags & ~layout.FLAG_LISTEN

    def resume(self) -> None:
        """Unmute the speech."""
        self.bus.resume()

    def close(self) -> None:
        """Fade out the voices and drop later commands; the speech continues."""
        self._over = True
        self._end_all(STEAL_FADE_MS)
        self.bus.resume()

    def _end_all(self, fade_ms: float) -> None:
        """Cancel waiting voices and fade out the others."""
        self._waiting.stop_all()
        for voice in self.slots.voices:
            self._fade_out(voice, fade_ms)

    # The parts of a plan.

    def _settle(self, now: int) -> int:
        """Release voices that ended, and begin gain changes that waited; return the sample of the next one."""
        wake, ended = layout.NEVER, None
        for voice in self.slots.voices:
            if voice.end <= now:
                ended = [voice, *(ended or ())]
            elif voice.gain_waits:
                self._ramp_to_gain(voice)
                if voice.gain_waits:
                    wake = min(wake, voice.ramp_end)
        for voice in ended or ():
            self.slots.remove(voice)
            self._retire(voice, now)
        self.slots.drop_tail(now)
        return wake

    def _retire(self, voice: Playback, now: int) -> None:
        """Keep the end of a voice that has left its slot; a waiting sound may wait again."""
        self.bus.ended(voice)
        if voice.wait is not None:
            self._waits_in_slots = tuple(other for other in self._waits_in_slots if other is not voice)
        self._cues_end = max(self._cues_end, voice.heard_until)
        voice.retire()
        if voice.state == "waiting":
            self._waiting.add(voice, now)

    def _quiet_from(self, heard: int) -> int:
        """The sample from which neither speech nor cues are heard, as far as it is known."""
        return max(heard, self._cues_end, *(voice.heard_until for voice in self.slots.voices))

    def _tend_waits(self, now: int, heard: int) -> tuple[int, bool]:
        """Fade waiting sounds where speech begins, silence them under cues; next change, and if speech ends one."""
        horizon, yields = layout.NEVER, False
        cues_end = self._quiet_from(0)
        for voice in self._waits_in_slots:
            wait = voice.wait
            assert wait is not None
            # `heard` is after `now` if speech comes next: `frames` notes its first sample early, `hear` all of it.
            if not voice.ends and (heard > now or now >= wait.give_up_at):
                answered = now >= wait.until_heard_from or not wait.begins_again
                self._fade_out(voice, PHRASE_FADE_MS if voice.phrases else WAIT_FADE_MS)
                voice.again = now < wait.give_up_at and not answered
            if voice.ends:
                horizon = min(horizon, voice.end)
                continue
            yields = True
            if not voice.phrases and voice.held != (cues_end > now):
                voice.held = not voice.held
                self.change_gain(voice, 0.0 if voice.held else db_to_gain(voice.gain_db))
            horizon = min(horizon, voice.end, wait.give_up_at, cues_end if voice.held else layout.NEVER)
            if voice.gain_waits:
                horizon = min(horizon, voice.ramp_end)
        return horizon, yields

    def _start(self, voice: Playback, now: int) -> None:
        """Give the voice a slot, stolen if necessary."""
        if voice.phrases and any(other.phrases and other.heard_until > now for other in self.slots.voices):
            self._waiting.add(voice, now)  # one phrase at a time, also of two cues that waited for the same silence
            return
        slot = self._slot_for(voice, now)
        if slot is None:
            voice.state = "done"
            self.stolen += 1
            return
        if self.level is not None:
            voice.follow_gain = db_to_gain(self.level.offset_db)
        if voice.ducks:
            self.bus.begin(now)
        else:
            self.bus.resume()
        voice.begin(now, turn := self._turns.get(voice.cue.name, 0))
        if voice.phrases:
            self._turns = {**self._turns, voice.cue.name: turn + 1}
        if voice.wait is not None:
            self._waits_in_slots = *self._waits_in_slots, voice
        self.slots.begin(voice, slot, self._fitted_gain(voice, slot, now), now)
        self.started += 1

    def _fitted_gain(self, voice: Playback, slot: int, now: int) -> float:
        """The voice's gain, reduced if the other cues leave no headroom; ducks the speech for the rest."""
        # The cues' samples are known, so the sum of their remaining peaks bounds their mix; the speech gets the
        # headroom.
        others = self.slots.reach_beside(slot, now) if self.slots.voices else 0.0
        gain = voice.gain * voice.follow_gain
        peak = voice.sound.peak * gain
        room = max(1.0 - DEEPEST - others, LEAST_SHARE * peak)
        self.bus.make_room(others + min(peak, room))
        return gain if peak <= room else gain * room / peak

    def _slot_for(self, voice: Playback, now: int) -> int | None:
        """A free slot, or that of the least important voice; None if this voice is the least important."""
        slot = self.slots.free()
        if slot is not None:
            return slot
        loser = self.slots.least()
        if loser.priority > voice.priority and not loser.ends:
            return None
        self.stolen += 1
        loser.end = now
        slot = self.slots.steal(loser, now)
        self._retire(loser, now)
        return slot

    def _fade_out(self, voice: Playback, fade_ms: float) -> None:
        """Fade out the voice unless it ends sooner."""
        voice.again = False
        if self.sounds_in(voice):
            self.slots.fade_out(voice, ms_to_samples(fade_ms, self.sample_rate), self.row.position)
        else:
            voice.ends = True  # a phrase that ends at this very sample does not wait again
