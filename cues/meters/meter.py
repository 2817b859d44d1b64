"""Streaming meter, the twin of `cues.measure`."""

import copy
from array import array

import numpy as np
from numpy.typing import NDArray

from cues._kernels.object_file import load_kernels
from cues.arrays import mono_float32
from cues.errors import CueValueError, MissingFeatureError
from cues.meters.kweighting import recursion
from cues.meters.levels import HOP_SLOTS, Measurement, measurement, silence_after, slot_start, whole_slots
from cues.meters.true_peak import FINE_OVERSAMPLING, TAPS, interpolated_peak
from cues.units import checked_sample_rate

__all__ = ["Meter"]


class Meter:
    """Levels of a sound that is fed in parts; the split does not change a bit of the result.

    Sound is processed in steps of 100 ms at fixed positions. Memory grows by 8 kB per second (energies of 1 ms).

    Parameters
    ----------
    sample_rate : int
        Hz, 8000 … 192,000.
    dual_mono : bool
        Measure the channel as if two loudspeakers played it, +3.01 LU.

    Examples
    --------
    >>> import numpy as np
    >>> meter = Meter(24000)
    >>> for _ in range(10):
    ...     meter.feed(np.full(2400, 0.5, dtype=np.float32))
    >>> round(meter.result().sample_peak_dbfs, 2)
    -6.02
    """

    def __init__(self, sample_rate: int = 24000, *, dual_mono: bool = False) -> None:
        self.sample_rate = checked_sample_rate(sample_rate)
        self._coefficients, gain = recursion(self.sample_rate)
        self._gain = 2.0 * gain if dual_mono else gain
        self._filters = np.zeros(5)
        self._waiting: NDArray[np.float32] = np.zeros(0, dtype=np.float32)  # less than a step
        self._position = 0  # samples processed
        self._energies = array("d")  # of their slots
        self._context: NDArray[np.float32] = np.zeros(TAPS - 1, dtype=np.float32)  # for the true-peak filter
        self._sample_peak = self._true_peak = self._sum = 0.0

    def feed(self, samples: NDArray[np.floating]) -> None:
        """Add the next part: float, shape `(n_samples,)`, any length, finite; raises as `measure` does."""
        waiting = np.concatenate([self._waiting, mono_float32(samples, allow_empty=True)])
        while len(waiting) >= (n := slot_start(len(self._energies) + HOP_SLOTS, self.sample_rate) - self._position):
            self._take_peaks(waiting[:n])
            self._take_energies(waiting[:n])
            waiting = waiting[n:]
        self._waiting = waiting.copy()

    def result(self) -> Measurement:
        """Levels of the sound so far; `feed` may continue.

        Raises
        ------
        CueValueError
            If no samples were fed.
        """
        if not self._position + len(self._waiting):
            raise CueValueError("the meter was fed no samples; it needs at least one")
        return copy.deepcopy(self)._finished()  # noqa: SLF001  (its own class)

    def _finished(self) -> Measurement:
        """Levels, once the rest and the silence after it are processed."""
        n_samples = self._position + len(self._waiting)
        self._take_peaks(self._waiting)
        self._interpolate(np.zeros(TAPS - 1, dtype=np.float32))
        self._take_energies(np.concatenate([self._waiting, silence_after(self.sample_rate)]))
        peaks, dc = (self._sample_peak, self._true_peak), self._sum / n_samples
        return measurement(np.array(self._energies), n_samples, self.sample_rate, *peaks, dc)

    def _take_peaks(self, step: NDArray[np.float32]) -> None:
        if len(step):
            self._sum += float(step.sum(dtype=np.float64))
            self._sample_peak = max(self._sample_peak, float(np.abs(step).max()))
            self._interpolate(step)

    def _interpolate(self, step: NDArray[np.float32]) -> None:
        """Interpolate the points whose context is complete."""
        near = np.concatenate([self._context, step])
        self._true_peak = interpolated_peak(near, FINE_OVERSAMPLING, max(self._true_peak, self._sample_peak))
        self._context = near[-(TAPS - 1) :].copy()

    def _take_energies(self, step: NDArray[np.float32]) -> None:
        kernels = load_kernels()
        if kernels is None:
            raise MissingFeatureError("a Meter needs the compiled kernels; cues.measure works without them")
        step, energies = np.ascontiguousarray(step), np.empty(whole_slots(len(step), self.sample_rate) + 2)
        signal, filters, state, slots = (
            array.ctypes.data for array in (step, self._coefficients, self._filters, energies)
        )
        n_done = kernels.slot_energies(signal, len(step), filters, state, self._position, self.sample_rate, slots)
        self._position += len(step)
        self._energies.extend(energies[:n_done] * self._gain)
