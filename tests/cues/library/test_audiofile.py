import io
import os
import struct

import numpy as np
import pytest
import soundfile

import cues
from cues.library import audiofile
from cues.library.audiofile import read_audio, read_recording, write_audio
from tests.support.packs import soft, tone, write

TONE = (0.4 * np.sin(2 * np.pi * 700 / 24000 * np.arange(4800))).astype(np.float32)


@pytest.mark.parametrize(
    ("ending", "subtype", "tolerance"),
    [
        ("wav", "PCM_U8", 0.01), ("wav", "PCM_16", 1e-4), ("wav", "PCM_24", 1e-6), ("wav", "PCM_32", 1e-6),
        ("wav", "FLOAT", 0), ("wav", "DOUBLE", 0), ("wav", "ULAW", 0.02), ("flac", "PCM_16", 1e-4),
        ("flac", "PCM_24", 1e-6), ("ogg", "VORBIS", 0.05),
    ],
)  # fmt: skip
def test_reads_integers_floats_and_compressed_files(tmp_path, ending, subtype, tolerance):
    path = tmp_path / f"x.{ending}"
    soundfile.write(path, TONE, 24000, subtype)
    samples, sample_rate = read_audio(path)
    assert (sample_rate, samples.dtype, samples.ndim) == (24000, np.float32, 1)
    np.testing.assert_allclose(samples, TONE, atol=tolerance)


def test_reads_a_codec_that_cannot_seek(tmp_path):
    tone = (0.4 * np.sin(2 * np.pi * 300 / 8000 * np.arange(4800))).astype(np.float32)
    soundfile.write(tmp_path / "x.wav", tone, 8000, "GSM610")  # as Asterisk records
    samples, sample_rate = read_audio(tmp_path / "x.wav")
    assert (sample_rate, len(samples)) == (8000, 5120)  # in blocks of 320
    assert np.corrcoef(samples[:4800], tone)[0, 1] > 0.9


@pytest.mark.parametrize("channels", [2, 3, 6])
@pytest.mark.parametrize("sample_rate", [4000, 22050, 44100, 192000])
def test_channels_are_averaged_at_any_rate(tmp_path, channels, sample_rate):
    both = np.outer(TONE, np.arange(1, channels + 1) / channels).astype(np.float32)
    soundfile.write(tmp_path / "x.wav", both, sample_rate, "FLOAT")
    samples, rate = read_audio(tmp_path / "x.wav")
    assert rate == sample_rate
    np.testing.assert_allclose(samples, both.mean(axis=1), atol=1e-6)


def test_a_long_recording_is_written_as_ogg(tmp_path):
    # libvorbis takes four bytes of stack a sample of one call, and the stack has 8 MB.
    tone = np.tile(TONE, 700)
    write_audio(tmp_path / "x.ogg", tone, 24000, "ogg", "vorbis")
    samples, _ = soundfile.read(tmp_path / "x.ogg", dtype="float32")
    assert len(samples) == len(tone)
    assert np.abs(samples - tone).max() < 0.05


def test_ogg_at_a_rate_that_its_encoder_lacks_is_refused(tmp_path):
    with pytest.raises(cues.AudioFileError, match="384000 Hz; an OGG file has at most 200000"):
        write_audio(tmp_path / "x.ogg", TONE, 384_000, "ogg", "vorbis")
    assert not (tmp_path / "x.ogg").exists()


def wav(tmp_path, samples=TONE, sample_rate=24000, subtype="FLOAT"):
    path = tmp_path / "x.wav"
    soundfile.write(path, samples, sample_rate, subtype)
    return path


def no_audio(tmp_path, text="this is a text and no sound"):
    path = tmp_path / "x.wav"
    path.write_text(text)
    return path


def sparse(tmp_path):
    path = no_audio(tmp_path)
    os.truncate(path, 2 * 2**30)
    return path


def header_that_lies(tmp_path):
    path = wav(tmp_path)
    data = bytearray(path.read_bytes())
    data[24:28] = struct.pack("<I", 3)
    path.write_bytes(data)
    return path


