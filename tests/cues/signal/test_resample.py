import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cues
from cues.signal.resample import Resampler, resample

RATES = [(44100, 24000), (48000, 24000), (8000, 24000), (24000, 48000), (16000, 24000), (96000, 11025), (24000, 24000)]


@pytest.mark.parametrize(("from_rate", "to_rate"), RATES)
@pytest.mark.parametrize("n", [0, 1, 2, 7, 441, 10001])
def test_length_is_exact(n, from_rate, to_rate):
    x = np.random.default_rng(n).normal(0, 0.1, n).astype(np.float32)
    exact = n * to_rate / from_rate
    assert abs(len(resample(x, from_rate, to_rate)) - exact) <= 0.5


@given(cuts=st.lists(st.integers(0, 9000), max_size=8), rates=st.sampled_from(RATES))
@settings(max_examples=30)
def test_streaming_equals_one_shot_for_any_chunking(cuts, rates):
    x = np.random.default_rng(1).normal(0, 0.1, 9000).astype(np.float32)
    stream = Resampler(*rates)
    parts = [stream.feed(part) for part in np.split(x, sorted(cuts))]
    np.testing.assert_allclose(np.concatenate([*parts, stream.close()]), resample(x, *rates), atol=1e-6)


def gain_db(hz, from_rate, to_rate):
    """Level of a tone after conversion, away from its edges."""
    x = 0.5 * np.sin(2 * np.pi * hz / from_rate * np.arange(from_rate))
    y = resample(x, from_rate, to_rate)[to_rate // 4 : 3 * to_rate // 4]
    return 20 * np.log10(np.sqrt(2 * np.mean(y.astype(np.float64) ** 2)) / 0.5)


@pytest.mark.parametrize("fraction", [0.01, 0.3, 0.6, 0.8, 0.9])
def test_pass_band_is_flat(fraction):
    assert gain_db(round(fraction * 12000), 48000, 24000) == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize("hz", [13300, 15000, 20000, 23000])
def test_what_would_alias_is_rejected_by_120_db(hz):
    assert gain_db(hz, 48000, 24000) < -120


def test_a_closed_resampler_takes_no_more():
    x = np.random.default_rng(1).normal(0, 0.1, 5000).astype(np.float32)
    stream = Resampler(48000, 24000)
    np.testing.assert_array_equal(np.concatenate([stream.feed(x), stream.close()]), resample(x, 48000, 24000))
    with pytest.raises(cues.CueValueError, match="closed"):
        stream.feed(x)


@pytest.mark.parametrize(
    ("rates", "error"), [((0, 24000), ValueError), ((24000, 10**7), ValueError), ((24000.0, 8000), TypeError)]
)
def test_rates_out_of_range_are_refused(rates, error):
    with pytest.raises(error, match="rate is"):
        Resampler(*rates)


def test_a_whole_sound_must_be_finite_and_a_stream_passes_what_comes():
    broken = np.array([0.1, np.nan, 0.1], dtype=np.float32)
    with pytest.raises(cues.CueValueError, match="finite"):
        resample(broken, 48000, 24000)
    stream = Resampler(48000, 24000)
    assert len(np.concatenate([stream.feed(broken), stream.close()])) == 2
