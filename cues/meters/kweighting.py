"""K-weighting at any sample rate: the filters of ITU-R BS.1770-5, fitted to the same response.

The bilinear transform warps the response (0.07 dB at 24 kHz), so the magnitude is fitted. With `x = sin²(ω/2)` the
squared magnitude of a biquad is a ratio of quadratics in `x`, and the cascade has seven parameters:
`|H|² = g·x²·(x² + p1·x + p0) / ((x² + q1·x + q0)(x² + r1·x + r0))`. A few Levenberg-Marquardt steps on its logarithm
find them; each quadratic is then factored into the biquad with its roots inside the unit circle.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cues.units import checked_sample_rate

__all__ = ["REFERENCE", "SETTLE_S", "KWeighting", "design", "k_weighted", "magnitude_db", "recursion"]

_REFERENCE_RATE = 48_000
_FULL_BAND_RATE = 20_000
_MINIMAX_ROUNDS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class KWeighting:
    """The two biquads: numerators `b0 b1 b2`, denominators `a1 a2` (`a0` is 1)."""

    shelf_b: tuple[float, float, float]
    shelf_a: tuple[float, float]
    high_pass_b: tuple[float, float, float]
    high_pass_a: tuple[float, float]


REFERENCE = KWeighting(
    shelf_b=(1.53512485958697, -2.69169618940638, 1.19839281085285),
    shelf_a=(-1.69065929318241, 0.73248077421585),
    high_pass_b=(1.0, -2.0, 1.0),
    high_pass_a=(-1.99004745483398, 0.99007225036621),
)
"""ITU-R BS.1770-5, annex 1, tables 1 and 2: the filters at 48 kHz."""


SETTLE_S = 0.2
"""Time until the impulse response is below 1e-18 of its start (s); the high-pass has a double pole at 38 Hz."""


@lru_cache(maxsize=64)
def design(sample_rate: int) -> KWeighting:
    """The filters at `sample_rate` (8000 … 192,000 Hz), fitted to the 48 kHz reference."""
    # Worst error from 20 Hz to 0.95 of the Nyquist frequency: 0.0083 dB at 8 kHz, 0.0008 dB at 16 kHz. Up to 0.996 of
    # it, at most 24 kHz: 0.0002 dB at 24 kHz, 0.00003 dB from 32 kHz (tests/cues/meters/test_kweighting.py).
    sample_rate = checked_sample_rate(sample_rate)
    if sample_rate == _REFERENCE_RATE:
        return REFERENCE
    hz = _fit_grid(sample_rate)
    target = np.log(_power(REFERENCE, hz, _REFERENCE_RATE))
    x = np.sin(np.pi * hz / sample_rate) ** 2
    # Start from the reference's quadratics, with their roots at the same frequencies.
    scale = (_REFERENCE_RATE / sample_rate) ** 2
    start = [0.0]
    for c in (REFERENCE.shelf_b, (1.0, *REFERENCE.shelf_a), (1.0, *REFERENCE.high_pass_a)):
        lead, linear, constant = _quadratic(*c)
        start += [linear / lead * scale, constant / lead * scale**2]
    return _factored(*_fit(x, target, np.array(start)))


@lru_cache(maxsize=64)
def recursion(sample_rate: int) -> tuple[NDArray[np.float64], float]:
    """Coefficients for the compiled loops, with numerators scaled to `b0 = 1`, and the power gain to apply."""
    weighting = design(sample_rate)
    shelf_gain, high_gain = weighting.shelf_b[0], weighting.high_pass_b[0]
    shelf = [b / shelf_gain for b in weighting.shelf_b[1:]]
    return np.array([*shelf, *weighting.shelf_a, *weighting.high_pass_a]), (shelf_gain * high_gain) ** 2


def magnitude_db(weighting: KWeighting, hz: NDArray[np.float64], sample_rate: int) -> NDArray[np.float64]:
    """Response of the cascade at the frequencies `hz`, dB."""
    return 10.0 * np.log10(_power(weighting, hz, sample_rate))


def k_weighted(samples: NDArray[np.floating], sample_rate: int) -> NDArray[np.float64]:
    """K-weighted `samples`, in numpy: the twin of the compiled recursion, equal to about 1e-15."""
    # It filters the spectrum of the signal, padded beyond the impulse response so that nothing wraps around. It serves
    # short sounds: a process that only loads cues does not import numba.
    n_fft = _fast_length(len(samples) + round(SETTLE_S * sample_rate))
    spectrum = np.fft.rfft(np.asarray(samples, dtype=np.float64), n_fft)
    weighted: NDArray[np.float64] = np.fft.irfft(spectrum * _response(sample_rate, n_fft), n_fft)[: len(samples)]
    return weighted


@lru_cache(maxsize=8)
def _response(sample_rate: int, n_fft: int) -> NDArray[np.complex128]:
    weighting = design(sample_rate)
    z = np.exp(-2j * np.pi * np.arange(n_fft // 2 + 1) / n_fft)
    response = np.ones(len(z), dtype=np.complex128)
    for b, a in ((weighting.shelf_b, weighting.shelf_a), (weighting.high_pass_b, weighting.high_pass_a)):
        response *= (b[0] + z * (b[1] + z * b[2])) / (1.0 + z * (a[0] + z * a[1]))
    return response


def _fast_length(n: int) -> int:
    """Smallest `2^i·{2, 3, 5}` that is at least `n`, for a fast transform."""
    return min(m << max(0, ((n + m - 1) // m - 1).bit_length()) for m in (2, 3, 5))


def _power(weighting: KWeighting, hz: NDArray[np.float64], sample_rate: int) -> NDArray[np.float64]:
    x = np.sin(np.pi * hz / sample_rate) ** 2
    power = np.ones_like(x)
    for b, a in ((weighting.shelf_b, weighting.shelf_a), (weighting.high_pass_b, weighting.high_pass_a)):
        power *= np.polyval(_quadratic(*b), x) / np.polyval(_quadratic(1.0, *a), x)
    return power


def _quadratic(c0: float, c1: float, c2: float) -> tuple[float, float, float]:
    """`|c0 + c1·z⁻¹ + c2·z⁻²|²` as a quadratic in `x`, highest power first."""
    return 16.0 * c0 * c2, -4.0 * (c1 * (c0 + c2) + 4.0 * c0 * c2), (c0 + c1 + c2) ** 2


def _fit_grid(sample_rate: int) -> NDArray[np.float64]:
    """Frequencies of the fit: logarithmic at the bottom, dense at the top, where a biquad has the least freedom."""
    # Below a rate of 20 kHz the fit leaves out the top twentieth of the band, which holds no sound.
    top = (0.498 if sample_rate >= _FULL_BAND_RATE else 0.475) * min(sample_rate, _REFERENCE_RATE)
    return np.concatenate([np.geomspace(15.0, top, 60), top * np.sin(np.linspace(0.05, 0.5 * np.pi, 300))])


def _fit(
    x: NDArray[np.float64], target: NDArray[np.float64], start: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Logarithmic gain and coefficients `p1 p0 q1 q0 r1 r0` of the minimax fit."""
    # Least squares, then Lawson's iteration: each round weights the points by their errors, which levels the peaks.
    weights = np.ones_like(x)
    parameters = start.copy()
    for _ in range(1 + _MINIMAX_ROUNDS):
        parameters = _least_squares(x, target, parameters, np.sqrt(weights))
        error = np.abs(target - _model(x, parameters)[0])
        weights *= error / error.mean() + 1e-3
        weights /= weights.mean()
    return float(parameters[0]), parameters[1:]


