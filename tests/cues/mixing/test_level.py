"""The level of the speech: the same integers by both loops and for any cut, and what a mixer makes of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cues
from cues._kernels import layout
from cues._kernels import loops as kernels
from cues.mixing import level
from tests.support.mixing_scripts import mixing_with, speech, tone

ODD = [0.0, -0.0, 1.0, -1.0, 1.5, -3e38, 1e-45, 2**-15, -(2**-16), 0.99999994, np.nan, np.inf, -np.inf]
samples = st.one_of(st.sampled_from(ODD), st.floats(-1.5, 1.5, width=32))


def states_of(mixer):
    return mixer._scheduler.level._words.tolist()


def exact_sum(values):
    """The sum of squares by its definition, in Python's integers."""
    heard = [min(abs(float(v)), 1.0) if np.isfinite(v) else 0.0 for v in values]
    return sum(int(magnitude * 32768.0) ** 2 for magnitude in heard)


@settings(max_examples=200)
@given(st.lists(samples, max_size=120))
def test_compiled_and_numpy_sums_are_the_exact_sum(values):
    array = np.array(values, dtype=np.float32)
    assert level.sum_of_squares(array) == exact_sum(array)
    assert kernels.sum_of_squares(array.ctypes.data, len(array)) == exact_sum(array)


@pytest.mark.parametrize("rate", [8000, 11_025, 24_000])
@settings(max_examples=12)
@given(seed=st.integers(0, 10**6), longest=st.sampled_from([1, 37, 480, 5000, 100_000]))
def test_any_cut_and_both_loops_give_the_same_state_to_the_bit(rate, seed, longest):
    rng = np.random.default_rng(seed)
    talk = speech(30_000, seed) if longest > 1 else speech(3000, seed)
    talk[rng.integers(0, len(talk), 40)] = rng.choice(ODD, 40)
    data = (np.nan_to_num(np.clip(talk, -1, 1), posinf=0, neginf=0) * 32767).astype("<i2").tobytes()
    told, told_bytes = [], []
    for kind in ("numpy", "compiled"):
        with mixing_with(kind):
            for step in (len(talk), longest):
                mixer, other = cues.Mixer(rate, follow_speech=True), cues.Mixer(rate, follow_speech=True)
                mixer.play(tone(), at=7777)
                position = 0
                while position < len(talk):
                    n = int(rng.integers(1, step + 1))
                    mixer.mix(talk[position : position + n])
                    other.mix_pcm16(data[2 * position : 2 * (position + n)])
                    position += n
                told.append(states_of(mixer))
                told_bytes.append(states_of(other))
    assert told.count(told[0]) == len(told)
    assert told_bytes.count(told_bytes[0]) == len(told_bytes)
    assert told[0][layout.LEVEL_BLOCK_I64] == rate // 10


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize(("speech_db", "offset_db"), [(-30, -10), (-20, 0), (-17, 3), (-60, 0), (-45, -12), (-6, 6)])
def test_the_level_of_a_cue_follows_the_speech_within_limits(speech_db, offset_db):
    mixer = cues.Mixer(follow_speech=True)
    talk = (10 ** (speech_db / 20) * np.random.default_rng(0).choice([-1.0, 1.0], 48000)).astype(np.float32)
    for start in range(0, 48000, 480):
        mixer.mix(talk[start : start + 480])
    cue = tone(peak=0.1)
    mixer.play(cue)
    out = mixer.mix(np.zeros(4800, dtype=np.float32))
    assert 20 * np.log10(np.abs(out).max() / cue.samples.max()) == pytest.approx(offset_db, abs=0.05)
