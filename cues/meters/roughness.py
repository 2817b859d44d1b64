"""Roughness of a sound, in asper: beating and fast modulation, 15 to 300 times a second, which tires a listener."""

from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cues.arrays import mono_float32
from cues.signal.resample import resample

__all__ = ["roughness_asper"]

Array: TypeAlias = NDArray[np.floating]
_RATE_HZ, _SIZE = 24000, 4800  # windows of 200 ms
_EDGE, _FILLED = _SIZE // 10, 10.0 ** (-30.0 / 20.0)  # decision: within 30 dB of its peak in the first and last 20 ms
_BARK = np.arange(1, 48) / 2.0  # centers of the 47 channels, each 1 Bark wide
_DECIBELS_OF_UNIT = 94.0  # sound pressure level of an RMS of 1.0 Pa
# Weight of a modulation frequency (Hz), at 1, 8 and 21 Bark: H2, H16 and H42 of figure 2.
_H = (
    (
        (0, 17, 23, 32, 37, 48, 67, 90, 114, 171, 206, 247, 294, 358),
        (0, 0.8, 0.95, 1, 0.975, 0.9, 0.8, 0.7, 0.6, 0.4, 0.3, 0.2, 0.1, 0),
    ),
    (
        (0, 23.5, 34, 47, 56, 79, 115, 135, 172, 194, 215, 244, 290, 348, 415, 500, 645),
        (0, 0.4, 0.6, 0.8, 0.9, 1, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0),
    ),
    (
        (0, 15, 41, 53, 71, 88, 106, 137, 180, 238, 290, 348, 415, 500, 645),
        (0, 0.4, 0.8, 0.965, 1, 0.95, 0.85, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0),
    ),
)
# Weight of a channel (Aures 1985), percent, at 0, 1, … 24 Bark.
_G = (15, 26, 38, 47, 54, 65, 76, 83, 90, 98, 98, 90, 80, 70, 62, 54, 49, 43, 39, 35, 30, 30, 30, 30, 30)
_SCALE = 0.278 / 100  # makes the reference 1 asper; 0.25 with the paper's a0 and its own slopes


def roughness_asper(samples: NDArray[np.floating], sample_rate: int, *, level_db: float = 60.0) -> float:
    """Roughness of the roughest 200 ms, asper: 1 is a tone of 1 kHz and 60 dB, modulated by 100 % at 70 Hz.

    Only 200 ms that the sound fills are judged, else its onset and its end would count as modulation. A shorter sound
    has 0.0.

    Parameters
    ----------
    samples : float32, shape `(n_samples,)`, full scale ±1.0
    sample_rate : int
        Hz.
    level_db : float
        Sound pressure level of the loudest 200 ms, dB.

    References
    ----------
    P. Daniel, R. Weber: Psychoacoustical roughness: implementation of an optimized model. Acustica 83 (1997), 113–123.
    Without the transmission of the outer ear (a0), which is 0 dB up to 1.3 kHz.
    """
    heard = resample(mono_float32(samples), sample_rate, _RATE_HZ)
    heard = np.pad(heard, (0, max(_SIZE - len(heard), 0)))
    windows = np.lib.stride_tricks.sliding_window_view(heard, _SIZE)[:: _SIZE // 2].astype(np.float64)
    power = np.square(windows).mean(axis=1)
    if not power.max() > 0.0:
        return 0.0
    gain = 10.0 ** ((level_db - _DECIBELS_OF_UNIT) / 20.0) / np.sqrt(power.max())
    edges = np.abs(windows[:, _EDGE:-_EDGE]).max(axis=1) * _FILLED
    filled = np.minimum(np.abs(windows[:, :_EDGE]).max(axis=1), np.abs(windows[:, -_EDGE:]).max(axis=1)) > edges
    judged = windows[filled & (power > 1e-3 * power.max())]
    return max((_of_window(window * gain) for window in judged), default=0.0)


def _of_window(window: Array) -> float:
    shape = np.blackman(_SIZE)
    spectrum = np.fft.rfft(window * shape / np.sqrt(np.square(shape).mean()))
    hz = np.arange(1, _SIZE // 2 + 1) * (_RATE_HZ / _SIZE)
    level_db = 20.0 * np.log10(np.maximum(np.abs(spectrum[1:]) * 2**0.5 / _SIZE, 1e-12)) + _DECIBELS_OF_UNIT
    audible = level_db > _threshold_db(hz)
    depth, filtered = _modulation(spectrum[1:] * audible, hz, level_db)
    kinship = np.array([_correlation(one, other) for one, other in zip(filtered[:-2], filtered[2:], strict=True)])
    below, above = np.concatenate([[1.0, 1.0], kinship]), np.concatenate([kinship, [1.0, 1.0]])
    return _SCALE * float((np.interp(_BARK, range(25), _G) * np.square(depth * below * above)).sum())


def _modulation(spectrum: NDArray[np.complex128], hz: Array, level_db: Array) -> tuple[Array, Array]:
    """Depth of modulation of each channel's excitation, and the weighted fluctuation itself."""
    bark = 13.0 * np.arctan(0.00076 * hz) + 3.5 * np.arctan(np.square(hz / 7500.0))
    away = bark - _BARK[:, None]
    # Slopes of the excitation towards lower and higher channels, dB/Bark (Terhardt 1979).
    slope = np.where(away > 0.0, 27.0, np.maximum(24.0 + 230.0 / hz - 0.2 * level_db, 0.0))
    spread_db = slope * np.maximum(np.abs(away) - 0.5, 0.0)
    channel_hz = np.interp(_BARK, bark, hz)
    reaches = (spread_db == 0.0) | (level_db - spread_db > _threshold_db(channel_hz)[:, None])
    excitation = np.zeros((len(_BARK), len(hz) + 1), dtype=np.complex128)
    excitation[:, 1:] = spectrum * reaches * 10.0 ** (-spread_db / 20.0)
    envelope = np.abs(np.fft.irfft(excitation, _SIZE, axis=1))
    mean = envelope.mean(axis=1)
    filtered: Array = np.fft.irfft(np.fft.rfft(envelope - mean[:, None], axis=1) * _weights(), _SIZE, axis=1)
    rms = np.sqrt(np.square(filtered).mean(axis=1))
    return np.minimum(rms / np.maximum(mean, 1e-30), 1.0), filtered


@cache
def _weights() -> Array:
    """Weight of each modulation frequency in each channel, interpolated between the three that are given."""
    hz = np.fft.rfftfreq(_SIZE, 1.0 / _RATE_HZ)
    given = np.array([np.interp(hz, x, y) for x, y in _H])
    at = np.interp(_BARK, (2.0, 8.0, 10.0, 21.0), (0.0, 1.0, 1.0, 2.0))
    low = np.minimum(at.astype(int), 1)
    part = (at - low)[:, None]
    weights: Array = given[low] * (1.0 - part) + given[low + 1] * part
    return weights


def _threshold_db(hz: Array) -> Array:
    """Hearing threshold (Terhardt 1979), dB SPL."""
    khz = hz / 1000.0
    threshold: Array = 3.64 * khz**-0.8 - 6.5 * np.exp(-0.6 * np.square(khz - 3.3)) + 1e-3 * khz**4
    return threshold


def _correlation(one: Array, other: Array) -> float:
    norm = float(np.sqrt(np.square(one).sum() * np.square(other).sum()))
    return float((one * other).sum()) / norm if norm > 0.0 else 0.0
