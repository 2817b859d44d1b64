import numpy as np
import pytest

import cues
from cues.library.shaping import Loop, leveled, looped, trimmed, with_soft_edges
from tests.support.packs import soft

RATE = 24000


def hum(n, hz=231.7):
    return (0.3 * np.sin(2 * np.pi * hz / RATE * np.arange(n))).astype(np.float32)


def largest_bend(x):
    return np.abs(np.diff(x.astype(np.float64), 2)).max()


def test_trimming_takes_the_silence_and_leaves_5_ms_of_it():
    x = np.concatenate([np.zeros(5000), hum(3000), 1e-5 * hum(4000)]).astype(np.float32)
    assert len(trimmed(x, RATE)) == pytest.approx(3000 + 2 * 120, abs=3)


@pytest.mark.parametrize("phase", [0.0, 1.0, np.pi / 2])
def test_a_hard_edge_behind_silence_is_faded_in_and_out_as_one_at_the_files_end(phase):
    x = (0.3 * np.sin(2 * np.pi * 1200.0 / RATE * np.arange(4800) + phase)).astype(np.float32)
    cut = trimmed(np.pad(x, 2400), RATE)
    # A fade of 5 ms lets a tone of 1200 Hz bend no sharper than it does by itself; the hard edge bends three times so.
    assert largest_bend(np.pad(x, 2400)) > 2.0 * largest_bend(x)
    assert largest_bend(np.pad(cut, 2400)) < 1.05 * largest_bend(x)
    assert np.abs(cut).max() == pytest.approx(0.3, rel=0.01)


@pytest.mark.parametrize("hz", [100.0, 700.0, 5000.0])
@pytest.mark.parametrize("fade_ms", [4.0, 10.0, 40.0])
def test_a_soft_edge_behind_silence_stays_as_it_is(hz, fade_ms):
    x = soft(hum(9600, hz), fade_ms).astype(np.float32)
    cut = trimmed(np.pad(x, 2400), RATE)
    first = np.flatnonzero(cut)[0]
    at = np.flatnonzero(x == cut[first])[0]
    np.testing.assert_array_equal(cut[first : len(cut) - 120], x[at : at + len(cut) - 120 - first])


def test_edges_are_silent_and_the_middle_is_untouched():
    x = with_soft_edges(hum(2400), RATE)
    assert x[0] == x[-1] == 0.0
    np.testing.assert_array_equal(x[120:-120], hum(2400)[120:-120])


@pytest.mark.parametrize("decay_per_s", [0.0, 12.0, 60.0, 150.0])
def test_edges_that_were_softened_stay_as_they_are(decay_per_s):
    once = with_soft_edges(hum(4800, 880.0) * np.exp(-decay_per_s * np.arange(4800) / RATE).astype(np.float32), RATE)
    np.testing.assert_array_equal(with_soft_edges(once, RATE), once)


@pytest.mark.parametrize("n", [1, 2, 3, 100])
def test_the_shortest_sounds_get_edges_too(n):
    x = with_soft_edges(np.ones(n, dtype=np.float32), RATE)
    assert len(x) == n
    assert x[0] == x[-1] == 0.0


@pytest.mark.parametrize("loop", [Loop(), Loop(start_ms=50), Loop(start_ms=50, end_ms=413.3)], ids=str)
def test_a_loop_has_no_corner_at_its_seam(loop):
    """The bend across the seam is no sharper than that of the sound itself and of a 20 ms fade."""
    x = hum(RATE // 2)
    period = looped(x, RATE, loop)
    assert largest_bend(np.concatenate([period, period])) < 1.6 * largest_bend(x)


@pytest.mark.parametrize("tau_s", [0.005, 0.02, 0.1])
def test_a_loop_that_begins_with_a_beat_keeps_its_length_and_its_beat(tau_s):
    t = np.arange(2 * RATE) / RATE
    x = (0.3 * np.sin(2 * np.pi * 200.0 * t) * np.exp(-t / tau_s)).astype(np.float32)
    bar = looped(x, RATE, Loop())
    assert len(bar) == len(x)
    np.testing.assert_array_equal(bar, with_soft_edges(x, RATE))
    assert np.abs(bar[:480]).max() > 0.1


def prediction_error(samples, order=32):
    """Largest error at the middle of two rounds, of one linear predictor for all of the sound (least squares)."""
    x = np.tile(samples, 2).astype(np.float64)
    past = np.stack([x[order - k - 1 : len(x) - k - 1] for k in range(order)], axis=1)
    predictor, *_ = np.linalg.lstsq(past[::3], x[order::3], rcond=None)
    errors = np.abs(x[order:] - past @ predictor)
    return errors[len(samples) - order - 3 : len(samples)].max()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    "partials_hz", [(2000.0,), (523.25, 659.26, 783.99, 1569.8, 2637.0, 4703.9)], ids=["one", "six"]
)
def test_a_jump_in_the_phase_of_high_partials_is_a_seam(partials_hz, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(rng.integers(RATE, 2 * RATE)) / RATE
    x = sum(np.sin(2 * np.pi * hz * t + rng.uniform(0, 6)) for hz in partials_hz) * 0.3 / len(partials_hz)
    once = looped(x.astype(np.float32), RATE, Loop())
    assert prediction_error(once) < 0.02 * 0.3
    for at in (48, len(x) - 1440):  # a drum near the seam does not hide it
        drummed = x.copy()
        drummed[at : at + 720] += 0.05 * np.hanning(720) * rng.standard_normal(720)
        assert len(looped(drummed.astype(np.float32), RATE, Loop())) == len(once)


def test_a_loop_point_with_room_before_it_keeps_the_length():
    assert len(looped(hum(RATE), RATE, Loop(start_ms=100, end_ms=600))) == RATE // 2
    assert len(looped(hum(RATE), RATE, Loop())) == RATE - 480


def test_a_period_is_filled_with_silence():
    x = looped(hum(2400), RATE, Loop(period_ms=2000))
    assert len(x) == 2 * RATE
    assert x[2399] == 0.0
    assert not x[2400:].any()


@pytest.mark.parametrize("loop", [Loop(start_ms=600), Loop(end_ms=600), Loop(start_ms=300, end_ms=310)], ids=str)
def test_loop_points_outside_of_the_sound_are_refused(loop):
    with pytest.raises(cues.CueValueError, match=r"must lie inside the sound's 500\.0 ms"):
        looped(hum(RATE // 2), RATE, loop)


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
