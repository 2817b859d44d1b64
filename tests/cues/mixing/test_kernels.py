"""The compiled loops against their own Python source and against what they promise."""

import gc
import sys
import tracemalloc
import weakref

import numpy as np
import pytest

import cues
from cues._kernels import loops as kernels
from cues.signal.pcm import pcm16_of_float
from tests.support.mixing_scripts import noise_cue, tone

compiled_only = pytest.mark.parametrize("loops", ["compiled"], indirect=True)


def address(array):
    return array.ctypes.data


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_peak_shows_what_is_not_finite(value):
    samples = np.linspace(-0.9, 0.5, 100, dtype=np.float32)
    assert kernels.peak_bits(address(samples), 100) == np.float32(0.9).view(np.int32)
    samples[37] = value
    assert kernels.peak_bits(address(samples), 100) > kernels.FINITE_BITS
    assert kernels.silence_nonfinite(address(samples), 100) == 1
    assert samples[37] == 0


def test_rounding_to_int16_is_numpys():
    samples = np.concatenate([np.arange(-40, 40) / 65536, [1.0, -1.0, 0.99999, -0.99999]]).astype(np.float32)
    out = np.zeros(len(samples), dtype=np.int16)
    kernels.pcm16_of_float(address(samples), address(out), len(samples))
    assert out.astype("<i2").tobytes() == pcm16_of_float(samples)


@compiled_only
def test_the_methods_are_built_in_once_warm(loops):
    mixer = cues.Mixer()
    assert type(mixer.mix).__name__ == "builtin_function_or_method"

    class Mine(cues.Mixer):
        def mix(self, frame, out=None):
            return super().mix(frame, out)

    assert type(Mine().mix).__name__ == "method"
    frame = np.zeros(480, dtype=np.float32)
    assert Mine().mix(frame) is frame


@compiled_only
def test_no_call_leaks_a_reference(loops):
    mixer = cues.Mixer()
    mixer.play(tone(), loop=True)
    frame, out, data = np.zeros(480, dtype=np.float32), np.zeros(480, dtype=np.float32), bytes(bytearray(960))
    idle = cues.Mixer()
    mixer.mix(frame)
    before = [sys.getrefcount(thing) for thing in (frame, out, data)]
    for _ in range(100):
        mixer.mix(frame, out=out)
        mixer.mix(frame)
        mixer.mix_pcm16(data)
        idle.mix(frame)
        idle.mix(frame, out)
        idle.mix_pcm16(data)
        with pytest.raises(TypeError):
            mixer.mix(frame, into=out)
        with pytest.raises(ValueError, match="even"):
            mixer.mix_pcm16(b"abc")
    assert [sys.getrefcount(thing) for thing in (frame, out, data)] == before


@compiled_only
def test_the_frame_path_allocates_nothing_but_what_it_returns(loops):
    mixer = cues.Mixer()
    for _ in range(8):
        mixer.play(noise_cue(24000), loop=True)
    frame, out = np.zeros(480, dtype=np.float32), np.zeros(480, dtype=np.float32)
    for _ in range(40):
        mixer.mix(frame, out=out)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        for _ in range(1000):
            mixer.mix(frame, out=out)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < 1500


@compiled_only
def test_a_session_leaves_nothing_behind(loops):
    mixer = cues.Mixer()
    mixer.play(tone())
    mixer.mix(np.zeros(480, dtype=np.float32))
    gone = weakref.ref(mixer)
    del mixer
    gc.collect()
    assert gone() is None
