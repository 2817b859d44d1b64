"""The public face of a session: the mixer, and the handle of each voice in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cues._kernels import layout
from cues.arrays import Samples
from cues.cue import Cue
from cues.errors import MixerClosedError
from cues.mixing.backends import compiled, selection
from cues.mixing.frames import checked_frame, mix_bytes, mix_frame
from cues.mixing.scheduler import Scheduler
from cues.mixing.state import MixerOptions, NotCopyable, Row
from cues.mixing.voice import (
    LONGEST_RELEASE_MS,
    Placement,
    Playback,
    Wait,
    checked_fade_ms,
    checked_gain_db,
    checked_wait,
)
from cues.units import checked_whole_number, db_to_gain

__all__ = ["Mixer", "MixerStats", "Voice", "Wait"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MixerStats:
    """Counters of one session.

    Attributes
    ----------
    started : int
        Voices that began to sound.
    late : int
        Voices scheduled at a sample that had passed.
    stolen : int
        Voices that lost their slot, or got none, to more important ones.
    limited_samples : int
        Samples clipped at ±1.0 or attenuated by the limiter.
    nonfinite_samples : int
        NaN and infinite samples that were silenced.
    silence_frames : int
        Frames made by `silence`.
    """

    started: int
    late: int
    stolen: int
    limited_samples: int
    nonfinite_samples: int
    silence_frames: int


class Voice:
    """The handle of a playing cue, returned by `Mixer.play`. Any thread."""

    __slots__ = ("_playback", "_scheduler")

    def __init__(self, scheduler: Scheduler, playback: Playback) -> None:
        self._scheduler, self._playback = scheduler, playback

    @property
    def cue(self) -> Cue:
        """The cue."""
        return self._playback.cue

    @property
    def onset(self) -> int | None:
        """Output sample at which it began to sound; None until then."""
        return self._playback.onset

    @property
    def done(self) -> bool:
        """Whether it has ended, or was stopped or its mixer closed before it began."""
        playback = self._playback
        if playback.state == "waiting":
            return self._scheduler.closed
        return playback.state == "done" or not self._scheduler.sounds_in(playback)

    @property
    def wait(self) -> Wait | None:
        """When the waiting sound is heard; a new `Wait` is in force at once."""
        return self._playback.wait

    @wait.setter
    def wait(self, wait: Wait) -> None:
        before, self._playback.wait = self._playback.wait, checked_wait(wait)
        if before is not None and (wait.not_before < before.not_before or wait.give_up_at < before.give_up_at):
            self._scheduler.wake()

    @property
    def stretches(self) -> list[tuple[int, int | None]]:
        """Output samples (first, end) of each stretch of a waiting sound, with the one that comes next.

        The end is `None` while it sounds. The next one begins later if anything is heard meanwhile.
        """
        playback, wait = self._playback, self._playback.wait
        stretches: list[tuple[int, int | None]] = [*playback.stretches]
        if wait is None or playback.state == "done":
            return stretches
        onset, end = playback.onset, playback.end
        if onset is None:
            onset, end = self._scheduler.earliest(wait), layout.NEVER
        return [*stretches, (onset, None if end == layout.NEVER else end)]

    @property
    def gain_db(self) -> float:
        """Level, at most 40 dB; −inf is silence. A new value is reached by a ramp of 10 ms."""
        return self._playback.gain_db

    @gain_db.setter
    def gain_db(self, gain_db: float) -> None:
        self._playback.gain_db = checked_gain_db(gain_db)
        self._scheduler.post(self._scheduler.change_gain, self._playback, db_to_gain(self._playback.gain_db))

    def stop(self, fade_ms: float = 10.0) -> None:
        """Fade out from the next `mix` over `fade_ms` (clamped to 5 … 10,000 ms); a waiting voice never begins."""
        self._scheduler.post(self._scheduler.stop, self._playback, checked_fade_ms(fade_ms, 10_000.0))

    def __repr__(self) -> str:
        state = "done" if self.done else self._playback.state
        return f"<Voice of {self.cue.name!r}, {state}, {self.gain_db:g} dB>"


# More than 250 lines and 20 methods: the public face of a session. Its methods are one call each, and documented.
class Mixer(NotCopyable):
    """Mixes cues into the speech of one session; an idle mixer returns its input.

    Commands take effect at the first sample of the next `mix`. `mix`, `mix_pcm16` and `silence` never block, and raise
    for no sample value. Output stays within ±1.0. Each method says on which thread it may be called; "the mixing
    thread" is one at a time. Properties: Any thread.

    Parameters
    ----------
    sample_rate : int
        Hz, 1000 … 384,000.
    voices : int
        Largest number of cues that sound at once, 1 … 256.
    limiter : bool
        Keep the true peak at or below −0.95 dBTP with a look-ahead of `latency_samples`; needs 8000 Hz or more.
    guard : bool
        Silence NaN and infinity even while idle.
    duck_db : float
        Level of the speech under a cue, −60 … 0 dB.
    gap_limit_ms : float
        Longest wait of a cue with `placement="in_pause"`, 0 … 60,000 ms.
    follow_speech : bool
        Adapt each cue's level at its onset to the last seconds of speech, by −12 … +6 dB. Every frame is then read, at
        an eighth of the cost of an `np.add` (`bench/mixer.py`).
    channels : int
        1 … 64. A frame of more than one has shape `(n_samples, channels)`; int16 is interleaved. Cues sound in all
        of them, and the loudest one counts as the speech.

    Attributes
    ----------
    lead_samples : int
        How far ahead of real time a `Pacer` releases the output, samples; 0 without one.

    Raises
    ------
    CueTypeError, CueValueError
        If a parameter is outside of these limits.

    Examples
    --------
    >>> import numpy as np
    >>> import cues
    >>> mixer = cues.Mixer()
    >>> frame = np.zeros(480, dtype=np.float32)
    >>> mixer.mix(frame) is frame
    True
    >>> beep = cues.Cue(name="beep", samples=0.1 * np.sin(np.arange(2400) * 0.2))
    >>> voice = mixer.play(beep, at=600)
    >>> out = mixer.mix(frame)
    >>> mixer.position, mixer.active, bool(out[:120].any()), bool(out[120:].any())
    (960, True, False, True)
    """

    # The compiled methods take the place of `mix` and `mix_pcm16` in its dictionary, which holds nothing else.
    __slots__ = ("__dict__", "__weakref__", "_connected", "_row", "_scheduler", "lead_samples")

    _connected: Any  # the kernels that it was connected to

    def __init__(
        self,
        sample_rate: int = 24000,
        *,
        voices: int = 8,
        limiter: bool = False,
        guard: bool = False,
        duck_db: float = -6.0,
        gap_limit_ms: float = 1000.0,
        follow_speech: bool = False,
        channels: int = 1,
    ) -> None:
        options = MixerOptions(sample_rate, voices, limiter, guard, duck_db, gap_limit_ms, follow_speech, channels)
        self._attach(Scheduler(Row.alone(options), options))

    @classmethod
    def on_row(cls, row: Row, options: MixerOptions) -> Mixer:
        """A mixer whose state is a reset row of a pool's table. The mixing thread only."""
        mixer = cls.__new__(cls)
        mixer._attach(Scheduler(row, options))  # noqa: SLF001  (its own class)
        return mixer

    def move_to(self, row: Row) -> Row:
        """Continue in another row's memory and return that row, with the memory left. The mixing thread only."""
        self._row.move_to(row)
        self._connect()
        return row

    def _attach(self, scheduler: Scheduler) -> None:
        self._scheduler, self._row = scheduler, scheduler.row
        self.lead_samples = 0
        self._connect()

    def _connect(self) -> None:
        """Replace `mix` and `mix_pcm16` by the compiled entries, which are bound to the row, if these are available."""
        kernels = self._connected = selection.kernels()
        slow: dict[str, Callable[..., Any]] = {"mix": self._mix, "mix_pcm16": self._mix_pcm16}
        for name in slow:
            # CPython shares the keys of instances' dictionaries only if the first instances had them.
            setattr(self, name, None)
            delattr(self, name)
        if kernels is None or not compiled.available():
            return
        docs = {name: getattr(Mixer, name).__doc__ for name in slow}
        methods = compiled.methods(kernels, self._row, self._scheduler.channels, slow, docs)
        for name, method in zip(slow, methods, strict=True):
            if getattr(type(self), name) is getattr(Mixer, name):  # a subclass may override it
                setattr(self, name, method)

    # Sound.

    def mix(self, frame: Samples, out: Samples | None = None) -> Samples:
        """Return `frame` with the current cues mixed in. The mixing thread only.

        Parameters
        ----------
        frame : float32, shape `(n_samples,)` or `(n_samples, channels)`, full scale ±1.0
            Any length; other float dtypes and strides are converted.
        out : float32, same shape, contiguous, optional
            Destination; may be `frame`.

        Returns
        -------
        float32, same shape
            `out` if given; else `frame` itself while the mixer is idle; else a new array.

        Raises
        ------
        CueTypeError, CueValueError
            If `frame` or `out` has another shape or dtype; the session does not change.
        """
        # Runs only without compiled methods: `_connect` puts one in place of this.
        mixed = selection.try_to_mix(self._row, frame, out)
        return self._mix(frame, out) if mixed is None else mixed

    def mix_pcm16(self, data: bytes) -> bytes:
        """Return int16 little-endian samples with the current cues mixed in. The mixing thread only.

        Parameters
        ----------
        data : bytes or buffer of bytes or int16
            Whole samples of all channels.

        Returns
        -------
        bytes
            Same length; `data` itself while the mixer is idle.

        Raises
        ------
        CueTypeError
            If `data` is no such buffer; floats are for `mix`.
        CueValueError
            If a sample is incomplete; the session does not change.
        """
        return self._mix_pcm16(data)

    def silence(self, n_samples: int) -> Samples:
        """Return the cues without speech: `mix` of `n_samples` zeros. The mixing thread only.

        Raises
        ------
        CueTypeError, CueValueError
            If `n_samples` is not a whole number ≥ 0.
        """
        n = checked_whole_number("n_samples", n_samples, 0, 1 << 40)
        channels = self._scheduler.channels
        frame = np.zeros(n if channels == 1 else (n, channels), dtype=np.float32)
        self._scheduler.silence_frames += 1
        self._mix(frame, frame)
        return frame

    # Control.

    def play(  # noqa: PLR0917  (the signature that pipelines rely on)
        self,
        cue: Cue,
        at: int | None = None,
        gain_db: float = 0.0,
        loop: bool | None = None,
        priority: int = 0,
        placement: Placement = "overlay",
        *,
        wait: Wait | None = None,
    ) -> Voice:
        """Start `cue` and return its voice. Any thread.

        The first use prepares the cue in the calling thread: soxr HQ converts its rate, and edges that would click are
        faded over 5 ms.

        Parameters
        ----------
        cue : Cue
            The sound.
        at : int, optional
            Output sample (as `position` counts) of the cue's first sample. None is the first sample of the next `mix`;
            a past sample means the same and counts as late.
        gain_db : float
            At most 40 dB; −inf is silence.
        loop : bool, optional
            Loop seamlessly until stopped; None takes `cue.loop`.
        priority : int
            Without a free slot, a voice that already fades out is stolen, else the one of lowest priority, else the
            oldest; it fades out over 5 ms.
        placement : {"overlay", "replace", "in_pause"}
            Duck the speech, crossfade to the cue and back, or wait from `at` for a pause, at most `gap_limit_ms`.
        wait : Wait, optional
            Makes the cue a waiting sound, which begins in a silence and ends where speech is heard.

        Raises
        ------
        CueTypeError, CueValueError
            If a parameter is outside of these limits.
        MixerClosedError
            If the mixer is closed.
        """
        scheduler = self._scheduler
        if scheduler.closed:
            raise MixerClosedError("the mixer is closed; a new session needs a new Mixer")
        playback = Playback(cue, at, gain_db, loop, priority, placement, wait, scheduler.sample_rate)
        scheduler.post(scheduler.schedule, playback)
        return Voice(scheduler, playback)

    def release(self, fade_ms: float = 30.0) -> None:
        """Barge-in: fade out speech and cues, and cancel scheduled cues. Any thread.

        The speech stays muted until the next cue begins or `resume` is called. While it fades out already, that fade
        goes on.

        Parameters
        ----------
        fade_ms : float
            5 … 250 ms; other values are clamped.
        """
        self._scheduler.post(self._scheduler.release, checked_fade_ms(fade_ms, LONGEST_RELEASE_MS))

    def resume(self) -> None:
        """Unmute the speech after `release`; it fades in over 20 ms. Any thread."""
        self._scheduler.post(self._scheduler.resume)

    def hear(self, speech: Samples) -> None:
        """Take the speech of the next frame apart from the frame. The mixing thread only.

        For a mixer whose input is more than speech, such as music with a voice in it. From the first call on, what is
        mixed does not count as speech: not for `heard`, nor for pauses, waiting sounds and `follow_speech`. A frame
        without a call has no speech.

        Parameters
        ----------
        speech : float32, as a frame
            May be empty.
        """
        self._scheduler.hear(checked_frame(speech, self._scheduler.channels))

    def close(self) -> None:
        """End the session: voices fade out over 5 ms, and `play` raises. Any thread.

        Frames pass on, unchanged as soon as the duck is over: half a second after a cue that sounded, by its hold and
        release.
        """
        self._scheduler.end()

    # State.

    def __repr__(self) -> str:
        state = "closed" if self.closed else "active" if self.active else "idle"
        return f"<Mixer at {self.sample_rate} Hz, sample {self.position}, {state}>"

    @property
    def sample_rate(self) -> int:
        """Hz."""
        return self._scheduler.sample_rate

    @property
    def position(self) -> int:
        """Output samples so far, `silence` included."""
        return self._row.position

    @property
    def heard(self) -> int:
        """The last output sample at which speech was heard (sample peak over −50 dBFS); −1 before any.

        An idle mixer does not read its speech unless it `listens`.
        """
        return self._row.words[layout.HEARD_I64] - 1

    @property
    def muted_from(self) -> int:
        """The output sample from which the speech is muted, at the end of the fade of `release`; −1 if it is not.

        Commands that wait for the next `mix` count.
        """
        return self._scheduler.muted_from

    @property
    def listens(self) -> bool:
        """Whether every frame is read for speech, also of an idle mixer; a router switches that on."""
        return self._scheduler.listens

    @listens.setter
    def listens(self, listens: bool) -> None:
        self._scheduler.post(self._scheduler.listen, bool(listens))

    @property
    def active(self) -> bool:
        """Whether a cue sounds or is scheduled; not for a wait that does not count (`cues.mixing.voice.Wait`)."""
        return self._scheduler.active

    @property
    def sounds(self) -> bool:
        """Whether a cue sounds: one that waits does not."""
        return self._scheduler.sounds

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._scheduler.closed

    @property
    def latency_samples(self) -> int:
        """Delay of the output, samples; constant for the mixer's life."""
        return 0 if self._scheduler.limiter is None else self._scheduler.limiter.latency

    @property
    def holds_sound(self) -> bool:
        """Whether a frame of silence is wanted, as the limiter delays sound that has not gone out."""
        limiter = self._scheduler.limiter
        return limiter is not None and not self.closed and limiter.holds_sound

    @property
    def state_bytes(self) -> int:
        """Size of the session's mixing state, bytes."""
        parts = (self._scheduler.limiter, self._scheduler.level)
        return 8 * len(self._row.words) + sum(part.nbytes for part in parts if part is not None)

    @property
    def stats(self) -> MixerStats:
        """Snapshot of the counters."""
        scheduler = self._scheduler
        limited, nonfinite = scheduler.counters
        return MixerStats(
            started=scheduler.started,
            late=scheduler.late,
            stolen=scheduler.stolen,
            limited_samples=limited,
            nonfinite_samples=nonfinite,
            silence_frames=scheduler.silence_frames,
        )

    # The Python path: a command is due, or a frame must be converted or rejected.

    def _mix(self, frame: ArrayLike, out: Samples | None = None) -> Samples:
        if self._connected is not selection.kernels():
            self._connect()
        return mix_frame(self._scheduler, frame, out)

    def _mix_pcm16(self, data: bytes) -> bytes:
        if self._connected is not selection.kernels():
            self._connect()
        return mix_bytes(self._scheduler, data)
