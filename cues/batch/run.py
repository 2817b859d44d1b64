"""One run of a batch: keep the rows that are in the table, run the other tasks, put the table in order."""

import contextlib
import hashlib
import json
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from errno import EDQUOT, ENOSPC
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from cues.batch.recordings import absolute
from cues.batch.rows import Row, Table
from cues.errors import CueError, reason_of
from cues.extras import needed

__all__ = ["Run", "Task", "key_of", "run_batch", "run_task"]

_PLACE = 12  # characters of a key that identify a path
_IN_FLIGHT = 3  # submitted tasks per worker: one that runs, and the next ones
_CONNECT_S = 10.0
_RETRIES = 2


class Task(Protocol):
    """One unit of work on a file: a frozen dataclass that can be pickled; an error of `run` becomes a failed row."""

    @property
    def file(self) -> str:
        """Path or URL of the recording."""
        ...

    def run(self) -> Row:
        """Columns of the result."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """Results of a run: a row per task, in order, and how many of them are from earlier runs."""

    rows: list[Row]
    resumed: int

    @property
    def failed(self) -> list[Row]:
        """Rows of failed tasks."""
        return [row for row in self.rows if row["status"] != "ok"]


def run_batch(
    tasks: Sequence[Task],
    path: Path,
    columns: Sequence[str],
    *,
    workers: int | None = None,
    dask: str | None = None,
    fresh: bool = False,
    still_good: Callable[[Row], bool] = lambda _: True,
    progress: Callable[[int], None] = lambda _: None,
) -> Run:
    """Run the remaining `tasks` on `workers` processes or a Dask cluster, and write the table of all results to `path`.

    A task runs again only if it failed, its file changed, its result is not `still_good`, or the run is `fresh`. While
    it runs, the table has a row of status `begun` for each recording that is to be written; those of other recordings
    that earlier runs wrote stay in it. `progress` gets the number of finished tasks. An error of the table, or Ctrl-C,
    says how many results are kept.
    """
    table = Table(path, columns)
    keys = [key_of(task) for task in tasks]
    before: list[Row] = []
    with contextlib.suppress(CueError) if fresh else contextlib.nullcontext():
        before = table.rows()
    earlier = {} if fresh else {str(row["key"]): row for row in before if row.get("status") == "ok"}
    _check_outputs(tasks, keys, before, fresh=fresh)
    files = {_places(key)[0] for key in earlier}
    if files and files.isdisjoint(_places(key)[0] for key in keys):
        raise CueError(f"{path}: has the results of other recordings; name another place, or replace it with --fresh")
    rows = {key: earlier[key] for key in keys if key in earlier and still_good(earlier[key])}
    left = [task for task, key in zip(tasks, keys, strict=True) if key not in rows]
    outputs = {"", *(_places(key)[1] for key in keys)}
    by_output = {_places(str(row["key"]))[1]: row for row in before}
    others = [row for output, row in by_output.items() if output not in outputs and _tells(row, still_good)]
    resumed = len(rows)
    progress(resumed)
    try:
        if left:
            with _dask_cluster(dask) if dask is not None else _processes(workers) as (new_executor, in_flight):
                # A recording is `begun` until it is written again: the earlier result may already be replaced.
                begun = [_still_there(_row_of(task, "begun"), by_output) for task in left if _writes(task)]
                table.write([*others, *rows.values(), *begun])
                with contextlib.closing(_run_tasks(left, new_executor, in_flight)) as results:
                    for row in results:
                        rows[row["key"]] = row if row["status"] == "ok" else _still_there(row, by_output)
                        table.add(rows[row["key"]])
                        progress(len(rows))
    except (KeyboardInterrupt, OSError) as error:
        done = sum(row["status"] == "ok" for row in rows.values())
        failed = f", {len(rows) - done} failed" if len(rows) > done else ""
        kept = f"{done} of {len(tasks)} are done and kept{failed}: the same command resumes"
        if isinstance(error, OSError):
            raise CueError(f"{reason_of(error)}; {kept}") from error
        raise KeyboardInterrupt(kept) from None
    run = Run([rows[key] for key in keys], resumed)
    table.write([*run.rows, *others])
    return run


def key_of(task: Any) -> str:
    """Key of a task in the table; equal for the same task on the same, unchanged file in the same place."""
    text = json.dumps([type(task).__name__, asdict(task)], sort_keys=True)
    places = [absolute(task.file), *([absolute(task.output)] if _writes(task) else [])]
    return "-".join([_digest(text)[:24], *(_digest(place)[:_PLACE] for place in places)])


def _places(key: str) -> tuple[str, str]:
    """The parts of a key that identify the task's file and its output; the second is empty without an output."""
    _, file, output = [*key.split("-"), "", ""][:3]
    return file, output if len(output) == _PLACE else ""  # a crash may have cut the line


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def run_task(task: Task) -> Row:
    """Row of a task that runs in this process; an error becomes a failed row, but a full disk is raised."""
    try:
        return {**_row_of(task, "ok"), **task.run()}
    except Exception as error:  # noqa: BLE001  (a bad file may raise anything; the other tasks go on)
        for fault in (error, error.__cause__):
            if isinstance(fault, OSError) and fault.errno in (ENOSPC, EDQUOT):
                raise fault from None  # all other tasks would fail, too
        # The row names the file already.
        return _failed(task, " ".join(reason_of(error).split()).removeprefix(f"{task.file}: "))


