"""The mixer of one session: cues into live speech, to the sample."""

from __future__ import annotations

import reprlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from cues._kernels import layout
from cues.cue import Cue
from cues.errors import CueTypeError, CueValueError, MixerClosedError
from cues.mixing.backends import entries, selection
from cues.mixing.frames import mix_bytes, mix_frame
from cues.mixing.not_copyable import NotCopyable
from cues.mixing.parameters import MixerOptions
from cues.mixing.scheduler import Scheduler
from cues.mixing.sound import prepare
from cues.mixing.state import Row, new_table
from cues.mixing.stats import MixerStats
from cues.mixing.voice import LONGEST_RELEASE_MS, Placement, Playback, Voice, checked_fade_ms, checked_gain_db
from cues.units import checked_whole_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Samples = NDArray[np.float32]

__all__ = ["Mixer", "MixerStats", "Voice"]

_PLACEMENTS = ("overlay", "replace", "in_pause")


class Mixer(NotCopyable):
    """Puts cues into the speech of one session. Costs nothing while it has nothing to do.

    `play`, `release`, `resume`, `close` and a voice's methods may be called from any thread; they take effect at the
    first sample of the next `mix`. `mix`, `mix_pcm16` and `silence` belong to one thread at a time, wait for nothing
    and never raise on what the audio holds. Output never leaves ±1.0.

    Parameters
    ----------
    sample_rate : Hz, 1000 … 384,000.
    voices : how many cues may sound at once, 1 … 256.
    limiter : (8000 Hz or more) keep the true peak at or under −0.95 dBTP with a look-ahead of `latency_samples`.
    guard : silence NaN and infinity also while idle.
    duck_db : level of the speech under a cue, −60 … 0 dB.
    gap_limit_ms : how long a cue with `placement="in_pause"` waits for a pause at most, 0 … 60,000 ms.
    follow_speech : set each cue's level at its onset against that of the last seconds of speech, −12 … +6 dB, so that a
        quiet voice gets no loud ping. Every frame is read then, for an eighth of an `np.add` (`bench/mixer.py`).

    Attributes
    ----------
    lead_samples : how far the output is released ahead of real time at most, as a `Pacer` in front of it knows; else 0.

    Raises
    ------
    CueTypeError, CueValueError : for a parameter outside of these limits.

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

    _scheduler: Scheduler
    _row: Row
    _connected: Any  # the kernels that it has looked at

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
    ) -> None:
        options = MixerOptions(
            sample_rate=sample_rate,
            voices=voices,
            limiter=limiter,
            guard=guard,
            duck_db=duck_db,
            gap_limit_ms=gap_limit_ms,
            follow_speech=follow_speech,
        )
        self._attach(Scheduler(Row(new_table(1, options)[0]), options))

    @classmethod
    def on_row(cls, row: Row, options: MixerOptions) -> Mixer:
        """Make a mixer whose state is a row of somebody else's table, reset already."""
        mixer = cls.__new__(cls)
        mixer._attach(Scheduler(row, options))  # noqa: SLF001  (its own class)
        return mixer

    def move_to(self, row: Row) -> Row:
        """Go on in another row; return the one that is free now. For the thread that mixes."""
        left, self._row = self._row, row
        row.words[:] = left.words
        self._scheduler.move_to(row)
        left.words[layout.WAKE_I64] = -1  # an entry that was looked up before comes to Python, and so to this row
        for name in ("mix", "mix_pcm16"):  # they are bound to the old row
            self.__dict__.pop(name, None)
        self._connected = None
        self._connect()
        return left

    def _attach(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._row = scheduler.row
        self._connected = None
        self.lead_samples = 0
        self._connect()

    def _connect(self) -> None:
        """Let Python find the compiled entries in place of `mix` and `mix_pcm16`, where there are any."""
        kernels = selection.kernels()
        if kernels is None or kernels is self._connected:
            return
        self._connected = kernels
        for name, slow in (("mix", self._mix), ("mix_pcm16", self._mix_pcm16)):
            written = getattr(Mixer, name)
            if entries.available() and getattr(type(self), name) is written:  # a subclass may have its own
                self.__dict__[name] = entries.method(kernels, name, self._row, slow, written.__doc__)

    # Sound.

    def mix(self, frame: Samples, out: Samples | None = None) -> Samples:
        """Return `frame` with the cues of this moment in it.

        Parameters
        ----------
        frame : float32, shape `(n_samples,)`, full scale ±1.0, any length; other float dtypes and strides are
            converted.
        out : float32, shape `(n_samples,)`, contiguous: where to write the result; may be `frame`.

        Returns
        -------
        float32, shape `(n_samples,)`: `out` if given; else `frame` itself, unread, while the mixer is idle; else a new
        array.

        Raises
        ------
        CueTypeError, CueValueError : for a frame that is not 1-D and float, or an `out` that does not fit; the
            session is left as it was.
        """
        mixed = selection.mix_unscheduled(self._row, frame, out)
        return self._mix(frame, out) if mixed is None else mixed

    def mix_pcm16(self, data: bytes) -> bytes:
        """Return int16 little-endian samples with the cues of this moment in them, as `mix` does.

        Parameters
        ----------
        data : bytes, or anything with a buffer of bytes or int16; an even number of bytes.

        Returns
        -------
        bytes of the same length; `data` itself while the mixer is idle.

        Raises
        ------
        CueTypeError : for something without a buffer, or one of anything else: floats are for `mix`.
        CueValueError : for an odd number of bytes; the session is left as it was.
        """
        return self._mix_pcm16(data)

    def silence(self, n_samples: int) -> Samples:
        """Return the cues alone, for a moment in which no speech is due: as `mix` of `n_samples` zeros.

        Raises
        ------
        CueTypeError, CueValueError : for an `n_samples` that is no whole number of 0 or more.
        """
        n = checked_whole_number("n_samples", n_samples, 0, 1 << 40)
        frame = np.zeros(n, dtype=np.float32)
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
    ) -> Voice:
        """Let `cue` sound, and return a handle to it.

        The first use of a cue prepares it in the calling thread: another sample rate is converted (soxr HQ), an edge
        that would click gets a fade of 5 ms.

        Parameters
        ----------
        at : absolute output sample of the cue's first sample (`position` counts them); None is the first sample of the
            next `mix`. A sample that has passed means the same and is counted as late.
        gain_db : at most 40 dB; −inf is silence.
        loop : go on until stopped, without a seam; `None` does as `cue.loop` says.
        priority : where voices are short, one that fades out already makes room, or else the lowest, and among equals
            the oldest; it fades in 5 ms.
        placement : "overlay" ducks the speech; "replace" crossfades it out and back in; "in_pause" waits, from `at` on,
            for a pause in the speech, at most `gap_limit_ms`.

        Raises
        ------
        CueTypeError, CueValueError : for a parameter that is none of these.
        MixerClosedError : after `close`.
        """
        scheduler = self._scheduler
        if scheduler.closed:
            raise MixerClosedError("the mixer is closed; a new session needs a new Mixer")
        if not isinstance(cue, Cue):
            raise CueTypeError(_no_cue(cue))
        if placement == "gap":  # type: ignore[comparison-overlap]  # the old name, for one version
            warnings.warn(
                'placement="gap" is now "in_pause"; the old name goes in 0.3', DeprecationWarning, stacklevel=2
            )
            placement = "in_pause"
        if placement not in _PLACEMENTS:
            raise CueValueError(f"placement is {placement!r}; it must be one of {', '.join(_PLACEMENTS)}")
        loop = cue.loop if loop is None else bool(loop)
        playback = Playback(
            cue,
            prepare(cue, scheduler.sample_rate, loop=loop, replace=placement == "replace"),
            at=None if at is None else checked_whole_number("at", at, -(1 << 61), 1 << 61),
            gain_db=checked_gain_db(gain_db),
            loop=loop,
            priority=checked_whole_number("priority", priority, -(1 << 31), 1 << 31),
            placement=placement,
        )
        scheduler.post(scheduler.schedule, playback)
        return Voice(scheduler, playback)

    def release(self, fade_ms: float = 30.0) -> None:
        """Barge-in: fade everything that sounds, speech too, and cancel what was scheduled.

        Silence follows until the next cue begins or `resume` is called; either lets the speech pass again.

        Parameters
        ----------
        fade_ms : 5 … 250 ms; what is outside is taken as the nearest of these.
        """
        self._scheduler.post(self._scheduler.release, checked_fade_ms(fade_ms, LONGEST_RELEASE_MS))

    def resume(self) -> None:
        """Let the speech pass again after `release`; it fades in over 20 ms."""
        self._scheduler.post(self._scheduler.resume)

    def close(self) -> None:
        """End the session: voices fade in 5 ms, then frames pass as they are. `play` raises; `mix` does not.

        A cue that another thread plays at the same moment sounds no longer than these 5 ms, or never begins.
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
        """Samples out so far, those of `silence` included."""
        return self._row.position

    @property
    def active(self) -> bool:
        """Whether a cue sounds or waits for its time."""
        return self._scheduler.active

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._scheduler.closed

    @property
    def latency_samples(self) -> int:
        """Samples by which the output is behind the input; constant for the mixer's life."""
        return 0 if self._scheduler.limiter is None else self._scheduler.limiter.latency

    @property
    def state_bytes(self) -> int:
        """Bytes of state that the mixing loops keep for this session."""
        parts = (self._scheduler.limiter, self._scheduler.level)
        return self._row.words.nbytes + sum(part.nbytes for part in parts if part is not None)

    @property
    def stats(self) -> MixerStats:
        """The counters as they are now."""
        scheduler, ints = self._scheduler, self._row.ints
        return MixerStats(
            started=scheduler.started,
            late=scheduler.late,
            stolen=scheduler.stolen,
            limited_samples=int(ints[layout.LIMITED_I32]),
            nonfinite_samples=int(ints[layout.NONFINITE_I32]),
            silence_frames=scheduler.silence_frames,
        )

    # The way of a frame that needs Python: a command is due, or something has to be converted or refused.

    def _mix(self, frame: ArrayLike, out: Samples | None = None) -> Samples:
        self._connect()
        return mix_frame(self._scheduler, frame, out)

    def _mix_pcm16(self, data: bytes) -> bytes:
        self._connect()
        return mix_bytes(self._scheduler, data)


def _no_cue(thing: object) -> str:
    """What to say of something that is no cue: never all samples of an array, but how to make a cue of them."""
    if isinstance(thing, np.ndarray):
        return (
            f"cue is an array of {thing.dtype}, shape {thing.shape}; it must be a cues.Cue: "
            'cues.Cue(name="mine", samples=…, sample_rate=…) makes one'
        )
    return f"cue is {reprlib.repr(thing)}; it must be a cues.Cue (a bank's value)"
