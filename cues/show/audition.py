"""Audition of cues: over speech, or one after the other."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cues.cue import Cue
from cues.units import db_to_gain, gain_to_db, s_to_samples

__all__ = ["LINE", "at_speech_level", "in_a_row", "over_speech", "stand_in_speech"]

LINE = "Let me look that up for you, one moment please."
"""Default sentence around a cue."""

_SPEECH_LUFS, _MAX_PEAK_DBFS = -20.0, -1.0
_GAP_S = 0.4
_LOOPS_S = 5.0


def stand_in_speech(sample_rate: int) -> NDArray[np.float32]:
    """Voice-like speech for `LINE` at −20 LUFS: float32, shape `(n_samples,)`."""
    from cues.synthesis.voicelike import speak_voice_like

    return at_speech_level(speak_voice_like(LINE, sample_rate=sample_rate), sample_rate)


def at_speech_level(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float32]:
    """Speech at −20 LUFS, or lower where its peak would exceed −1 dBFS; too short or silent speech as it is."""
    from cues.meters.loudness import integrated_lufs

    loudness = integrated_lufs(samples, sample_rate)
    if loudness is None or not np.isfinite(loudness):
        return samples
    gain_db = min(_SPEECH_LUFS - loudness, _MAX_PEAK_DBFS - gain_to_db(float(np.abs(samples).max())))
    return samples * np.float32(db_to_gain(gain_db))


def in_a_row(cues: Sequence[Cue], gap_s: float = _GAP_S) -> NDArray[np.float32]:
    """The cues one after the other, with silence between: float32, shape `(n_samples,)`, at the rate of the first."""
    gap = np.zeros(s_to_samples(gap_s, cues[0].sample_rate), dtype=np.float32)
    parts = [part for cue in cues for part in (cue.samples, gap)]
    return np.concatenate(parts[:-1])


def over_speech(
    cues: Sequence[Cue], speech: NDArray[np.float32], sample_rate: int, *, first_at_s: float | None = None
) -> NDArray[np.float32]:
    """`speech` with the cues mixed in as in a live session, in this order, evenly spaced from `first_at_s` on.

    A looping cue plays for at least 5 s, up to the end of the speech, and fades out. Phrases follow the words, as in a
    session. Silence follows the speech until the last cue ends.
    """
    from cues.mixing.offline import Insert, mix_recording

    first = len(speech) // (len(cues) + 1) if first_at_s is None else s_to_samples(first_at_s, sample_rate)
    step = (len(speech) - first) // len(cues)
    inserts, words_end_s = list[Insert](), len(speech) / sample_rate
    for ordinal, cue in enumerate(cues):
        at_s = (first + ordinal * step) / sample_rate
        if cue.phrases:
            at_s = words_end_s
            words_end_s += max(phrase.duration_s for phrase in cue.phrases) + _GAP_S
        inserts.append(Insert(cue=cue, at_s=at_s))
    return mix_recording(speech, sample_rate, inserts, loop_s=_LOOPS_S).samples
