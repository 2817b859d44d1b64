"""One run after the other: what is done once is kept, whatever happens."""

import csv
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cues.batch.run import run_batch
from cues.errors import CueError, CueValueError
from tests.support.batch_tasks import Count, DiskFull, Fail, KillAlways, KillOnce, Write

COLUMNS = ("file", "status", "error", "answer")
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


@pytest.fixture(params=["csv", "jsonl"])
def table(request, tmp_path):
    return tmp_path / f"t.{request.param}"


def counts(notes, n_tasks):
    return [Count(f"f{k:03}", str(notes)) for k in range(n_tasks)]


def times_done(notes):
    return {path.name: path.read_text().count("done") for path in notes.glob("f*")}


def test_rows_come_in_the_order_of_the_tasks(tmp_path, notes):
    run = run_batch(counts(notes, 40), tmp_path / "t.csv", COLUMNS, workers=2)
    assert [row["file"] for row in run.rows] == [f"f{k:03}" for k in range(40)]
    assert (run.resumed, run.failed) == (0, [])
    with (tmp_path / "t.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == [row["file"] for row in run.rows]
    assert (rows[0]["status"], rows[0]["error"], rows[0]["answer"]) == ("ok", "", "4")


def test_a_killed_worker_loses_nothing(tmp_path, notes):
    tasks = [*counts(notes, 25), KillOnce("killer", str(notes)), *counts(notes, 30)[25:]]
    run = run_batch(tasks, tmp_path / "t.csv", COLUMNS, workers=2)
    assert [row["file"] for row in run.rows] == [task.file for task in tasks]
    assert run.failed == []


def test_a_file_that_no_worker_survives_is_reported_and_the_rest_done(tmp_path, notes):
    tasks = [*counts(notes, 20), KillAlways("deadly"), *counts(notes, 25)[20:]]
    run = run_batch(tasks, tmp_path / "t.csv", COLUMNS, workers=2)
    reason = "its worker process died, also with no other file"
    assert [(row["file"], row["error"]) for row in run.failed] == [("deadly", reason)]
    assert len(run.rows) == 26


def blocked_program(tmp_path):
    script = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored where the tests run in the background
        "from pathlib import Path\n"
        "from cues.cli import batch, main\n"
        "from tests.support.batch_tasks import Block\n"
        "if __name__ == '__main__':\n"
        "    batch.find_sources = lambda place: [Path(place)]\n"
        "    import cues.batch.measuring as measuring\n"
        "    measuring.Measure = lambda source, exact: Block(str(source))\n"
        "    main()\n"
    )
    (tmp_path / "blocked.py").write_text(script)
    program = subprocess.Popen(
        [sys.executable, "blocked.py", "batch", "measure", "x", "--workers", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    assert program.stdout.readline() == "begun\n"
    return program


def test_workers_end_when_the_program_is_killed(tmp_path):
    with blocked_program(tmp_path) as program:
        program.kill()
        # The worker holds the other end of the pipe: it is at its end when the worker is.
        assert program.communicate(timeout=30)[0] == ""


def test_an_interrupt_ends_program_and_workers_at_once(tmp_path):
    with blocked_program(tmp_path) as program:
        os.killpg(program.pid, signal.SIGINT)  # as a terminal does it: to all processes of the group
        out, err = program.communicate(timeout=30)  # ends when nobody holds the pipe any more
    assert (program.returncode, out) == (130, "")
    # Where no run has compiled them yet, it says so first.
    told = err.removeprefix("the first long recording compiles the kernels, once on this machine\n")
    assert told == "cues: interrupted; 0 of 1 are done and kept: the same command resumes\n"


def test_the_next_run_does_only_what_is_left_and_what_failed(table, notes):
    run_batch([Fail("bad"), *counts(notes, 5)], table, COLUMNS, workers=1)
    run = run_batch([Fail("bad"), *counts(notes, 8)], table, COLUMNS, workers=1)
    assert run.resumed == 5
    assert [row["answer"] for row in run.rows[1:]] == [4] * 8
    assert set(times_done(notes).values()) == {1}
    run_batch(counts(notes, 2), table, COLUMNS, workers=1, still_good=lambda row: row["file"] != "f001")
    assert times_done(notes)["f001"] == 2


def test_the_results_of_other_recordings_are_kept(table, notes):
    run_batch(counts(notes, 2), table, COLUMNS, workers=1)
    kept = table.read_bytes()
    with pytest.raises(CueError, match="has the results of other recordings; name another place, or replace it with"):
        run_batch([Count("other.wav", str(notes))], table, COLUMNS, workers=1)
    assert table.read_bytes() == kept
    assert run_batch([Count("other.wav", str(notes))], table, COLUMNS, workers=1, fresh=True).failed == []


def test_a_full_disk_stops_the_run_and_keeps_what_is_done(tmp_path, notes):
    tasks = [*counts(notes, 16), DiskFull("full")]
    with pytest.raises(CueError, match="No space left on device; 16 of 17 are done and kept: the same command resumes"):
        run_batch(tasks, tmp_path / "t.csv", COLUMNS, workers=1)
    assert run_batch(tasks[:16], tmp_path / "t.csv", COLUMNS, workers=1).resumed == 16


def test_what_was_done_before_an_interrupt_is_kept(table, notes):
    def stop(done):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="1 of 100 are done and kept"):
        run_batch(counts(notes, 100), table, COLUMNS, workers=1, progress=stop)
    run = run_batch(counts(notes, 100), table, COLUMNS, workers=1)
    assert (run.resumed, len(run.rows)) == (1, 100)  # the interrupt came with the first result


def test_a_run_of_other_options_that_was_cut_off_leaves_no_row_of_the_results_before(table, tmp_path):
    def stop(done):
        if done:
            raise KeyboardInterrupt

    def tasks(text):
        return [Write(f"f{k:02}", str(tmp_path / f"f{k:02}"), text) for k in range(20)]

    run_batch(tasks("before"), table, (*COLUMNS, "output"), workers=1)
    with pytest.raises(KeyboardInterrupt):
        run_batch(tasks("other"), table, (*COLUMNS, "output"), workers=1, progress=stop)
    assert run_batch(tasks("before"), table, (*COLUMNS, "output"), workers=1).failed == []
    assert {Path(task.output).read_text() for task in tasks("before")} == {"before"}


def test_a_line_that_a_crash_cut_short_is_done_again_and_the_others_read_as_written(table, notes):
    tasks = [Count('a,\n"b".wav', str(notes)), Count("\udce9.wav", str(notes))]
    rows = run_batch(tasks, table, COLUMNS, workers=1).rows
    whole = table.read_bytes()
    table.write_bytes(whole[:-5])
    again = run_batch(tasks, table, COLUMNS, workers=1)
    assert again.resumed == 1
    assert again.rows == rows
    assert table.read_bytes() == whole


def test_lines_that_are_not_rows_are_skipped(table, notes):
    run_batch(counts(notes, 2), table, COLUMNS, workers=1)
    with table.open("a") as file:
        file.write("5\n" + "[" * 99999 + '\n"' + "x" * 140000)
    assert run_batch(counts(notes, 2), table, COLUMNS, workers=1).resumed == 2


@pytest.mark.parametrize("content", ["file,cue,time_s\na.wav,agent,1\n", "[1, 2]\n"], ids=["a plan", "no table"])
def test_a_file_that_is_no_table_of_ours_is_kept(table, notes, content):
    table.write_text(content)
    with pytest.raises(CueError, match="is not a table of this command"):
        run_batch(counts(notes, 1), table, COLUMNS, workers=1)
    assert table.read_text() == content
    assert run_batch(counts(notes, 1), table, COLUMNS, workers=1, fresh=True).failed == []


def test_a_table_of_unknown_kind_or_that_cannot_be_written_is_refused_before_anything_is_done(tmp_path, notes):
    with pytest.raises(CueValueError, match=r"must end in one of \.csv, \.jsonl"):
        run_batch(counts(notes, 1), tmp_path / "t.xls", COLUMNS)
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(CueError, match="cannot be read: Is a directory"):
        run_batch(counts(notes, 1), tmp_path / "t.csv", COLUMNS)
    assert times_done(notes) == {}
