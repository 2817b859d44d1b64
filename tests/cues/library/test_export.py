import errno
import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

import cues
from cues.cli import group
from cues.library.export import export_bank, export_for_player
from tests.support.packs import soft, tone, write

PAIRS = [("wav", "16"), ("wav", "24"), ("wav", "float"), ("flac", "16"), ("flac", "24"), ("ogg", "vorbis")]


@pytest.mark.parametrize(("file_format", "subtype"), PAIRS)
def test_an_exported_cue_comes_back_as_an_override_and_sounds_the_same(tmp_path, file_format, subtype):
    bank = cues.load_bank()
    export_bank(bank, tmp_path, file_format=file_format, subtype=subtype)
    for name, cue in cues.load_bank(tmp_path).items():
        assert cue.spec is None
        assert len(cue) == len(bank[name])
        assert cue.loop == bank[name].loop
        assert cue.measured.m100_max_lufs == pytest.approx(bank[name].measured.m100_max_lufs, abs=0.02)
        difference = cue.samples.astype(np.float64) - bank[name].samples
        limit = 0.1 if file_format == "ogg" else 0.01
        assert np.sqrt(np.mean(difference**2)) < limit * np.sqrt(np.mean(bank[name].samples.astype(np.float64) ** 2)), (
            name
        )


def test_float_export_is_exact_with_a_spec_that_renders_the_cue_beside_it(tmp_path):
    bank = cues.load_bank()
    for path in export_bank(bank, tmp_path, subtype="float").written:
        np.testing.assert_array_equal(soundfile.read(path, dtype="float32")[0], bank[path.stem].samples)
        beside = json.loads(path.with_suffix(".json").read_text())
        assert cues.Spec.from_table(beside["spec"]) == bank[path.stem].spec
        assert (beside["n_samples"], beside["sample_rate"]) == (len(bank[path.stem]), 24000)
        assert beside["engine"] == f"cue-engine {cues.__version__}"


def run(*arguments):
    return CliRunner().invoke(group, ["export", *map(str, arguments)])


def test_the_command_writes_every_cue_and_says_so(tmp_path):
    done = run(tmp_path / "out", "--format", "flac", "--sample-rate", "48000")
    assert done.exit_code == 0
    assert done.output.splitlines() == [str(tmp_path / "out" / f"{name}.flac") for name in cues.load_bank("")]
    assert soundfile.info(tmp_path / "out" / "error.flac").samplerate == 48000


def suffixes(folder):
    return {path.suffix for path in folder.iterdir()}


def test_an_export_in_another_format_takes_the_place_of_the_first_and_says_so(tmp_path):
    export_bank({"agent": cues.load_bank()["agent"]}, tmp_path, pictures=True)
    assert (tmp_path / "agent.png").read_bytes()[:4] == b"\x89PNG"
    again = run(tmp_path, "--format", "flac")
    assert "agent.wav, of an earlier export" in again.output
    assert suffixes(tmp_path) == {".flac", ".json", ".png"}
    assert run(tmp_path, "--subtype", "16").exit_code == 0
    assert suffixes(tmp_path) == {".wav", ".json", ".png"}
    assert len(cues.load_bank(tmp_path)) == 8


@pytest.mark.parametrize("file_format", ["wav", "flac"])
@pytest.mark.parametrize(
    "sidecar", ["{}", None, "[]", "{", "[" * 99999], ids=["changed", "missing", "another program's", "broken", "deep"]
)
def test_a_sound_of_ones_own_is_kept_and_named_and_the_other_cues_are_exported(tmp_path, file_format, sidecar):
    assert run(tmp_path).exit_code == 0
    if sidecar is None:
        (tmp_path / "agent.json").unlink()
    else:
        (tmp_path / "agent.json").write_text(sidecar)
    before = (tmp_path / "agent.wav").read_bytes()
    again = run(tmp_path, "--format", file_format, "--subtype", "16")
    assert "agent.wav; it is a sound of yours" in again.output
    assert (tmp_path / "agent.wav").read_bytes() == before
    sounds = {path.name for path in tmp_path.iterdir() if path.suffix != ".json"}
    assert sounds == {"agent.wav", *(f"{name}.{file_format}" for name in cues.load_bank() if name != "agent")}
    assert len(cues.load_bank(tmp_path)) == 8


