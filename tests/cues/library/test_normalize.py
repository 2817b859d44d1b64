from __future__ import annotations

import numpy as np
import pytest

import cues
from cues.library.normalize import leveled
from tests.support.packs import soft


def tone(level=0.1, n=6000):
    return soft(level * np.sin(2 * np.pi * 1000 / 24000 * np.arange(n))).astype(np.float32)


def test_reaches_its_target_by_one_gain():
    x = tone()
    result, measured = leveled(x, 24000, target_lufs=-30.0)
    assert measured.m100_max_lufs == pytest.approx(-30.0, abs=0.001)
    assert cues.measure(result) == measured
    np.testing.assert_allclose(result, x * (result[1000] / x[1000]), atol=1e-8)


def test_gain_is_clamped_to_20_db_and_says_what_is_missing():
    x = tone(0.001)
    before = cues.measure(x).m100_max_lufs
    measured = leveled(x, 24000, target_lufs=-10.0)[1]
    assert measured.m100_max_lufs - before == pytest.approx(20.0, abs=0.001)
    assert measured.missed_lu == pytest.approx(before + 20.0 + 10.0, abs=0.001)


@pytest.mark.parametrize("level", [0.1, 0.794, 500.0])
def test_attenuation_has_no_limit(level):
    measured = leveled(tone(level), 24000, target_lufs=-60.0, gain_db=-3.0)[1]
    assert measured.m100_max_lufs == pytest.approx(-63.0, abs=0.001)
    assert measured.missed_lu == pytest.approx(0.0, abs=0.001)


def test_true_peak_stays_under_the_ceiling_and_wins_over_the_target():
    x = np.zeros(6000, dtype=np.float32)
    x[3000:3010] = tone()[1000:1010] * 5
    result, measured = leveled(x, 24000, target_lufs=-10.0)
    assert measured.true_peak_dbtp == pytest.approx(-3.05, abs=0.001)
    assert cues.true_peak_dbtp(result, oversampling=64) <= -3.0
    assert measured.m100_max_lufs < -10.0
    assert measured.missed_lu == pytest.approx(measured.m100_max_lufs + 10.0)


def test_without_a_target_only_the_gain_counts():
    x = tone()
    np.testing.assert_allclose(leveled(x, 24000, target_lufs=None, gain_db=-6.0)[0], x * 10 ** (-6 / 20), atol=1e-7)


@pytest.mark.parametrize("x", [np.zeros(500, dtype=np.float32), np.full(500, 1e-7, dtype=np.float32)])
def test_silence_is_refused(x):
    with pytest.raises(cues.CueValueError, match="silent"):
        leveled(x, 24000, target_lufs=-26.0)
