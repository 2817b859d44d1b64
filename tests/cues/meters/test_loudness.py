"""Conformance with ITU-R BS.1770-5, EBU Tech 3341 and 3342: their signals, synthesized, at tighter tolerances."""

import subprocess
import sys
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cues
from cues._kernels.object_file import load_kernels
from cues.meters import loudness
from cues.meters.levels import MOMENTARY_SLOTS, SHORT_TERM_SLOTS, lufs, window_mean_squares

RATES = [8000, 16000, 24000, 44100, 48000]
# The standard allows ±0.1 LU. At 24 kHz the analytic values are met within 0.005; at low rates the fit of the
# filters adds up to 0.008 dB.
TOLERANCE = {8000: 0.015, 16000: 0.007, 24000: 0.005, 44100: 0.005, 48000: 0.005}


def tones(steps, sample_rate, hz=1000.0):
    """One phase-continuous tone whose level follows `steps`: (seconds, dBFS peak, None for silence)."""
    gains = [
        np.full(round(s * sample_rate), 0.0 if db is None else 10.0 ** (db / 20.0), dtype=np.float32) for s, db in steps
    ]
    gain = np.concatenate(gains)
    return gain * np.sin(2.0 * np.pi * hz / sample_rate * np.arange(len(gain))).astype(np.float32)


# Expected: analytic values for one channel plus 3.0103 LU, which is what dual_mono adds. The standard's own figures are
# −23.0 and −33.0 for all of these.
INTEGRATED = {
    "3341-1": ([(20, -23)], -22.993),
    "3341-2": ([(20, -33)], -32.993),
    "3341-3": ([(10, -36), (60, -23), (10, -36)], -23.014),
    "3341-4": ([(10, -72), (10, -36), (60, -23), (10, -36), (10, -72)], -23.014),
    "3341-5": ([(20, -26), (20.1, -20), (20, -26)], -22.979),
}


@pytest.mark.parametrize("sample_rate", RATES)
@pytest.mark.parametrize("case", INTEGRATED)
def test_integrated_loudness_of_the_ebu_cases(case, sample_rate):
    steps, expected = INTEGRATED[case]
    measured = cues.integrated_lufs(tones(steps, sample_rate), sample_rate, dual_mono=True)
    assert measured == pytest.approx(expected, abs=TOLERANCE[sample_rate])


@pytest.mark.parametrize("sample_rate", RATES)
@pytest.mark.parametrize(
    ("steps", "window", "settled_s", "expected"),
    [
        pytest.param([(1.34, -20), (1.66, -30)] * 5, SHORT_TERM_SLOTS, 3.0, -22.986, id="3341-9"),
        pytest.param([(0.18, -20), (0.22, -30)] * 25, MOMENTARY_SLOTS, 1.0, -22.960, id="3341-12"),
    ],
)
def test_window_as_long_as_the_pattern_reads_a_constant(steps, window, settled_s, expected, sample_rate):
    energies = 2.0 * loudness._slot_energies(tones(steps, sample_rate), sample_rate)
    windows = window_mean_squares(energies, sample_rate, window)[round(1000 * settled_s) - window :]
    assert lufs(windows.min()) == pytest.approx(expected, abs=TOLERANCE[sample_rate] + 0.002)
    assert lufs(windows.max()) == pytest.approx(expected, abs=TOLERANCE[sample_rate] + 0.002)


STARTS = [pytest.param(i, id=f"i={i}") for i in (0, 1, 2, 7, 13, 19)]


@pytest.mark.parametrize("sample_rate", RATES)
@pytest.mark.parametrize("i", STARTS)
@pytest.mark.parametrize(
    ("name", "times_s", "offset"),
    [
        pytest.param("short_term_max_lufs", (0.150, 3.0), 0.007, id="3341-10 and 11"),
        pytest.param("momentary_max_lufs", (0.020, 0.4), 0.006, id="3341-13 and 14, where a hop of 100 ms fails"),
    ],
)
def test_the_maximum_finds_a_tone_wherever_it_starts(name, times_s, offset, i, sample_rate):
    step_s, tone_s = times_s
    for level in (-23, -38 + i):
        x = tones([(i * step_s, None), (tone_s, level), (1.0, None)], sample_rate)
        measured = cues.measure(x, sample_rate, dual_mono=True)
        assert getattr(measured, name) == pytest.approx(level + offset, abs=TOLERANCE[sample_rate] + 0.002)


@pytest.mark.parametrize("sample_rate", [8000, 24000, 44100])
@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        pytest.param((-20, -30), 10.0, id="3342-1"),
        pytest.param((-20, -15), 5.0, id="3342-2"),
        pytest.param((-40, -20), 20.0, id="3342-3"),
        pytest.param((-50, -35, -20, -35, -50), 15.0, id="3342-4"),
    ],
)
def test_loudness_range_of_the_ebu_cases(levels, expected, sample_rate):
    """The standard allows ±1 LU."""
    x = tones([(20, level) for level in levels], sample_rate)
    assert cues.measure(x, sample_rate).loudness_range_lu == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("sample_rate", RATES)