def test_a_sound_of_ones_own_in_another_format_takes_the_place_of_the_exported_one(tmp_path):
    run(tmp_path)
    soundfile.write(tmp_path / "agent.flac", 0.2 * np.sin(np.arange(4800)), 24000)
    own = (tmp_path / "agent.flac").read_bytes()
    said = json.loads(run(tmp_path, "--json").output)
    assert [Path(path).name for path in (*said["kept"], *said["removed"])] == ["agent.flac", "agent.wav"]
    assert (tmp_path / "agent.flac").read_bytes() == own
    assert len(cues.load_bank(tmp_path)) == 8


def test_an_export_without_the_pack_of_before_leaves_a_sound_of_ones_own_and_a_folder_that_loads(tmp_path):
    out, pack = tmp_path / "out", with_a_cue_of_its_own(tmp_path / "pack")
    assert run(out, "--pack", str(pack)).exit_code == 0
    soundfile.write(out / "mail.wav", 0.2 * np.sin(np.arange(4800)), 24000)
    own = (out / "mail.wav").read_bytes()
    assert "mail.wav; it is a sound of yours" in run(out).output
    assert (out / "mail.wav").read_bytes() == own
    assert set(cues.load_bank(out)) == set(cues.load_bank(""))


def test_a_bank_with_a_cue_that_no_rule_names_comes_back_with_it(tmp_path):
    beep = cues.Cue(name="beep", samples=(0.1 * np.sin(np.arange(4800) / 5) * np.hanning(4800)).astype(np.float32))
    pack, out = with_a_cue_of_its_own(tmp_path / "pack"), tmp_path / "out"
    (pack / "pack.toml").write_text('[rules]\n"beep" = "agent"\n')
    export_bank(cues.load_bank(pack) | {"beep": beep}, out)
    again = cues.load_bank(out)
    np.testing.assert_allclose(again["beep"].samples, beep.samples, atol=1e-4)
    assert again.name_for("beep") == "agent"


def test_a_sound_in_the_place_of_an_exported_one_gets_its_level(tmp_path):
    out, pack = tmp_path / "out", with_a_cue_of_its_own(tmp_path / "pack")
    (pack / "pack.toml").write_text("[cues]\ntool_call = { gain_db = -3 }\n")
    before = cues.load_bank(pack)["tool_call"]
    assert run(out, "--pack", str(pack)).exit_code == 0
    np.testing.assert_allclose(cues.load_bank(out)["tool_call"].samples, before.samples, atol=1e-4)
    soundfile.write(out / "tool_call.wav", 0.9 * np.sin(np.arange(4800) / 5), 24000)
    level = cues.load_bank(out)["tool_call"].measured.m100_max_lufs
    assert level == pytest.approx(before.measured.m100_max_lufs, abs=0.02)


def with_a_cue_of_its_own(folder):
    folder.mkdir()
    (folder / "pack.toml").write_text('[cues]\nmail = { spec = "agent" }\n[rules]\n"send_*" = "mail"\n')
    return folder


def test_a_pack_toml_of_an_export_is_replaced_and_a_changed_one_is_kept_with_its_files(tmp_path):
    out = tmp_path / "out"
    pack = with_a_cue_of_its_own(tmp_path / "pack")
    assert run(out, "--pack", pack).exit_code == run(out, "--pack", pack, "--format", "flac").exit_code == 0
    assert cues.load_bank(out).name_for("send_1") == "mail"
    assert suffixes(out) == {".flac", ".json", ".toml"}
    with (out / "pack.toml").open("a") as file:
        file.write('"x_*" = "agent"\n')
    said = run(out, "--pack", pack)
    assert said.exit_code == 0
    assert "your pack.toml names it" in said.output
    assert cues.load_bank(out).name_for("x_1") == "agent"
    assert cues.load_bank(out).name_for("send_1") == "mail"
    for of_built_in in ([], ["--format", "flac"]):  # which has no mail
        assert run(out, *of_built_in).exit_code == 0
        assert cues.load_bank(out).name_for("send_1") == "mail"


def test_cues_of_an_earlier_export_that_are_gone_from_the_pack_are_gone_from_the_folder(tmp_path):
    assert run(tmp_path / "out", "--pack", with_a_cue_of_its_own(tmp_path / "pack")).exit_code == 0
    assert (tmp_path / "out" / "mail.wav").exists()
    export_bank(cues.load_bank(""), tmp_path / "out")
    assert len(list((tmp_path / "out").iterdir())) == 16  # 8 cues and their JSON, no `pack.toml`


