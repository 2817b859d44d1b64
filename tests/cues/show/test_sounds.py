import pytest

import cues
from cues.library.bank import make_cue
from cues.show.sounds import at_loudness, turns

AGENT, WORKING = (make_cue(name, None, 24000, -20.0) for name in ("agent", "working"))


@pytest.mark.parametrize("lufs", [-40.0, -26.0, -12.0])
def test_cues_are_brought_to_the_same_loudness(lufs):
    leveled = at_loudness(AGENT, lufs)
    assert cues.measure(leveled.samples, 24000).m100_max_lufs == pytest.approx(lufs, abs=0.01)


def test_no_cue_is_brought_beyond_full_scale():
    assert cues.true_peak_dbtp(at_loudness(AGENT, 20.0).samples, oversampling=16) < -0.9


def test_a_cue_that_loops_is_heard_twice():
    assert len(turns(WORKING)) == 2 * len(WORKING)
    assert turns(AGENT) is AGENT.samples
