"""The commands for ears and eyes, as a person at a terminal meets them."""

import base64
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import cues
from cues.cli._minute import minute
from cues.extras import pip_install
from cues.meters.telephone import over_telephone
from cues.show.audition import stand_in_speech
from cues.show.board import Set, board_page
from cues.synthesis.catalog import CATALOG
from tests.support.packs import cut_in_the_middle, rhythm, soft, tone, write

PNG = b"\x89PNG\r\n\x1a\n"


def test_list_names_every_cue_with_its_figures(run):
    result = run("list")
    assert result.code == 0
    line = next(line for line in result.out.splitlines() if line.startswith("agent"))
    assert line.split() == ["agent", "260", "−26.0", "−17.7", "C5", "E5", "G5", "built", "in"]


def test_list_shows_the_rules_of_a_pack_in_their_order(run, tmp_path):
    (tmp_path / "pack.toml").write_text('[rules]\n"read_secret" = "attention"\n"read_*" = "motif"\n')
    assert run("list", "--pack", ".").out.splitlines()[-1] == "rules: read_secret → attention, read_* → motif"
    assert "rules" not in run("list").out


@pytest.mark.parametrize("command", ["list", "show agent"])
def test_an_output_that_is_closed_is_no_fault(command):
    shell = ["/bin/sh", "-c", f'exec "{sys.executable}" -m cues {command} >&-']
    done = subprocess.run(shell, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("command", [("list",), ("show", "success"), ("doctor",)], ids=lambda command: command[0])
def test_output_fits_the_terminal(run, monkeypatch, command, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("SHELL", "/bin/bash")
    result = run(*command)
    assert result.code == 0
    # A line that is to be copied is whole, however long it is.
    assert max(len(line) for line in result.out.splitlines() if not line.startswith("eval ")) <= columns


def test_list_as_json_keeps_its_keys(run):
    records = json.loads(run("list", "--json").out)
    assert [record["name"] for record in records] == list(CATALOG)
    assert list(records[0]) == [
        "name", "meaning", "source", "length_ms", "sample_rate", "n_samples", "loop", "notes", "integrated_lufs",
        "momentary_max_lufs", "short_term_max_lufs", "m100_max_lufs", "loudness_range_lu", "true_peak_dbtp",
        "sample_peak_dbfs", "dc", "missed_lu",
    ]  # fmt: skip


def test_list_and_check_say_which_cue_is_quieter_than_its_target_and_give_advice_that_helps(run, tmp_path):
    (tmp_path / "mine").mkdir()
    sparse = np.zeros(4800)
    sparse[2000:2010] = 0.9 * np.sin(np.arange(10))
    write(tmp_path / "mine" / "agent.wav", sparse)
    write(tmp_path / "mine" / "error.wav", 0.002 * rhythm(0, 90, 250, 310))
    listed = run("list", "--pack", "mine").out
    assert "! agent is " in listed
    assert "! error is " in listed
    assert "! tool_call" not in listed
    problems = {
        problem["where"]: problem["fix"]
        for problem in json.loads(run("check", "mine", "--json").out)["problems"]
        if problem["code"] == "too_quiet"
    }
    assert problems["agent"].startswith("compress its peaks")
    assert problems["error"].startswith("export it louder")


def test_list_shows_where_a_cue_of_a_pack_comes_from(run, tmp_path):
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine" / "agent.wav", rhythm(0, 200))
    records = {record["name"]: record for record in json.loads(run("list", "--pack", "mine", "--json").out)}
    assert records["agent"]["source"].endswith("agent.wav")
    assert records["agent"]["notes"] == ["G5", "G5"]
    assert records["error"]["source"] == "built in"


def test_show_draws_the_cue_and_says_that_nothing_is_wrong(run):
    result = run("show", "agent")
    assert "⣿" in result.out
    assert "C5 E5 G5" in result.out
    assert "nothing is wrong with it" in result.out


def test_show_without_unicode_prints_the_measures_alone(run):
    result = run("show", "agent", encoding="ascii")
    assert (result.code, result.out.split()[:2]) == (0, ["name", "agent"])
    assert "-26.0 LUFS" in result.out


def test_show_tells_what_is_wrong(run, tmp_path):
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine" / "agent.wav", cut_in_the_middle())
    assert "! clicks: 1, at 100.0 ms" in run("show", "agent", "--pack", "mine").out


def test_show_writes_a_picture(run, tmp_path):
    result = run("show", "agent", "--png", "agent.png")
    assert result.code == 0
    assert (tmp_path / "agent.png").read_bytes().startswith(PNG)


def test_show_as_json_has_the_spec(run):
    record = json.loads(run("show", "error", "--json").out)
    assert record["warnings"] == []
    assert record["spec"]["notes"][0]["hz"] == 440.0


@pytest.mark.parametrize(
    "arguments",
    [("show", "motif:"), ("play", "motif:"), ("mix", "x.wav", "--cue", "motif:@1")],
    ids=lambda line: line[0],
)
def test_a_motif_needs_the_name_of_a_tool(run, arguments):
    result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err == "cues: 'motif:' lacks the name of a tool; it is written like motif:read_file\n"


def test_color_is_for_terminals_alone(run):
    assert "\x1b" not in run("list").out + run("show", "agent").out


@pytest.mark.parametrize("n_samples", [2400, 100000])
def test_pictures_of_any_length_have_the_same_size(run, n_samples):
    write("x.wav", np.random.default_rng(1).uniform(-0.5, 0.5, n_samples))
    rows = run("show", "x.wav").out.splitlines()[:11]
    assert {len(row) for row in rows} == {80}
    assert all("\u2800" <= letter <= "\u28ff" for row in rows for letter in row[7:])


def test_play_without_miniaudio_says_how_to_get_it(run, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "miniaudio", None)
    result = run("play", "agent")
    assert result.code == 1
    assert pip_install("play") in result.err


@pytest.mark.parametrize(
    ("options", "rate", "length_s"),
    [((), 24000, 0.88), (("--telephone",), 8000, 0.88), (("--over", "speech.wav"), 24000, 2.0)],
    ids=["alone", "telephone", "over speech"],
)
def test_play_hands_the_sound_to_the_device(run, monkeypatch, options, rate, length_s):
    write("speech.wav", soft(tone(200.0, 96000)), rate=48000)
    heard = []
    monkeypatch.setattr("cues.cli.play.play", lambda samples, sample_rate: heard.append((samples, sample_rate)))
    assert run("play", "agent", "error", *options).code == 0
    ((samples, sample_rate),) = heard
    assert sample_rate == rate
    assert len(samples) / rate == pytest.approx(length_s, abs=0.001)


@pytest.mark.parametrize("rate", [8000, 24000, 48000])
def test_the_cues_of_a_new_pack_are_the_built_in_ones_sample_for_sample(run, rate):
    run("new-pack", "mine")
    for name, cue in cues.load_bank("mine", sample_rate=rate).items():
        built_in = cues.load_bank("", sample_rate=rate)[name]
        # Files hold 24 bits at 48 kHz: at other rates a filter lies between them.
        limit = 2.0 * 2.0**-23 if rate == 48000 else 0.01 * built_in.samples.max()
        assert cue.loop == built_in.loop
        assert np.abs(cue.samples - built_in.samples).max() < limit


def test_a_new_pack_never_overwrites(run, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").touch()
    result = run("new-pack", "mine")
    assert (result.code, result.err) == (1, "cues: mine: exists and is not empty; name a new or an empty folder\n")
    (tmp_path / "mine" / "ding.wav").touch()
    assert "or take its sounds with --from mine" in run("new-pack", "mine").err


def test_check_tells_every_problem_with_its_fix(run, tmp_path):
    write(tmp_path / "agent.wav", cut_in_the_middle())
    write(tmp_path / "error.wav", soft(tone(120.0)))
    result = run("check", ".")
    assert result.code == 1
    assert "agent: clicks: 1, at 100.0 ms\n  → " in result.out
    assert "error: telephone: " in result.out
    assert result.out.endswith("problems\n")
    problems = json.loads(run("check", ".", "--json").out)["problems"]
    assert {"where", "code", "message", "fix"} == set(problems[0])
    assert [problem["code"] for problem in problems][:2] == ["clicks", "telephone"]


def test_doctor_reports_and_succeeds_whatever_is_missing(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "miniaudio", None)
    monkeypatch.setenv("CUES_CACHE_DIR", "")
    monkeypatch.setenv("CUES_PACK", "nowhere")
    findings = {finding["topic"]: finding for finding in json.loads(run("doctor", "--json").out)["findings"]}
    assert findings["extra play"]["fix"] == pip_install("play")
    assert findings["cache"]["state"] == "hint"
    assert findings["pack"]["text"] == "nowhere: 1 problem"
    assert findings["pack"]["fix"] == "cues check nowhere"
    assert run("doctor").code == 0


def test_page_shows_the_pack_of_every_command_beside_the_built_in_cues(run, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine" / "agent.wav", rhythm(0, 200))
    monkeypatch.setenv("CUES_PACK", str(tmp_path / "mine"))
    assert run("page", "board.html").code == 0
    page = (tmp_path / "board.html").read_text()
    assert "built in beside mine, at equal loudness" in page
    assert "<dd>agent.wav</dd>" in page


def test_page_shows_two_packs_over_speech_of_ones_own(run, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "agent.wav", rhythm(0, 200))
    write(tmp_path / "speech.wav", soft(tone(200.0, 48000)))
    assert run("page", "board.html", "--pack", "one", "--pack", "two", "--over", "speech.wav").code == 0
    page = (tmp_path / "board.html").read_text()
    assert "one beside two, at equal loudness" in page
    assert "Speech: speech.wav." in page
    assert "<dd>agent.wav</dd>" in page
    assert str(tmp_path) not in page


def test_the_board_plays_the_same_minute_in_the_three_profiles(tmp_path):
    speech = over_telephone(stand_in_speech(24000), 24000)
    made = minute(cues.load_bank("", sample_rate=8000), speech)
    board = board_page([Set("built in", {}, {})], stand_in_speech(24000), 24000, minute=made)
    sounds = json.loads(re.search(r'id="sounds">(.*?)</script>', board, re.DOTALL)[1])

    def pcm(text):
        return np.frombuffer(base64.b64decode(text), "<i2")

    for column, mix in zip(sounds["cards"][-1], made.mixes.values(), strict=True):
        heard = pcm(sounds["minute"]["speech"]).copy()
        for change in column["changes"]:
            part = pcm(change["samples"])
            heard[change["at"] : change["at"] + len(part)] = part
        np.testing.assert_allclose(heard / 32767, mix, atol=0.51 / 32767)
        assert len(mix) == 60 * sounds["minute"]["rate"]
    assert made.n_sounds["full"] > made.n_sounds["normal"] > made.n_sounds["minimal"] > 0
