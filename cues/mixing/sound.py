"""Cues prepared for mixing: at the mixer's rate, with edges that do not click, in the kernels' memory layout.

`play` prepares each cue once, in the caller's thread; the frame path only reads finished samples.
"""

from collections import OrderedDict
from contextlib import suppress
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from cues._kernels import layout
from cues.arrays import Samples
from cues.cue import Cue
from cues.mixing.state import NotCopyable
from cues.signal.fades import CROSSFADE_MS, MIN_FADE_MS, raised_cosine, smoothstep
from cues.signal.prediction import is_seamless
from cues.signal.resample import resample, resample_loop
from cues.units import ms_to_samples

__all__ = ["Sound", "SoundCache", "prepare"]

_MAX_CACHED_SAMPLES = 1 << 24
_ENTRY_COSTS = 512  # samples: its Python objects
_SILENT_EDGE = 1e-4
_INAUDIBLE = 1e-3
_PEAK_BLOCK = 256
_LARGEST = 1e9
"""Clip level, 180 dB over full scale: no filter and no sum of voices makes infinity minus infinity."""


class Sound(NotCopyable):
    """Header and finished samples, at a fixed `address`."""

    # `audible` is the first sample above −60 dBFS and the one after the last, (0, 0) for silence. With `soft_start`,
    # the voice can start without a fade-in.

    __slots__ = ("_block", "_peaks_to_end", "address", "audible", "length", "peak", "samples", "soft_start")

    def __init__(self, samples: NDArray[np.floating], *, soft_start: bool = True) -> None:
        self.length = len(samples)
        self._block = np.empty(layout.HEADER_FLOATS + self.length, dtype=np.float32)
        self.samples: Samples = self._block[layout.HEADER_FLOATS :]
        self.samples[:] = samples
        blocks = np.maximum.reduceat(np.abs(self.samples), np.arange(0, self.length, _PEAK_BLOCK))
        self._peaks_to_end: list[float] = np.maximum.accumulate(blocks[::-1])[::-1].tolist()
        self.peak = float(blocks.max())
        above = np.flatnonzero(np.abs(self.samples) > _INAUDIBLE)
        self.audible: tuple[int, int] = (int(above[0]), int(above[-1]) + 1) if len(above) else (0, 0)
        self._block[:2].view(np.int64)[0] = self.length
        self._block[2] = self.peak
        self._block[3] = 0.0
        self._block.flags.writeable = False
        self.address = int(self._block.ctypes.data)
        self.soft_start = soft_start

    def peak_from(self, offset: int) -> float:
        """Largest magnitude from the block of sample `offset` on; 0.0 after the end."""
        block = offset // _PEAK_BLOCK
        return self._peaks_to_end[block] if block < len(self._peaks_to_end) else 0.0


class SoundCache:
    """The most recently used sounds; each entry keeps its cue's samples, because the key holds their `id`."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: OrderedDict[tuple[int, int, int, bool, bool], tuple[Samples, Sound]] = OrderedDict()
        self._n_samples = 0

    def prepare(self, cue: Cue, sample_rate: int, *, loop: bool = False, replace: bool = False) -> Sound:
        """`cue` prepared for mixing at `sample_rate` Hz: with a seamless `loop`, or edges that `replace` speech."""
        key = (id(cue.samples), cue.sample_rate, sample_rate, loop, replace)
        held = self._held.get(key)
        if held is not None:
            with suppress(KeyError):  # another thread dropped it
                self._held.move_to_end(key)
            return held[1]
        sound = _make(cue, sample_rate, loop=loop, replace=replace)
        with self._lock:
            if key not in self._held:
                self._held[key] = cue.samples, sound
                self._n_samples += sound.length + _ENTRY_COSTS
            while self._n_samples > _MAX_CACHED_SAMPLES and len(self._held) > 1:
                self._n_samples -= self._held.popitem(last=False)[1][1].length + _ENTRY_COSTS
        return sound


prepare = SoundCache().prepare


def _make(cue: Cue, sample_rate: int, *, loop: bool, replace: bool) -> Sound:
    within = np.clip(cue.samples, -_LARGEST, _LARGEST)
    fade = max(1, ms_to_samples(MIN_FADE_MS, sample_rate))
    if loop:
        period = resample_loop(_joined(within.astype(np.float64), cue.sample_rate), cue.sample_rate, sample_rate)
        return Sound(period, soft_start=not _hard(period.astype(np.float64), fade))
    samples = resample(within, cue.sample_rate, sample_rate).astype(np.float64)
    samples = samples if len(samples) else np.zeros(1)  # of a sound that is shorter than a sample
    if replace:
        return Sound(_crossfading(samples, ms_to_samples(CROSSFADE_MS, sample_rate)))
    return Sound(_softened(samples, fade))


def _hard(samples: NDArray[np.float64], fade: int) -> bool:
    """Whether the start rises faster than a fade of `fade` samples."""
    early = np.abs(samples[: max(1, fade // 5)]).max()
    return bool(abs(samples[0]) > _SILENT_EDGE or early > 0.12 * np.abs(samples[: 2 * fade]).max())


def _softened(samples: NDArray[np.float64], fade: int) -> NDArray[np.float64]:
    """`samples` with a fade at each hard edge."""
    soft = samples.copy()
    n = min(fade, len(soft) // 2)
    # The fade starts one step above 0, so that the requested sample is audible.
    edge = smoothstep((np.arange(n) + 1.0) / (n + 1.0))
    if _hard(samples, fade):
        soft[:n] *= edge
    if _hard(samples[::-1], fade):
        soft[len(soft) - n :] *= edge[::-1]
    return soft


def _crossfading(samples: NDArray[np.float64], fade: int) -> NDArray[np.float64]:
    """`samples` with equal-power crossfade edges."""
    faded = samples.copy()
    n = max(1, min(fade, len(faded) // 2))
    angle = 0.5 * np.pi * smoothstep(np.arange(n) / n)
    faded[:n] *= np.sin(angle)
    faded[len(faded) - n :] *= np.cos(angle)
    return faded


def _joined(samples: NDArray[np.float64], sample_rate: int) -> NDArray[np.float64]:
    """One period of a seamless loop; shorter by up to 5 ms if the seam needs a crossfade."""
    n = min(max(1, ms_to_samples(MIN_FADE_MS, sample_rate)), len(samples) // 4)
    if n < 2 or is_seamless(samples, sample_rate):
        return samples
    rise = raised_cosine(n)
    joined = samples[: len(samples) - n].copy()
    joined[:n] = joined[:n] * rise + samples[len(samples) - n :] * (1.0 - rise)
    return joined
