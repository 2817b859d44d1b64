"""`cues new-pack`, and what a `pack.toml` silences."""

import logging
import shutil

import pytest
import soundfile

import cues
from cues.library.lint import check_pack
from tests.support.packs import soft, tone


def test_a_short_sound_in_the_place_of_the_waiting_sound_repeats_as_slowly(run, tmp_path):
    assert run("new-pack", "mine").code == 0
    soundfile.write(tmp_path / "mine" / "working.wav", soft(tone(660.0, 4800)), 24000)
    assert cues.load_bank(tmp_path / "mine")["working"].duration_s == 2.0


@pytest.fixture
def recordings(tmp_path):
    folder = tmp_path / "recordings"
    folder.mkdir()
    bank = cues.load_bank("")
    for name in ("tool_call", "working"):
        soundfile.write(folder / f"{name}.wav", bank[name].samples, 24000)
    shutil.copyfile(folder / "tool_call.wav", folder / "extra.wav")
    return folder


@pytest.mark.parametrize("target", ["mine", "recordings"])
def test_a_folders_sounds_become_a_pack_that_names_them(run, recordings, target):
    result = run("new-pack", target, "--from", "recordings")
    assert result.code == 0
    assert "! extra.wav: pack.toml does not use it" in result.out
    assert check_pack(target) == []
    bank = cues.load_bank(target)
    for name in ("tool_call", "working"):
        assert abs(bank[name].samples - cues.load_bank("")[name].samples).max() < 1e-4
    assert sorted(path.name for path in recordings.parent.joinpath(target).glob("*.wav")) == [
        "extra.wav",
        "tool_call.wav",
        "working.wav",
    ]
    assert run("new-pack", target, "--from", "recordings").code == 1  # never over a pack


def test_files_that_the_pack_toml_does_not_name_are_named_to_the_user(run, recordings, caplog):
    (recordings / "pack.toml").write_text('[cues]\nworking = "working.wav"\n', encoding="utf-8")
    output = run("list", "--pack", "recordings").out
    assert "extra.wav is not heard" in output
    assert "tool_call.wav is not heard" in output
    assert "working.wav is not heard" not in output
    with caplog.at_level(logging.WARNING):
        cues.load_bank(recordings)
    assert "pack.toml does not use extra.wav, tool_call.wav" in caplog.text


@pytest.mark.parametrize(
    ("options", "phrases"),
    [
        (["--voice", "espeak"], {"working": 2}),
        (["--voice", "voice-like", "--language", "de"], {"working": 2}),
        (
            ["--voice", "voice-like", "--phrase", "working=Hold on.", "--phrase", "agent=I ask."],
            {"working": 1, "agent": 1},
        ),
    ],
    ids=["stock", "in German", "own"],
)
def test_a_voice_makes_a_pack_of_phrases(run, options, phrases):
    assert run("new-pack", "mine", *options).code == 0
    assert check_pack("mine") == []
    bank = cues.load_bank("mine")
    assert {name: len(cue.phrases) for name, cue in bank.items() if cue.phrases} == phrases


@pytest.mark.parametrize(
    ("options", "code", "match"),
    [
        (["--phrase", "working=x"], 2, "--phrase needs --voice"),
        (["--voice", "voice-like", "--phrase", "whistle=x"], 2, "write CUE=TEXT"),
        (["--voice", "voice-like", "--phrase", "working"], 2, "write CUE=TEXT"),
        (["--voice", "voice-like", "--language", "tlh"], 1, "no stock phrases in 'tlh'"),
    ],
)
def test_a_phrase_that_cannot_be_made_says_what_is_missing(run, options, code, match):
    result = run("new-pack", "mine", *options)
    assert result.code == code
    assert match in result.err


@pytest.mark.parametrize("target", ["mine", "recordings"])
def test_a_phrase_never_replaces_a_sound_of_the_folder(run, recordings, target):
    own = shutil.move(recordings / "extra.wav", recordings / "working-2.wav").read_bytes()
    result = run("new-pack", target, "--from", "recordings", "--voice", "voice-like")
    assert result.code == 1
    assert "working-2.wav: a phrase would replace this sound" in result.err
    assert (recordings / "working-2.wav").read_bytes() == own
    agent = ["--voice", "voice-like", "--phrase", "agent=I ask."]
    assert run("new-pack", target, "--from", "recordings", *agent).code == 0  # the folder is as it was
    assert (recordings.parent / target / "working-2.wav").read_bytes() == own
