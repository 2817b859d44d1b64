"""Ears for tests: begin and end of a sound, and clicks."""

import numpy as np

from cues.meters.clicks import find_clicks

RATE = 24000


def speech(
    text="Let me look that up in the big book of birds, and then tell you all about the finches in it.", rate=RATE
):
    """Voice-like speech, float32."""
    from cues.synthesis.voicelike import speak_voice_like

    return speak_voice_like(text, sample_rate=rate)


def steady_voice(seconds, rate=RATE, level=0.2):
    """A vowel that never pauses: harmonics of a gliding voice, so that a hole in it or an edge is heard."""
    t = np.arange(round(seconds * rate)) / rate
    phase = 2 * np.pi * np.cumsum(120.0 + 15.0 * np.sin(2 * np.pi * 0.7 * t)) / rate
    voice = sum(np.sin(n * phase) / n for n in range(1, 20))
    edge = np.minimum(1.0, np.minimum(np.arange(len(t)), np.arange(len(t))[::-1]) / (0.05 * rate))
    return (level * 0.5 * voice * edge**2 * (3 - 2 * edge)).astype(np.float32)


def first_sound(samples, threshold=1e-4):
    """Index of the first audible sample, or `None`."""
    found = np.flatnonzero(np.abs(samples) > threshold)
    return int(found[0]) if len(found) else None


def last_sound(samples, threshold=1e-4):
    """Index of the last audible sample, or -1."""
    found = np.flatnonzero(np.abs(samples) > threshold)
    return int(found[-1]) if len(found) else -1


def splatter_db(x, above_hz, sample_rate=RATE):
    """Energy above a frequency relative to 10 ms of the tone (its largest 10 ms)."""
    spectrum = np.abs(np.fft.rfft(np.pad(x.astype(np.float64), 4000))) ** 2
    hz = np.fft.rfftfreq(len(x) + 8000, 1 / sample_rate)
    window = sample_rate // 100
    loudest = np.convolve(x.astype(np.float64) ** 2, np.ones(window), "valid").max() * (len(x) + 8000) / 2
    return 10 * np.log10(spectrum[hz > above_hz].sum() / loudest)


def new_clicks(mixed, alone, rate=RATE):
    """Clicks of the mix that the speech alone does not have (within 5 ms), but for its two ends."""
    known = find_clicks(alone, rate)
    far = (at for at in find_clicks(mixed, rate).tolist() if np.abs(known - at).min(initial=rate) > rate // 200)
    return [at for at in far if 0 < at < len(mixed) - 10]
