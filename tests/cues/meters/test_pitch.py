import numpy as np
import pytest

from cues.library.bank import make_cue
from cues.meters.pitch import heard_notes
from tests.support.packs import RATE, tone


# What the specs say (cues/synthesis/catalog.py); a glide is heard until it has faded.
@pytest.mark.parametrize("rate", [8000, 24000, 48000])
@pytest.mark.parametrize(
    ("name", "notes"),
    [
        ("tool_call", ("E5", "A5")),
        ("agent", ("C5", "E5", "G5")),
        ("error", ("G#4>C4",)),
        ("success", ("E5", "C6")),
        ("working", ("C5",)),
        ("thinking", ("G4",)),
        ("listening", ("G5",)),
        ("attention", ("A5", "A5")),
    ],
)
def test_the_notes_of_the_built_in_cues_are_heard(name, notes, rate):
    cue = make_cue(name, None, rate, -20.0)
    assert heard_notes(cue.samples, rate) == notes


def test_a_rising_glide_has_a_beginning_and_an_end():
    at_s = np.arange(RATE // 2) / RATE
    glide = np.sin(2 * np.pi * 440.0 / np.log(4.0) * 4.0**at_s)
    assert heard_notes(glide, RATE) == ("A4>A5",)


def test_a_scale_is_no_glide():
    scale = np.concatenate([tone(440.0 * 2 ** (step / 12), 4800) for step in (0, 2, 4, 5)])
    assert heard_notes(scale, RATE) == ("A4", "B4", "C#5", "D5")
