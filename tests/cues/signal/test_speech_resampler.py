import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cues.signal.fades import raised_cosine
from cues.signal.resample import Resampler, resample
from cues.signal.speech_resampler import SpeechResampler
from tests.support.listening import steady_voice

RATES = [(24000, 8000), (16000, 24000), (22050, 24000), (44100, 8000), (8000, 24000), (24000, 24001)]


@given(cuts=st.lists(st.integers(0, 9000), max_size=8), rates=st.sampled_from(RATES))
@settings(max_examples=30)
def test_speech_without_a_stop_is_resampled_like_any_sound(cuts, rates):
    x = np.random.default_rng(1).normal(0, 0.1, 9000).astype(np.float32)
    stream, plain = SpeechResampler(*rates), Resampler(*rates)
    for part in np.split(x, sorted(cuts)):
        np.testing.assert_array_equal(stream.feed(part), plain.feed(part))


@given(cuts=st.lists(st.integers(0, 9000), max_size=8), rates=st.sampled_from(RATES))
@settings(max_examples=30, deadline=None)
def test_the_rest_may_be_asked_for_at_any_sample_and_leaves_no_seam(cuts, rates):
    whole = steady_voice(0.8, rates[0])
    voice = whole[: 9000 * rates[0] // 24000]
    stream, heard = SpeechResampler(*rates), np.zeros(0, dtype=np.float32)
    n_in = 0
    for part in np.split(voice, sorted(cut * rates[0] // 24000 for cut in cuts)):
        heard = np.concatenate([heard, stream.feed(part)])
        assert stream.holds_speech == (len(part) > 0)
        heard = np.concatenate([heard, stream.rest()])
        n_in += len(part)
        assert abs(len(heard) - n_in * rates[1] / rates[0]) <= 0.5
        assert not stream.holds_speech
    np.testing.assert_allclose(heard, resample(whole, *rates)[: len(heard)], atol=0.02)


@pytest.mark.parametrize("n_samples", [3000, 3011, 3023, 3037])
@pytest.mark.parametrize("rates", RATES, ids=str)
def test_the_rest_of_speech_that_stops_in_mid_sound_does_not_ring(rates, n_samples):
    tone = (0.4 * np.sin(2 * np.pi * 223 * np.arange(6000) / rates[0] + 0.7)).astype(np.float32)
    whole, alone = resample(tone, *rates), resample(tone[:n_samples], *rates)
    assert np.abs(alone - whole[: len(alone)])[500:].max() > 0.001, "what it would be without"
    stream = SpeechResampler(*rates)
    heard = np.concatenate([stream.feed(tone[:n_samples]), stream.rest()])
    np.testing.assert_allclose(heard[500:], whole[500 : len(heard)], atol=0.0003)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rates", RATES, ids=str)
def test_a_sample_that_is_no_number_is_silent_and_no_other_is(rates, bad):
    voice = steady_voice(0.5, rates[0])
    broken, silent = voice.copy(), voice.copy()
    broken[4321 * rates[0] // 24000 :][:2] = bad
    silent[4321 * rates[0] // 24000 :][:2] = 0.0
    stream = SpeechResampler(*rates)
    heard = [stream.feed(part) for part in np.array_split(broken, 7)]
    np.testing.assert_allclose(np.concatenate([*heard, stream.rest()]), resample(silent, *rates), atol=0.02)
    assert np.isnan(broken).any() or np.isinf(broken).any(), "the caller's samples stay as they are"


@pytest.mark.parametrize("n_piece", [3, 1000])
@pytest.mark.parametrize("rates", RATES, ids=str)
def test_speech_that_begins_in_mid_sound_after_a_restart_fades_in_at_the_rate_that_it_has(rates, n_piece):
    voice, n_fade = np.full(4000, 0.3, dtype=np.float32), round(0.005 * rates[0])
    stream = SpeechResampler(*rates)
    stream.feed(voice)
    stream.restart()
    assert not stream.holds_speech
    heard = [stream.feed(voice[start : start + n_piece]) for start in range(0, len(voice), n_piece)]
    faded = voice.copy()
    faded[:n_fade] *= raised_cosine(n_fade)
    expected = resample(faded, *rates)[:-500]
    np.testing.assert_allclose(np.concatenate([*heard, stream.rest()])[: len(expected)], expected, atol=1e-5)
