"""`cues batch`, as a person with a folder of recordings meets it."""

import csv
import json
import os
import sys

import numpy as np
import pytest
import soundfile

import cues
from cues.batch.run import run_task
from cues.extras import pip_install
from tests.support.packs import cut_in_the_middle, soft, tone, write


@pytest.fixture
def calls(tmp_path):
    folder = tmp_path / "calls"
    folder.mkdir()
    for name, samples in {"a": soft(tone(440.0, 24000)), "b": cut_in_the_middle()}.items():
        write(folder / f"{name}.wav", samples)
    return folder


def table(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_measure_writes_a_table_and_goes_on_from_it(run, calls, tmp_path):
    result = run("batch", "measure", "calls", "--workers", 1)
    assert result.code == 0
    assert result.out.splitlines()[0] == "2 of 2 done: measures.csv"
    assert [row["n_clicks"] for row in table(tmp_path / "measures.csv")] == ["0", "1"]
    write(calls / "c.wav", tone(440.0))
    again = run("batch", "measure", "calls", "--workers", 1)
    assert again.out.splitlines()[0] == "3 of 3 done, 2 of them in an earlier run: measures.csv"
    assert (
        run("batch", "measure", "calls", "--fresh", "--workers", 1).out.splitlines()[0] == "3 of 3 done: measures.csv"
    )


def test_without_dask_nothing_is_touched(run, calls, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    run("batch", "measure", "calls", "--workers", 1)
    before = (tmp_path / "measures.csv").read_bytes()
    result = run("batch", "measure", "calls", "--fresh", "--dask", "tcp://127.0.0.1:1")
    assert (result.code, result.err) == (1, f"cues: a cluster needs Dask: {pip_install('batch')}\n")
    assert (tmp_path / "measures.csv").read_bytes() == before


def test_measure_as_json_keeps_its_keys(run, calls):
    summary = json.loads(run("batch", "measure", "calls", "--json", "--workers", 1).out)
    assert list(summary) == [
        "table", "files", "resumed", "failed", "median_lufs", "lowest_lufs", "highest_lufs", "above_1_dbtp",
        "with_clicks",
    ]  # fmt: skip
    assert (summary["files"], summary["with_clicks"], summary["failed"]) == (2, 1, [])


def test_the_summary_counts_a_peak_at_full_scale_and_has_the_middle_of_two_levels(run, calls):
    pulse = np.zeros(24000)
    pulse[::2400] = 1.0
    write(calls / "a.wav", pulse)
    write(calls / "b.wav", soft(tone(440.0, 24000)))
    summary = json.loads(run("batch", "measure", "calls", "--json", "--workers", 1).out)
    assert summary["above_1_dbtp"] == 1
    assert summary["median_lufs"] == pytest.approx((summary["lowest_lufs"] + summary["highest_lufs"]) / 2)


def test_an_empty_place_and_an_unknown_table_are_one_line(run, calls, tmp_path):
    (tmp_path / "empty").mkdir()
    assert run("batch", "measure", "empty").err.startswith("cues: empty: no recordings there")
    assert run("batch", "measure", "nowhere").err == "cues: nowhere: there is no such folder or file\n"
    result = run("batch", "measure", "calls", "-o", "x.xls")
    assert result.code == 2
    assert "'x.xls' must end in .csv or .jsonl" in result.err
    assert not list(tmp_path.glob("x.xls*"))


def test_mix_puts_the_cues_of_a_plan_into_recordings(run, calls, tmp_path):
    (calls / "plan.csv").write_text("file,cue,time_s\na.wav,agent,0.2\na.wav,error,0.6\ngone.wav,agent,0\n")
    result = run("batch", "mix", "calls/plan.csv", "--workers", 1)
    assert result.code == 1
    assert "failed: calls/gone.wav: cannot be read as audio: there is no such file" in result.err
    done, failed = table(tmp_path / "mixed" / "mixed.csv")
    assert (done["status"], done["n_cues"], done["output"]) == ("ok", "2", "mixed/a.wav")
    assert failed["status"] == "failed"
    assert (tmp_path / "mixed" / "a.wav").is_file()


def test_an_output_that_was_deleted_is_mixed_again(run, calls, tmp_path):
    (calls / "plan.csv").write_text("file,cue,time_s\na.wav,agent,0.2\nb.wav,agent,0.1\n")
    run("batch", "mix", "calls/plan.csv", "--workers", 1)
    (tmp_path / "mixed" / "b.wav").unlink()
    assert "2 of 2 done, 1 of them in an earlier run" in run("batch", "mix", "calls/plan.csv", "--workers", 1).out
    assert (tmp_path / "mixed" / "b.wav").is_file()


def test_a_changed_sound_of_the_pack_is_mixed_again_and_a_file_beside_it_changes_nothing(run, calls, tmp_path):
    (calls / "plan.csv").write_text("file,cue,time_s\na.wav,agent,0.05\n")
    (tmp_path / "pack" / "sounds").mkdir(parents=True)
    (tmp_path / "pack" / "pack.toml").write_text('[cues]\nagent = "sounds/mine.wav"\n')

    def mixed(hz):
        write(tmp_path / "pack" / "sounds" / "mine.wav", soft(tone(hz)))
        out = run("batch", "mix", "calls/plan.csv", "--pack", "pack", "--workers", 1).out.splitlines()[0]
        return out, (tmp_path / "mixed" / "a.wav").read_bytes()

    _, first = mixed(500.0)
    out, second = mixed(900.0)
    assert out == "1 of 1 done: mixed/mixed.csv"
    assert second != first
    (tmp_path / "pack" / "notes.txt").write_text("louder?")
    again = run("batch", "mix", "calls/plan.csv", "--pack", tmp_path / "pack", "--workers", 1)
    assert again.out.startswith("1 of 1 done, all of them in an earlier run")


@pytest.mark.parametrize("output", ["a.wav", "b.wav"], ids=["itself", "another"])
def test_a_recording_is_never_written_over_one_that_is_read(run, calls, output):
    before = (calls / output).read_bytes()
    plan = f"file,cue,time_s,output\nb.wav,agent,0.2,c.wav\na.wav,agent,0.2,{output}\n"
    (calls / "plan.csv").write_text(plan)
    result = run("batch", "mix", "calls/plan.csv", "--out", "calls")
    assert result.code == 1
    assert f"{output} would be written over a recording" in result.err
    assert (calls / output).read_bytes() == before


def test_an_interrupt_says_what_is_kept_and_counts_no_failure_as_done(run, calls, monkeypatch):
    write(calls / "c.wav", tone(440.0))

    (calls / "b.wav").write_bytes(b"RIFF")

    def interrupted(tasks, *_):
        yield from map(run_task, tasks[:2])
        raise KeyboardInterrupt

    monkeypatch.setattr("cues.batch.run._run_tasks", interrupted)
    result = run("batch", "measure", "calls")
    assert result.code == 130
    assert result.err.endswith("cues: interrupted; 1 of 3 are done and kept, 1 failed: the same command resumes\n")
    # The failed one is tried again, fails again, and is still not done.
    result = run("batch", "measure", "calls")
    assert result.err.endswith("cues: interrupted; 2 of 3 are done and kept, 1 failed: the same command resumes\n")


@pytest.mark.parametrize("is_there", [True, False])
def test_kernels_that_have_to_be_compiled_are_announced(run, calls, monkeypatch, is_there):
    monkeypatch.setattr("cues.cli.batch.has_object_file", lambda: is_there)
    told = "the first long recording compiles the kernels, once on this machine\n"
    assert run("batch", "measure", "calls", "--workers", 1).err.startswith(told) != is_there


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_file_whose_name_is_no_text_is_measured_mixed_and_shown(run, calls, tmp_path, ending):
    name = os.fsdecode(b"\xff\xfe.wav")
    (calls / "a.wav").rename(calls / name)
    result = run("batch", "measure", "calls", "-o", f"t.{ending}", "--workers", 1)
    assert (result.code, result.out.splitlines()[0]) == (0, f"2 of 2 done: t.{ending}")
    assert run("batch", "measure", "calls", "-o", f"t.{ending}").out.startswith("2 of 2 done, all of them")
    (tmp_path / "plan.jsonl").write_text(json.dumps({"file": f"calls/{name}", "cue": "agent", "time_s": 0.1}) + "\n")
    assert run("batch", "mix", "plan.jsonl", "--workers", 1).code == 0
    assert os.fsencode(name) in {os.fsencode(path.name) for path in (tmp_path / "mixed").rglob("*.wav")}
    assert run("mix", calls / name, "--cue", "agent@0.1").code == 0
    assert run("show", calls / name).code == 0


def test_measure_has_the_loudest_100_ms_of_sounds_that_are_too_short_for_more(run, tmp_path):
    bank = cues.load_bank("")
    (tmp_path / "sounds").mkdir()
    for name in ("tool_call", "error"):
        soundfile.write(tmp_path / "sounds" / f"{name}.wav", bank[name].samples, 24000, "FLOAT")
    result = run("batch", "measure", "sounds", "--workers", 1)
    rows = {row["file"]: row for row in table(tmp_path / "measures.csv")}
    assert [row["integrated_lufs"] for row in rows.values()] == ["", ""]
    for name in ("tool_call", "error"):
        assert float(rows[f"sounds/{name}.wav"]["m100_max_lufs"]) == pytest.approx(
            bank[name].measured.m100_max_lufs, abs=0.01
        )
    assert "loudest 100 ms: −26.0 to −23.0 LUFS" in result.out


@pytest.mark.parametrize("place", ["calls", "calls/**/*.wav"])
def test_normalize_brings_recordings_to_one_loudness_and_never_over_the_ceiling(run, calls, tmp_path, place):
    (calls / "more").mkdir()
    stereo = np.stack([soft(tone(440.0, 48000, level=0.5)), soft(tone(660.0, 48000, level=0.1))], axis=1)
    soundfile.write(calls / "more" / "stereo.wav", stereo, 24000, "PCM_16")
    soundfile.write(calls / "short.wav", soft(tone(440.0, 4800)), 24000)
    impulse = np.zeros(24000)
    impulse[12000:12100] = 0.5
    soundfile.write(calls / "impulse.wav", impulse, 24000)
    result = run("batch", "normalize", place, "--target-lufs", "-16", "--workers", 1, "--json")
    assert json.loads(result.out)["limited"] == 1
    rows = {row["file"]: row for row in table(tmp_path / "normalized" / "normalized.csv")}
    for name in ("a", "more/stereo"):
        levels = cues.measure_file(tmp_path / "normalized" / f"{name}.wav")
        assert levels.integrated_lufs == pytest.approx(-16.0, abs=0.02)
    assert cues.measure_file(tmp_path / "normalized" / "short.wav").m100_max_lufs == pytest.approx(-16.0, abs=0.02)
    assert soundfile.info(tmp_path / "normalized" / "more" / "stereo.wav").subtype == "PCM_16"
    assert float(rows["calls/impulse.wav"]["true_peak_dbtp"]) == pytest.approx(-1.0, abs=0.01)
    assert float(rows["calls/impulse.wav"]["missed_lu"]) < -5.0
    assert run("batch", "normalize", "calls", "--out", "calls", "--workers", 1).code == 1  # never over itself


def test_what_is_in_the_folder_for_the_results_is_not_read(run, calls, tmp_path):
    for n_files in (2, 3):
        result = run("batch", "normalize", ".", "--workers", 1)
        assert (result.code, f"{n_files} of {n_files} done" in result.out) == (0, True)
        write(calls / "c.wav", tone(550.0, 48000, level=0.1))
    assert not (tmp_path / "normalized" / "normalized").exists()
    own = tmp_path / "normalized" / "own.wav"
    write(own, tone(550.0, 48000, level=0.1))
    before = own.read_bytes()
    (calls / "c.wav").unlink()
    rows = (tmp_path / "normalized" / "normalized.csv").read_bytes().splitlines(keepends=True)
    rows[2] = rows[2].replace(b",ok,", b",begun,")  # as a run that was cut off leaves it
    (tmp_path / "normalized" / "normalized.csv").write_bytes(b"".join(rows[:3]))
    assert "2 of 2 done, 1 of them" in run("batch", "normalize", ".", "--workers", 1).out
    assert not (tmp_path / "normalized" / "normalized").exists()
    assert own.read_bytes() == before
    (tmp_path / "normalized" / "normalized.csv").unlink()
    assert "a.wav is there, and was not made of calls/a.wav by" in run("batch", "normalize", ".", "--workers", 1).err


def test_no_run_writes_over_a_recording_that_another_was_made_of_or_that_was_there(run, calls, tmp_path):
    soundfile.write(calls / "a.flac", tone(330.0, 48000, level=0.1), 48000)
    (calls / "a.flac").rename(calls / "a.aiff")  # read as what it is, and written as WAV
    both = run("batch", "normalize", "calls", "--workers", 1)
    assert (both.code, "normalize one format at a time, each with its --out" in both.err) == (1, True)
    assert run("batch", "normalize", "calls/*.aiff", "--workers", 1).code == 0
    made = (tmp_path / "normalized" / "a.wav").read_bytes()
    told = "is there, and was not made of calls/a"
    assert told in run("batch", "normalize", "calls/*.wav", "--workers", 1).err
    assert (tmp_path / "normalized" / "a.wav").read_bytes() == made
    there = (calls / "a.wav").read_bytes()
    assert told in run("batch", "normalize", "calls/*.aiff", "--out", "calls", "--workers", 1).err
    write(tmp_path / "normalized" / "b.wav", tone(550.0, 48000, level=0.1))  # the user's own
    own = (tmp_path / "normalized" / "b.wav").read_bytes()
    write(calls / "b.wav", tone(440.0, 48000, level=0.1))
    for options in ((), ("--fresh",)):
        assert "b.wav is there, and was" in run("batch", "normalize", "calls/[b]*", "--workers", 1, *options).err
    assert (tmp_path / "normalized" / "b.wav").read_bytes() == own
    assert (calls / "a.wav").read_bytes() == there
    assert run("batch", "normalize", "calls/a.wav", "--fresh", "--workers", 1).code == 0


def test_folders_of_the_same_names_do_not_share_their_results(run, tmp_path, monkeypatch):
    results, table = tmp_path / "results", tmp_path / "measures.csv"
    kept = {}
    for day, code in (("monday", 0), ("tuesday", 1)):
        (tmp_path / day).mkdir()
        write(tmp_path / day / "0001.wav", tone(440.0, 48000, level=0.1))
        monkeypatch.chdir(tmp_path / day)
        assert run("batch", "normalize", ".", "--out", "../results", "--workers", 1).code == code
        assert run("batch", "measure", ".", "-o", "../measures.csv", "--workers", 1).code == code
        kept[day] = (results / "0001.wav").read_bytes(), table.read_bytes()
    assert kept["monday"] == kept["tuesday"]


def test_a_run_of_a_part_leaves_the_rows_of_the_other_recordings(run, calls, tmp_path):
    assert run("batch", "normalize", "calls", "--workers", 1).code == 0
    assert "1 of 1 done: " in run("batch", "normalize", "calls/a.wav", "--target-lufs", "-30", "--workers", 1).out
    place = tmp_path / "normalized" / "normalized.csv"
    assert "2 of 2 done, 1 of them" in run("batch", "normalize", "calls", "--workers", 1).out
    place.write_bytes(place.read_bytes().replace(b"calls/b.wav,ok,", b"calls/b.wav,begun,"))  # one that was cut off
    assert "1 of 1 done" in run("batch", "normalize", "calls/a.wav", "--fresh", "--workers", 1).out
    assert b"calls/b.wav,begun," in place.read_bytes()
    assert "2 of 2 done, 1 of them" in run("batch", "normalize", "calls", "--workers", 1).out
    assert "2 of 2 done, all of them" in run("batch", "normalize", "calls", "--workers", 1).out


def test_a_recording_that_failed_claims_no_file_of_the_users_and_keeps_the_one_it_had(run, calls, tmp_path):
    result, silent, sound = tmp_path / "normalized" / "a.wav", np.zeros(48000), tone(440.0, 48000, level=0.1)
    write(calls / "a.wav", silent)
    assert run("batch", "normalize", "calls/a.wav", "--workers", 1).code == 1
    write(result, sound)  # the user's own
    write(calls / "a.wav", sound)
    assert "a.wav is there, and was not made of" in run("batch", "normalize", "calls/a.wav", "--workers", 1).err
    result.unlink()
    assert run("batch", "normalize", "calls/a.wav", "--workers", 1).code == 0
    table = tmp_path / "normalized" / "normalized.csv"
    for samples, code in ((silent, 1), (silent, 1), (sound, 0), (silent, 1), (sound, 0)):
        write(calls / "a.wav", samples)
        table.write_bytes(table.read_bytes().replace(b",ok,", b",begun,"))  # as a run that was cut off leaves it
        assert run("batch", "normalize", "calls/a.wav", "--workers", 1).code == code
    assert result.exists()


def test_a_pattern_gives_the_same_names_whatever_it_finds(run, calls, tmp_path):
    for n_files in (2, 3):
        result = run("batch", "normalize", "**/*.wav", "--workers", 1)
        assert f"{n_files} of {n_files} done" in result.out, result
        (tmp_path / "more").mkdir(exist_ok=True)
        write(tmp_path / "more" / "c.wav", tone(440.0, 48000, level=0.1))
    found = sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "normalized").rglob("*.wav"))
    assert found == ["normalized/calls/a.wav", "normalized/calls/b.wav", "normalized/more/c.wav"]


@pytest.mark.parametrize("option", ["--target-lufs", "--ceiling-dbtp"])
def test_a_level_that_is_no_number_is_a_usage_error(run, calls, option, tmp_path):
    result = run("batch", "normalize", "calls", option, "nan")
    assert (result.code, "'nan' is not a number" in result.err) == (2, True)
    assert not (tmp_path / "normalized").exists()
