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
        self._gain = self._tail = _NOTHING  # the rest of a fade-in, and of what fades out under it

    def released(self, speech: Samples) -> None:
        """Keep released speech as context; it is not copied."""
        self._past.append(speech)
        n_more = sum(map(len, self._past)) - self._n_past
        while n_more >= len(self._past[0]):
            n_more -= len(self._past.pop(0))

    @property
    def is_open(self) -> bool:
        """Whether the released speech clicks if no more follows."""
        return is_audible(_last(self._past, self._n_edge))

    def fade_out(self, n_samples: int) -> Samples | None:
        """Fade-out for speech that stopped: float32, shape `(n_samples,)`; None if its last samples do not click."""
        if not self._past:
            return None
        is_open, past = self.is_open, _last(self._past, self._n_past)
        self.reset()
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
            frame[-n_fade:] *= _rise(n_fade)[::-1]

    def end(self) -> None:
        """End an utterance: if it stopped in mid-sound, it fades out under the next one, which fades in meanwhile."""
        past = self._past
        tail = self.fade_out(self._n_end)
        if tail is not None:
            # Equal gain: the sum stays within ±1.0, and a sound that goes on after all hardly changes.
            self._past, self._gain, self._tail = past, _rise(self._n_end), tail

    def fade_in(self, speech: Samples) -> Samples:
        """`speech`, faded in if it is the first after an underrun or an end and would click, however it is cut."""
        if not len(speech):
            return speech
        if self._is_interrupted and not len(self._gain) and is_audible(speech[: self._n_edge]):
            self._gain, self._tail = _rise(self._n_resume), np.zeros(self._n_resume, dtype=np.float32)
        self._is_interrupted = False
        n_fade = min(len(self._gain), len(speech))
        if not n_fade:
            return speech
        faded = speech.copy()
        faded[:n_fade] = faded[:n_fade] * self._gain[:n_fade] + self._tail[:n_fade]
        self._gain, self._tail = self._gain[n_fade:], self._tail[n_fade:]
        return faded


def is_audible(samples: Samples) -> bool:
    """Whether samples at the edge of a silence click."""
    return bool(np.max(np.abs(samples), initial=0.0) > _AUDIBLE)


def _rise(n_samples: int) -> Samples:
    return raised_cosine(n_samples).astype(np.float32)


def _last(pieces: list[Samples], n_samples: int) -> Samples:
    """The last `n_samples` of a sound in pieces."""
    whole = pieces[-1] if pieces and len(pieces[-1]) >= n_samples else np.concatenate([_NOTHING, *pieces])
    return whole[-n_samples:]


_NOTHING: Samples = np.zeros(0, dtype=np.float32)
