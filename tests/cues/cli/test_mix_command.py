"""`cues mix`: a file in, a file out."""

import io
import json
import subprocess
import sys

import matplotlib.image
import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

import cues
from cues.cli.mix import CueAt, command
from cues.mixing.offline import Insert, mix_recording
from cues.signal.fades import raised_cosine
from tests.support.listening import splatter_db
from tests.support.mixing_scripts import noise_cue, speech, tone


@pytest.fixture
def speech_wav(tmp_path):
    path = tmp_path / "speech.wav"
    soundfile.write(path, speech(48000), 24000, "FLOAT")
    return path


def test_cues_are_in_the_file_at_their_times(speech_wav, tmp_path):
    out = tmp_path / "out.wav"
    arguments = [str(speech_wav), "--cue", "tool_call@0.5", "--cue", "error@1.25", "-o", str(out), "--json"]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["stats"]["started"] == 2
    mixed, rate = soundfile.read(out, dtype="float32")
    before = speech(48000)
    assert rate == 24000
    assert np.abs(mixed[:12000] - before[:12000]).max() < 1e-4
    assert np.abs(mixed[12000:13000] - before[12000:13000]).max() > 1e-3


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        ("1", 1.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("1s", 1.0),
        ("250ms", 0.25),
        ("0:01.5", 1.5),
        ("1:02", 62.0),
        ("1:00:00", 3600.0),
    ],
)
def test_a_time_may_be_written_as_people_write_it(time, seconds):
    assert CueAt().convert(f"a@b@{time}", None, None) == ("a@b", seconds)


@pytest.mark.parametrize(
    "cue",
    ["error", "error@soon", "error@-1", "@1", "error@", "error@nan", "error@1:60", "error@1:1s", "error@1 2", "e@1e9"],
)
def test_a_cue_that_cannot_be_is_a_usage_error(speech_wav, cue):
    assert CliRunner().invoke(command, [str(speech_wav), "--cue", cue]).exit_code == 2


@pytest.mark.parametrize(
    ("name", "kind"), [("x.wav", "WAV"), ("x.FLAC", "FLAC"), ("x.ogg", "OGG")], ids=lambda value: value
)
def test_the_format_follows_the_name(speech_wav, tmp_path, name, kind):
    out = tmp_path / name
    assert CliRunner().invoke(command, [str(speech_wav), "--cue", "error@0.1", "-o", str(out)]).exit_code == 0
    assert soundfile.info(out).format == kind


def test_a_cue_may_begin_at_the_end_of_the_speech_and_not_later(speech_wav, tmp_path):
    out = tmp_path / "out.wav"
    assert CliRunner().invoke(command, [str(speech_wav), "--cue", "error@2", "-o", str(out)]).exit_code == 0
    assert soundfile.info(out).frames >= 48000 + len(cues.load_bank("")["error"])
    late = CliRunner().invoke(command, [str(speech_wav), "--cue", "error@2.001", "-o", str(tmp_path / "late.wav")])
    assert late.exit_code == 2
    assert "'error@2.001' is after the end of" in late.output
    assert "which lasts 2.000 s" in late.output
    assert not (tmp_path / "late.wav").exists()


def test_the_speech_is_never_overwritten(speech_wav):
    before = speech_wav.read_bytes()
    arguments = [str(speech_wav), "--cue", "error@0.1", "-o", str(speech_wav)]
    assert CliRunner().invoke(command, arguments).exit_code == 2
    assert speech_wav.read_bytes() == before


def test_silence_is_added_until_the_last_cue_has_ended():
    mixed = mix_recording(speech(4800), 24000, [Insert(cue=tone(7200), at_s=0.15)])
    assert 3600 + 7200 <= len(mixed.samples) < 3600 + 7200 + 480


