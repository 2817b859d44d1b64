"""EBU Tech 3341 cases 15 to 23, and a 64 times oversampled reference that shares nothing with the meter."""

import numpy as np
import pytest

import cues
from cues.meters import true_peak

RATES = [8000, 24000, 44100, 48000]


def reference_dbtp(x, oversampling=64):
    """Peak of the band-limited signal: its spectrum with zeros appended, which is exact between the samples."""
    n = 1 << (len(x) + 2000 - 1).bit_length()
    spectrum = np.fft.rfft(x, n)
    return 20 * np.log10(np.abs(np.fft.irfft(spectrum, n * oversampling)).max() * oversampling)


def faded(x, edge=200):
    ramp = 0.5 - 0.5 * np.cos(np.pi * np.arange(edge) / edge)
    x = x.copy()
    x[:edge] *= ramp
    x[-edge:] *= ramp[::-1]
    return x


def tone(period, level, degrees, n=4800):
    return faded(level * np.sin(2 * np.pi * np.arange(n) / period + np.radians(degrees)))


# (period in samples, level, phase in degrees, true peak): the cases scale with the rate.
TONES = {
    "15": (4, 0.50, 0.0, -6.0),
    "16": (4, 0.50, 45.0, -6.0),
    "17": (6, 0.50, 60.0, -6.0),
    "18": (8, 0.50, 67.5, -6.0),
    "19": (4, 1.41, 45.0, 3.0),
}


@pytest.mark.parametrize("sample_rate", RATES)
@pytest.mark.parametrize("case", TONES)
def test_true_peak_of_the_ebu_tones(case, sample_rate):
    """The standard allows +0.2 and −0.4 dB."""
    period, level, degrees, expected = TONES[case]
    x = tone(period, level, degrees)
    measured = cues.measure(x, sample_rate).true_peak_dbtp
    assert measured == pytest.approx(expected, abs=0.03)
    assert measured == pytest.approx(reference_dbtp(x), abs=0.02)
    assert expected - 0.4 <= cues.true_peak_dbtp(x, sample_rate) <= expected + 0.2


def burst(offset):
    """Cases 20 to 23: one full-scale period of fs/4 inside fs/6 at 0.50, built at 4·fs, band-limited and decimated."""
    from scipy.signal import firwin

    quiet = 0.5 * np.sin(2 * np.pi * np.arange(24 * 100) / 24)
    x = np.concatenate([quiet, np.sin(2 * np.pi * np.arange(16) / 16), quiet])
    return faded(np.convolve(x, firwin(257, 0.25, window=("kaiser", 8.0)), "same")[offset::4])


@pytest.mark.parametrize("offset", range(4))
def test_true_peak_of_the_ebu_bursts(offset):
    """The standard expects 0.0 dBTP, +0.2 and −0.4 dB."""
    x = burst(offset)
    assert cues.measure(x).true_peak_dbtp == pytest.approx(reference_dbtp(x), abs=0.02)
    assert -0.4 <= cues.true_peak_dbtp(x) <= 0.2


@pytest.mark.parametrize("hz", [0.02, 0.11, 0.25, 0.35, 0.4, 0.45])
@pytest.mark.parametrize("phase", [0.0, 0.7, 1.5])
def test_fine_meter_follows_the_reference_over_the_band(hz, phase):
    x = faded(0.5 * np.sin(2 * np.pi * hz * np.arange(4000) + phase))
    assert true_peak.true_peak_dbtp(x, oversampling=16) == pytest.approx(reference_dbtp(x), abs=0.05)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 255, 256, 257, 1000, 5003])
def test_compiled_meter_equals_its_numpy_twin(n, monkeypatch):
    x = np.random.default_rng(n).normal(0, 0.2, n)
    plain = cues.true_peak_dbtp(x)
    monkeypatch.setattr(true_peak, "_LONG_SAMPLES", 0)
    assert cues.true_peak_dbtp(x) == pytest.approx(plain, abs=1e-4)


def test_never_below_the_sample_peak():
    for x in (np.array([0.5]), np.array([0.0, 1.0, 0.0]), np.random.default_rng(0).normal(0, 1, 300)):
        peak = 20 * np.log10(np.abs(x).max())
        for oversampling in (1, 2, 4, 16):
            assert cues.true_peak_dbtp(x, oversampling=oversampling) >= peak - 1e-6
