import copy
import pickle

import numpy as np
import pytest

import cues


def test_any_float_array_becomes_a_cue_with_a_copy_of_its_own():
    x = np.linspace(-1, 1, 480)
    cue = cues.Cue(name="mine", samples=x)
    x[0] = 7
    assert cue.samples.dtype == np.float32
    assert cue.samples[0] == -1.0
    assert (cue.sample_rate, len(cue), cue.duration_s, cue.loop) == (24000, 480, 0.02, False)
    with pytest.raises(ValueError, match="read-only"):
        cue.samples[0] = 0


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda cue: pickle.loads(pickle.dumps(cue))])
def test_a_copy_of_a_cue_cannot_be_written_either(again):
    bank = cues.load_bank("")
    cue, other = bank["agent"], again(bank["agent"])
    np.testing.assert_array_equal(other.samples, cue.samples)
    assert not other.samples.flags.writeable
    assert (other.name, other.spec, other.measured, other.loop) == (cue.name, cue.spec, cue.measured, cue.loop)


def test_a_read_only_array_is_shared_unless_its_owner_can_be_written():
    x = np.zeros(9, dtype=np.float32)
    view = x[:5]
    view.flags.writeable = False
    assert not np.shares_memory(cues.Cue(name="mine", samples=view).samples, x)
    x.flags.writeable = False
    assert cues.Cue(name="mine", samples=x).samples is x


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"samples": np.zeros(0)}, cues.CueValueError, "not empty"),
        ({"samples": np.zeros((2, 3))}, cues.CueValueError, "1-D"),
        ({"samples": np.zeros(3, dtype=np.int16)}, cues.CueTypeError, "int16"),
        ({"samples": np.array([np.nan])}, cues.CueValueError, "cue 'mine': samples hold NaN"),
        ({"samples": np.array([1e300])}, cues.CueValueError, "cue 'mine': samples hold NaN or infinity"),
        ({"samples": [[1.0], [1.0, 2.0]]}, cues.CueValueError, "unequal lengths"),
        ({"samples": np.zeros(3), "sample_rate": 0}, cues.CueValueError, "sample_rate is 0"),
        ({"samples": np.zeros(3), "sample_rate": 2.5}, cues.CueTypeError, "whole number"),
    ],
)
def test_what_is_no_sound_is_refused(arguments, error, match):
    with pytest.raises(error, match=match):
        cues.Cue(name="mine", **arguments)


def test_what_the_pages_use_is_listed():
    assert {"Mixer", "adapters", "load_bank", "show"} <= set(dir(cues))
    assert cues.show.__name__ == "cues.show"
