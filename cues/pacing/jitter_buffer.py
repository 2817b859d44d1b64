"""How far ahead of real time a pacer runs: as little as its process allows, like a jitter buffer."""

from __future__ import annotations

__all__ = ["Lead"]

_PROOF_S = 30.0  # Of sound with a frame to spare; some turns of a conversation.


class Lead:
    """A lead that grows by a frame when it was too short, and shrinks by one where it proved too long.

    It grows when what was released has run out although more was waiting: that is a hole in the sound, so the next one
    is made unlikely at once. It shrinks only after half a minute of sound in which a frame less would have done as
    well, and only in silence. So what is late once, as a process is when it starts, does not delay every cue of an
    hour; and a process that is late now and then never pays for a trial.

    Parameters
    ----------
    first_samples, most_samples : its bounds, samples; it begins with the first.
    frame_samples : by how much it changes, samples.
    sample_rate : Hz.

    Attributes
    ----------
    samples : the lead now, samples.
    late_calls : times that it was too short.

    Examples
    --------
    >>> lead = Lead(first_samples=960, most_samples=1920, frame_samples=480, sample_rate=24000)
    >>> lead.asked(-120.0, more_waits=True)
    >>> lead.samples, lead.late_calls
    (1440, 1)
    """

    def __init__(self, *, first_samples: int, most_samples: int, frame_samples: int, sample_rate: int) -> None:
        self.samples = first_samples
        self.late_calls = 0
        self._first, self._most, self._frame = first_samples, most_samples, frame_samples
        self._proof = round(_PROOF_S * sample_rate)
        self._sounded, self._least = 0, float(first_samples)

    def asked(self, ahead_samples: float, *, more_waits: bool) -> None:
        """Take note of a call for frames.

        Parameters
        ----------
        ahead_samples : what was released and is not heard yet; negative where it ran out that long ago.
        more_waits : whether there was more to release before it ran out.
        """
        if more_waits and ahead_samples <= -1.0:  # Less than a sample is rounding.
            self.late_calls += 1
            self.samples = min(self.samples + self._frame, self._most)
            self._begin_proof()
        elif more_waits:
            self._least = min(self._least, ahead_samples)
        elif ahead_samples <= 0.0 and self._sounded >= self._proof:
            if self._least >= self._frame:
                self.samples = max(self.samples - self._frame, self._first)
            self._begin_proof()

    def released(self, n_samples: int) -> None:
        """Count what goes out."""
        self._sounded += n_samples

    def _begin_proof(self) -> None:
        self._sounded, self._least = 0, float(self.samples)
