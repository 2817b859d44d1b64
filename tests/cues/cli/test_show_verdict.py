"""`cues show` and `cues check` say the same of a sound."""

import json

import numpy as np
import pytest
import soundfile

import cues
from tests.support.packs import cut_in_the_middle, soft, tone


@pytest.mark.parametrize(
    ("samples", "codes"),
    [
        (0.004 * np.clip(soft(tone(660.0, level=3.0)), -1, 1), ["clipped", "too_quiet"]),
        (cut_in_the_middle(), ["clicks"]),
        (soft(tone(660.0)), []),
        (np.zeros(4800), ["silent"]),
    ],
    ids=["clipped and faint", "a click", "fine", "silent"],
)
def test_show_says_of_a_file_and_of_a_packs_cue_what_check_says(run, tmp_path, samples, codes):
    folder = tmp_path / "mine"
    folder.mkdir()
    stereo = np.repeat(
        np.interp(np.arange(0, len(samples), 24000 / 44100), np.arange(len(samples)), samples)[:, None], 2, 1
    )
    soundfile.write(folder / "agent.wav", stereo, 44100, "FLOAT")
    problems = json.loads(run("check", "mine", "--json").out)["problems"]
    assert [problem["code"] for problem in problems] == codes
    shown = json.loads(run("show", "mine/agent.wav", "--json").out)
    assert shown["warnings"] == [problem["message"] for problem in problems]
    assert shown["file"] == {"sample_rate": 44100, "channels": 2}
    text = run("show", "mine/agent.wav").out
    assert "24000 Hz, from 44100 Hz, 2 channels" in " ".join(text.split())
    assert ("nothing is wrong with it" in text) == (not codes)
    if "silent" not in codes:  # such a pack does not load
        of_pack = json.loads(run("show", "agent", "--pack", "mine", "--json").out)
        assert of_pack["warnings"] == shown["warnings"]


def test_a_built_in_cue_has_no_file(run):
    shown = json.loads(run("show", "agent", "--json").out)
    assert (shown["file"], shown["warnings"]) == (None, [])
    assert cues.load_bank("")["agent"].sample_rate == 24000
