"""Playback by a program of the system: real programs, written for the test, on a path of its own."""

import json

import numpy as np
import pytest
import soundfile

from cues.cli.live import sound_device

TONE = (0.2 * np.sin(np.arange(4800) * 0.2)).astype(np.float32)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Make programs of these names, each with the script of its body."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(sound_device, "_PLAYERS", (("first", "-q"), ("second",)))

    def make(**scripts):
        for name, body in scripts.items():
            (folder / name).write_text(f"#!/bin/sh\n{body}\n")
            (folder / name).chmod(0o755)

    return make


def test_the_first_program_that_works_plays_the_sound(programs, tmp_path):
    programs(first="exit 1", second=f'cp "$1" {tmp_path}/heard.wav')
    assert sound_device.play_with_a_program(TONE, 24000) == "second"
    heard, rate = soundfile.read(tmp_path / "heard.wav", dtype="float32")
    assert rate == 24000
    np.testing.assert_allclose(heard, TONE, atol=2 / 32768)


def test_without_a_program_that_works_nothing_has_played(programs):
    programs(first="exit 1")
    assert sound_device.play_with_a_program(TONE, 24000) is None


def test_play_uses_it_where_there_is_no_device_and_says_so(run, programs, tmp_path, monkeypatch):
    monkeypatch.setattr(sound_device, "device_names", list)
    programs(first=f'cp "$2" {tmp_path}/heard.wav')
    result = run("play", "agent", "error")
    assert (result.code, result.err) == (0, "played by first\n")
    assert len(soundfile.read(tmp_path / "heard.wav")[0]) > 10000


def test_doctor_says_which_programs_would_be_tried(run, programs, monkeypatch):
    def sound_device_of_doctor():
        findings = json.loads(run("doctor", "--json").out)["findings"]
        return next(finding for finding in findings if finding["topic"] == "sound device")

    monkeypatch.setattr(sound_device, "device_names", list)
    assert sound_device_of_doctor()["state"] == "hint"
    programs(second="exit 0")
    assert sound_device_of_doctor()["text"] == "none for miniaudio; cues play tries second"


def test_where_nothing_can_play_the_error_is_that_of_the_device(run, programs, monkeypatch):
    monkeypatch.setattr(sound_device, "device_names", list)
    result = run("play", "agent")
    assert result.code == 1
    assert result.err.startswith("cues: no sound device to play on")
