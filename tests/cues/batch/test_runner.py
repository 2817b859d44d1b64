"""One run after the other: what is done once is kept, whatever happens."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cues.batch.journal import Journal
from cues.batch.runner import run_batch
from cues.batch.tasks import Outcome, key_of, run_tasks
from cues.errors import CueError, CueValueError
from tests.support.batch_tasks import Count, DiskFull, Fail, KillAlways, KillOnce

COLUMNS = ("file", "status", "error", "answer")
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


def counts(notes, n_tasks):
    return [Count(f"f{k:03}", str(notes)) for k in range(n_tasks)]


def times_done(notes):
    return {path.name: path.read_text().count("done") for path in notes.glob("f*") if path.suffix != ".killed"}


def test_rows_come_in_the_order_of_the_tasks(tmp_path, notes):
    run = run_batch(counts(notes, 40), tmp_path / "t.csv", COLUMNS, workers=2)
    assert [row["file"] for row in run.rows] == [f"f{k:03}" for k in range(40)]
    assert (run.resumed, run.failed) == (0, [])
    with (tmp_path / "t.csv").open() as table:
        assert next(csv.DictReader(table)) == {"file": "f000", "status": "ok", "error": "", "answer": "4"}


def test_a_killed_worker_loses_nothing(tmp_path, notes):
    tasks = counts(notes, 60)
    tasks.insert(25, KillOnce("killer", str(notes)))
    run = run_batch(tasks, tmp_path / "t.csv", COLUMNS, workers=2)
    assert [row["file"] for row in run.rows] == [task.file for task in tasks]
    assert run.failed == []
    assert set(times_done(notes)) == {task.file for task in tasks} - {"killer"}


def test_a_file_that_no_worker_survives_is_reported_and_the_rest_done(tmp_path, notes):
    tasks = [*counts(notes, 20), KillAlways("deadly"), *(Count(f"g{k}", str(notes)) for k in range(5))]
    run = run_batch(tasks, tmp_path / "t.csv", COLUMNS, workers=2)
    assert [(row["file"], row["error"]) for row in run.failed] == [("deadly", "the worker process died twice")]
    assert len(run.rows) == 26


def test_workers_end_when_the_program_is_killed():
    script = (
        "from tests.support.batch_tasks import Block\n"
        "from cues.batch.processes import run_on_processes\n"
        "if __name__ == '__main__':\n"
        "    list(run_on_processes([Block('x')], 1))\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT) as program:
        assert program.stdout.readline() == b"begun\n"
        program.kill()
        # The worker holds the other end of the pipe: it is at its end when the worker is.
        assert program.communicate(timeout=30) == (b"", None)


def test_an_impatient_interrupt_ends_program_and_workers_at_once(tmp_path):
    script = (
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
    with program:
        assert program.stdout.readline() == "begun\n"
        for _ in range(3):  # as a terminal does it: to all processes of the group
            os.killpg(program.pid, signal.SIGINT)
        out, err = program.communicate(timeout=30)  # ends when nobody holds the pipe any more
    assert (program.returncode, out) == (130, "")
    # Where no run has compiled them yet, it says so first.
    told = err.removeprefix("compiling loops, once on this machine\n")
    assert told == "cues: interrupted; 0 of 1 are done and kept: the same command resumes\n"


def test_a_task_that_fails_is_one_line_in_the_table(tmp_path, notes):
    run = run_batch([Fail("bad"), *counts(notes, 3)], tmp_path / "t.csv", COLUMNS, workers=1)
    assert run.failed == [{"file": "bad", "status": "failed", "error": "of two lines"}]


def test_the_next_run_does_only_what_is_left_and_what_failed(tmp_path, notes):
    run_batch([Fail("bad"), *counts(notes, 5)], tmp_path / "t.csv", COLUMNS, workers=1)
    run = run_batch([Fail("bad"), *counts(notes, 8)], tmp_path / "t.csv", COLUMNS, workers=1)
    assert run.resumed == 5
    assert set(times_done(notes).values()) == {1}
    assert len(times_done(notes)) == 8


def test_a_result_that_does_not_hold_any_more_is_made_again(tmp_path, notes):
    run_batch(counts(notes, 2), tmp_path / "t.csv", COLUMNS, workers=1)
    run_batch(counts(notes, 2), tmp_path / "t.csv", COLUMNS, workers=1, still_good=lambda row: row["file"] != "f001")
    assert times_done(notes) == {"f000": 1, "f001": 2}


def test_a_full_disk_stops_the_run_and_keeps_what_is_done(tmp_path, notes):
    tasks = [*counts(notes, 16), DiskFull("full")]
    with pytest.raises(CueError, match="the disk is full; 16 of 17 are done and kept"):
        run_batch(tasks, tmp_path / "t.csv", COLUMNS, workers=1)
    run = run_batch(tasks[:16], tmp_path / "t.csv", COLUMNS, workers=1)
    assert run.resumed == 16


def test_what_was_done_before_an_interrupt_is_kept(tmp_path, notes):
    def stop(done):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_batch(counts(notes, 100), tmp_path / "t.csv", COLUMNS, workers=1, progress=stop)
    run = run_batch(counts(notes, 100), tmp_path / "t.csv", COLUMNS, workers=1)
    assert run.resumed == 1  # the interrupt came with the first result
    assert len(run.rows) == 100


def test_a_line_that_a_crash_cut_short_is_done_again(tmp_path):
    task = Fail("x")
    with Journal(tmp_path / "j") as journal:
        journal.add([Outcome(key_of(task), {"file": "x", "status": "ok", "error": None})])
    whole = (tmp_path / "j").read_bytes()
    (tmp_path / "j").write_bytes(whole + b'{"key": "abc", "ro')
    with Journal(tmp_path / "j") as journal:
        assert list(journal.rows) == [key_of(task)]
        journal.add([Outcome("next", {"file": "y", "status": "ok", "error": None})])
    lines = (tmp_path / "j").read_bytes().split(b"\n")
    assert [json.loads(line)["key"] for line in lines[:-1]] == [key_of(task), "next"]


def test_a_journal_that_can_grow_no_more_ends_the_run_with_what_is_kept_and_is_resumed(tmp_path, notes):
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from cues.batch import runner\n"
        "from tests.support.batch_tasks import Count\n"
        "if __name__ == '__main__':\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "    tasks = [Count(f'f{k:03}', sys.argv[1]) for k in range(40)]\n"
        "    runner.run_batch(tasks, Path('t.csv'), ('file',), workers=1)\n"
    )
    program = [sys.executable, "-c", script, str(notes)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    failed = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    lines = (tmp_path / "t.csv.journal").read_text().splitlines()
    assert 0 < len(lines) < 40
    last = failed.stderr.strip().splitlines()[-1]
    assert last == (
        "cues.errors.CueError: t.csv.journal: File too large; "
        f"{len(lines)} of 40 are done and kept: the same command resumes"
    )
    run = run_batch(counts(notes, 40), tmp_path / "t.csv", COLUMNS, workers=1)
    assert run.resumed == len(lines)


def test_a_table_that_cannot_be_written_says_what_is_kept_and_where(tmp_path, notes):
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(CueError, match=r"cannot be written.*; 3 of 3 are done and kept in .*t\.csv\.journal"):
        run_batch(counts(notes, 3), tmp_path / "t.csv", COLUMNS, workers=1)


def test_after_a_power_failure_no_more_than_a_second_of_results_is_missing(tmp_path, monkeypatch):
    on_disk = {}
    sync, now = os.fsync, [0.0]

    def noting_fsync(file):
        sync(file)
        if not isinstance(file, int):
            on_disk["journal"] = (tmp_path / "j").read_bytes()

    monkeypatch.setattr(os, "fsync", noting_fsync)
    added = []
    with Journal(tmp_path / "j", clock=lambda: now[0]) as journal:
        for k in range(60):
            now[0] += 0.1
            journal.add([Outcome(f"k{k}", {"file": f"f{k}", "status": "ok", "error": None})])
            added.append((now[0], f"k{k}"))
            (tmp_path / "after power is back").write_bytes(on_disk["journal"])
            with Journal(tmp_path / "after power is back", clock=lambda: 0.0) as kept:
                assert {key for at_s, key in added if at_s <= now[0] - 1.0} <= set(kept.rows)
    (tmp_path / "at the end").write_bytes(on_disk["journal"])
    with Journal(tmp_path / "at the end") as kept:
        assert len(kept.rows) == 60


def test_a_worker_that_dies_among_others_costs_them_no_second_chance(tmp_path, notes):
    tasks = [KillOnce(f"k{k}", str(notes)) for k in range(6)]
    run = run_batch(tasks, tmp_path / "t.csv", COLUMNS, workers=2)
    assert run.failed == []


def test_a_journal_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "t.csv.journal").mkdir()
    with pytest.raises(CueError, match="cannot be used as the journal"):
        run_batch([], tmp_path / "t.csv", COLUMNS)


def test_a_table_of_unknown_kind_is_refused_before_anything_is_done(tmp_path, notes):
    with pytest.raises(CueValueError, match=r"must end in one of \.csv, \.jsonl, \.parquet"):
        run_batch(counts(notes, 1), tmp_path / "t.xls", COLUMNS)
    assert times_done(notes) == {}


def test_a_file_that_has_changed_has_another_key(notes):
    assert key_of(Count("a", "1")) != key_of(Count("a", "2"))
    assert key_of(Count("a", "1")) == key_of(Count("a", "1"))
    assert run_tasks([Fail("\udce9")])[0].row["status"] == "failed"