def _least_squares(
    x: NDArray[np.float64], target: NDArray[np.float64], parameters: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Levenberg-Marquardt: a step that does not lower the error is repeated with more damping."""
    damping = 1e-3
    log_power, slopes = _model(x, parameters)
    cost = np.sum((weights * (target - log_power)) ** 2)
    for _ in range(60):
        scale = np.maximum(np.abs(parameters), 1e-12)
        scale[0] = 1.0
        scaled = slopes * scale * weights[:, None]
        system = np.vstack([scaled, np.sqrt(damping) * np.diag(np.linalg.norm(scaled, axis=0))])
        wanted = np.concatenate([weights * (target - log_power), np.zeros(len(scale))])
        candidate = parameters + scale * np.linalg.lstsq(system, wanted, rcond=None)[0]
        with np.errstate(invalid="ignore"):  # a step that is too long makes a power negative; it is rejected below
            new_log_power, new_slopes = _model(x, candidate)
        new_cost = np.sum((weights * (target - new_log_power)) ** 2)
        if not new_cost < cost:
            damping *= 10.0
            if damping > 1e6:
                break
            continue
        gained = (cost - new_cost) / cost
        parameters, log_power, slopes, cost = candidate, new_log_power, new_slopes, new_cost
        damping = max(damping / 10.0, 1e-15)
        if gained < 1e-7:
            break
    return parameters


def _model(x: NDArray[np.float64], parameters: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logarithm of `|H|²` at `x`, and its derivatives by the parameters, shape `(n, 7)`."""
    log_gain, p1, p0, q1, q0, r1, r0 = parameters
    p, q, r = (x * (x + c1) + c0 for c1, c0 in ((p1, p0), (q1, q0), (r1, r0)))
    log_power = log_gain + np.log(16.0 * x * x) + np.log(p) - np.log(q) - np.log(r)
    return log_power, np.stack([np.ones_like(x), x / p, 1.0 / p, -x / q, -1.0 / q, -x / r, -1.0 / r], axis=1)


def _factored(log_gain: float, quadratics: NDArray[np.float64]) -> KWeighting:
    """The biquads of the fitted quadratics."""
    # The high-pass is scaled to the reference's form, and the shelf has the rest of the gain; only the product matters.
    p1, p0, q1, q0, r1, r0 = quadratics
    (zeros, zeros_scale), (shelf, shelf_scale), (high, high_scale) = (
        _monic(*c) for c in ((p1, p0), (q1, q0), (r1, r0))
    )
    # |z² + a·z + b|² is the quadratic times its scale: move the scales into the gain.
    high_gain = float(np.polyval((1.0, -high[0], high[1]), 1.0)) / 4.0
    gain = float(np.sqrt(np.exp(log_gain) * shelf_scale * high_scale / zeros_scale)) / high_gain
    return KWeighting(
        shelf_b=(gain, gain * zeros[0], gain * zeros[1]),
        shelf_a=shelf,
        high_pass_b=(high_gain, -2.0 * high_gain, high_gain),
        high_pass_a=high,
    )


def _monic(c1: float, c0: float) -> tuple[tuple[float, float], float]:
    """`(a, b)` and scale: `|1 + a·z⁻¹ + b·z⁻²|² = scale·(x² + c1·x + c0)`, with roots inside the unit circle."""
    roots_x = np.roots((1.0, c1, c0)).astype(np.complex128)
    half = 1.0 - 2.0 * roots_x  # (z + 1/z)/2 at a root
    outer = half + np.sqrt(half * half - 1.0)
    roots_z = np.where(np.abs(outer) < 1.0, outer, 1.0 / outer)
    a, b = float(-roots_z.sum().real), float(roots_z.prod().real)
    return (a, b), 16.0 * b
