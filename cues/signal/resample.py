"""Sample-rate conversion of whole sounds and streams, by soxr."""

import math

import numpy as np
from numpy.typing import NDArray

from cues.arrays import mono_float32
from cues.errors import CueValueError
from cues.signal.fades import MIN_FADE_MS, raised_cosine
from cues.units import checked_whole_number, ms_to_samples

__all__ = ["Resampler", "resample", "resample_loop"]

# ±0.01 dB up to 0.91 of the lower Nyquist frequency, 125 dB of rejection; "VHQ" rejects 170 dB for twice the time.
_QUALITY = "HQ"
_RATES_HZ = (1, 4_000_000)
_AROUND_SEAM_MS = 100.0  # longer than the filter at 8 kHz
_NOTHING: NDArray[np.float32] = np.zeros(0, dtype=np.float32)


def resample(samples: NDArray[np.floating], from_rate: int, to_rate: int) -> NDArray[np.float32]:
    """`round(n_samples · to_rate / from_rate)` samples at another rate; their peaks may exceed those of `samples`.

    The rates are 1 … 4,000,000 Hz.
    """
    mono = mono_float32(samples, allow_empty=True)
    resampler = Resampler(from_rate, to_rate)
    return np.concatenate([resampler.feed(mono), resampler.close()])


def resample_loop(samples: NDArray[np.floating], from_rate: int, to_rate: int) -> NDArray[np.float32]:
    """One period of a seamless loop at another rate, filtered across its seam."""
    if from_rate == to_rate:
        return mono_float32(samples)
    step = from_rate // math.gcd(from_rate, to_rate)  # lasts a whole number of output samples
    margin = step * math.ceil(ms_to_samples(_AROUND_SEAM_MS, from_rate) / step)
    periods = resample(np.pad(samples, margin, mode="wrap"), from_rate, to_rate)
    start, length = margin * to_rate // from_rate, max(1, round(len(samples) * to_rate / from_rate))
    period, following = periods[start : start + length], periods[start + length :]
    # Rounding the period's length moves the seam by up to half a sample.
    n = min(max(1, ms_to_samples(MIN_FADE_MS, to_rate)), length // 4)
    period[:n] += (1.0 - raised_cosine(n)).astype(np.float32) * (following[:n] - period[:n])
    return period


class Resampler:
    """Streaming `resample`: the concatenated results equal that of the whole sound."""

    def __init__(self, from_rate: int, to_rate: int) -> None:
        self.from_rate = checked_whole_number("from_rate", from_rate, *_RATES_HZ)
        self.to_rate = checked_whole_number("to_rate", to_rate, *_RATES_HZ)
        self._n_in = self._n_out = 0
        self._closed = False
        self._stream = None
        if self.from_rate != self.to_rate:
            import soxr

            self._stream = soxr.ResampleStream(self.from_rate, self.to_rate, 1, dtype="float32", quality=_QUALITY)

    def feed(self, samples: NDArray[np.floating]) -> NDArray[np.float32]:
        """The output available after `samples`: float32, any length, empty at first."""
        return self._through(mono_float32(samples, allow_empty=True, finite=False), last=False)

    def close(self, ahead: NDArray[np.float32] = _NOTHING) -> NDArray[np.float32]:
        """The rest of the sound, for the exact length; afterwards no call is allowed.

        Its last samples depend on what follows the sound: silence, or `ahead`, of which nothing is returned.
        """
        rest = self._through(ahead, last=True)
        self._closed = True
        return rest

    def _through(self, part: NDArray[np.float32], *, last: bool) -> NDArray[np.float32]:
        if self._closed:
            raise CueValueError("the resampler is closed; the next sound needs a new one")
        self._n_in += 0 if last else len(part)
        out = part.copy() if self._stream is None else np.asarray(self._stream.resample_chunk(part, last=last))
        # soxr's flush can miss the exact length by two samples, and returns nothing for an empty sound.
        wanted = (2 * self._n_in * self.to_rate + self.from_rate) // (2 * self.from_rate) - self._n_out
        if last:
            out = np.concatenate([out[:wanted], np.zeros(max(0, wanted - len(out)), dtype=np.float32)])
        self._n_out += len(out)
        return out
