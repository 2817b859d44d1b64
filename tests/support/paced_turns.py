"""Output of a pipeline that gets frames only while something sounds, on the time of its clock."""

from dataclasses import replace

import numpy as np

from tests.support.turn_matrix import RATE, Heard


class Played:
    """Frames as they left, each with its time and its place among all mixed samples."""

    def __init__(self, clock=None):
        self._clock, self._pieces, self._n_mixed, self._end = clock, [], 0, 0

    def add(self, samples, at_s=None):
        start = max(self._end, round((self._clock.now() if at_s is None else at_s) * RATE))
        self._pieces.append((self._n_mixed, start, np.array(samples, dtype=np.float64)))
        self._n_mixed, self._end = self._n_mixed + len(samples), start + len(samples)

    def signal(self):
        """The sound from time 0 on: frames one after the other, silence where none came in time."""
        out = np.zeros(self._end)
        for _, start, samples in self._pieces:
            out[start : start + len(samples)] = samples
        return out

    def heard(self, spans, speech, *, asked_s=0.0):
        """The signal with the places of its cues and of `speech` in it."""
        signal = self.signal()
        in_time = tuple(
            replace(span, start_samples=self._time_of(span.start_samples), end_samples=self._time_of(span.end_samples))
            for span in spans
        )
        return Heard(signal, _placed(speech, signal), in_time, round(asked_s * RATE))

    def _time_of(self, mixed):
        """The output sample in time of one among the mixed ones."""
        if mixed is None:
            return None
        before = [piece for piece in self._pieces if piece[0] <= mixed]
        return mixed if not before else before[-1][1] + mixed - before[-1][0]


def _placed(speech, signal):
    """`speech` where it is found in `signal`, by correlation; silence elsewhere."""
    out = np.zeros(len(signal))
    if speech is None or len(speech) > len(signal):
        return out
    size = 1 << (len(signal) + len(speech)).bit_length()
    match = np.fft.irfft(np.fft.rfft(signal, size) * np.conj(np.fft.rfft(speech, size)), size)
    at = int(np.argmax(match[: len(signal) - len(speech) + 1]))
    out[at : at + len(speech)] = speech
    return out
