"""Ears for tests: begin and end of a sound, and clicks."""

import numpy as np

RATE = 24000


def speech(
    text="Let me look that up in the big book of birds, and then tell you all about the finches in it.", rate=RATE
):
    """Voice-like speech, float32."""
    from cues.synthesis.voicelike import speak_voice_like

    return speak_voice_like(text, sample_rate=rate)[0]


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


def clicks(samples, rate=RATE, order=12, threshold_db=24.0):
    """Samples at which a linear predictor is off by far more than around them.

    Order 12 and 24 dB over the local level are the project's own definition of a click. The predictor is fitted to 30
    ms around each 10 ms by the autocorrelation method.
    """
    hop, window = round(0.01 * rate), np.hanning(round(0.03 * rate))
    padded = np.pad(np.asarray(samples, dtype=np.float64), (len(window), len(window)))
    error = np.zeros(len(padded))
    for start in range(0, len(padded) - len(window), hop):
        block = padded[start : start + len(window)] * window
        r = np.correlate(block, block, "full")[len(block) - 1 : len(block) + order]
        if r[0] < 1e-12:
            continue
        r[0] *= 1.0 + 1e-9
        lags = np.abs(np.subtract.outer(np.arange(order), np.arange(order)))
        coefficients = np.linalg.solve(r[lags], r[1:])
        middle = start + (len(window) - hop) // 2
        for n in range(middle, middle + hop):
            error[n] = padded[n] - coefficients @ padded[n - order : n][::-1]
    power = error**2
    reach = round(0.01 * rate)
    level = np.sqrt(
        np.convolve(power, np.ones(2 * reach + 1) / (2 * reach + 1), "same") - power / (2 * reach + 1) + 1e-16
    )
    found = np.flatnonzero((np.abs(error) > level * 10 ** (threshold_db / 20)) & (np.abs(error) > 1e-4))
    return found - len(window)


def new_clicks(mixed, alone, rate=RATE):
    """Clicks of the mix that are not in the speech alone (within 1 ms)."""
    known = clicks(alone, rate)
    return [int(n) for n in clicks(mixed, rate) if not len(known) or np.abs(known - n).min() > rate // 1000]
