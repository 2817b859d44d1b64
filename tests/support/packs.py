"""Sounds and packs with known faults."""

import numpy as np
import soundfile

RATE = 24000


def tone(hz: float, n_samples: int = 4800, level: float = 0.3) -> np.ndarray:
    """A sine."""
    return level * np.sin(2 * np.pi * hz * np.arange(n_samples) / RATE)


def soft(samples: np.ndarray, ms: float = 10.0) -> np.ndarray:
    """`samples` with raised-cosine edges."""
    n = round(RATE * ms / 1000)
    edge = 0.5 - 0.5 * np.cos(np.pi * np.arange(n) / n)
    faded = np.array(samples, dtype=np.float64)
    faded[:n] *= edge
    faded[-n:] *= edge[::-1]
    return faded


def cut_in_the_middle() -> np.ndarray:
    """A tone whose sign flips at once: a click at 100 ms."""
    samples = soft(tone(600.0))
    samples[2400:] *= -1.0
    return samples


def naive_saw() -> np.ndarray:
    """A sawtooth that was not band-limited."""
    return soft(0.3 * (2.0 * ((1237.7 * np.arange(7200) / RATE) % 1.0) - 1.0))


def rhythm(*onsets_ms: float, hz: float = 800.0) -> np.ndarray:
    """Notes of 60 ms at these times."""
    samples = np.zeros(round(RATE * (max(onsets_ms) + 60) / 1000))
    for onset_ms in onsets_ms:
        start = round(RATE * onset_ms / 1000)
        samples[start : start + 1440] += soft(tone(hz, 1440))
    return samples


def write(path, samples, rate=RATE, subtype="FLOAT"):
    """A WAV file."""
    soundfile.write(path, np.asarray(samples, dtype=np.float32), rate, subtype=subtype)
