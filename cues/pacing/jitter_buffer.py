"""Jitter-buffer depth: how far ahead of real time the pacer releases frames."""

__all__ = ["JitterBufferDepth"]

_TRIAL_S = 30.0  # Of sound with a frame to spare: a few turns of a conversation.


class JitterBufferDepth:
    """A depth, samples, that adapts by one frame at a time, from `first_samples` to `most_samples`."""

    # It grows when the released sound ran out while more was queued: that is an audible gap. It shrinks in silence,
    # after 30 s of sound in which one frame less would have been enough. So a late start does not delay cues for an
    # hour, and a process that is late now and then keeps its depth. `late_calls` counts how often it was too small.

    def __init__(self, *, first_samples: int, most_samples: int, frame_samples: int, sample_rate: int) -> None:
        self.samples = first_samples
        self.late_calls = 0
        self._first, self._most, self._frame = first_samples, most_samples, frame_samples
        self._trial = round(_TRIAL_S * sample_rate)
        self._played, self._least = 0, float(first_samples)

    def called(self, ahead_samples: float, *, more_waits: bool) -> None:
        """Adapt to a call for frames with so many unheard samples, negative after they ran out."""
        if more_waits and ahead_samples <= -1.0:  # Less than a sample is rounding.
            self.late_calls += 1
            self.samples = min(self.samples + self._frame, self._most)
            self._begin_trial()
        elif more_waits:
            self._least = min(self._least, ahead_samples)
        elif ahead_samples <= 0.0 and self._played >= self._trial:
            if self._least >= self._frame:
                self.samples = max(self.samples - self._frame, self._first)
            self._begin_trial()

    def released(self, n_samples: int) -> None:
        """Count released samples."""
        self._played += n_samples

    def _begin_trial(self) -> None:
        self._played, self._least = 0, float(self.samples)
