from dataclasses import replace

import numpy as np
import pytest

import cues
from cues.library.bank import make_cue
from cues.meters.clicks import find_clicks
from cues.show.audition import in_a_row, over_speech, stand_in_speech
from tests.support.listening import steady_voice
from tests.support.routing import spoken

AGENT, ERROR, WORKING, THINKING = (
    make_cue(name, None, 24000, -20.0) for name in ("agent", "error", "working", "thinking")
)


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
    short = over_speech([AGENT], np.zeros(4800, dtype=np.float32), 24000, first_at_s=0.19)
    assert 4560 + len(AGENT) <= len(short) < 4560 + len(AGENT) + 480
    assert np.flatnonzero(short)[-1] == 4560 + np.flatnonzero(AGENT.samples)[-1]
    mixed = over_speech([WORKING], np.zeros(24000, dtype=np.float32), 24000, first_at_s=0.0)
    assert np.abs(mixed[: len(WORKING)]).max() > 0.01
    assert np.abs(mixed[len(WORKING) :]).max() > 0.01


@pytest.mark.parametrize("cue", [THINKING, WORKING], ids=lambda cue: cue.name)
@pytest.mark.parametrize("speech_s", [1.0, 12.0])
def test_over_speech_a_loop_fades_out(cue, speech_s):
    mixed = over_speech([cue], steady_voice(speech_s), 24000, first_at_s=0.5)
    assert find_clicks(np.append(mixed, np.zeros(2400, np.float32))).size == 0
    assert np.abs(mixed[-24:]).max() < 1e-3


@pytest.mark.parametrize("speech", [stand_in_speech(24000), steady_voice(12.0)], ids=["pauses", "no pause"])
@pytest.mark.parametrize("loop", [False, True])
def test_over_speech_phrases_follow_the_words_whole_and_one_by_one(speech, loop):
    cues_ = [replace(spoken(name), loop=loop) for name in ("error", "working")]
    mixed = over_speech(cues_, speech, 24000, first_at_s=0.5)
    assert np.array_equal(mixed[: len(speech)], speech)
    heard = np.flatnonzero(np.abs(mixed[len(speech) + 240 :]) > 1e-3)  # the first voice fades out meanwhile
    first, second = np.split(heard, np.flatnonzero(np.diff(heard) > 4800) + 1)
    for part, cue in ((first, cues_[0]), (second, cues_[1])):
        assert len(part) == pytest.approx(np.count_nonzero(np.abs(cue.phrases[0].samples) > 1e-3), rel=0.03)
