"""Prepared sounds, and how many of them are kept."""

import gc
import tracemalloc

import numpy as np
import pytest

import cues
from cues.mixing import sound


def test_what_is_kept_of_many_short_cues_is_bounded(monkeypatch):
    monkeypatch.setattr(sound, "_MAX_CACHED_SAMPLES", 1 << 16)
    cache = sound.SoundCache()

    def kept_after(n: int) -> int:
        for _ in range(n):
            cache.prepare(cues.Cue(name="click", samples=np.full(10, 0.1)), 24000)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        first = kept_after(500)
        assert kept_after(2000) - first < 50_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("length", [2400, 24_000, 36_001])  # the last is no whole number of samples at other rates
@pytest.mark.parametrize("rate", [8000, 16_000, 24_000, 44_100, 48_000])
@pytest.mark.parametrize("hz", [220.0, 997.0])
def test_a_seamless_loop_is_seamless_at_any_rate(hz, rate, length):
    whole_periods = round(hz * length / 24_000)
    tone = 0.3 * np.sin(2.0 * np.pi * whole_periods * np.arange(length) / length + 0.4)
    mixer = cues.Mixer(rate)
    mixer.play(cues.Cue(name="pad", samples=tone, loop=True))
    period = round(length * rate / 24_000)
    out = mixer.mix(np.zeros(3 * period, np.float32))

    around = out[2 * period - rate // 20 : 2 * period + rate // 20]
    energy = np.abs(np.fft.rfft(around * np.hanning(len(around)))) ** 2
    above = energy[np.fft.rfftfreq(len(around), 1.0 / rate) > 2.5 * hz].sum()
    # In 0.1 s, a cut of half a sample leaves -66 dB of 220 Hz at 8 kHz there, and a resampler that sees an edge -40 dB.
    assert 10.0 * np.log10(above / energy.sum()) < -75.0
