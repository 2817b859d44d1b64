import numpy as np
import pytest

import cues
from cues.library.bank import make_cue
from cues.show.audition import in_a_row, over_speech, stand_in_speech

AGENT, ERROR, WORKING = (make_cue(name, None, 24000, -20.0) for name in ("agent", "error", "working"))


def test_cues_in_a_row_have_silence_between_them():
    row = in_a_row([AGENT, ERROR], gap_s=0.1)
    assert len(row) == len(AGENT) + 2400 + len(ERROR)
    assert not row[len(AGENT) : len(AGENT) + 2400].any()
    assert np.array_equal(row[: len(AGENT)], AGENT.samples)


def test_a_cue_sounds_over_the_speech_where_it_was_put():
    speech = stand_in_speech(24000)
    assert cues.integrated_lufs(speech) == pytest.approx(-20.0, abs=0.01)
    mixed = over_speech([AGENT], speech, 24000, first_at_s=1.0)
    assert len(mixed) == len(speech)
    assert np.array_equal(mixed[:20000], speech[:20000])
    assert np.abs(mixed[24000:28000] - speech[24000:28000]).max() > 0.02


def test_a_cue_near_the_end_is_heard_whole_and_one_that_loops_sounds_again():
    assert len(over_speech([AGENT], np.zeros(4800, dtype=np.float32), 24000, first_at_s=0.19)) == 4560 + len(AGENT)
    mixed = over_speech([WORKING], np.zeros(24000, dtype=np.float32), 24000, first_at_s=0.0)
    assert np.abs(mixed[: len(WORKING)]).max() > 0.01
    assert np.abs(mixed[len(WORKING) :]).max() > 0.01
