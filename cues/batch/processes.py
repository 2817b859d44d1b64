"""Tasks on the cores of this machine. A worker that dies takes nothing with it but the time of the tasks it held."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cues.batch.tasks import Outcome, Task, chunks_of, failed_row, key_of, run_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["run_on_processes"]

_AHEAD = 3
_MAX_DEATHS = 2
_KILLED_S = 5.0
_DIED = "the process that worked on it died, twice"


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Tasks for a worker, and how often a worker died that had them to itself."""

    tasks: tuple[Task, ...]
    deaths: int = 0


def run_on_processes(tasks: Sequence[Task], workers: int) -> Iterator[list[Outcome]]:
    """The outcomes of all tasks, in the order in which they are done.

    When a worker dies, all are replaced, and the tasks that were under way are done again one by one: a task that ends
    two workers by itself gets a failed row. Whoever stops listening ends the workers at once, and what they had not
    handed over.

    Parameters
    ----------
    tasks : what to do.
    workers : processes, ≥ 1.
    """
    waiting = deque(map(_Chunk, chunks_of(tasks)))
    suspects: deque[_Chunk] = deque()
    while waiting or suspects:
        others = set(multiprocessing.active_children())
        pool = _pool(workers)
        try:
            yield from _until_one_dies(pool, workers, waiting, suspects)
        except BaseException:
            # The tasks under way may take minutes, and the program cannot end before its workers do.
            workers_left = set(multiprocessing.active_children()) - others
            for worker in workers_left:
                worker.kill()
            for worker in workers_left:
                worker.join(_KILLED_S)  # until then it may still write
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        guilty = [each for each in suspects if each.deaths >= _MAX_DEATHS]
        for each in guilty:
            suspects.remove(each)
            yield [Outcome(key_of(task), failed_row(task, _DIED)) for task in each.tasks]


def _until_one_dies(
    pool: ProcessPoolExecutor, workers: int, waiting: deque[_Chunk], suspects: deque[_Chunk]
) -> Iterator[list[Outcome]]:
    """Outcomes until everything is done or a worker died; what was under way then is in `suspects`, one by one."""
    running: dict[Future[list[Outcome]], _Chunk] = {}
    broken = False
    try:
        while running or waiting or suspects:
            while not broken and (suspects or waiting) and len(running) < (1 if suspects else workers * _AHEAD):
                # Suspects go alone, so that the next death tells which of them it was.
                next_chunk = suspects.popleft() if suspects else waiting.popleft()
                with _interrupts_wait():
                    running[pool.submit(run_tasks, next_chunk.tasks)] = next_chunk
            done = wait(running, return_when=FIRST_COMPLETED).done
            # What succeeded comes first: the task that found the disk full ends the run.
            for future in sorted(done, key=_has_failed):
                held = running.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool:
                    suspects.extend(_apart(held))
                    broken = True
            if broken and not running:
                return
    except BrokenProcessPool:  # `submit` found out first
        suspects.extend(each for held in (next_chunk, *running.values()) for each in _apart(held))


def _has_failed(future: Future[list[Outcome]]) -> bool:
    return future.exception() is not None


def _apart(chunk: _Chunk) -> list[_Chunk]:
    if len(chunk.tasks) == 1:
        return [_Chunk(chunk.tasks, chunk.deaths + 1)]
    return [_Chunk((task,)) for task in chunk.tasks]


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Hold SIGINT back: a process that is started meanwhile never gets one, not even before it can say so."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _pool(workers: int) -> ProcessPoolExecutor:
    # A fresh interpreter for each: a fork would copy the threads' locks of numba and of the sound libraries.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(max_workers=workers, mp_context=context, initializer=_follow_the_parent)


def _follow_the_parent() -> None:
    """Leave interrupts to the parent, and end when it has ended: one that was killed tells its workers nothing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
