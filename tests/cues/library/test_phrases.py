"""Cues of a pack that are speech, and how a mixer plays them."""

import json

import numpy as np
import pytest
import soundfile

import cues
from cues.library.export import export_bank
from cues.library.lint import check_pack
from cues.meters.loudness import measure
from cues.synthesis.voicelike import speak_voice_like

RATE = 24000
TEXTS = {"one.wav": "One moment, please.", "two.wav": "I am still looking."}


@pytest.fixture
def pack(tmp_path):
    for file, text in TEXTS.items():
        soundfile.write(tmp_path / file, 0.5 * np.pad(speak_voice_like(text, sample_rate=RATE), RATE // 2), RATE)
    return tmp_path


def written(pack, cue, sound='{ phrases = ["one.wav", "two.wav"] }'):
    (pack / "pack.toml").write_text(f"[cues]\n{cue} = {sound}", encoding="utf-8")
    return pack


def test_files_of_speech_become_phrases_at_the_level_of_speech(pack):
    cue = cues.load_bank(written(pack, "working"))["working"]
    assert cue.loop
    assert [phrase.duration_s > 6.0 for phrase in cue.phrases] == [True, True]
    assert cue.measured.m100_max_lufs == pytest.approx(-14.0, abs=0.01)
    assert check_pack(pack) == []
    quiet = cues.load_bank(written(pack, "agent", '{ phrases = ["one.wav"], target_lu = -4, gain_db = -2 }'))["agent"]
    assert quiet.measured.m100_max_lufs == pytest.approx(-26.0, abs=0.01)
    assert not quiet.loop
    assert quiet.duration_s < cue.phrases[0].duration_s - 5.0  # trimmed, and no pause after it


@pytest.mark.parametrize("told", ["", ", target_lu = -4"], ids=["usual", "quiet"])
def test_an_export_of_phrases_is_a_pack_with_the_same_phrases(pack, told):
    bank = cues.load_bank(written(pack, "working", f'{{ phrases = ["one.wav", "two.wav"]{told} }}'))
    export_bank(bank, pack / "out")
    again = cues.load_bank(pack / "out")["working"]
    for before, after in zip(bank["working"].phrases, again.phrases, strict=True):
        assert after.duration_s == pytest.approx(before.duration_s, abs=0.02)
    assert again.measured.m100_max_lufs == pytest.approx(bank["working"].measured.m100_max_lufs, abs=0.05)
    beside = json.loads((pack / "out" / "working_1.json").read_text(encoding="utf-8"))
    assert beside["measured"]["m100_max_lufs"] == pytest.approx(
        bank["working"].phrases[0].measured.m100_max_lufs, abs=1e-3
    )
    names = {path.name for path in export_bank(bank, pack / "out", file_format="flac").written}
    assert {"working_1.flac", "working_2.flac"} <= names
    assert {path.name for path in (pack / "out").glob("working*.wav")} == set()


def test_a_phrase_and_a_cue_that_would_be_one_file_are_not_exported(pack):
    bank = cues.load_bank(written(pack, "working"))
    with pytest.raises(cues.CueValueError, match="'working_1': its file can replace"):
        export_bank({**bank, "working_1": bank["agent"]}, pack / "out")


@pytest.mark.parametrize(
    ("sound", "match"),
    [
        ("{ phrases = [] }", "is empty; it must name at least one file"),
        ('{ phrases = "one.wav" }', "must be a list of files"),
        ('{ phrases = ["one.wav", "three.wav"] }', r"phrases\[1\] is 'three.wav'; there is no such file"),
        ('{ phrases = ["one.wav"], file = "two.wav" }', "has both file and phrases"),
    ],
)
def test_wrong_phrases_name_the_place_and_what_is_allowed(pack, sound, match):
    with pytest.raises(cues.PackError, match=match):
        cues.load_bank(written(pack, "working", sound))
    assert [problem.code for problem in check_pack(pack)] == ["pack"]


@pytest.mark.parametrize("fault", ["a pop", "too quiet a file"])
def test_one_phrase_that_lacks_its_level_is_told_of_and_comes_back_from_an_export_as_it_was(pack, fault):
    samples, rate = soundfile.read(pack / "two.wav")
    samples *= {"a pop": 0.03, "too quiet a file": 0.004}[fault] / np.abs(samples).max()
    if fault == "a pop":
        samples[len(samples) // 2] = 0.8  # of the microphone: the ceiling keeps the speech down
    soundfile.write(pack / "two.wav", samples, rate, subtype="FLOAT")
    bank = cues.load_bank(written(pack, "working"))
    assert bank["working"].measured.missed_lu < -6.0
    (problem,) = check_pack(pack)
    heard_lu = measure(bank["working"].phrases[1].samples, rate).m100_max_lufs + 20.0
    assert problem.code == "too_quiet"
    assert problem.message.startswith(f"a phrase is too quiet: {heard_lu:+.1f} LU against the speech instead of 6")
    export_bank(bank, pack / "out")
    for before, after in zip(bank["working"].phrases, cues.load_bank(pack / "out")["working"].phrases, strict=True):
        assert measure(after.samples, rate).m100_max_lufs == pytest.approx(
            measure(before.samples, rate).m100_max_lufs, abs=0.1
        )


def test_a_phrase_louder_than_an_answer_is_told_of(pack):
    assert check_pack(written(pack, "working", '{ phrases = ["one.wav", "two.wav"], target_lu = 6.9 }')) == []
    (problem,) = check_pack(written(pack, "working", '{ phrases = ["one.wav", "two.wav"], target_lu = 8 }'))
    assert (problem.code, problem.message[:18]) == ("too_loud", "too loud: +8.0 LU ")


def test_a_mixer_plays_one_phrase_at_a_time_in_turn_and_only_in_silence(pack):
    cue = cues.load_bank(written(pack, "agent"))["agent"]
    lengths = [len(phrase) for phrase in cue.phrases]
    mixer = cues.Mixer(RATE)
    voices = [mixer.play(cue) for _ in range(3)]
    words = np.resize(np.float32([0.2, -0.2]), RATE)
    assert np.array_equal(mixer.mix(words), words)
    heard = np.concatenate([mixer.silence(240) for _ in range(1200)])
    assert all(voice.done for voice in voices)
    assert [voice.stretches[0][1] - voice.stretches[0][0] for voice in voices] == [*lengths, lengths[0]]
    starts, ends = zip(*(voice.stretches[0] for voice in voices), strict=True)
    assert all(end < start for end, start in zip(ends, starts[1:], strict=False))
    again = mixer.play(cue)
    mixer.silence(RATE // 10)
    mixer.mix(words)
    assert again.done
    assert len(heard) > sum(lengths)


def test_a_bank_takes_more_cues_and_keeps_its_rules(pack):
    (pack / "pack.toml").write_text('[rules]\n"read_*" = "motif"', encoding="utf-8")
    bank = cues.load_bank(pack)
    more = bank | {"working": bank["success"]}
    assert more["working"] is bank["success"]
    assert (more.rules, more.pack_dir, more.name_for("read_me")) == (bank.rules, pack, "motif:read_me")
