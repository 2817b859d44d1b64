"""Loudness and peaks of whole sounds (ITU-R BS.1770-5, EBU R 128); `Meter` is the streaming twin."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cues._kernels.object_file import load_kernels
from cues.arrays import channels_float32, mono_float32
from cues.errors import CueValueError
from cues.meters.kweighting import k_weighted, recursion
from cues.meters.levels import (
    HOP_SLOTS,
    M100_SLOTS,
    OFFSET_LU,
    Measurement,
    hop_energies,
    integrated,
    lufs,
    measurement,
    silence_after,
    slot_start,
    whole_slots,
    window_mean_squares,
)
from cues.meters.meter import Meter
from cues.meters.true_peak import in_silence, interpolated_peak, true_peak_dbtp
from cues.units import checked_sample_rate

if TYPE_CHECKING:
    from cues._kernels.machine_code import MachineCode

__all__ = ["Measurement", "Meter", "integrated_lufs", "loudness_curve", "m100_max_lufs", "measure", "true_peak_dbtp"]

# Shorter sounds do not repay the loading of the compiled loops: they are measured in numpy.
_LONG_S = 5.0
_LANES, _SETTLE_SLOTS = 16, 70
# Weights G of BS.1770-5 (tables 3 and 4: 1.41 at the sides, 60° … 120°; 1.0 elsewhere) in the order of a WAV file's
# channels. The surround pair of 4 to 6 channels is at ±110°. The low-frequency channel (LFE) is excluded.
_FRONT, _SIDE, _LFE = 1.0, 1.41, 0.0
_WEIGHTS = {
    1: (_FRONT,),
    2: (_FRONT, _FRONT),
    3: (_FRONT, _FRONT, _FRONT),  # left, right, center
    4: (_FRONT, _FRONT, _SIDE, _SIDE),
    5: (_FRONT, _FRONT, _FRONT, _SIDE, _SIDE),
    6: (_FRONT, _FRONT, _FRONT, _LFE, _SIDE, _SIDE),  # 5.1
    7: (_FRONT, _FRONT, _FRONT, _LFE, 1.0, _SIDE, _SIDE),  # 6.1: the back at 180°, then the sides
    8: (_FRONT, _FRONT, _FRONT, _LFE, 1.0, 1.0, _SIDE, _SIDE),  # 7.1: the backs at ±135°, then the sides
}


def measure(samples: NDArray[np.floating], sample_rate: int = 24000, dual_mono: bool = False) -> Measurement:
    """All levels of one sound.

    Parameters
    ----------
    samples : float, shape `(n_samples,)` or `(n_samples, n_channels)`
        1 … 8 channels in a WAV file's order, full scale ±1.0, finite, not empty.
    sample_rate : int
        Rate of `samples`, Hz, 8000 … 192,000. With a wrong rate, all levels but the peaks are wrong.
    dual_mono : bool
        Measure one channel as if two loudspeakers played it, +3.01 LU.

    Returns
    -------
    Measurement
        Peaks and `dc` are the largest of any channel. A level is None if the sound is shorter than its window.

    Raises
    ------
    CueTypeError, CueValueError
        If `samples` is not a finite float array of such a shape, the rate is out of range, or `dual_mono` is set for
        several channels.

    References
    ----------
    ITU-R BS.1770-5; EBU Tech 3341 (momentary and short-term); EBU Tech 3342 (range).

    Examples
    --------
    >>> import numpy as np
    >>> tone = np.sin(2 * np.pi * 997 * np.arange(48000) / 24000)
    >>> round(measure(tone).integrated_lufs, 2)
    -3.01
    """
    sample_rate = checked_sample_rate(sample_rate)
    channels = channels_float32(samples)
    if dual_mono and len(channels) > 1:
        raise CueValueError(f"dual_mono is for one channel; samples have {len(channels)}")
    weights = (2.0,) if dual_mono else _WEIGHTS[len(channels)]
    after, energies = silence_after(sample_rate), np.zeros(1)
    for channel, weight in zip(channels, weights, strict=True):
        if weight:
            energies = energies + weight * _slot_energies(np.concatenate([channel, after]), sample_rate)
    sample_peaks = [float(np.abs(channel).max()) for channel in channels]
    true_peaks = [
        interpolated_peak(in_silence(channel), at_least=peak)
        for channel, peak in zip(channels, sample_peaks, strict=True)
    ]
    dc = max((float(channel.mean(dtype=np.float64)) for channel in channels), key=abs)
    return measurement(energies, len(channels[0]), sample_rate, max(sample_peaks), max(true_peaks), dc)


def integrated_lufs(samples: NDArray[np.floating], sample_rate: int = 24000, dual_mono: bool = False) -> float | None:
    """Gated loudness of one channel, LUFS: faster than `measure`, with the same parameters and errors.

    It is None if `samples` is shorter than 400 ms, minus infinity if no block passes the gate.
    """
    sample_rate = checked_sample_rate(sample_rate)
    mono = mono_float32(samples, finite=False)
    hops = hop_energies(_slot_energies(mono, sample_rate))
    # NaN and infinity show in the energies, except after the last whole hop.
    rest = mono[slot_start(len(hops) * HOP_SLOTS, sample_rate) :]
    if not math.isfinite(hops.sum() + np.dot(rest, rest)):
        mono_float32(mono)
    return integrated(hops * 2.0 if dual_mono else hops, sample_rate)


def m100_max_lufs(samples: NDArray[np.floating], sample_rate: int = 24000) -> float:
    """Loudest 100 ms of one channel, ungated, LUFS: faster than `measure`, with the same parameters and errors."""
    mono = np.concatenate([mono_float32(samples), silence_after(checked_sample_rate(sample_rate))])
    around = np.concatenate([np.zeros(M100_SLOTS), _slot_energies(mono, sample_rate)])
    return lufs(float(window_mean_squares(around, sample_rate, M100_SLOTS, first_slot=-M100_SLOTS).max()))


def loudness_curve(samples: NDArray[np.floating], sample_rate: int) -> NDArray[np.float64]:
    """Ungated loudness of the 100 ms that end after `k = 0 … n_samples` samples, LUFS, at least about −121."""
    window = round(0.1 * sample_rate)
    energy = np.concatenate([np.zeros(window + 1), np.cumsum(k_weighted(samples, sample_rate) ** 2)])
    mean_squares: NDArray[np.float64] = np.maximum((energy[window:] - energy[:-window]) / window, 1e-12)
    return OFFSET_LU + 10.0 * np.log10(mean_squares)


def _slot_energies(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float64]:
    """K-weighted energy of each whole millisecond of `samples`."""
    n_slots = whole_slots(len(samples), sample_rate)
    kernels = load_kernels() if len(samples) >= _LONG_S * sample_rate else None
    if kernels is not None:
        return _compiled_slot_energies(kernels, samples, sample_rate, n_slots)
    if not n_slots:
        return np.zeros(0)
    weighted = k_weighted(samples, sample_rate)[: slot_start(n_slots, sample_rate)]
    return np.add.reduceat(weighted * weighted, np.arange(n_slots) * sample_rate // 1000)


def _compiled_slot_energies(
    kernels: MachineCode, samples: NDArray[np.float32], sample_rate: int, n_slots: int
) -> NDArray[np.float64]:
    coefficients, gain = recursion(sample_rate)
    energies, state = np.empty(n_slots + 1), np.zeros(5)
    whole = 1000 // math.gcd(sample_rate, 1000)  # this many slots hold a whole number of samples
    lane = n_slots // _LANES // whole * whole
    done = _LANES * lane
    # Sixteen lanes each need time to settle; after 70 ms 1e-6 is left of the past, too little to change a level.
    settle = min(_SETTLE_SLOTS, lane)
    start = slot_start(done, sample_rate)
    signal, filters, state_at, slots = (array.ctypes.data for array in (samples, coefficients, state, energies))
    if lane:
        kernels.lane_energies(signal, filters, state_at, sample_rate, lane, settle, slots)
    n_left = len(samples) - start
    kernels.slot_energies(signal + 4 * start, n_left, filters, state_at, start, sample_rate, slots + 8 * done)
    whole_energies = energies[:n_slots]
    whole_energies *= gain
    return whole_energies
