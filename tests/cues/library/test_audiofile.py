from __future__ import annotations

import os
import struct

import numpy as np
import pytest
import soundfile

import cues
from cues.library.audiofile import read_audio, write_audio

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


@pytest.mark.parametrize("channels", [2, 3, 6])
@pytest.mark.parametrize("sample_rate", [4000, 22050, 44100, 192000])
def test_channels_are_averaged_at_any_rate(tmp_path, channels, sample_rate):
    both = np.outer(TONE, np.arange(1, channels + 1) / channels).astype(np.float32)
    soundfile.write(tmp_path / "x.wav", both, sample_rate, "FLOAT")
    samples, rate = read_audio(tmp_path / "x.wav")
    assert rate == sample_rate
    np.testing.assert_allclose(samples, both.mean(axis=1), atol=1e-6)


def wav(tmp_path, samples=TONE, sample_rate=24000, subtype="FLOAT"):
    path = tmp_path / "x.wav"
    soundfile.write(path, samples, sample_rate, subtype)
    return path


def no_audio(tmp_path):
    path = tmp_path / "x.wav"
    path.write_text("this is a text and no sound")
    return path


def empty(tmp_path):
    path = tmp_path / "x.wav"
    path.touch()
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
        (empty, "cannot be read as audio"),
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


def test_a_header_that_claims_2_gb_is_not_believed(tmp_path):
    path = wav(tmp_path)
    data = path.read_bytes()
    start = data.index(b"data") + 4
    path.write_bytes(data[:start] + (2**31 - 1).to_bytes(4, "little") + data[start + 4 :])
    with pytest.raises(cues.AudioFileError, match=r"promises 2147483647 bytes of samples, and 19200 are there"):
        read_audio(path)


def test_a_wav_from_a_pipe_whose_length_was_not_known_is_read(tmp_path):
    path = wav(tmp_path)
    data = path.read_bytes()
    start = data.index(b"data") + 4
    path.write_bytes(data[:4] + b"\xff" * 4 + data[8:start] + b"\xff" * 4 + data[start + 4 :])
    np.testing.assert_array_equal(read_audio(path)[0], TONE)


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
