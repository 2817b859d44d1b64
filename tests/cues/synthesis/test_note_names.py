import pytest

from cues.synthesis.note_names import name_of_step, note_hz, step_of


# Frequencies of the equal temperament at A4 = 440 Hz (ISO 16).
@pytest.mark.parametrize(
    ("hz", "name"), [(261.63, "C4"), (440.0, "A4"), (466.16, "A#4"), (783.99, "G5"), (4186.0, "C8"), (27.5, "A0")]
)
def test_frequencies_have_the_names_of_the_nearest_notes(hz, name):
    assert name_of_step(step_of(hz)) == name
    assert note_hz(name) == pytest.approx(hz, rel=1e-4)


@pytest.mark.parametrize(
    "name", [f"{letter}{sign}{octave}" for letter in "CDEFGABcb" for sign in ("", "#", "b") for octave in (1, 4, 9)]
)
def test_every_name_and_its_other_spelling_come_back_as_the_nearest_note(name):
    hz = note_hz(name)
    assert note_hz(name_of_step(step_of(hz))) == pytest.approx(hz)


@pytest.mark.parametrize("name", ["", "H4", "C", "4", "C-1", "C##4", "C11", "C5 5", "660", "Cis4"])
def test_what_is_no_note_has_no_frequency(name):
    assert note_hz(name) is None
