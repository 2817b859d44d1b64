"""A speech-like signal from text, for demos and tests without a real voice.

It has voiced syllables with falling pitch and moving formants, fricatives, stops and pauses, but no intelligible words.
The same text gives the same signal on every machine.
"""

import re
import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cues.signal.fades import fade_edges
from cues.units import ms_to_samples

__all__ = ["speak_voice_like", "words_voice_like"]

# First three formants (Hz) of a male speaker: Peterson and Barney, "Control methods used in a study of the vowels",
# J. Acoust. Soc. Am. 24 (1952), table II.
FORMANTS_HZ = {
    "a": (730.0, 1090.0, 2440.0),
    "e": (530.0, 1840.0, 2480.0),
    "i": (270.0, 2290.0, 3010.0),
    "o": (570.0, 840.0, 2410.0),
    "u": (300.0, 870.0, 2240.0),
    "y": (390.0, 1990.0, 2550.0),
}
BANDWIDTHS_HZ = (80.0, 100.0, 140.0)
VOWELS = "aeiouy"
HISSES_HZ = {"s": 5500.0, "z": 5000.0, "f": 4000.0, "v": 3500.0, "h": 1800.0, "x": 3200.0, "c": 3800.0, "j": 3000.0}

SYLLABLE_MS = 150.0
HISS_MS = 70.0
STOP_MS = 45.0
WORD_GAP_MS = 25.0
PAUSE_MS = {",": 180.0, ";": 220.0, ":": 220.0, ".": 320.0, "!": 320.0, "?": 320.0}
PITCH_HZ = 118.0
GAINS_MS = 1.0
"""Interval at which the gains of a syllable's harmonics are computed; they are interpolated between."""
PEAK = 0.43
"""Peak of the loudest syllable, for about −20 LUFS."""


def speak_voice_like(text: str, *, sample_rate: int = 24000) -> NDArray[np.float32]:
    """Speech-like signal of `text` (peak below 0.5, silent at both ends); empty without words."""
    words = [samples for _, samples in words_voice_like(text, sample_rate=sample_rate)]
    return np.concatenate([np.zeros(0, dtype=np.float32), *words])


def words_voice_like(text: str, *, sample_rate: int = 24000) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield each word of `text` with its samples, pause included, as `speak_voice_like` joins them."""
    texts = text.split()
    for ordinal, word in enumerate(texts):
        mark = word.rstrip("\"'”’)]")[-1:]
        pause = np.zeros(ms_to_samples(PAUSE_MS.get(mark, WORD_GAP_MS), sample_rate))
        yield word, np.concatenate([*_word(word, ordinal / len(texts), sample_rate), pause]).astype(np.float32)


def _word(word: str, progress: float, sample_rate: int) -> list[NDArray[np.float64]]:
    """Sounds of a word, one for each group of vowels or consonants."""
    sounds = []
    for group in re.findall(rf"[{VOWELS}]+|[^\W\d_{VOWELS}]+|\d|[^\W]", word.casefold()):
        if group[0] in VOWELS:
            sounds.append(_vowel(group, progress, sample_rate))
        elif group[0] in HISSES_HZ:
            sounds.append(_hiss(HISSES_HZ[group[0]], group, sample_rate))
        elif group.isascii() and group.isalpha():
            sounds.append(np.zeros(ms_to_samples(STOP_MS, sample_rate)))
        else:  # A digit, or a letter of another script, counts as a syllable.
            vowel = VOWELS[zlib.crc32(group.encode()) % len(VOWELS)]
            sounds.append(_vowel(vowel, progress, sample_rate))
    return sounds


def _vowel(vowels: str, progress: float, sample_rate: int) -> NDArray[np.float64]:
    """A voiced syllable: harmonics of a falling pitch, with formants that glide from the first vowel to the last."""
    n_samples = ms_to_samples(SYLLABLE_MS * (1.0 + 0.35 * (len(vowels) - 1)), sample_rate)
    along = np.arange(n_samples) / n_samples
    pitch_hz = PITCH_HZ * (1.12 - 0.3 * progress) * (1.04 - 0.1 * along)
    phase = 2.0 * np.pi * np.cumsum(pitch_hz) / sample_rate
    start, stop = (np.array(FORMANTS_HZ[vowel]) for vowel in (vowels[0], vowels[-1]))
    at = np.arange(0, n_samples + 1, ms_to_samples(GAINS_MS, sample_rate))
    formants_hz = start + (stop - start) * (at / n_samples)[:, None]
    harmonics = np.arange(1, int(min(4500.0, 0.45 * sample_rate) / pitch_hz.max()) + 1)
    hz = harmonics[:, None, None] * np.interp(at, np.arange(n_samples), pitch_hz)[:, None]
    gains = (_resonance(hz, formants_hz, np.array(BANDWIDTHS_HZ)) / (1 + 2 * np.arange(3))).sum(axis=2)
    syllable = np.zeros(n_samples)
    sine, before, turn = np.sin(phase), np.zeros(n_samples), 2.0 * np.cos(phase)
    for harmonic, gain in zip(harmonics, gains, strict=True):
        # Glottal pulse −12 dB per octave, lip radiation +6 dB per octave: 1/f remains.
        syllable += np.interp(np.arange(n_samples), at, gain) / harmonic * sine
        sine, before = turn * sine - before, sine  # Chebyshev: sin (k+1)x = 2 cos x sin kx − sin (k−1)x
    syllable *= PEAK / max(float(np.abs(syllable).max()), 1e-9)
    return fade_edges(syllable, ms_to_samples(25.0, sample_rate), ms_to_samples(45.0, sample_rate))


def _resonance(
    frequency_hz: NDArray[np.float64], center_hz: NDArray[np.float64], bandwidth_hz: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Gain of a pole pair, 1.0 at its center."""
    detune = (frequency_hz**2 - center_hz**2) / (frequency_hz * bandwidth_hz)
    gain: NDArray[np.float64] = 1.0 / np.sqrt(1.0 + detune**2)
    return gain


def _hiss(center_hz: float, letters: str, sample_rate: int) -> NDArray[np.float64]:
    """Noise around `center_hz`, seeded by the letters."""
    n_samples = ms_to_samples(HISS_MS, sample_rate)
    noise = np.random.default_rng(zlib.crc32(letters.encode())).standard_normal(n_samples)
    spectrum = np.fft.rfft(noise)
    frequency_hz = np.fft.rfftfreq(n_samples, 1.0 / sample_rate)
    spectrum *= np.exp(-(((frequency_hz - min(center_hz, 0.4 * sample_rate)) / (0.35 * center_hz)) ** 2))
    shaped = np.fft.irfft(spectrum, n_samples)
    shaped *= 0.25 * PEAK / max(float(np.abs(shaped).max()), 1e-9)
    return fade_edges(shaped, ms_to_samples(15.0, sample_rate), ms_to_samples(20.0, sample_rate))
