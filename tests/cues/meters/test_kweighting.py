import numpy as np
import pytest

from cues.meters.kweighting import REFERENCE, design, k_weighted, magnitude_db


@pytest.mark.parametrize(
    ("sample_rate", "top", "tolerance_db"),
    [
        (8000, 0.475, 0.0085),
        (11025, 0.475, 0.003),
        (16000, 0.475, 0.00085),
        (22050, 0.4979, 0.0003),
        (24000, 0.4979, 0.0002),  # 20 Hz to 11.95 kHz
        (32000, 0.4979, 0.00004),
        (44100, 0.4979, 0.000005),
        (96000, 0.248, 0.00004),
        (192000, 0.124, 0.00004),
    ],
)
def test_refitted_response_follows_the_48_khz_reference(sample_rate, top, tolerance_db):
    hz = np.geomspace(20, top * sample_rate, 4000)
    weighting = design(sample_rate)
    assert all(np.abs(np.roots([1, *a])).max() < 1 for a in (weighting.shelf_a, weighting.high_pass_a))
    error = magnitude_db(weighting, hz, sample_rate) - magnitude_db(REFERENCE, hz, 48000)
    assert np.abs(error).max() <= tolerance_db


@pytest.mark.parametrize("sample_rate", [8000, 44100, 192000])
def test_filtering_by_spectrum_equals_the_recursion(sample_rate):
    from scipy.signal import lfilter

    w = design(sample_rate)
    x = np.random.default_rng(2).normal(0, 1, 5000)
    direct = lfilter(w.high_pass_b, [1, *w.high_pass_a], lfilter(w.shelf_b, [1, *w.shelf_a], x))
    np.testing.assert_allclose(k_weighted(x, sample_rate), direct, atol=1e-11)
