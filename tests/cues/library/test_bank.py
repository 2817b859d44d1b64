import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import cues
from cues.synthesis import render


def test_every_built_in_cue_is_mono_float32_at_24_khz():
    for cue in cues.load_bank().values():
        assert (cue.sample_rate, cue.samples.dtype, cue.samples.ndim) == (24000, "float32", 1)


def test_a_bank_is_a_mapping_of_cues():
    bank = cues.load_bank()
    assert list(bank) == ["tool_call", "agent", "error", "success", "working", "thinking", "listening", "attention"]
    assert len(bank) == 8
    assert all(bank[name].name == name and isinstance(bank[name], cues.Cue) for name in bank)
    assert "tool_call" in bank
    assert bank.get("nothing") is None
    with pytest.raises(cues.UnknownCueError, match=r"no cue is named 'tool_cal'.*agent.*did you mean 'tool_call'"):
        bank["tool_cal"]


@pytest.mark.parametrize("speech_lufs", [0, -60])
def test_at_the_ends_of_the_range_a_cue_reaches_its_level_or_says_what_is_missing(speech_lufs):
    usual = cues.load_bank(speech_lufs=-20.0)
    for name, cue in cues.load_bank(speech_lufs=speech_lufs).items():
        assert cue.measured.true_peak_dbtp <= -3.0 + 1e-6
        wanted = usual[name].measured.m100_max_lufs + 20.0 + speech_lufs
        assert cue.measured.m100_max_lufs - cue.measured.missed_lu == pytest.approx(wanted, abs=0.01), name
        if speech_lufs == -60:
            assert cue.measured.missed_lu == pytest.approx(0.0, abs=0.001), name


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"sample_rate": 4000}, cues.CueValueError, "4000"),
        ({"sample_rate": "24000"}, cues.CueTypeError, "'24000'"),
        ({"speech_lufs": 3}, cues.CueValueError, "speech_lufs is 3; it must be from -60 to 0"),
        ({"speech_lufs": float("nan")}, cues.CueValueError, "speech_lufs is nan"),
        ({"speech_lufs": "loud"}, cues.CueTypeError, "speech_lufs is 'loud'"),
    ],
)
def test_parameters_out_of_range_are_refused(arguments, error, match):
    with pytest.raises(error, match=match):
        cues.load_bank(**arguments)


def test_a_bank_with_more_cues_keeps_what_its_pack_says_of_tools(tmp_path):
    (tmp_path / "pack.toml").write_text('[profiles]\n"read_*" = "minimal"\n[rules]\n"write_*" = "agent"')
    bank = cues.load_bank(tmp_path)
    more = bank | {"ping": bank["success"]}
    assert more.profiles == bank.profiles == (("read_*", "minimal"),)
    assert more.name_for("write_file") == "agent"


def test_tools_without_a_rule_sound_tool_call():
    bank = cues.load_bank()
    assert bank.cue_for("read_file") is bank["tool_call"]
    assert {bank.name_for(tool) for tool in ("spawn_agent", "delegate", "run_sub_agent")} == {"agent"}


def test_a_motif_is_made_once_off_the_disk_and_ahead_of_a_session_if_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("CUES_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("cues.library.bank._remembered", {})
    (tmp_path / "pack.toml").write_text('[rules]\n"prepared_*" = "motif"\n')
    bank = cues.load_bank(tmp_path, sample_rate=8000)
    entries = set((tmp_path / "cache").iterdir())
    bank.prepare(["prepared_1", "prepared_2"])
    monkeypatch.setattr(render, "render", None)
    assert bank.cue_for("prepared_2").spec == cues.motif("prepared_2")
    assert set((tmp_path / "cache").iterdir()) == entries


def test_threads_may_ask_for_cues_and_motifs_at_once(monkeypatch):
    monkeypatch.setenv("CUES_CACHE_DIR", "")
    monkeypatch.setattr("cues.library.bank._MAX_REMEMBERED", 2)
    with ThreadPoolExecutor(8) as pool:
        banks = list(pool.map(lambda rate: cues.load_bank("", sample_rate=rate), [8000, 9000, 10000, 11000] * 3))
        list(pool.map(lambda number: banks[0][f"motif:tool_{number}"], range(300)))


def test_loading_a_bank_imports_nothing_heavy(tmp_path):
    code = (
        "import sys, cues; cues.load_bank(); "
        "print([m for m in ('numba', 'scipy', 'soundfile', 'soxr', 'openai', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
