import io

import numpy as np
import pytest
import soundfile

import cues
from cues.errors import AudioFileError
from cues.library import recordings
from cues.library.recordings import read_recording
from tests.support.packs import soft, tone, write


def test_recordings_longer_than_a_cue_may_be_are_read(tmp_path):
    write(tmp_path / "x.wav", np.zeros(24000 * 15))
    recording = read_recording(tmp_path / "x.wav")
    assert (len(recording.samples), recording.sample_rate, recording.channels) == (360000, 24000, 1)


def test_channels_are_averaged_and_counted(tmp_path):
    write(tmp_path / "x.wav", np.stack([tone(440.0), -tone(440.0)], axis=1))
    recording = read_recording(tmp_path / "x.wav")
    assert recording.channels == 2
    assert np.abs(recording.samples).max() < 1e-7


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "FLOAT", "ULAW"])
@pytest.mark.parametrize("channels", [1, 2])
def test_samples_are_those_that_libsndfile_reads(tmp_path, subtype, channels):
    noise = np.random.default_rng(1).uniform(-1, 1, (4800, channels))
    noise[:3] = [[-1.0], [1.0], [0.0]]
    write(tmp_path / "x.wav", noise, subtype=subtype)
    expected, _ = soundfile.read(tmp_path / "x.wav", dtype="float32", always_2d=True)
    assert np.array_equal(
        read_recording(tmp_path / "x.wav").samples, expected.mean(axis=1, dtype=np.float64).astype("f4")
    )


def test_an_open_file_is_read_like_a_path():
    data = io.BytesIO()
    soundfile.write(data, soft(tone(440.0)), 24000, format="FLAC")
    data.seek(0)
    assert len(read_recording(data, "from memory").samples) == 4800


def test_a_recording_that_would_not_fit_into_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    write(tmp_path / "x.wav", np.zeros(4800))
    monkeypatch.setattr(recordings, "MAX_RECORDING_BYTES", 4 * 4799)
    with pytest.raises(AudioFileError, match="at most"):
        read_recording(tmp_path / "x.wav")


def test_a_file_is_measured_with_all_its_channels(tmp_path):
    t = np.arange(48000) / 48000
    x = np.stack([0.1 * np.sin(2 * np.pi * 1000 * t), 0.3 * np.sin(2 * np.pi * 440 * t)], axis=1).astype(np.float32)
    soundfile.write(tmp_path / "stereo.wav", x, 48000, subtype="FLOAT")
    assert cues.measure_file(tmp_path / "stereo.wav") == cues.measure(x, 48000)
    soundfile.write(tmp_path / "mono.wav", x[:, 0], 48000, subtype="FLOAT")
    assert cues.measure_file(str(tmp_path / "mono.wav"), dual_mono=True) == cues.measure(x[:, 0], 48000, dual_mono=True)


def test_a_file_that_cannot_be_measured_is_named(tmp_path):
    with pytest.raises(AudioFileError, match=r"nowhere\.wav: cannot be read as audio: there is no such file"):
        cues.measure_file(tmp_path / "nowhere.wav")
    soundfile.write(tmp_path / "slow.wav", np.zeros(100), 4000)
    with pytest.raises(cues.CueValueError, match=r"slow\.wav: sample_rate is 4000"):
        cues.measure_file(tmp_path / "slow.wav")
    soundfile.write(tmp_path / "nan.wav", np.full((100, 2), np.nan), 24000, subtype="FLOAT")
    with pytest.raises(AudioFileError, match=r"nan\.wav: holds NaN or infinity"):
        cues.measure_file(tmp_path / "nan.wav")
