"""Sample-rate conversion of speech that may stop at any sample, in mid-sound too."""

from math import gcd

import numpy as np
from numpy.typing import NDArray

from cues.signal.concealment import Concealment
from cues.signal.prediction import faded_continuation
from cues.signal.resample import Resampler
from cues.units import ms_to_samples

__all__ = ["SpeechResampler"]

_AHEAD_MS, _PAST_MS = 10.0, 40.0
_NOTHING: NDArray[np.float32] = np.zeros(0, dtype=np.float32)


class SpeechResampler:
    """`Resampler` of live speech, whose `rest` may be asked for at any time.

    A resampler holds back up to 70 ms. At the end of a sound it takes silence to follow; where speech stops in
    mid-sound, it would ring. So its predicted continuation follows here, of which nothing is returned.
    """

    def __init__(self, from_rate: int, to_rate: int) -> None:
        self.from_rate, self.to_rate = from_rate, to_rate
        self._step = from_rate // gcd(from_rate, to_rate)  # samples that become a whole number of samples
        self._n_past = ms_to_samples(_PAST_MS, from_rate)
        self._edges = Concealment(from_rate)
        self._begin()

    def _begin(self) -> None:
        self._resampler = Resampler(self.from_rate, self.to_rate)
        self._n_in, self._past = 0, _NOTHING
        self._n_again = 0  # samples of the output that `rest` has returned already
        self.holds_speech = False

    def restart(self) -> None:
        """Drop what is held back, at an end or in a hole: what is fed next fades in if it begins in mid-sound."""
        self._edges.fade_out(0)
        self._begin()

    def feed(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """The output available after `samples`: float32, any length. NaN and infinity are taken as silence."""
        finite = np.isfinite(samples)
        if not finite.all():  # one of them would spread over 100 ms
            samples = np.where(finite, samples, np.float32(0.0))
        samples = self._edges.fade_in(samples)
        self._edges.released(samples)
        n_kept = self._n_past + self._step
        self._past = np.concatenate([self._past, samples[-n_kept:]])[-n_kept:]
        self._n_in += len(samples)
        self.holds_speech = self.holds_speech or len(samples) > 0
        return self._new(self._resampler.feed(samples))

    def rest(self) -> NDArray[np.float32]:
        """The samples held back, for the exact length so far; the speech may go on, without a seam."""
        past = self._past[-self._n_past :]
        rest = self._new(self._resampler.close(faded_continuation(past, ms_to_samples(_AHEAD_MS, self.from_rate))))
        self.holds_speech = False
        # Another one goes on. It begins in the past, at a sample of both rates.
        begin = max(self._n_in - self._n_past, 0) // self._step * self._step
        self._resampler = Resampler(self.from_rate, self.to_rate)
        n_out = (2 * self._n_in * self.to_rate + self.from_rate) // (2 * self.from_rate)
        self._n_again = n_out - begin * self.to_rate // self.from_rate
        self._new(self._resampler.feed(self._past[len(self._past) - (self._n_in - begin) :]))
        return rest

    def _new(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        n_again = min(self._n_again, len(samples))
        self._n_again -= n_again
        return samples[n_again:]
