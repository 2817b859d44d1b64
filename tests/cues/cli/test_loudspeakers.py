"""Playback: by miniaudio's null device, and by real programs, written for the test, on a path of its own."""

import json

import miniaudio
import numpy as np
import pytest
import soundfile

from cues.cli import _loudspeakers
from cues.errors import CueError

TONE = (0.2 * np.sin(np.arange(4800) * 0.2)).astype(np.float32)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Make programs of these names, each with the script of its body, on a machine without a device."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(_loudspeakers, "_PLAYERS", (("first", "-q"), ("second",)))
    monkeypatch.setattr(_loudspeakers, "device_names", list)

    def make(**scripts):
        for name, body in scripts.items():
            (folder / name).write_text(f"#!/bin/sh\n{body}\n")
            (folder / name).chmod(0o755)

    return make


def test_without_a_device_the_first_program_that_works_plays_the_sound(programs, run, tmp_path):
    programs(first="exit 1", second=f'cp "$1" {tmp_path}/heard.wav')
    result = run("play", "agent", "error")
    assert (result.code, result.err) == (0, "played by second\n")
    heard, rate = soundfile.read(tmp_path / "heard.wav")
    assert rate == 24000
    assert len(heard) > 10000


def test_where_nothing_can_play_the_error_is_that_of_the_device(programs, run):
    programs(first="exit 1")
    result = run("play", "agent")
    assert result.code == 1
    assert result.err.startswith("cues: no sound device to play on")


def test_doctor_says_which_programs_would_be_tried(programs, run):
    def sound_device_of_doctor():
        findings = json.loads(run("doctor", "--json").out)["findings"]
        return next(finding for finding in findings if finding["topic"] == "sound device")

    assert sound_device_of_doctor()["state"] == "hint"
    programs(second="exit 0")
    assert sound_device_of_doctor()["text"] == "none for miniaudio; cues play tries second"


def test_a_device_is_given_every_sample_once_and_then_zeros(monkeypatch):
    given = []

    class Device:
        def __init__(self, **_):
            pass

        def start(self, source):
            given.extend(source.send(size) for size in (7, 3000, 4000, 3000))
            with pytest.raises(StopIteration):
                source.send(1)

        def close(self):
            given.append("closed")

    monkeypatch.setattr(miniaudio, "PlaybackDevice", Device)
    _loudspeakers.play_by_device(TONE, 24000, backends=[])
    *blocks, closed = given
    assert [len(block) for block in blocks] == [7, 3000, 4000, 3000]
    assert np.array_equal(np.concatenate(blocks)[:4800], TONE)
    assert not np.concatenate(blocks)[4800:].any()
    assert closed == "closed"


def test_a_real_device_plays_to_the_end():
    _loudspeakers.play_by_device(TONE, 24000, backends=[miniaudio.Backend.NULL])


def test_a_device_that_cannot_be_opened_is_one_clear_line():
    with pytest.raises(CueError, match="cannot be opened"):
        _loudspeakers.play_by_device(TONE, 24000, backends=[miniaudio.Backend.WASAPI])
