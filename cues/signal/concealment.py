"""Underrun concealment: speech that stops in mid-sound fades out, and fades in when it resumes."""

import numpy as np

from cues.arrays import Samples
from cues.signal.fades import raised_cosine
from cues.signal.prediction import faded_continuation
from cues.units import ms_to_samples

__all__ = ["Concealment", "is_audible"]

_PAST_MS, _END_MS, _RESUME_MS, _EDGE_MS = 40.0, 10.0, 5.0, 0.5
_AUDIBLE = 2e-3
"""An edge below this peak (−54 dBFS) does not click, so a gap between words is left unchanged."""


class Concealment:
    """Fades at both edges of a hole in speech: of an underrun, or of a connection that broke."""

    def __init__(self, sample_rate: int) -> None:
        self._n_past, self._n_end, self._n_resume, self._n_edge = (
            max(1, ms_to_samples(ms, sample_rate)) for ms in (_PAST_MS, _END_MS, _RESUME_MS, _EDGE_MS)
        )
        self.reset()

    def reset(self) -> None:
        """Forget the past speech and a pending fade-in."""
        self._past: list[Samples] = []
        self._is_interrupted = False

    def released(self, speech: Samples) -> None:
        """Keep released speech as context; it is not copied."""
        if self._past and len(speech) < self._n_past:
            self._past = [*self._past[-2:], speech]
        else:
            self._past = [speech]

    @property
    def is_open(self) -> bool:
        """Whether the released speech clicks if no more follows."""
        return bool(self._past) and is_audible(self._past[-1][-self._n_edge :])

    def fade_out(self, n_samples: int) -> Samples | None:
        """Fade-out for speech that stopped: float32, shape `(n_samples,)`; None if its last samples do not click."""
        if not self._past:
            return None
        is_open, past, self._past = self.is_open, np.concatenate(self._past)[-self._n_past :], []
        self._is_interrupted = True
        if not is_open:
            return None
        end = np.zeros(n_samples, dtype=np.float32)
        n_end = min(self._n_end, n_samples)
        if n_end:
            end[:n_end] = faded_continuation(past, n_end)
        return end

    def close(self, frame: Samples, n_speech: int) -> None:
        """Fade out, in place, speech that stopped after `n_speech` samples of a frame."""
        end = self.fade_out(len(frame) - n_speech)
        if end is None:
            return
        frame[n_speech:] = end
        if len(end) < self._n_resume:  # so short a fade clicks: the speech before it fades, too
            n_fade = min(self._n_end, len(frame))
            frame[-n_fade:] *= raised_cosine(n_fade)[::-1].astype(np.float32)

    def fade_in(self, speech: Samples) -> Samples:
        """`speech`, faded in if it is the first after an underrun and would click."""
        if not (self._is_interrupted and len(speech)):
            return speech
        self._is_interrupted = False
        if not is_audible(speech[: self._n_edge]):
            return speech
        n_resume = min(self._n_resume, len(speech))
        faded = speech.copy()
        faded[:n_resume] *= raised_cosine(n_resume).astype(np.float32)
        return faded


def is_audible(samples: Samples) -> bool:
    """Whether samples at the edge of a silence click."""
    return bool(np.max(np.abs(samples), initial=0.0) > _AUDIBLE)
