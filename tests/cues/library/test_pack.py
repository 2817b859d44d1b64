from pathlib import Path

import numpy as np
import pytest
import soundfile

import cues
from cues.library.lint import check_pack

BEEP = (0.3 * np.sin(2 * np.pi * 700 / 44100 * np.arange(13230))).astype(np.float32)


@pytest.fixture
def pack(tmp_path):
    folder = tmp_path / "pack"
    folder.mkdir()
    soundfile.write(folder / "beep.wav", BEEP, 44100)
    return folder


def written(folder, text):
    (folder / "pack.toml").write_text(text, encoding="utf-8")
    return folder


def test_a_file_takes_the_place_of_a_built_in_cue(pack):
    bank = cues.load_bank(written(pack, '[cues]\ntool_call = "beep.wav"'))
    cue = bank["tool_call"]
    assert cue.spec is None
    assert (cue.sample_rate, len(cue)) == (24000, 7200)
    assert cue.measured.m100_max_lufs == pytest.approx(-26.0, abs=0.01)
    assert cue.samples[0] == cue.samples[-1] == 0.0
    np.testing.assert_array_equal(bank["agent"].samples, cues.load_bank()["agent"].samples)


def test_a_file_keeps_its_loudness_or_loses_its_silence_if_asked(pack):
    soundfile.write(pack / "long.wav", np.pad(BEEP, 20000), 44100)
    text = (
        '[cues]\nagent = { file = "long.wav", trim = true }\nerror = "long.wav"\n'
        'success = { file = "beep.wav", normalize = false }'
    )
    bank = cues.load_bank(written(pack, text))
    assert 1000 * bank["agent"].duration_s == pytest.approx(310, abs=3)
    assert 1000 * bank["error"].duration_s == pytest.approx(1207, abs=3)
    assert bank["success"].measured.true_peak_dbtp == pytest.approx(20 * np.log10(0.3), abs=0.05)


def test_a_spec_can_be_given_or_borrowed(pack):
    text = '[cues]\nagent = { spec = "success" }\n[cues.error]\nspec = { notes = [{ hz = 500, length_ms = 150 }] }'
    bank = cues.load_bank(written(pack, text))
    assert bank["agent"].spec == cues.load_bank()["success"].spec
    assert bank["error"].spec.notes[0].hz == 500


@pytest.mark.parametrize("spec", ['"attention"', "{ notes = [{ hz = 500, length_ms = 150 }] }"])
def test_a_spec_for_the_waiting_sound_loops_as_a_file_does_and_may_say_otherwise(pack, spec):
    cue = cues.load_bank(written(pack, f"[cues]\nworking = {{ spec = {spec} }}"))["working"]
    assert (cue.loop, len(cue)) == (True, 48000)
    once = cues.load_bank(written(pack, f"[cues]\nworking = {{ spec = {spec}, loop = false }}"))["working"]
    assert (once.loop, len(once) < 12000) == (False, True)


def test_loop_points_make_a_period(pack):
    text = '[cues]\nworking = { file = "beep.wav", loop = { start_ms = 50, end_ms = 250, period_ms = 3000 } }'
    cue = cues.load_bank(written(pack, text))["working"]
    assert cue.loop
    assert len(cue) == 72000
    assert np.flatnonzero(cue.samples).max() < 4800
    plain = cues.load_bank(written(pack, '[cues]\nworking = "beep.wav"'))["working"]
    assert (plain.loop, len(plain)) == (True, 48000)


def test_rules_are_tried_in_their_order_before_the_built_in_ones(pack):
    rules = '"read_secret" = "attention"\n"read_*" = "agent"\n"delegate" = "success"\n"[rR]un_?" = "error"'
    bank = cues.load_bank(written(pack, f'[pack]\nauthor = "me"\n[rules]\n{rules}'))
    sounds = {
        "read_secret": "attention",
        "read_file": "agent",
        "READ_file": "tool_call",
        "delegate": "success",
        "spawn_agent": "agent",
        "run_7": "error",
        "other": "tool_call",
    }
    assert {tool: bank.name_for(tool) for tool in sounds} == sounds


def test_a_cue_of_ones_own_is_one_that_a_rule_names(pack):
    bank = cues.load_bank(written(pack, '[cues]\n"größe 🎵" = "beep.wav"\n[rules]\n"send_*" = "größe 🎵"'))
    assert bank.cue_for("send_mail") is bank["größe 🎵"]
    assert bank["größe 🎵"].measured.m100_max_lufs == pytest.approx(-26.0, abs=0.01)


