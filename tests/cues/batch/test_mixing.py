from pathlib import Path

import numpy as np
import pytest
import soundfile

from cues.batch.mixing import Mix, sweep
from cues.batch.plan import read_plan
from cues.batch.runner import run_task
from cues.batch.sources import find_sources
from cues.errors import CueError, CueValueError
from cues.synthesis.catalog import CATALOG
from tests.support.packs import tone, write


def plan(tmp_path, text, name="plan.csv"):
    (tmp_path / name).write_text(text)
    return read_plan(tmp_path / name, list(CATALOG))


def mixed(path, cues, output):
    return run_task(Mix(find_sources(str(path))[0], cues, str(output)))


def test_lines_with_the_same_file_put_several_cues_into_it(tmp_path):
    first, second = plan(tmp_path, "file,cue,time_s,gain_db\na.wav,agent,1,\nb.wav,error,2,-3\na.wav,success,0.5,\n")
    assert first.file == str(tmp_path / "a.wav")
    assert first.cues == (("agent", 1.0, 0.0), ("success", 0.5, 0.0))
    assert (second.cues, second.output) == ((("error", 2.0, -3.0),), "b.wav")


def test_json_lines_say_the_same(tmp_path):
    first_line = '{"file": "x/a.mp3", "cue": "agent", "time_s": 1.5}'
    text = f'{first_line}\n\n{{"file": "b.wav", "cue": "error", "time_s": 0, "output": "c.flac"}}\n'
    first, second = plan(tmp_path, text, "plan.jsonl")
    assert first.output == "x/a.wav"
    assert second.output == "c.flac"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("file,cue\na.wav,agent\n", "lacks time_s"),
        ("file,cue,time_s,volume\n", "'volume'"),
        ("file,cue,time_s\na.wav,agnt,1\n", r"line 2: cue is 'agnt'.*did you mean 'agent'"),
        ("file,cue,time_s\na.wav,agent,soon\n", "time_s is 'soon'"),
        ("file,cue,time_s\na.wav,agent,-1\n", "time_s is '-1'"),
        ("file,cue,time_s\na.wav,agent,nan\n", "time_s is 'nan'"),
        ("file,cue,time_s\n,agent,1\n", "lacks file"),
        ("file,cue,time_s,output\na.wav,agent,1,../../x.wav\n", "inside the output folder"),
        ("file,cue,time_s,output\na.wav,agent,1,/etc/x.wav\n", "inside the output folder"),
        ("file,cue,time_s\n../a.wav,agent,1\n../../a.wav,agent,1\n", "would both be written to a.wav"),
        ("", "lacks file, cue, time_s"),
        ("file,cue,time_s\n", "names no recording"),
        ("file,cue,time_s\na.wav,agent,1,2,3\n", "unknown"),
    ],
    ids=lambda value: None if "\n" in value else value[:24],
)
def test_what_is_wrong_with_a_plan_is_told_with_its_line(tmp_path, text, told):
    with pytest.raises(CueValueError, match=told):
        plan(tmp_path, text)


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "FLOAT"])
def test_samples_that_no_cue_touches_stay_exactly_as_they_were(tmp_path, subtype):
    noise = np.random.default_rng(1).uniform(-0.99, 0.99, (48000, 2))
    write(tmp_path / "x.wav", noise, rate=24000, subtype=subtype)
    row = mixed(tmp_path / "x.wav", (("tool_call", 1.0, 0.0),), tmp_path / "out" / "x.wav")
    assert (row["status"], row["channels"], row["n_cues"], row["length_s"]) == ("ok", 2, 1, 2.0)
    before, _ = soundfile.read(tmp_path / "x.wav", dtype="float64")
    after, rate = soundfile.read(tmp_path / "out" / "x.wav", dtype="float64")
    assert soundfile.info(tmp_path / "out" / "x.wav").subtype == subtype
    assert (rate, before.shape) == (24000, after.shape)
    assert np.array_equal(before[:20000], after[:20000])
    assert (before[24500:26000] != after[24500:26000]).mean() > 0.9


def test_a_cue_beyond_the_end_is_a_row_that_failed(tmp_path):
    write(tmp_path / "x.wav", tone(300.0, 24000))
    row = mixed(tmp_path / "x.wav", (("agent", 2.0, 0.0),), tmp_path / "y.wav")
    assert row["error"] == "a cue at 2 s is after the recording's end, 1.00 s"
    assert not (tmp_path / "y.wav").exists()


def test_a_cue_at_the_very_end_makes_the_recording_longer(tmp_path):
    write(tmp_path / "x.wav", tone(300.0, 24000))
    row = mixed(tmp_path / "x.wav", (("agent", 1.0, 0.0),), tmp_path / "y.wav")
    assert row["status"] == "ok"
    assert row["length_s"] >= 1.26


def test_an_output_that_cannot_be_written_is_a_row_that_failed_and_leaves_nothing(tmp_path):
    write(tmp_path / "x.wav", tone(300.0, 24000))
    (tmp_path / "y.wav").mkdir()
    row = mixed(tmp_path / "x.wav", (("agent", 0.2, 0.0),), tmp_path / "y.wav")
    assert row["status"] == "failed"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.wav", "y.wav"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError])
@pytest.mark.parametrize("place", [(soundfile, "write"), (Path, "replace")], ids=["encoding", "moving into place"])
def test_whatever_ends_the_writing_no_half_file_is_left(tmp_path, monkeypatch, place, error):
    write(tmp_path / "x.wav", tone(300.0, 24000))
    task = Mix(find_sources(str(tmp_path / "x.wav"))[0], (("agent", 0.2, 0.0),), str(tmp_path / "y.wav"))

    def broken_off(*_, **__):
        raise error

    monkeypatch.setattr(*place, broken_off)
    with pytest.raises((error, CueError)):
        task.run()
    assert [path.name for path in tmp_path.iterdir()] == ["x.wav"]


def test_half_files_of_a_killed_worker_are_swept_and_nothing_else(tmp_path, monkeypatch):
    write(tmp_path / "x.wav", tone(300.0, 24000))
    written, really_replace = [], Path.replace

    def noting(path, target):
        written.append(path)
        return really_replace(path, target)

    monkeypatch.setattr(Path, "replace", noting)
    assert mixed(tmp_path / "x.wav", (("agent", 0.2, 0.0),), tmp_path / "y.wav")["status"] == "ok"
    (half,) = written
    half.touch()
    others = [half.name.replace("y.wav", "z.wav"), half.name.removesuffix(".cues-part"), half.name[1:], f"{half.name}2"]
    for name in others:
        (tmp_path / name).touch()
    sweep([str(tmp_path / "y.wav"), str(tmp_path / "nowhere" / "y.wav")])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["x.wav", "y.wav", *others])
