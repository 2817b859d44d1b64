"""Speech that broke off: it dies away where it stopped, and fades in where it comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cues.signal.fades import raised_cosine
from cues.signal.prediction import faded_continuation
from cues.units import ms_to_samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Samples = NDArray[np.float32]

__all__ = ["Breaks"]

_PAST_MS, _END_MS, _RETURN_MS, _EDGE_MS = 40.0, 10.0, 5.0, 0.5
_AUDIBLE = 2e-3
"""An edge that is softer (−54 dBFS) does not click: a break between words is left as it is."""


class Breaks:
    """Mends the edges of the holes in speech that came too late.

    Parameters
    ----------
    sample_rate : Hz.
    """

    def __init__(self, sample_rate: int) -> None:
        self._n_past, self._n_end, self._n_return, self._n_edge = (
            max(1, ms_to_samples(ms, sample_rate)) for ms in (_PAST_MS, _END_MS, _RETURN_MS, _EDGE_MS)
        )
        self.forget()

    def forget(self) -> None:
        """Begin anew: what comes next has nothing before it."""
        self._past: list[Samples] = []
        self._is_broken = False

    def passed(self, speech: Samples) -> None:
        """Note speech that goes out; it is not copied."""
        if self._past and len(speech) < self._n_past:
            self._past = [*self._past[-2:], speech]
        else:
            self._past = [speech]

    def broken_off(self, n_samples: int) -> Samples | None:
        """What is heard behind speech that stops here: float32, shape `(n_samples,)`; None where it ended softly."""
        if not self._past:
            return None
        self._is_broken = True
        past = np.concatenate(self._past)[-self._n_past :]
        self._past = []
        if not _is_audible(past[-self._n_edge :]):
            return None
        end = np.zeros(n_samples, dtype=np.float32)
        n_end = min(self._n_end, n_samples)
        if n_end:
            end[:n_end] = faded_continuation(past, n_end)
        return end

    def returned(self, speech: Samples) -> Samples:
        """Speech that goes on: the same, or faded in behind a break."""
        if not self._is_broken:
            return speech
        self._is_broken = False
        if not _is_audible(speech[: self._n_edge]):
            return speech
        n_return = min(self._n_return, len(speech))
        faded = speech.copy()
        faded[:n_return] *= raised_cosine(n_return).astype(np.float32)
        return faded


def _is_audible(samples: Samples) -> bool:
    return bool(np.max(np.abs(samples), initial=0.0) > _AUDIBLE)
