"""Rendering of a spec by additive synthesis, with flat ramps at all edges."""

import numpy as np
from numpy.typing import NDArray

from cues.errors import CueTypeError, CueValueError
from cues.signal.fades import fade_edges
from cues.synthesis.spec import LowPass, Note, Spec
from cues.units import checked_sample_rate, db_to_gain, ms_to_samples

__all__ = ["render"]

_SLOWEST_PER_S = 1e-9

# Harmonics fade out between these fractions of the sample rate, against aliasing at low rates.
_TOP_START, _TOP_END = 0.42, 0.46


def render(spec: Spec, sample_rate: int = 24000) -> NDArray[np.float32]:
    """Samples of `spec` before loudness normalization; deterministic.

    Parameters
    ----------
    spec : Spec
        The cue to render.
    sample_rate : int
        Hz, 8000 … 192,000.

    Returns
    -------
    float32, shape `(n_samples,)`, range ±`spec.peak`
        The first and the last sample are exactly 0.0; the mean is zero.

    Raises
    ------
    CueTypeError, CueValueError
        If `spec` is not a `Spec` or is silent at that rate, or the rate is out of range.

    Examples
    --------
    >>> import cues
    >>> note = cues.Note(hz=660, length_ms=150)
    >>> cues.render(cues.Spec(notes=(note,))).shape
    (3600,)
    """
    if not isinstance(spec, Spec):
        raise CueTypeError(f"spec is {spec!r}; it must be a Spec")
    sample_rate = checked_sample_rate(sample_rate)
    sound = np.zeros(ms_to_samples(spec.length_ms, sample_rate))
    sounding = np.zeros_like(sound)
    for note in spec.notes:
        start = ms_to_samples(note.start_ms, sample_rate)
        tone, envelope = _tone(
            spec, note, min(ms_to_samples(note.length_ms, sample_rate), len(sound) - start), sample_rate
        )
        sound[start : start + len(tone)] += tone
        sounding[start : start + len(tone)] += envelope
    # Short sounds have a mean of a few 1e-4. A scaled envelope removes it: the envelope is silent with the cue and
    # flat at its edges, and adds only energy below 10 Hz.
    sound -= sounding * (sound.sum() / sounding.sum())
    peak = float(np.abs(sound).max())
    if peak == 0.0:
        raise CueValueError(
            f"the spec is silent at {sample_rate} Hz: all of its harmonics lie above the highest frequency of that rate"
        )
    rendered: NDArray[np.float32] = (sound * (spec.peak / peak)).astype(np.float32)
    return rendered


def _tone(spec: Spec, note: Note, n_samples: int, sample_rate: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """One note and its envelope: float64, shape `(n_samples,)` each."""
    attack, release = (ms_to_samples(ms, sample_rate) for ms in (spec.envelope.attack_ms, spec.envelope.release_ms))
    t_s = np.arange(n_samples) / sample_rate
    hz, phase = _glide(note, t_s)
    harmonics = _harmonics(spec, t_s, hz, phase, sample_rate)
    # The lengths are rounded separately: together the ramps may exceed the note by a sample.
    level = fade_edges(np.full(n_samples, db_to_gain(note.level_db)), attack, min(release, n_samples - attack))
    return harmonics * level, np.exp(-spec.envelope.decay_per_s * t_s) * level


def _glide(note: Note, t_s: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Frequency `hz·e^(rate·t)` (Hz) and its integral, the phase (radians)."""
    rate = note.sweep_per_s
    hz = note.hz * np.exp(rate * t_s)
    # The quotient of a rate near the smallest float is 0; no ear knows a glide this slow from none.
    cycles = note.hz * np.expm1(rate * t_s) / rate if abs(rate) > _SLOWEST_PER_S else note.hz * t_s
    return hz, 2.0 * np.pi * cycles


def _harmonics(
    spec: Spec, t_s: NDArray[np.float64], hz: NDArray[np.float64], phase: NDArray[np.float64], sample_rate: int
) -> NDArray[np.float64]:
    """Sum of the decaying harmonics before attack and release."""
    total = np.zeros_like(t_s)
    timbre, rate = spec.timbre, spec.envelope.decay_per_s
    for k, level in enumerate(timbre.partials, start=1):
        if level and k * hz.min() < _TOP_END * sample_rate:
            decay = np.exp(-rate * (1.0 + timbre.damping * (k - 1)) * t_s)
            gain = level * _weight(spec.low_pass, k * hz) * _below_nyquist(k * hz, sample_rate)
            total += gain * decay * np.sin(k * phase)
    return total


def _weight(low_pass: LowPass | None, hz: NDArray[np.float64]) -> NDArray[np.float64] | float:
    if low_pass is None:
        return 1.0
    # A long upward sweep would overflow the power, long after it is inaudible.
    above = np.minimum(hz / low_pass.cutoff_hz, 1e9)
    weight: NDArray[np.float64] = 1.0 / np.sqrt(1.0 + above ** (2.0 * low_pass.order))
    return weight


def _below_nyquist(hz: NDArray[np.float64], sample_rate: int) -> NDArray[np.float64]:
    u = np.clip((hz / sample_rate - _TOP_START) / (_TOP_END - _TOP_START), 0.0, 1.0)
    return 0.5 + 0.5 * np.cos(np.pi * u)
