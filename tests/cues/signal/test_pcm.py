import numpy as np
import pytest

from cues.signal.pcm import dithered_int16, float_of_int16, float_of_pcm16, int16_of_float, pcm16_of_float

EVERY_STEP = np.arange(-32768, 32768).astype(np.int16)


def test_every_step_of_16_bits_comes_back_as_it_was():
    np.testing.assert_array_equal(int16_of_float(float_of_int16(EVERY_STEP)), EVERY_STEP)
    data = EVERY_STEP.astype("<i2").tobytes()
    assert pcm16_of_float(float_of_pcm16(data)) == data


def test_full_scale_is_one_in_both_directions():
    assert float_of_int16(np.array([-32768, 0, 16384], dtype=np.int16)).tolist() == [-1.0, 0.0, 0.5]
    loud = np.array([-2.0, -1.0, 0.5, 1.0, 2.0], dtype=np.float32)
    assert int16_of_float(loud).tolist() == [-32768, -32768, 16384, 32767, 32767]


def test_dither_is_triangular_deterministic_and_leaves_silence_alone():
    x = np.concatenate([np.zeros(100), np.full(200_000, 0.3 / 32768), np.zeros(100)]).astype(np.float32)
    steps = dithered_int16(x)
    np.testing.assert_array_equal(steps, dithered_int16(x))
    assert not steps[:100].any()
    assert not steps[-100:].any()
    error = steps[100:-100] - 0.3
    assert error.mean() == pytest.approx(0.0, abs=0.01)
    # Triangular dither of ±1 step and the rounding together: 2/12 + 1/12 steps² whatever the signal is.
    assert error.var() == pytest.approx(0.25, abs=0.01)
