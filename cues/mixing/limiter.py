"""The look-ahead limiter: keeps true peaks at or below −0.95 dBTP, and only delays quieter signals.

Sixteen-tap least-squares filters (0 … 0.43 of the sample rate) estimate 7 points between two samples. The gain is the
minimum of the needed gains over the attack, smoothed by a Hann window of the same length, so it is low enough in time.
The attack is 1.5 ms less the filters' delay; the release is exponential. At gain 1, the output is the delayed input,
bit for bit.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from cues._kernels import layout
from cues.arrays import Samples
from cues.errors import CueValueError
from cues.mixing.state import NotCopyable
from cues.signal.interpolation import phases

__all__ = ["Limiter", "look_ahead"]

LOOK_AHEAD_MS = 1.5
RELEASE_MS = 60.0
MIN_RATE_HZ = 8000
_FIT_TO = 0.43  # of the sample rate


def look_ahead(sample_rate: int) -> int:
    """Latency at `sample_rate` Hz, samples."""
    if sample_rate < MIN_RATE_HZ:
        raise CueValueError(f"sample_rate is {sample_rate}; the limiter needs at least {MIN_RATE_HZ} Hz")
    return int(LOOK_AHEAD_MS * sample_rate / 1000.0)


@cache
def _interpolators() -> Samples:
    """Taps of the interpolators at `p/8` between two samples: float32, shape `(7, 16)`."""
    return phases(layout.PHASES, layout.TAPS, _FIT_TO, ridge=1e-9).astype(np.float32)


@cache
def _table(attack: int) -> Samples:
    """The taps, followed by the smoothing window; shared by all limiters of one rate."""
    window = np.hanning(attack + 3)[1:-1]
    return np.concatenate([_interpolators().ravel(), (window / window.sum()).astype(np.float32)])


class Limiter(NotCopyable):
    """State of one session's limiter, for each channel one row in the layout of `cues._kernels.limiting`."""

    __slots__ = ("_state", "_table", "address", "latency")

    def __init__(self, sample_rate: int, channels: int = 1) -> None:
        self.latency = look_ahead(sample_rate)
        attack = self.latency - layout.TAPS // 2
        self._table = _table(attack)
        ring, gains = _power_of_two(self.latency + 1), _power_of_two(attack + 1)
        self._state = np.zeros((channels, layout.LIMITER_HEADER_WORDS + (ring + 2 * gains) // 2), dtype=np.int64)
        self._state[:, layout.LIMITER_TABLE_I64] = self._table.ctypes.data
        ints, floats = self._state.view(np.int32), self._state.view(np.float32)
        ints[:, layout.LIMITER_ATTACK_I32] = attack
        ints[:, layout.LIMITER_MASK_I32], ints[:, layout.LIMITER_GAIN_MASK_I32] = ring - 1, gains - 1
        floats[:, layout.LIMITER_GAIN_F32] = 1.0
        floats[:, layout.LIMITER_RELEASE_F32] = 1.0 - np.exp(-1000.0 / (RELEASE_MS * sample_rate))
        floats[:, 2 * layout.LIMITER_HEADER_WORDS + ring :] = 1.0
        self.address = int(self._state.ctypes.data)

    @property
    def holds_sound(self) -> bool:
        """Whether some of what it delays is not silence."""
        return any(
            _unrolled(_rings(row.view(np.int32), row.view(np.float32))[0], int(now), self.latency).any()
            for row, now in zip(self._state, self._state[:, layout.LIMITER_TIME_I64], strict=True)
        )

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self._state.nbytes

    def limit(self, samples: Samples) -> int:
        """Delay and limit a frame in place, and return how many samples were attenuated; twin of the compiled loop."""
        planes = samples.reshape(len(samples), -1).T
        return sum(self._limit(state, plane) for state, plane in zip(self._state, planes, strict=True))

    def _limit(self, state: NDArray[np.int64], samples: Samples) -> int:
        ints, floats = state.view(np.int32), state.view(np.float32)
        attack, half = int(ints[layout.LIMITER_ATTACK_I32]), layout.TAPS // 2
        now, n = int(state[layout.LIMITER_TIME_I64]), len(samples)
        ring, needed, gains = _rings(ints, floats)
        history = max(self.latency, layout.TAPS - 1)
        signal = np.concatenate(
            [_unrolled(ring, now, history), np.clip(samples, -layout.LARGEST_SAMPLE, layout.LARGEST_SAMPLE)]
        )
        windows = np.lib.stride_tricks.sliding_window_view(signal, layout.TAPS)[history - layout.TAPS + 1 :]
        peaks = np.abs(windows[:, half - 1 : half + 1]).max(axis=1)
        for taps in _interpolators():
            peaks = np.maximum(peaks, np.abs(_weighted(windows, taps)))
        need = np.ones(n, dtype=np.float32)
        np.divide(np.float32(layout.CEILING), peaks, out=need, where=peaks > np.float32(layout.CEILING))
        needs = np.concatenate([_unrolled(needed, now, attack), need])
        lowest = np.lib.stride_tricks.sliding_window_view(needs, attack + 1).min(axis=1)
        smoothed = np.concatenate([_unrolled(gains, now, attack), self._released(lowest, floats)])
        depths = np.lib.stride_tricks.sliding_window_view(1 - smoothed, attack + 1)
        # The newest first, as the compiled loop adds them.
        down = _weighted(depths[:, ::-1], self._table[-attack - 1 :])
        samples[:] = signal[history - self.latency :][:n] * (1 - down)
        for kept, values in ((ring, signal), (needed, needs), (gains, smoothed)):
            latest = np.arange(max(0, len(values) - len(kept)), len(values))
            kept[(latest + now + n - len(values)) % len(kept)] = values[latest]
        state[layout.LIMITER_TIME_I64] = now + n
        state[layout.LIMITER_BUSY_UNTIL_I64] = now + n + layout.TAPS + attack
        return int((down > 0).sum())

    @staticmethod
    def _released(lowest: Samples, floats: Samples) -> Samples:
        """Gains before smoothing: instant attack, exponential release."""
        gain, release = floats[layout.LIMITER_GAIN_F32], floats[layout.LIMITER_RELEASE_F32]
        gains = np.ones_like(lowest)
        if gain < 1.0 or lowest.min() < 1.0:
            for i, low in enumerate(lowest):
                gain = min(low, gain + (np.float32(1) - gain) * release)
                if low == 1.0 and gain > np.float32(layout.AT_REST):
                    gain = np.float32(1)
                gains[i] = gain
        floats[layout.LIMITER_GAIN_F32] = gain
        return gains


def _rings(ints: NDArray[np.int32], floats: Samples) -> tuple[Samples, Samples, Samples]:
    first = 2 * layout.LIMITER_HEADER_WORDS
    second = first + int(ints[layout.LIMITER_MASK_I32]) + 1
    third = second + int(ints[layout.LIMITER_GAIN_MASK_I32]) + 1
    return floats[first:second], floats[second:third], floats[third:]


def _unrolled(ring: Samples, now: int, n: int) -> Samples:
    """The last `n` values of a ring buffer, oldest first."""
    values: Samples = ring[np.arange(now - n, now) % len(ring)]
    return values


def _weighted(windows: Samples, weights: Samples) -> Samples:
    """Weighted sum of each window, added in a fixed order; a matrix product does not fix the order."""
    total: Samples = np.zeros(len(windows), dtype=np.float32)
    for column, weight in enumerate(weights):
        total += windows[:, column] * weight
    return total


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()
