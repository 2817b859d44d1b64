"""`cues diff`: two packs, two cues or two files, in a terminal, for programs, as a picture."""

import json

import matplotlib.image
import numpy as np
import pytest

from tests.support.packs import rhythm, write


@pytest.fixture
def packs(tmp_path):
    for name, text in {
        "a": "[cues]\nerror = { gain_db = -1 }\n",
        "b": '[cues]\nerror = { gain_db = -5 }\nagent = { spec = "success" }\n'
        'mail = { spec = "agent" }\n[rules]\nx = "mail"\n',
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "pack.toml").write_text(text)
    return tmp_path


def test_two_packs_are_compared_cue_by_cue(run, packs):
    said = json.loads(run("diff", "a", "b", "--json").out)
    pairs = {pair["a"]: pair for pair in said["pairs"]}
    assert [name for name, pair in pairs.items() if not pair["same"]] == ["agent", "error"]
    assert pairs["error"]["m100_lu"] == pytest.approx(-4.0, abs=0.01)
    assert pairs["error"]["true_peak_db"] == pytest.approx(-4.0, abs=0.01)
    assert pairs["error"]["similarity"] == pytest.approx(1.0, abs=0.001)
    assert all(level == pytest.approx(0.0, abs=0.01) for level in pairs["error"]["bands_db"].values())
    assert pairs["agent"]["similarity"] < 0.8
    assert (said["only_a"], said["only_b"]) == ([], ["mail"])


def test_the_table_is_for_people_at_any_width(run, packs, monkeypatch):
    wide = run("diff", "a", "b")
    assert wide.code == 0
    rows = {line.split()[0]: line for line in wide.out.splitlines()}
    assert rows["error"].split()[1:] == ["100", "−4.0", "−4.0", "0"]
    assert rows["success"].split()[1:] == ["same"]
    assert wide.out.endswith("only in b: mail\n")
    assert all(len(line) <= 80 for line in wide.out.splitlines())
    monkeypatch.setenv("COLUMNS", "40")
    assert all(len(line) <= 40 for line in run("diff", "a", "b").out.splitlines())


def test_a_file_is_compared_with_a_cue(run, tmp_path):
    write(tmp_path / "x.wav", rhythm(0, 100, hz=500.0))
    (pair,) = json.loads(run("diff", "x.wav", "tool_call", "--json").out)["pairs"]
    assert (pair["a"], pair["b"]) == ("x.wav", "tool_call")
    assert pair["bands_db"]["500"] < 0


def test_the_picture_shows_both_sides(run, packs):
    assert run("diff", "a", "b", "--png", "d.png").code == 0
    picture = matplotlib.image.imread(packs / "d.png")[:, :, :3]
    halves = picture[:, : picture.shape[1] // 2], picture[:, picture.shape[1] // 2 :]
    assert all(np.ptp(half) > 0.5 for half in halves)


def test_the_built_in_set_has_a_name_and_the_last_line_says_which_side_has_more(run, packs):
    result = run("diff", "built-in", "a")
    assert result.code == 0
    rows = {line.split()[0]: line.split()[1:] for line in result.out.splitlines()}
    assert rows["error"][:2] == ["100", "−1.0"]
    assert rows["agent"] == ["same"]
    assert "built-in → a: with +, a has more\n" in result.out


def test_a_short_cue_fills_its_row_of_the_picture_beside_a_long_one(run, packs):
    for name, gain_db in (("a", -3), ("b", -1)):
        text = f"[cues]\nagent = {{ gain_db = {gain_db} }}\nthinking = {{ gain_db = {gain_db} }}\n"
        (packs / name / "pack.toml").write_text(text)
    assert run("diff", "a", "b", "--png", "d.png").code == 0
    picture = matplotlib.image.imread(packs / "d.png")[:, :, :3].max(axis=2)
    rows = np.array_split(picture, 2)  # `agent`, 0.26 s; `thinking`, 0.6 s and a pause of 1.8 s
    assert all((row < 0.02).mean() < 0.6 for row in rows)


def test_silence_is_compared_too(run, tmp_path):
    write(tmp_path / "silence.wav", np.zeros(4800, dtype=np.float32))
    (pair,) = json.loads(run("diff", "silence.wav", "tool_call", "--json").out)["pairs"]
    assert (pair["m100_lu"], pair["true_peak_db"], pair["similarity"]) == (None, None, 0.0)
    assert "–" in run("diff", "silence.wav", "tool_call").out