@pytest.mark.parametrize("channels", [None, 2])
@pytest.mark.parametrize("rate", [8000, 24000, 96000])
def test_a_recording_that_ends_in_mid_sound_before_the_last_cue_fades_out(rate, channels):
    voice = 0.4 * np.sin(2 * np.pi * 223.3 * np.arange(rate) / rate).astype(np.float32)
    voice[: rate // 20] *= raised_cosine(rate // 20)
    recording = voice if channels is None else np.stack([voice, -voice][:channels], axis=1)
    silent = cues.Cue(name="silent", samples=np.zeros(rate // 2, dtype=np.float32), sample_rate=rate)
    mixed = mix_recording(recording, rate, [Insert(cue=silent, at_s=0.9)]).samples
    assert mixed.shape[1:] == recording.shape[1:]
    np.testing.assert_allclose(mixed[: rate * 8 // 10], recording[: rate * 8 // 10], atol=1e-7)
    assert not mixed[rate + rate // 100 :].any()
    for channel in mixed.reshape(len(mixed), -1).T:
        assert splatter_db(channel, 2500, rate) < -90


def test_a_limiters_delay_is_taken_off():
    talk = speech(24000, peak=0.3)
    mixed = mix_recording(talk, 24000, [Insert(cue=noise_cue(), at_s=0.5)], limiter=True)
    np.testing.assert_array_equal(mixed.samples[:12000], talk[:12000])
    assert len(mixed.samples) >= len(talk)


@pytest.mark.parametrize("options", [[], ["--limiter"]], ids=["plain", "limiter"])
def test_the_channels_of_a_recording_stay(tmp_path, options):
    left = speech(48000)
    soundfile.write(tmp_path / "opposite.wav", np.stack([left, -left], axis=1), 24000, "FLOAT")
    out = tmp_path / "out.wav"
    arguments = [str(tmp_path / "opposite.wav"), "--cue", "tool_call@1", "-o", str(out), *options]
    assert CliRunner().invoke(command, arguments).exit_code == 0
    mixed, _ = soundfile.read(out, dtype="float32")
    np.testing.assert_allclose(mixed[:24000], np.stack([left, -left], axis=1)[:24000], atol=1e-6)
    assert np.abs(mixed[24000:28000].sum(axis=1)).max() > 0.05  # the cue is alike in both


def piped(arguments, data=b""):
    """The command in a process of its own, with bytes on standard input: its standard output, and its errors."""
    program = [sys.executable, "-m", "cues", *arguments]
    done = subprocess.run(program, input=data, capture_output=True, check=False)
    return done.stdout, done.stderr.decode()


def test_mix_reads_and_writes_pipes(speech_wav, tmp_path):
    file = tmp_path / "out.wav"
    CliRunner().invoke(command, [str(speech_wav), "--cue", "error@0.5", "-o", str(file)])
    out, err = piped(["mix", "-", "--cue", "error@0.5", "-o", "-"], speech_wav.read_bytes())
    assert (out, err) == (file.read_bytes(), "")
    again, _ = piped(["mix", "-", "--cue", "agent@1", "-o", "-"], out)
    assert len(soundfile.read(io.BytesIO(again))[0]) >= 48000


def test_what_is_no_sound_on_standard_input_is_one_line():
    _, err = piped(["mix", "-", "--cue", "error@0.5"], b"no sound")
    assert err.startswith("cues: standard input: cannot be read as audio: ")
    assert err.count("\n") == 1


def test_the_picture_of_a_mix_shades_each_cue(speech_wav, tmp_path):
    plain, shaded = tmp_path / "plain.png", tmp_path / "shaded.png"
    quiet = ["--gain-db", "-120"]
    out = ["-o", str(tmp_path / "out.wav")]
    for path, at in ((plain, "0.1"), (shaded, "1.5")):
        arguments = [str(speech_wav), "--cue", f"error@{at}", *quiet, *out, "--png", str(path)]
        assert CliRunner().invoke(command, arguments).exit_code == 0
    pictures = [matplotlib.image.imread(path) for path in (plain, shaded)]
    differs = np.abs(pictures[0] - pictures[1]).max(axis=2).max(axis=0) > 0.05
    columns = np.flatnonzero(differs)
    assert columns.min() < 0.25 * len(differs)
    assert columns.max() > 0.6 * len(differs)
