"""A pool of sessions mixed by one call."""

from collections import deque
from collections.abc import Iterator
from threading import Lock

import numpy as np

from cues._kernels import layout
from cues.arrays import Samples
from cues.errors import CueTypeError, CueValueError
from cues.mixing.backends import selection
from cues.mixing.mixer import Mixer
from cues.mixing.slots import STEAL_FADE_MS
from cues.mixing.state import MixerOptions, NotCopyable, Row, new_table
from cues.units import checked_whole_number, ms_to_samples

__all__ = ["MixerPool"]


class MixerPool(NotCopyable):
    """Sessions with a common frame clock: one call mixes a frame for each.

    The state of all sessions is one table. `pool[i]` is a `Mixer` on row `i`, made at first access. After it is closed,
    `pool[i]` is a new mixer at position 0; other sessions are not affected. Any thread, but for `mix`.

    Parameters
    ----------
    sessions : int
        1 … 1,000,000.
    frame_samples : int
        Length of a frame, samples, 1 … 1,000,000.
    sample_rate, voices, guard, duck_db, gap_limit_ms
        As for `Mixer`. A pool has no limiter.

    Raises
    ------
    CueTypeError, CueValueError
        If a parameter is outside of these limits.

    Examples
    --------
    >>> import numpy as np
    >>> import cues
    >>> pool = cues.MixerPool(sessions=3, frame_samples=480)
    >>> beep = cues.Cue(name="beep", samples=0.1 * np.sin(np.arange(2400) * 0.2))
    >>> voice = pool[1].play(beep)
    >>> out = pool.mix(np.zeros((3, 480), dtype=np.float32))
    >>> [bool(frame.any()) for frame in out], pool[2].position
    ([False, True, False], 480)
    """

    def __init__(
        self,
        sessions: int = 1000,
        frame_samples: int = 480,
        *,
        sample_rate: int = 24000,
        voices: int = 8,
        guard: bool = False,
        duck_db: float = -6.0,
        gap_limit_ms: float = 1000.0,
    ) -> None:
        self._options = MixerOptions(
            sample_rate=sample_rate, voices=voices, guard=guard, duck_db=duck_db, gap_limit_ms=gap_limit_ms
        )
        self._n = checked_whole_number("sessions", sessions, 1, 1_000_000)
        self._frame = checked_whole_number("frame_samples", frame_samples, 1, 1_000_000)
        self._table = new_table(self._n, self._options)
        self._seated: dict[int, Mixer] = {}  # the mixer of each row; only the thread that mixes replaces it
        self._successors: dict[int, Mixer] = {}  # the successors of closed mixers
        self._arriving: deque[tuple[int, Mixer, Row]] = deque()  # successors that wait for their row
        self._renewing = Lock()
        self._waking = np.zeros(self._n, dtype=np.int64)
        self._addresses = self._table.ctypes.data, self._waking.ctypes.data

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, number: int) -> Mixer:
        """Return the mixer of a session; negative numbers count from the end."""
        try:
            index = checked_whole_number("number", number, -self._n, self._n - 1) % self._n
        except CueValueError as error:
            raise IndexError(f"number is {number}; the pool has {self._n} sessions") from error
        mixer = self._successors.get(index) or self._holder(index)
        return self._renew(index) if mixer.closed else mixer

    def _holder(self, index: int) -> Mixer:
        """The mixer on a row, made at first access."""
        mixer = self._seated.get(index)
        return mixer or self._seated.setdefault(index, Mixer.on_row(Row.of_table(self._table[index]), self._options))

    def _renew(self, index: int) -> Mixer:
        """The successor of a closed mixer, in a row of its own until the next `mix`: another thread may be mixing."""
        with self._renewing:
            mixer = self._successors.get(index) or self._holder(index)
            if mixer.closed:
                own, spare = (Row.of_table(new_table(1, self._options)[0]) for _ in range(2))
                mixer = self._successors[index] = Mixer.on_row(own, self._options)
                self._arriving.append((index, mixer, spare))
            return mixer

    def _seat(self) -> None:
        """Move successors to their rows, and the closed mixers to spare rows."""
        for _ in range(len(self._arriving)):
            index, mixer, spare = self._arriving.popleft()
            left, self._seated[index] = self._holder(index), mixer
            mixer.move_to(left.move_to(spare))
            if left.active:  # its voices end here, as nobody mixes it any more
                left.silence(ms_to_samples(STEAL_FADE_MS, self._options.sample_rate))

    def __iter__(self) -> Iterator[Mixer]:
        return (self[number] for number in range(self._n))

    @property
    def nbytes(self) -> int:
        """Size of all sessions' state, bytes."""
        return self._table.nbytes

    def mix(self, frames: Samples, out: Samples | None = None) -> Samples:
        """Return a frame for each session, as its `Mixer.mix` would. The mixing thread only.

        Parameters
        ----------
        frames : float32, shape `(sessions, frame_samples)`, full scale ±1.0
            Other float dtypes and strides are converted.
        out : float32, same shape, contiguous, optional
            Destination; may be `frames`.

        Returns
        -------
        float32, shape `(sessions, frame_samples)`
            `out` if given, else a new array.

        Raises
        ------
        CueTypeError, CueValueError
            If an array has another dtype or shape; no session changes.
        """
        source = self._checked("frames", frames)
        target = np.empty_like(source) if out is None else out
        if out is not None:
            if self._checked("out", out) is not out or not out.flags.writeable:
                raise CueValueError("out must be a writeable, contiguous float32 array")
            if out is not source and np.may_share_memory(out, source):
                source = source.copy()
        if self._arriving:
            self._seat()
        for number in self._mix_unscheduled(source, target):
            # A closed mixer fades out here; its successor is made by `pool[i]`.
            self._holder(number).mix(source[number], out=target[number])
        return target

    def _mix_unscheduled(self, source: Samples, target: Samples) -> list[int]:
        """Mix all rows that need no planning, and return the numbers of the others."""
        kernels = selection.kernels()
        if kernels is None:
            idle = (self._table.view(np.int32)[:, layout.FLAGS_I32] == 0) & (
                self._table[:, layout.POSITION_I64] + self._frame <= self._table[:, layout.WAKE_I64]
            )
            target[idle] = source[idle]
            self._table[idle, layout.POSITION_I64] += self._frame
            numbers: list[int] = np.flatnonzero(~idle).tolist()
            return numbers
        table, waking = self._addresses
        stride, n = self._table.strides[0], self._frame
        count = kernels.mix_rows(table, stride, self._n, source.ctypes.data, target.ctypes.data, n, waking)
        found: list[int] = self._waking[:count].tolist()
        return found

    def _checked(self, name: str, array: Samples) -> Samples:
        array = np.asarray(array)
        if array.dtype.kind != "f":
            raise CueTypeError(f"{name} has dtype {array.dtype}; it must be float32, full scale ±1.0")
        if array.shape != (self._n, self._frame):
            raise CueValueError(f"{name} has shape {array.shape}; it must be {(self._n, self._frame)}")
        return np.ascontiguousarray(array, dtype=np.float32)
