import pytest

from cues.synthesis.note_names import note_hz, note_name


# Frequencies of the equal temperament at A4 = 440 Hz (ISO 16).
@pytest.mark.parametrize(
    ("hz", "name"), [(261.63, "C4"), (440.0, "A4"), (466.16, "A#4"), (783.99, "G5"), (4186.0, "C8"), (27.5, "A0")]
)
def test_frequencies_have_the_names_of_the_nearest_notes(hz, name):
    assert note_name(hz) == name
    assert note_hz(name) == pytest.approx(hz, rel=1e-4)


@pytest.mark.parametrize(
    "name", [f"{letter}{sign}{octave}" for letter in "CDEFGABcb" for sign in ("", "#", "b") for octave in (1, 4, 9)]
)
def test_every_name_and_its_other_spelling_come_back_as_the_nearest_note(name):
    hz = note_hz(name)
    assert note_hz(note_name(hz)) == pytest.approx(hz)


@pytest.mark.parametrize("name", ["", "H4", "C", "4", "C-1", "C##4", "C11", "C5 5", "660", "Cis4"])
def test_what_is_no_note_has_no_frequency(name):
    assert note_hz(name) is None


def test_sharps_and_flats_may_be_written_with_their_own_signs():
    assert note_hz("A\u266f4") == note_hz("A#4") == note_hz("B\u266d4") == note_hz(" Bb4 ")