@pytest.fixture
def fills_up(monkeypatch):
    """A function after which the disk has room for so many files, the last one cut off."""

    def fill(n_files):
        left = [n_files]

        def limited(whole):
            def write(path, data, **options):
                left[0] -= 1
                if left[0] < 0:
                    whole(path, data[: len(data) // 2], **options)
                    raise OSError(errno.ENOSPC, "No space left on device")
                return whole(path, data, **options)

            return write

        monkeypatch.setattr(Path, "write_bytes", limited(Path.write_bytes))
        monkeypatch.setattr(Path, "write_text", limited(Path.write_text))

    return fill


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("is_first", [True, False], ids=["the first export", "a later one"])
@pytest.mark.parametrize(
    "export",
    [
        lambda folder, rate: export_bank(cues.load_bank("", sample_rate=rate), folder),
        lambda folder, rate: export_for_player(
            lambda _: cues.load_bank("", sample_rate=rate), folder, "home-assistant"
        ),
    ],
    ids=["bank", "player"],
)
def test_an_export_for_which_the_disk_has_no_room_changes_nothing_and_the_next_is_whole(
    tmp_path, fills_up, monkeypatch, export, is_first
):
    if not is_first:
        export(tmp_path, 24000)
    before = contents(tmp_path)
    fills_up(3)
    with pytest.raises(cues.CueError, match="No space left"):
        export(tmp_path, 48000)
    assert contents(tmp_path) == before
    monkeypatch.undo()
    done = export(tmp_path, 48000)
    assert (len(done.written), done.kept) == (len({path.name for path in done.written}), ())
    assert {soundfile.info(path).samplerate for path in done.written} == {48000}


def test_an_export_whose_pack_toml_has_no_room_changes_nothing(tmp_path, fills_up, monkeypatch):
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine" / "ping.wav", soft(tone(880.0, 4800)))
    (tmp_path / "mine" / "pack.toml").write_text('[cues]\nping = "ping.wav"\n[rules]\n"read_*" = "ping"\n')
    bank, out = cues.load_bank(tmp_path / "mine"), tmp_path / "out"
    fills_up(2 * len(bank))
    with pytest.raises(cues.CueError, match="No space left"):
        export_bank(bank, out)
    assert contents(out) == {}
    monkeypatch.undo()
    export_bank(bank, out)
    assert cues.load_bank(out).rules == bank.rules


def test_a_folder_that_cannot_be_made_is_an_error_of_ours(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(cues.AudioFileError, match="cannot be written"):
        export_bank(cues.load_bank(), tmp_path / "file" / "x")


def test_the_export_of_a_pack_is_a_pack_that_sounds_the_same(tmp_path):
    pack, out = tmp_path / "pack", tmp_path / "out"
    pack.mkdir()
    export_bank({"agent": cues.load_bank()["agent"]}, pack)
    (pack / "pack.toml").write_text(
        '[cues]\n"ping \'1\'" = { file = "agent.wav", gain_db = -3 }\nerror = { gain_db = -2.5 }\n'
        "working = { loop = false }\nlistening = { gain_db = -40 }\n"
        '[rules]\n"say_\\"hi\\"_*" = "ping \'1\'"\n"x_*" = "motif"\n',
        encoding="utf-8",
    )
    bank = cues.load_bank(pack, speech_lufs=-23.0)
    export_bank(bank, out, subtype="float")
    again = cues.load_bank(out, speech_lufs=-23.0)
    assert list(again) == list(bank)
    assert again.rules == bank.rules
    for name, cue in again.items():
        assert cue.loop == bank[name].loop, name
        assert cue.measured.m100_max_lufs == pytest.approx(bank[name].measured.m100_max_lufs, abs=0.01), name


@pytest.mark.parametrize("subtype", ["16", "float"])
@pytest.mark.parametrize("name", ["working", "hum"])
@pytest.mark.parametrize("loop", ["true", "{ start_ms = 200, end_ms = 1700 }", "{ start_ms = 200, end_ms = 2700 }"])
def test_a_loop_without_silence_comes_back_without_silence(tmp_path, loop, name, subtype):
    pack, out = tmp_path / "pack", tmp_path / "out"
    pack.mkdir()
    pad = sum(np.sin(2 * np.pi * hz * np.arange(3 * 24000) / 24000) for hz in (220.3, 331.1, 523.7))
    soundfile.write(pack / "pad.wav", 0.1 * pad, 24000)
    rules = f'[rules]\n"x_*" = "{name}"\n' if name == "hum" else ""
    (pack / "pack.toml").write_text(f'[cues]\n{name} = {{ file = "pad.wav", loop = {loop} }}\n{rules}')
    first = cues.load_bank(pack)[name]
    export_bank(cues.load_bank(pack), out, subtype=subtype)
    again = cues.load_bank(out)[name]
    assert again.loop
    assert again.measured.m100_max_lufs == pytest.approx(first.measured.m100_max_lufs, abs=0.02)
    np.testing.assert_allclose(again.samples, first.samples, atol=1e-6 if subtype == "float" else 2.5 / 32768.0)
    assert np.abs(again.samples).reshape(-1, 240).max(axis=1).min() > 0.01


def test_an_exported_loop_has_no_seam_at_another_rate_and_one_that_was_replaced_is_crossfaded(tmp_path):
    pack, out = tmp_path / "pack", tmp_path / "out"
    pack.mkdir()
    pad = sum(np.sin(2 * np.pi * hz * np.arange(3 * 24000) / 24000) for hz in (220.3, 331.1, 523.7))
    soundfile.write(pack / "pad.wav", 0.1 * pad, 24000)
    (pack / "pack.toml").write_text('[cues]\nworking = { file = "pad.wav", loop = true }\n')
    first = cues.load_bank(pack)["working"]
    export_bank(cues.load_bank(pack), out)
    at_48_khz = cues.load_bank(out, sample_rate=48000)["working"]
    assert len(at_48_khz) == 2 * len(first)
    bends = np.abs(np.diff(np.concatenate([at_48_khz.samples] * 2), 2))
    assert bends[len(at_48_khz) - 200 :][:400].max() <= 1.01 * bends[10000:60000].max()
    soundfile.write(out / "working.wav", 0.1 * pad, 24000)
    assert len(cues.load_bank(out)["working"]) == len(first)  # the pad's last 20 ms are in the crossfade, once more


def test_an_export_that_its_file_names_explain_has_no_pack_toml_and_none_is_replaced(tmp_path):
    export_bank(cues.load_bank(), tmp_path / "plain")
    assert not (tmp_path / "plain" / "pack.toml").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "pack.toml").write_text("[rules]\nx = 'agent'\n")
    export_bank(cues.load_bank(tmp_path / "mine"), tmp_path / "mine")
    assert (tmp_path / "mine" / "pack.toml").read_text() == "[rules]\nx = 'agent'\n"


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/b", "a\\b", "", ".", "..", "a\0b", "a\nb", "x" * 81])
def test_no_name_leads_out_of_the_folder(tmp_path, name):
    cue = cues.load_bank()["agent"]
    with pytest.raises(cues.CueValueError, match="no file can have that name"):
        export_bank({"agent": cue, name: cue}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("name", "allowed"), [("CON", "CON_"), ("Lpt1.x", "Lpt1_.x"), ("Agent", "Agent_2")])
def test_a_name_that_is_no_file_of_its_own_on_some_system_is_refused_with_one_that_would_do(tmp_path, name, allowed):
    cue = cues.load_bank()["agent"]
    with pytest.raises(cues.CueValueError, match=f"; {allowed} would do"):
        export_bank({"agent": cue, name: cue}, tmp_path / "out")
    export_bank({"agent": cue, allowed: cue}, tmp_path / "out")


def test_without_matplotlib_pictures_are_refused_before_a_file_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(cues.MissingFeatureError, match=r"pip install .*\[plots\]"):
        export_bank(cues.load_bank(), tmp_path / "out", pictures=True)
    assert not (tmp_path / "out").exists()


def test_the_samples_in_the_repository_are_what_the_bank_holds():
    samples = Path(__file__).parents[3] / "samples" / "cues"
    for name, cue in cues.load_bank().items():
        stored, sample_rate = soundfile.read(samples / f"{name}.wav", dtype="float32")
        assert sample_rate == cue.sample_rate
        np.testing.assert_allclose(stored, cue.samples, atol=2.5 / 32768)
        beside = json.loads((samples / f"{name}.json").read_text())
        assert beside["spec"] == cue.spec.to_table()
        assert beside["sha256"] == hashlib.sha256((samples / f"{name}.wav").read_bytes()).hexdigest()
