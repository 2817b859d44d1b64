"""Random commands from several threads under forced switching; more of them by `python -m bench.mixer_threads`."""

import numpy as np
import pytest

from cues.signal.fades import fade_edges
from tests.support.mixer_storm import faults_of, storm
from tests.support.mixing_scripts import RATE, speech

pytestmark = pytest.mark.usefixtures("loops")


@pytest.mark.parametrize("seed", [1, 2])
def test_commands_from_threads_make_no_click_and_lose_no_voice(seed):
    # It ends in silence: a cut of its own is a click where a cue sounds near it.
    talk = fade_edges(0.6 * speech(20 * RATE, seed), 480, 480).astype(np.float32)
    first = storm(talk, n_events=600, n_threads=3, seed=seed)
    assert faults_of(first, talk) == []
