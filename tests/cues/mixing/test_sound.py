"""Prepared sounds, and how many of them are kept."""

import gc
import tracemalloc

import numpy as np

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