def test_full_scale_997_hz_reads_minus_3_01(sample_rate):
    x = tones([(2, 0)], sample_rate, hz=997.0)
    assert cues.integrated_lufs(x, sample_rate) == pytest.approx(-3.01, abs=0.01)


def ramped_tone(length_ms, sample_rate=24000, decay_db=0.0):
    n, edge = round(length_ms * sample_rate / 1000), round(0.005 * sample_rate)
    t = np.arange(n)
    x = 0.1 * np.sin(2 * np.pi * 1000 / sample_rate * t) * 10 ** (-decay_db / 20 * t / n)
    ramp = 0.5 - 0.5 * np.cos(np.pi * np.arange(edge) / edge)
    x[:edge] *= ramp
    x[n - edge :] *= ramp[::-1]
    return x


@pytest.mark.parametrize(
    ("length_ms", "decay_db", "expected"),
    [(50, 0, -26.6), (150, 0, -23.0), (200, 0, -23.0), (250, 0, -23.0), (200, 60, -32.4)],
)
def test_loudest_100_ms_of_short_tones(length_ms, decay_db, expected):
    """Values computed apart from this code, for 1 kHz at −20 dBFS peak with 5 ms ramps, given to 0.1 LU.

    The shape of the ramps was not given with them; it moves the decaying tone by 0.06 LU.
    """
    measured = cues.measure(ramped_tone(length_ms, decay_db=decay_db), 24000)
    assert measured.m100_max_lufs == pytest.approx(expected, abs=0.08)


def test_levels_are_none_where_the_sound_is_shorter_than_the_window_and_minus_infinity_for_silence():
    silence = cues.measure(np.zeros(12000), 24000)
    assert silence.m100_max_lufs == silence.integrated_lufs == silence.true_peak_dbtp == -np.inf
    short, longer, long = (cues.measure(ramped_tone(ms), 24000) for ms in (399, 400, 3000))
    assert (short.integrated_lufs, short.momentary_max_lufs) == (None, None)
    assert longer.integrated_lufs is not None
    assert (longer.short_term_max_lufs, longer.loudness_range_lu) == (None, None)
    assert (long.short_term_max_lufs, long.loudness_range_lu) != (None, None)


def test_dual_mono_adds_3_01_lu_everywhere():
    x = ramped_tone(3500)
    one, two = asdict(cues.measure(x, 24000)), asdict(cues.measure(x, 24000, dual_mono=True))
    for name in ("integrated_lufs", "momentary_max_lufs", "short_term_max_lufs", "m100_max_lufs"):
        assert two[name] - one[name] == pytest.approx(3.0103, abs=1e-4), name


@pytest.mark.parametrize("sample_rate", [8000, 11025, 24000, 44101, 192000])
def test_compiled_loops_agree_with_numpy(sample_rate, monkeypatch):
    x = np.random.default_rng(7).normal(0, 0.1, 17 * sample_rate).astype(np.float32)
    compiled = loudness._slot_energies(x, sample_rate)
    monkeypatch.setattr(loudness, "_LONG_S", 1e9)
    plain = loudness._slot_energies(x, sample_rate)
    assert len(compiled) == len(plain)
    np.testing.assert_allclose(compiled, plain, rtol=1e-6)
    assert np.abs(compiled - plain).mean() < 1e-9


