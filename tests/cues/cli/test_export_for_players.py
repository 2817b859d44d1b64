"""Files for players: names, formats, levels, and what an export leaves alone."""

import json

import numpy as np
import pytest
import soundfile

import cues
from cues.library.export import MANIFEST, PLAYERS, export_for_player


def bank_at(rate):
    return cues.load_bank(sample_rate=rate)


# What the players' own folders hold: esphome/home-assistant-voice-pe `sounds/`, OHF-Voice/linux-voice-assistant (the
# defaults of --wakeup-sound, --timer-finished-sound and --processing-sound), rhasspy/wyoming-satellite `sounds/`.
HOME_ASSISTANT = {
    "wake_word_triggered.flac": ("FLAC", 48000),
    "timer_finished.flac": ("FLAC", 48000),
    "processing.wav": ("WAV", 48000),
    "awake.wav": ("WAV", 22050),
    "done.wav": ("WAV", 22050),
    "timer_finished.wav": ("WAV", 22050),
}


def test_home_assistants_satellites_find_their_files_in_their_formats(tmp_path):
    export = export_for_player(bank_at, tmp_path / "sounds", "home-assistant")
    assert export.kept == ()
    assert {path.name for path in export.written} >= set(HOME_ASSISTANT)
    for name, (file_format, rate) in HOME_ASSISTANT.items():
        info = soundfile.info(tmp_path / "sounds" / name)
        assert (info.format, info.samplerate, info.channels, info.subtype) == (file_format, rate, 1, "PCM_16")


@pytest.mark.parametrize("file", PLAYERS["home-assistant"], ids=lambda file: file.name)
def test_each_file_sounds_as_its_cue(file, tmp_path):
    export_for_player(bank_at, tmp_path, "home-assistant")
    samples, rate = soundfile.read(tmp_path / file.name, dtype="float32")
    cue = cues.load_bank()[file.cue]
    assert len(samples) / rate == pytest.approx(cue.duration_s, abs=0.001)
    heard = cues.measure(samples, rate).m100_max_lufs
    assert heard == pytest.approx(cue.measured.m100_max_lufs, abs=0.1)
    assert np.abs(samples[[0, -1]]).max() < 1e-4


def test_a_file_has_one_phrase_and_that_of_a_waiting_sound_all(tmp_path):
    phrases = tuple(cues.load_bank(sample_rate=48000)[name] for name in ("tool_call", "agent"))
    joined = np.concatenate([phrase.samples for phrase in phrases])

    def spoken(name, rate):
        return cues.Cue(name=name, samples=joined, sample_rate=rate, phrases=phrases, loop=name == "thinking")

    export_for_player(
        lambda rate: bank_at(rate) | {name: spoken(name, rate) for name in ("error", "thinking")},
        tmp_path, "home-assistant",
    )  # fmt: skip
    assert soundfile.info(tmp_path / "error.flac").frames == len(phrases[0])
    assert soundfile.info(tmp_path / "processing.wav").frames == len(joined)


def test_a_new_export_replaces_its_own_files_and_keeps_those_of_the_user(tmp_path):
    export_for_player(bank_at, tmp_path, "home-assistant")
    (tmp_path / "awake.wav").write_bytes(b"a sound of mine")
    (tmp_path / "other.wav").write_bytes(b"another one")
    again = export_for_player(bank_at, tmp_path, "home-assistant")
    assert [path.name for path in again.kept] == ["awake.wav"]
    assert (tmp_path / "awake.wav").read_bytes() == b"a sound of mine"
    assert (tmp_path / "other.wav").exists()
    assert len(again.written) == len(PLAYERS["home-assistant"]) - 1


@pytest.mark.parametrize("manifest", ["", "[]", '{"sha256": 5}', "{"])
def test_a_damaged_manifest_keeps_every_file(manifest, tmp_path):
    export_for_player(bank_at, tmp_path, "home-assistant")
    (tmp_path / MANIFEST).write_text(manifest)
    assert export_for_player(bank_at, tmp_path, "home-assistant").written == ()


def test_the_command_writes_the_files_of_a_player(run, tmp_path):
    result = run("export", str(tmp_path / "sounds"), "--for", "home-assistant", "--json")
    assert result.code == 0
    files = json.loads(result.out)["files"]
    assert len(files) == len(PLAYERS["home-assistant"])
    assert run("export", str(tmp_path / "sounds"), "--for", "home-assistant").code == 0


def test_the_command_refuses_a_format_that_the_player_prescribes(run, tmp_path):
    result = run("export", str(tmp_path / "sounds"), "--for", "home-assistant", "--format", "ogg")
    assert result.code == 2
    assert "--for home-assistant prescribes the files" in result.err
    assert not (tmp_path / "sounds").exists()
