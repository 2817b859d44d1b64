from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cues


def sound(seconds, sample_rate, seed=1):
    n = round(seconds * sample_rate)
    swell = 1 + np.sin(np.arange(n) / sample_rate * 3)
    return (np.random.default_rng(seed).normal(0, 0.05, n) * swell).astype(np.float32)


def fed(x, sample_rate, cuts):
    meter = cues.Meter(sample_rate)
    for part in np.split(x, cuts):
        meter.feed(part)
    return meter.result()


@pytest.mark.parametrize("sample_rate", [8000, 11025, 24000, 44101])
@pytest.mark.parametrize("seconds", [0.0005, 0.05, 0.1, 0.4, 1.234, 3.05])
def test_streaming_meter_reads_what_measure_reads(seconds, sample_rate):
    x = sound(seconds, sample_rate)
    streamed, whole = asdict(fed(x, sample_rate, [])), asdict(cues.measure(x, sample_rate))
    for name, value in whole.items():
        # A true peak is a float32 sum; vector loops may add it up in another order where a part begins elsewhere.
        within = 1e-4 if name == "true_peak_dbtp" else 1e-6
        assert streamed[name] == (None if value is None else pytest.approx(value, abs=within)), name


@given(cuts=st.lists(st.integers(0, 12000), max_size=12))
@settings(max_examples=25)
def test_result_is_the_same_to_the_bit_for_any_chunking(cuts):
    x = sound(0.5, 24000)
    assert fed(x, 24000, sorted(cuts)) == fed(x, 24000, [])


def test_result_can_be_read_while_feeding_goes_on_and_the_fed_array_may_be_reused():
    x = sound(1.0, 24000)
    meter, buffer = cues.Meter(24000), np.empty(100, dtype=np.float32)
    for start in range(0, len(x), 100):
        buffer[:] = x[start : start + 100]
        meter.feed(buffer)
        if start == 11100:
            assert meter.result() == fed(x[:11200], 24000, [])
    assert meter.result() == fed(x, 24000, [])


def test_nan_is_refused_and_leaves_the_meter_as_it_was():
    meter = cues.Meter(24000)
    meter.feed(np.full(100, 0.1))
    with pytest.raises(cues.CueValueError, match="NaN"):
        meter.feed(np.array([np.nan]))
    assert meter.result() == fed(np.full(100, 0.1), 24000, [])
