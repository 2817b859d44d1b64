import numpy as np
import pytest

import cues
from cues.library.bank import make_cue
from cues.meters.pitch import heard_notes
from cues.show.sketch import SKETCH
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


def test_the_sketch_keeps_its_three_faults():
    # The figures of the first sketch: its arpeggio's last sample is 0.151, its glide falls to 154 Hz instead of 280,
    # and its time base reaches the end point.
    assert SKETCH["agent"]()[-1] == pytest.approx(0.151, abs=0.0005)
    glide = SKETCH["error"]()
    crossings = np.flatnonzero(np.diff(np.signbit(glide[-500:])))
    half_periods = np.diff(crossings)
    assert 24000 / (2 * half_periods[-1]) == pytest.approx(156.0, abs=6.0)
    assert heard_notes(SKETCH["tool_call"](), 24000) == ("E5", "A5")