def test_a_rule_may_ask_for_motifs(pack):
    bank = cues.load_bank(written(pack, '[rules]\n"x_*" = "motif"'))
    cue = bank.cue_for("x_1")
    assert cue.name == bank.name_for("x_1") == "motif:x_1"
    assert cue.spec == cues.motif("x_1")
    assert cue.measured.m100_max_lufs == pytest.approx(-26.0, abs=0.01)
    assert bank["motif:x_1"] is cue
    assert "motif:x_1" in bank
    assert "motif:x_1" not in list(bank)


WRONG = [
    ("tool_call = 3", r"\[cues\] tool_call is 3; it must be a file name or a table"),
    ('tool_call = "none.wav"', r"tool_call is 'none.wav'; there is no such file in"),
    ('tool_call = "../beep.wav"', r"tool_call is '../beep.wav'; it must lie inside the pack's folder"),
    ('tool_call = "link.wav"', r"tool_call is 'link.wav'; it must lie inside"),
    ('tool_call = "a\\u0000b"', "it must be a file name"),
    ('tool_cal = "beep.wav"', r"\[cues\] tool_cal: no rule names it, and it is not one of tool_call, agent"),
    ("mail = { gain_db = 1 }\n[rules]\nx = 'mail'", "mail: has neither file nor spec"),
    ('motif = "beep.wav"\n[rules]\nx = "motif"', "'motif': the name is taken"),
    ('agent = { file = "beep.wav", spec = "error" }', "agent: has both file and spec"),
    ('agent = { fille = "beep.wav" }', "agent 'fille' is unknown; a cue has file, spec, gain_db"),
    ('agent = { file = "beep.wav", gain_db = "loud" }', "agent.gain_db is 'loud'; it must be a number from -40 to 20"),
    ('agent = { file = "beep.wav", gain_db = 21 }', "agent.gain_db is 21; it must be from -40 to 20"),
    ('agent = { file = "beep.wav", target_lu = true }', "agent.target_lu is True; it must be a number from -40 to 10"),
    ('agent = { file = "beep.wav", loop = "yes" }', "agent.loop is 'yes'; it must be true, false or a table"),
    ('agent = { file = "beep.wav", loop = { from = 1 } }', "agent.loop 'from' is unknown; a loop has start_ms, end_ms"),
    ('agent = { file = "beep.wav", loop = { end_ms = 301 } }', "from 0.0 to 301.0 ms; it must lie inside"),
    ('agent = { spec = "bell" }', "agent.spec is 'bell'; it must be a table or one of"),
    ("agent = { spec = { notes = 1 } }", "agent.spec: Spec.notes is 1; it must be a list"),
    ("agent = { loop = { period_ms = 500 } }", "agent.loop is {'period_ms': 500}; it is for files"),
    (f"agent = {{ gain_db = 1{400 * '0'} }}", "agent.gain_db is 10+; it must be from -40 to 20"),
    (f"agent = {{ gain_db = 1{5000 * '0'} }}", "is not valid TOML"),
    ('"../../out" = "beep.wav"\n[rules]\nx = "../../out"', r"\[cues\] '../../out': no name for a cue"),
    ('"" = "beep.wav"\n[rules]\nx = ""', "'': no name for a cue"),
    ('agent = "text.wav"', "agent: .*text.wav: cannot be read as audio"),
    ('agent = "silent.wav"', "agent: the sound is silent"),
    ("[rules]\nx = 'bell'", r"\[rules\] 'x' is 'bell'; no cue of that name; it must be one of tool_call"),
    ("[[pack]]", r"\[pack\] is \[{}\]; it must be a table"),
    ("[sounds]", "'sounds' is unknown; the file has pack, cues, rules, profiles"),
    ("[profiles]\nx = 'loud'", r"\[profiles\] 'x' is 'loud'; it must be one of full, normal, minimal"),
    ("a" + 600 * ".a" + " = 1", "line 2 has 600 dots; at most 500 are allowed"),
    ("#" * 200_000, "has 200008 bytes; at most 131072 are allowed"),
    ("agent = ", "is not valid TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "match"), WRONG, ids=[text[:40] for text, _ in WRONG])
def test_a_wrong_pack_is_refused_by_file_key_value_and_what_is_allowed(pack, text, match):
    (pack.parent / "beep.wav").write_bytes((pack / "beep.wav").read_bytes())
    (pack / "link.wav").symlink_to(pack.parent / "beep.wav")
    (pack / "text.wav").write_text("no sound")
    soundfile.write(pack / "silent.wav", np.zeros(2000), 24000)
    with pytest.raises((cues.PackError, cues.AudioFileError), match=match) as caught:
        cues.load_bank(written(pack, f"[cues]\n{text}\n"))
    assert str(pack / "pack.toml") in str(caught.value)
    problems = check_pack(pack)
    assert problems
    assert all(problem.fix for problem in problems)
    assert not any(str(pack.parent) in problem.message.replace(str(pack), "") for problem in problems)


def test_a_pack_toml_that_is_a_link_out_of_the_folder_is_not_read(tmp_path):
    (tmp_path / "elsewhere.toml").write_text("[cues]\ntool_call = 'sk-secret'\n")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "pack.toml").symlink_to(tmp_path / "elsewhere.toml")
    with pytest.raises(cues.PackError, match="leads out of the pack's folder") as raised:
        cues.load_bank(tmp_path / "pack")
    assert "sk-secret" not in str(raised.value)


def test_a_pack_toml_that_is_a_link_to_itself_is_an_error_of_the_pack(tmp_path):
    (tmp_path / "pack.toml").symlink_to(tmp_path / "pack.toml")
    with pytest.raises(cues.PackError, match="cannot be read"):
        cues.load_bank(tmp_path)


def test_a_pack_toml_that_is_a_link_to_nowhere_is_not_overlooked(tmp_path):
    soundfile.write(tmp_path / "error.wav", BEEP, 44100)
    (tmp_path / "pack.toml").symlink_to(tmp_path / "gone.toml")
    with pytest.raises(cues.PackError, match=r"pack\.toml: cannot be read: No such file"):
        cues.load_bank(tmp_path)


def test_folders_that_are_no_pack_are_refused(tmp_path):
    with pytest.raises(cues.PackError, match="is not a folder"):
        cues.load_bank(tmp_path / "none")
    with pytest.raises(cues.PackError, match=r"neither a pack.toml nor an audio file"):
        cues.load_bank(tmp_path)
    soundfile.write(tmp_path / "tool_cal.wav", BEEP, 44100)
    with pytest.raises(cues.PackError, match="'tool_cal' is not a cue"):
        cues.load_bank(tmp_path)


def test_the_argument_goes_before_the_variable_and_that_before_the_configuration_folder(pack, monkeypatch, tmp_path):
    import platformdirs

    config = tmp_path / "config"
    monkeypatch.setattr(platformdirs, "user_config_path", lambda *_, **__: config)
    monkeypatch.delenv("CUES_PACK")
    assert cues.load_bank().pack_dir is None
    (config / "pack").mkdir(parents=True)
    assert cues.load_bank().pack_dir is None
    written(config / "pack", "")
    assert cues.load_bank().pack_dir == config / "pack"
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("CUES_PACK", str(written(other, "")))
    assert cues.load_bank().pack_dir == other
    assert cues.load_bank(str(written(pack, ""))).pack_dir == Path(pack)
    monkeypatch.setenv("CUES_PACK", "")
    assert cues.load_bank().pack_dir is None
    monkeypatch.setenv("HOME", str(pack.parent))
    monkeypatch.setenv("CUES_PACK", "~/pack")
    assert cues.load_bank().pack_dir == pack
    monkeypatch.setenv("CUES_PACK", "/nowhere")
    with pytest.raises(cues.PackError, match=r"^CUES_PACK: /nowhere: is not a folder"):
        cues.load_bank()


@pytest.mark.parametrize("ending", ["mp3", "aiff", "flac", "ogg", "au"])
def test_a_file_of_any_format_that_is_read_becomes_a_cue_with_and_without_a_pack_toml(tmp_path, ending):
    soundfile.write(tmp_path / f"agent.{ending}", BEEP, 44100)
    for name in ("LICENSE.txt", "agent.json", "agent.png", "overview.png", "README.md", ".agent.wav.part"):
        (tmp_path / name).write_text("not a sound")
    bank = cues.load_bank(tmp_path)
    assert bank.pack_dir == tmp_path
    assert bank["error"].spec is not None
    plain = bank["agent"]
    assert plain.spec is None
    assert plain.measured.m100_max_lufs == pytest.approx(-26.0, abs=0.01)
    named = cues.load_bank(written(tmp_path, f'[cues]\nagent = "agent.{ending}"'))["agent"]
    np.testing.assert_array_equal(named.samples, plain.samples)


@pytest.mark.parametrize("name", ["agent.m4a", "agent.wma", "agent", "agent.xyz", "ping.m4a"])
def test_a_file_that_looks_like_a_cue_and_cannot_be_read_is_refused_by_name(tmp_path, name):
    soundfile.write(tmp_path / "tool_call.wav", BEEP, 44100)
    (tmp_path / name).write_bytes(b"sound of another kind")
    with pytest.raises(cues.PackError, match=f"{name}: its name does not end as audio that can be read"):
        cues.load_bank(tmp_path)
