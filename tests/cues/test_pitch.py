import numpy as np
import pytest

from cues.pitch import heard_notes, main_notes, note_name
from tests.support.packs import RATE, rhythm, soft, tone


# Frequencies of the equal temperament at A4 = 440 Hz (ISO 16).
@pytest.mark.parametrize(
    ("hz", "name"), [(261.63, "C4"), (440.0, "A4"), (466.16, "A#4"), (783.99, "G5"), (4186.0, "C8"), (27.5, "A0")]
)
def test_frequencies_have_the_names_of_the_nearest_notes(hz, name):
    assert note_name(hz) == name


@pytest.mark.parametrize(
    ("name", "notes"),
    [("tool_call", ("E5", "A5")), ("agent", ("C5", "E5", "G5")), ("error", ("A4>F#3",)), ("success", ("E5", "C6"))],
)
def test_a_spec_tells_its_notes_in_order_of_time(name, notes):
    assert main_notes(_built_in(name)) == notes


def _built_in(name):
    from cues.bank import make_cue

    return make_cue(name, None, 24000, -20.0)


@pytest.mark.parametrize("name", ["agent", "success", "listening"])
def test_the_notes_heard_in_the_samples_are_those_of_the_spec(name):
    cue = _built_in(name)
    assert heard_notes(cue.samples, cue.sample_rate) == main_notes(cue)


@pytest.mark.parametrize("rate", [8000, 24000, 48000])
def test_notes_are_heard_at_any_rate(rate):
    samples = np.sin(2 * np.pi * 440.0 * np.arange(rate // 4) / rate)
    assert heard_notes(samples, rate) == ("A4",)


def test_silence_has_no_notes():
    assert heard_notes(np.zeros(2400, dtype=np.float32), RATE) == ()


def test_a_note_that_comes_again_counts_once():
    assert heard_notes(rhythm(0, 120, hz=880.0), RATE) == ("A5",)


def test_at_most_six_notes_are_told():
    melody = np.concatenate([soft(tone(440.0 * 2 ** (step / 4))) for step in range(9)])
    assert len(heard_notes(melody, RATE)) == 6