def pipe(tmp_path):
    os.mkfifo(tmp_path / "x.wav")
    return tmp_path / "x.wav"


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (no_audio, "cannot be read as audio.*WAV, FLAC, OGG, MP3, AIFF or AU"),
        (lambda folder: no_audio(folder, ""), "cannot be read as audio"),
        (sparse, "2147483648 bytes; at most 67108864"),
        (header_that_lies, "sample rate of 3 Hz; it must be from 1000 to 768000"),
        (lambda folder: wav(folder, TONE[:0]), "no samples; at least 1"),
        (lambda folder: wav(folder, np.append(TONE, np.float32(np.nan))), "NaN or infinity"),
        (lambda folder: wav(folder, np.append(TONE, np.float32(np.inf))), "NaN or infinity"),
        (lambda folder: wav(folder, np.zeros(8000 * 11), 8000, "PCM_U8"), "lasts 11.0 s; at most 10 s"),
        (lambda folder: folder / "missing.wav", "No such file"),
        (lambda folder: folder, "not a regular file"),
        (pipe, "not a regular file"),
    ],
    ids=[
        "text",
        "empty file",
        "2 GB",
        "rate of 3 Hz",
        "no samples",
        "nan",
        "inf",
        "too long",
        "missing",
        "folder",
        "pipe",
    ],
)
def test_a_file_that_is_no_sound_for_a_cue_is_refused_by_name(tmp_path, make, match):
    path = make(tmp_path)
    with pytest.raises(cues.AudioFileError, match=match) as caught:
        read_audio(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("kept", [0.999, 0.5, 0.1])
def test_a_wav_that_was_cut_off_is_not_half_loaded(tmp_path, kept):
    path = wav(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(cues.AudioFileError, match="is cut off: its header promises 19200 bytes"):
        read_audio(path)


@pytest.mark.parametrize(
    ("file_format", "subtype", "endian"),
    [
        ("WAV", "PCM_16", "BIG"), ("WAVEX", "PCM_24", "FILE"), ("RF64", "PCM_16", "FILE"), ("W64", "PCM_16", "FILE"),
        ("AIFF", "PCM_24", "FILE"), ("AIFF", "FLOAT", "FILE"), ("AU", "PCM_16", "FILE"),
        ("AU", "PCM_16", "LITTLE"), ("FLAC", "PCM_16", "FILE"), ("OGG", "VORBIS", "FILE"), ("OGG", "OPUS", "FILE"),
    ],
)  # fmt: skip
def test_a_file_of_any_format_that_was_cut_off_is_not_half_loaded(tmp_path, file_format, subtype, endian):
    path = tmp_path / "x"
    sound = np.tile(TONE, 5)
    soundfile.write(path, sound, 24000, subtype, endian, file_format)
    assert len(read_audio(path)[0]) == pytest.approx(len(sound), abs=2000)  # codecs have blocks
    whole = path.read_bytes()
    for kept in (0.999, 0.9, 0.5):
        path.write_bytes(whole[: int(kept * len(whole))])
        with pytest.raises(cues.AudioFileError, match=r"is cut off|cannot be read"):
            read_audio(path)


@pytest.mark.parametrize(("length", "read"), [(2**31 - 1, False), (2**32 - 1, True)], ids=["a lie", "from a pipe"])
def test_a_header_that_claims_too_much_is_refused_but_for_the_length_that_writers_to_a_pipe_put(tmp_path, length, read):
    path = wav(tmp_path)
    data = path.read_bytes()
    start = data.index(b"data") + 4
    path.write_bytes(data[:start] + length.to_bytes(4, "little") + data[start + 4 :])
    if read:
        np.testing.assert_array_equal(read_audio(path)[0], TONE)
        return
    with pytest.raises(cues.AudioFileError, match=r"promises 2147483647 bytes of samples, and 19200 are there"):
        read_audio(path)


def test_channels_that_cancel_each_other_are_told_from_silence(tmp_path):
    path = tmp_path / "x.wav"
    soundfile.write(path, np.stack([TONE, -TONE], axis=1), 24000, "FLOAT")
    with pytest.raises(cues.AudioFileError, match="its channels cancel each other"):
        read_audio(path)


@pytest.mark.parametrize("peak", [32767.0, 3.4e38])
def test_whole_numbers_in_a_float_file_are_refused(tmp_path, peak):
    path = tmp_path / "x.wav"
    soundfile.write(path, np.float32(peak) * TONE / np.abs(TONE).max(), 24000, "FLOAT")
    with pytest.raises(cues.AudioFileError, match="at most 1000 is allowed, and full scale is 1"):
        read_audio(path)


def test_a_disk_that_refuses_says_why(tmp_path):
    (tmp_path / "x.wav").mkdir()
    with pytest.raises(cues.AudioFileError, match=r"x\.wav: cannot be written: Is a directory"):
        write_audio(tmp_path / "x.wav", TONE, 24000, "wav", "16")


def test_a_recording_may_be_longer_than_a_cue_and_come_from_an_open_file(tmp_path):
    write(tmp_path / "x.wav", np.zeros(24000 * 15))
    recording = read_recording(tmp_path / "x.wav")
    assert (recording.samples.shape, recording.sample_rate, recording.channels.shape) == ((360000,), 24000, (360000, 1))
    data = io.BytesIO()
    soundfile.write(data, soft(tone(440.0)), 24000, format="FLAC")
    assert len(read_recording(data, "from memory").samples) == 4800


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "FLOAT", "ULAW"])
@pytest.mark.parametrize("channels", [1, 2])
def test_samples_of_a_recording_are_the_averages_of_those_that_libsndfile_reads(tmp_path, subtype, channels):
    noise = np.random.default_rng(1).uniform(-1, 1, (4800, channels))
    noise[:3] = [[-1.0], [1.0], [0.0]]
    write(tmp_path / "x.wav", noise, subtype=subtype)
    expected, _ = soundfile.read(tmp_path / "x.wav", dtype="float32", always_2d=True)
    recording = read_recording(tmp_path / "x.wav")
    assert np.array_equal(recording.samples, expected.mean(axis=1, dtype=np.float64).astype("f4"))
    assert np.array_equal(recording.channels, expected)


