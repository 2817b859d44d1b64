import numpy as np
import pytest

import cues

PENTATONIC = {523.25, 587.33, 659.26, 783.99, 880.0, 1046.5}
READ_FILE = [(523.25, 0.0), (659.26, 130.0)]
TOOLS = [
    f"{verb}_{noun}" for verb in ("read", "write", "list", "search") for noun in ("file", "mail", "web", "note", "day")
]


def test_the_same_name_gives_the_same_motif_on_every_machine():
    """Fixed by the digest of the name, and written down here."""
    assert [(note.hz, note.start_ms) for note in cues.motif("read_file").notes] == READ_FILE
    assert cues.motif("read_file") == cues.motif("read_file")


@pytest.mark.parametrize("tool", [*TOOLS, "", "工具", "x" * 1000, "\ud800"])
def test_a_motif_is_two_or_three_pentatonic_notes_that_can_be_rendered(tool):
    spec = cues.motif(tool)
    assert len(spec.notes) in (2, 3)
    assert {note.hz for note in spec.notes} <= PENTATONIC
    assert all(one.hz != other.hz for one, other in zip(spec.notes, spec.notes[1:], strict=False))
    assert 190 <= spec.length_ms <= 320
    x = cues.render(spec)
    assert x[0] == x[-1] == 0.0
    assert np.isfinite(x).all()


def test_names_rarely_share_a_motif():
    assert len({cues.motif(tool) for tool in TOOLS}) >= len(TOOLS) - 1