@pytest.mark.parametrize("seconds", [4, 60], ids=["one signal", "in lanes"])
def test_filters_come_to_rest_in_digital_silence(seconds):
    """Subnormal numbers, to which they would decay, take 20 times as long (goal L2)."""
    x = np.zeros(24000 * seconds, dtype=np.float32)
    x[: 24000 * seconds // 20] = np.random.default_rng(1).normal(0.0, 0.1, 24000 * seconds // 20)
    energies = loudness._compiled_slot_energies(load_kernels(), x, 24000, 1000 * seconds)
    assert energies[0] > 0.0
    assert not ((energies > 0.0) & (energies < 1e-250)).any()


def test_meters_need_no_numba_and_run_no_code_but_the_object_files():
    """numba's own cache, pickles in a folder that others may write to, was run before."""
    script = (
        "import cues, numpy as np; from cues.meters.clicks import find_clicks\n"
        "x = np.random.default_rng(7).normal(0, 0.1, 240_000).astype(np.float32)\n"
        "print(cues.integrated_lufs(x), cues.true_peak_dbtp(x), len(find_clicks(x)))\n"
    )
    runs = [
        subprocess.run([sys.executable, "-c", start + script], capture_output=True, text=True, check=True)
        for start in ("", "import sys; sys.modules['numba'] = None\n")
    ]
    assert runs[0].stdout == runs[1].stdout
    assert "numba" not in runs[1].stderr


@pytest.mark.parametrize("function", [cues.measure, cues.integrated_lufs, cues.true_peak_dbtp])
@pytest.mark.parametrize(
    ("samples", "sample_rate", "error", "match"),
    [
        pytest.param(np.zeros(0), 24000, cues.CueValueError, "shape", id="empty"),
        pytest.param(np.zeros((2, 9)), 24000, cues.CueValueError, "shape", id="two-dimensional"),
        pytest.param(np.zeros(9, dtype=np.int16), 24000, cues.CueTypeError, "int16", id="integers"),
        pytest.param(np.array([0.0, np.nan]), 24000, cues.CueValueError, "NaN", id="nan"),
        pytest.param(np.array([0.0, -np.inf]), 24000, cues.CueValueError, "infinity", id="infinity"),
        pytest.param(np.zeros(9), 7999, cues.CueValueError, "7999.*8000", id="low rate"),
        pytest.param(np.zeros(9), 192001, cues.CueValueError, "192001", id="high rate"),
        pytest.param(np.zeros(9), 24000.0, cues.CueTypeError, "24000.0", id="rate as a float"),
        pytest.param(np.zeros(9), True, cues.CueTypeError, "True", id="rate as a truth value"),
    ],
)
def test_unusable_input_is_refused_by_name(function, samples, sample_rate, error, match):
    with pytest.raises(error, match=match):
        function(samples, sample_rate)


@given(gain_db=st.floats(-40, 20), seed=st.integers(0, 99))
@settings(max_examples=15)
def test_levels_follow_the_gain(gain_db, seed):
    x = np.random.default_rng(seed).normal(0, 0.1, 6000)
    plain, louder = cues.measure(x), cues.measure(x * 10 ** (gain_db / 20))
    assert louder.m100_max_lufs - plain.m100_max_lufs == pytest.approx(gain_db, abs=1e-4)
    assert louder.true_peak_dbtp - plain.true_peak_dbtp == pytest.approx(gain_db, abs=1e-4)


def surround(levels_dbfs, seconds):
    """One 1 kHz tone in several channels at their own levels; None is silence."""
    return np.stack([tones([(seconds, level)], 48000) for level in levels_dbfs], axis=1)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        pytest.param((-23, -23), -22.993, id="3341-1, left and right"),
        # Tech 3341, case 6: 5.0 channels, −28 dBFS left and right, −24 center, −30 surrounds; −23.0 ± 0.1 LUFS,
        # with weights of 1, 1, 1, 1.41 and 1.41 exactly 0.023 LU below two channels at −23 dBFS.
        pytest.param((-28, -28, -24, -30, -30), -23.016, id="3341-6"),
        pytest.param((-28, -28, -24, 0, -30, -30), -23.016, id="3341-6 in 5.1, where a loud LFE does not count"),
        # 7.1 in WAV order: left, right, center, LFE, back pair (weight 1), side pair (weight 1.41); BS.1770-5, table 4.
        pytest.param((None, None, None, None, -23, -23, None, None), -22.993, id="back pair"),
        pytest.param((None, None, None, None, None, None, -23, -23), -22.993 + 1.492, id="side pair"),
    ],
)
def test_channels_add_up_by_the_weights_of_the_standard(levels, expected):
    measured = cues.measure(surround(levels, seconds=20), 48000)
    assert measured.integrated_lufs == pytest.approx(expected, abs=0.015)


def test_peaks_and_dc_are_those_of_the_channel_where_they_are_largest():
    x = surround((-20, -6), seconds=1) + np.array([0.0, -0.05], dtype=np.float32)
    measured, loud = cues.measure(x, 48000), cues.measure(x[:, 1], 48000)
    assert (measured.true_peak_dbtp, measured.sample_peak_dbfs) == (loud.true_peak_dbtp, loud.sample_peak_dbfs)
    assert measured.dc == pytest.approx(-0.05, abs=1e-4)


@pytest.mark.parametrize(
    ("samples", "dual_mono", "message"),
    [
        (np.zeros((100, 9), dtype=np.float32), False, r"shape \(100, 9\); they must be \(n_samples, n_channels\)"),
        (np.zeros((2, 480), dtype=np.float32), False, r"shape \(2, 480\)"),
        (np.zeros((480, 2), dtype=np.float32), True, "dual_mono is for one channel; samples have 2"),
        (np.zeros((480, 2, 1), dtype=np.float32), False, "1-D"),
    ],
)
def test_arrays_that_are_not_channels_are_refused(samples, dual_mono, message):
    with pytest.raises(cues.CueValueError, match=message):
        cues.measure(samples, 24000, dual_mono)
