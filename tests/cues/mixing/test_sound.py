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


@pytest.mark.parametrize("seed", range(12))
def test_a_jump_in_the_phase_of_high_partials_is_crossfaded(seed):
    rng = np.random.default_rng(seed)
    t = np.arange(rng.integers(24000, 48000)) / 24000
    partials = [hz * n for hz in (523.25, 659.26, 783.99) for n in range(1, 5)]
    x = sum(np.sin(2 * np.pi * hz * t + rng.uniform(0, 6)) for hz in partials) * 0.01
    mixer = cues.Mixer()
    mixer.play(cues.Cue(name="pad", samples=x.astype(np.float32), loop=True))
    heard = np.concatenate([mixer.silence(4800) for _ in range(21)])[4800:].astype(np.float64)
    # One predictor for all of the sound, by least squares: an independent measure.
    past = np.stack([heard[31 - k : len(heard) - k - 1] for k in range(32)], axis=1)
    predictor, *_ = np.linalg.lstsq(past[::3], heard[32::3], rcond=None)
    assert np.abs(heard[32:] - past @ predictor).max() < 0.02 * np.abs(x).max()