def _run_tasks(tasks: Iterable[Task], new_executor: Callable[[], Executor], in_flight: int) -> Generator[Row]:
    """Rows of all tasks, in order of completion.

    If a worker dies, a new executor runs the tasks that were in flight one at a time, which finds the one that kills
    its worker: that one gets a failed row. Then the others go on.
    """
    waiting = deque(tasks)
    while waiting:
        suspects: list[Task] = []
        running: dict[Future[Row], Task] = {}
        with new_executor() as executor:
            try:
                while waiting or running:
                    while waiting and len(running) < in_flight:
                        task = waiting.popleft()
                        running[executor.submit(run_task, _anywhere(task))] = task
                    done = wait(running, return_when=FIRST_COMPLETED).done
                    for future in sorted(done, key=lambda one: one.exception() is not None):  # an error ends the run
                        task = running.pop(future)
                        yield _as_given(_result(future, task), task)
            except BrokenExecutor:  # which ends the tasks in flight by itself
                suspects = [task, *running.values()]
            except BaseException:  # Ctrl-C, a full disk, or the rows are not wanted any more
                _drop(executor, running)
                raise
        if in_flight == 1:
            yield from (_failed(task, "its worker process died, also with no other file") for task in suspects)
        else:
            yield from _run_tasks(suspects, new_executor, 1)


def _drop(executor: Executor, futures: Iterable[Future[Row]]) -> None:
    """Drop the tasks that have not begun, and wait for the others."""
    if isinstance(executor, ProcessPoolExecutor):  # whose own thread must do it: its workers may die meanwhile
        executor.shutdown(cancel_futures=True)
    else:
        for future in futures:
            future.cancel()


@contextlib.contextmanager
def _processes(workers: int | None) -> Iterator[tuple[Callable[[], Executor], int]]:
    """Executors of `workers` processes here, by default one per core, and the tasks to keep in flight."""
    workers = workers or os.cpu_count() or 1
    # Spawn: a fork would copy locks of threads in numba and in the sound libraries.
    context = multiprocessing.get_context("spawn")
    yield partial(ProcessPoolExecutor, workers, context, _end_with_the_parent), workers * _IN_FLIGHT


@contextlib.contextmanager
def _dask_cluster(address: str) -> Iterator[tuple[Callable[[], Executor], int]]:
    """Executors on the workers of the Dask scheduler at `address`, and the tasks to keep in flight.

    If a worker dies, Dask runs its tasks on another one, and gives up on a task that killed several.
    """
    distributed = needed("distributed", "batch", "a cluster needs Dask")
    try:
        client = distributed.Client(address, timeout=_CONNECT_S)
    except (OSError, ValueError, TimeoutError) as error:
        raise CueError(f"no Dask scheduler at {address}: {str(error) or 'no answer'}") from error
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise CueError(f"the Dask scheduler at {address} has no workers")
        yield partial(client.get_executor, retries=_RETRIES), threads * _IN_FLIGHT


def _result(future: Future[Row], task: Task) -> Row:
    try:
        return future.result()
    except (BrokenExecutor, OSError):  # a dead worker; a full disk
        raise
    except Exception as error:  # noqa: BLE001  (a cluster may raise anything; the other tasks go on)
        return _failed(task, f"its worker gave up: {' '.join(str(error).split())[:200] or type(error).__name__}")


def _check_outputs(tasks: Sequence[Any], keys: Sequence[str], before: Sequence[Row], *, fresh: bool) -> None:
    """Raise `CueError` if an output exists that no earlier run wrote, or wrote from another file unless it is `fresh`.

    A failed row claims an output only if an earlier run wrote it.
    """
    written = {_places(str(row["key"])) for row in before if row.get("status") != "failed" or row.get("output")}
    outputs = {output for _, output in written}
    for task, key in zip(tasks, keys, strict=True):
        places = _places(key)
        is_own = places[1] in outputs if fresh else places in written
        if _writes(task) and not is_own and Path(task.output).exists():
            made = f"is there, and was not made of {task.file} by this command"
            raise CueError(f"{task.output} {made}; name another folder with --out, or delete it")


def _anywhere(task: Any) -> Any:
    """The task with absolute paths: a worker of a cluster may have another working directory."""
    paths: dict[str, Any] = {"output": absolute(task.output)} if _writes(task) else {}
    if hasattr(task, "source"):
        paths["source"] = replace(task.source, file=absolute(task.file))
    return replace(task, **paths)


def _as_given(row: Row, task: Any) -> Row:
    """The row with the paths that the user gave, which `_anywhere` has changed."""
    return row | {"file": task.file, "key": key_of(task)} | ({"output": task.output} if "output" in row else {})


def _writes(task: Any) -> bool:
    return bool(getattr(task, "output", None))


def _still_there(row: Row, by_output: Mapping[str, Row]) -> Row:
    """The row of a task that wrote nothing, with the recording that an earlier run wrote, if there is one."""
    output = by_output.get(_places(row["key"])[1], {}).get("output")
    return row | {"output": output} if output else row


def _tells(row: Row, still_good: Callable[[Row], bool]) -> bool:
    """Whether the row's recording exists or is still to be written."""
    return row.get("status") != "ok" or still_good(row)


def _failed(task: Task, error: str) -> Row:
    return _row_of(task, "failed", error)


def _row_of(task: Task, status: str, error: str | None = None) -> Row:
    return {"file": task.file, "status": status, "error": error, "key": key_of(task)}


def _end_with_the_parent() -> None:
    """Exit on Ctrl-C without a traceback, and if the parent is killed, which cannot end its workers then."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
