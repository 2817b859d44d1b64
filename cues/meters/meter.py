"""Streaming meter, the twin of `cues.measure`."""

from __future__ import annotations

import copy
from array import array
from typing import TYPE_CHECKING

import numpy as np

from cues._kernels.object_file import load_kernels
from cues.arrays import mono_float32
from cues.errors import CueValueError, MissingFeatureError
from cues.meters.kweighting import recursion
from cues.meters.levels import (
    HOP_SLOTS,
    M100_SLOTS,
    MOMENTARY_SLOTS,
    SHORT_TERM_SLOTS,
    Measurement,
    gated_mean_square,
    loudness_range_lu,
    lufs,
    slot_start,
    whole_slots,
    window_mean_squares,
)
from cues.meters.true_peak import FINE_OVERSAMPLING, TAPS, interpolated_peak
from cues.units import checked_sample_rate, gain_to_db

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Meter"]

_WINDOWS = (M100_SLOTS, MOMENTARY_SLOTS, SHORT_TERM_SLOTS)


class Meter:
    """Levels of a sound that is fed in parts; the split does not change a bit of the result.

    Sound is processed in steps of 100 ms at fixed positions. Memory grows by 160 bytes per second (gating blocks).

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
        coefficients, gain = recursion(self.sample_rate)
        self._coefficients = coefficients
        self._gain = 2.0 * gain if dual_mono else gain
        self._waiting: list[NDArray[np.float32]] = []
        self._n_waiting = 0
        self._state = np.zeros(5)
        self._position = 0  # samples processed
        self._slot = 0  # slots processed
        self._recent = np.zeros(SHORT_TERM_SLOTS)  # latest energies, preceded by silence
        self._loudest = dict.fromkeys(_WINDOWS, 0.0)
        self._blocks = array("d")
        self._short_term = array("d")
        self._heard = self._n_samples = 0  # slots and samples of the sound itself, known at the end
        self._context = np.zeros(TAPS - 1, dtype=np.float32)  # latest samples, for the true-peak filter
        self._sample_peak = self._true_peak = 0.0
        self._sum = 0.0

    def feed(self, samples: NDArray[np.floating]) -> None:
        """Add the next part: float, shape `(n_samples,)`, any length, finite; raises as `measure` does."""
        part = mono_float32(samples, allow_empty=True)
        self._waiting.append(part.copy())
        self._n_waiting += len(part)
        end = slot_start(self._slot + HOP_SLOTS, self.sample_rate)
        if self._position + self._n_waiting < end:
            return
        waiting = np.concatenate(self._waiting)
        used = 0
        while self._position + len(waiting) - used >= end:
            step = waiting[used : used + end - self._position]
            used += len(step)
            self._take(step)
            end = slot_start(self._slot + HOP_SLOTS, self.sample_rate)
        self._waiting, self._n_waiting = [waiting[used:]], len(waiting) - used

    def result(self) -> Measurement:
        """Levels of the sound so far; `feed` may continue.

        Raises
        ------
        CueValueError
            If no samples were fed.
        """
        if not self._position + self._n_waiting:
            raise CueValueError("the meter was fed no samples; it needs at least one")
        finished = copy.deepcopy(self)
        finished._finish()  # noqa: SLF001  (its own class)
        return finished._measurement()  # noqa: SLF001

    def _take(self, step: NDArray[np.float32]) -> None:
        """Process one step of 100 ms."""
        self._take_peaks(step)
        self._take_slots(self._energies(step), _WINDOWS)
        for window, blocks in ((MOMENTARY_SLOTS, self._blocks), (SHORT_TERM_SLOTS, self._short_term)):
            if self._slot >= window:
                blocks.append(self._windows(window, 1)[-1])

    def _finish(self) -> None:
        """Process the rest, less than a step, and silence after it."""
        rest = np.concatenate([*self._waiting, np.zeros(0, dtype=np.float32)])
        self._heard = whole_slots(self._position + len(rest), self.sample_rate)
        inside = self._heard - self._slot
        self._take_peaks(rest)
        self._interpolate(np.zeros(TAPS - 1, dtype=np.float32))
        after = np.zeros(slot_start(M100_SLOTS + 1, self.sample_rate), dtype=np.float32)
        energies = self._energies(np.concatenate([rest, after]))
        self._n_samples = self._position - len(after)
        self._take_slots(energies[:inside], _WINDOWS)
        self._take_slots(energies[inside:], (M100_SLOTS,))

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

    def _energies(self, step: NDArray[np.float32]) -> NDArray[np.float64]:
        kernels = load_kernels()
        if kernels is None:
            raise MissingFeatureError("a Meter needs the compiled kernels; cues.measure works without them")
        energies = np.empty(whole_slots(len(step), self.sample_rate) + 2)
        signal, filters, state, slots = (
            array.ctypes.data for array in (step, self._coefficients, self._state, energies)
        )
        n_done = kernels.slot_energies(signal, len(step), filters, state, self._position, self.sample_rate, slots)
        self._position += len(step)
        return energies[:n_done] * self._gain

    def _take_slots(self, energies: NDArray[np.float64], windows: tuple[int, ...]) -> None:
        if not len(energies):
            return
        self._recent = np.concatenate([self._recent, energies])[-(SHORT_TERM_SLOTS + len(energies)) :]
        self._slot += len(energies)
        for window in windows:
            # Only the 100 ms windows include the silence before the first sample.
            n_ends = len(energies) if window == M100_SLOTS else min(len(energies), self._slot - window + 1)
            if n_ends > 0:
                self._loudest[window] = max(self._loudest[window], float(self._windows(window, n_ends).max()))
        self._recent = self._recent[-SHORT_TERM_SLOTS:]

    def _windows(self, window: int, n_ends: int) -> NDArray[np.float64]:
        """Mean squares of the windows that end with the last `n_ends` slots."""
        n_slots = window + n_ends - 1
        return window_mean_squares(self._recent[-n_slots:], self.sample_rate, window, first_slot=self._slot - n_slots)

    def _measurement(self) -> Measurement:
        blocks, short_term = np.array(self._blocks), np.array(self._short_term)
        return Measurement(
            integrated_lufs=lufs(gated_mean_square(blocks)) if len(blocks) else None,
            momentary_max_lufs=self._loudest_lufs(MOMENTARY_SLOTS),
            short_term_max_lufs=self._loudest_lufs(SHORT_TERM_SLOTS),
            m100_max_lufs=lufs(self._loudest[M100_SLOTS]),
            loudness_range_lu=loudness_range_lu(short_term) if len(short_term) else None,
            true_peak_dbtp=gain_to_db(self._true_peak),
            sample_peak_dbfs=gain_to_db(self._sample_peak),
            dc=self._sum / self._n_samples,
        )

    def _loudest_lufs(self, window: int) -> float | None:
        return lufs(self._loudest[window]) if self._heard >= window else None