def test_a_recording_that_would_not_fit_into_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    write(tmp_path / "x.wav", np.zeros(4800))
    monkeypatch.setattr(audiofile, "MAX_RECORDING_BYTES", 4 * 4799)
    with pytest.raises(cues.AudioFileError, match="at most"):
        read_recording(tmp_path / "x.wav")


def test_a_file_is_measured_with_all_its_channels(tmp_path):
    t = np.arange(48000) / 48000
    x = np.stack([0.1 * np.sin(2 * np.pi * 1000 * t), 0.3 * np.sin(2 * np.pi * 440 * t)], axis=1).astype(np.float32)
    soundfile.write(tmp_path / "stereo.wav", x, 48000, subtype="FLOAT")
    assert cues.measure_file(tmp_path / "stereo.wav") == cues.measure(x, 48000)
    soundfile.write(tmp_path / "mono.wav", x[:, 0], 48000, subtype="FLOAT")
    assert cues.measure_file(str(tmp_path / "mono.wav"), dual_mono=True) == cues.measure(x[:, 0], 48000, dual_mono=True)


def test_a_file_that_cannot_be_measured_is_named(tmp_path):
    with pytest.raises(cues.AudioFileError, match=r"nowhere\.wav: cannot be read as audio: there is no such file"):
        cues.measure_file(tmp_path / "nowhere.wav")
    soundfile.write(tmp_path / "slow.wav", np.zeros(100), 4000)
    with pytest.raises(cues.CueValueError, match=r"slow\.wav: sample_rate is 4000"):
        cues.measure_file(tmp_path / "slow.wav")
