"""`--telephone`: files as a telephone carries them."""

import numpy as np
import pytest
import soundfile

import cues
from cues.meters.telephone import over_telephone
from tests.support.packs import soft, tone, write


def test_a_mix_over_the_telephone_is_what_the_simulation_gives(run, tmp_path):
    write(tmp_path / "speech.wav", soft(tone(440.0, 24000)))
    run("mix", "speech.wav", "--cue", "tool_call@0.2", "-o", "wide.wav")
    assert run("mix", "speech.wav", "--cue", "tool_call@0.2", "-o", "narrow.wav", "--telephone").code == 0
    wide, rate = soundfile.read(tmp_path / "wide.wav", dtype="float32")
    narrow, narrow_rate = soundfile.read(tmp_path / "narrow.wav", dtype="float32")
    assert narrow_rate == 8000
    np.testing.assert_allclose(narrow, over_telephone(wide, rate), atol=2e-3)


def test_the_cues_over_the_telephone_are_a_folder_of_files_at_8_khz(run, tmp_path):
    assert run("export", "narrow", "--telephone").code == 0
    bank = cues.load_bank("")
    for name, cue in bank.items():
        samples, rate = soundfile.read(tmp_path / "narrow" / f"{name}.wav", dtype="float32")
        assert rate == 8000
        np.testing.assert_allclose(samples, over_telephone(cue.samples, 24000, loop=cue.loop), atol=1e-5)


def test_a_pack_over_the_telephone_keeps_its_rules_and_profiles(run, tmp_path):
    (tmp_path / "pack").mkdir()
    write(tmp_path / "pack" / "swoosh.wav", soft(tone(440.0)))
    (tmp_path / "pack" / "pack.toml").write_text(
        '[cues]\nmail = "swoosh.wav"\n[rules]\n"send_*" = "mail"\n"read_*" = "motif"\n[profiles]\n"x_*" = "minimal"\n'
    )
    assert run("export", "narrow", "--telephone", "--pack", "pack").code == 0
    assert run("check", "narrow").code == 0
    bank = cues.load_bank(tmp_path / "narrow")
    assert bank.cue_for("send_mail").name == "mail"
    assert (bank.name_for("read_mail"), bank.profiles) == ("motif:read_mail", (("x_*", "minimal"),))


@pytest.mark.parametrize("pitch_hz", [120.0, 5000.0])
def test_a_cue_that_no_telephone_carries_is_on_the_board_and_an_export_names_it(run, tmp_path, pitch_hz):
    write(tmp_path / "success.wav", soft(tone(pitch_hz)))
    assert run("page", "board.html", "--pack", ".", "--speaker", "voice-like").code == 0
    result = run("export", "narrow", "--telephone", "--pack", ".")
    assert result.code == 1
    assert "cue 'success' is silent: its loudest 100 ms have " in result.err
    assert not (tmp_path / "narrow").exists()


@pytest.mark.parametrize("options", [["--sample-rate", "16000"], ["--for", "home-assistant"]])
def test_a_telephone_leaves_no_choice_of_rate(run, options):
    assert run("export", "narrow", "--telephone", *options).code == 2
