"""Tasks on the cores of this machine; the tasks of a worker that dies run again."""

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

from cues.batch.tasks import Outcome, Task, failed, run_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["run_on_processes"]

_AHEAD = 3
_MAX_DEATHS = 2
_KILLED_S = 5.0


@dataclass(frozen=True, slots=True)
class _Held:
    """A task, and the number of workers that died while only it ran."""

    task: Task
    deaths: int = 0


def run_on_processes(tasks: Sequence[Task], workers: int) -> Iterator[list[Outcome]]:
    """Outcomes of all tasks, one by one, in order of completion.

    If a worker dies, all workers are replaced, and the running tasks run again one at a time. A task that kills two
    workers gets a failed row. Closing the generator kills the workers and drops their unfinished results.
    """
    waiting = deque(map(_Held, tasks))
    suspects: deque[_Held] = deque()
    while waiting or suspects:
        others = set(multiprocessing.active_children())
        # Spawn: a fork would copy locks of threads in numba and in the sound libraries.
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(max_workers=workers, mp_context=context, initializer=_follow_the_parent)
        try:
            yield from _until_one_dies(pool, workers, waiting, suspects)
        except BaseException:
            # Running tasks may take minutes, and the program cannot exit while its workers run.
            workers_left = set(multiprocessing.active_children()) - others
            for worker in workers_left:
                worker.kill()
            for worker in workers_left:
                worker.join(_KILLED_S)  # it may write until then
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        for guilty in [held for held in suspects if held.deaths >= _MAX_DEATHS]:
            suspects.remove(guilty)
            yield [failed(guilty.task, "the worker process died twice")]


def _until_one_dies(
    pool: ProcessPoolExecutor, workers: int, waiting: deque[_Held], suspects: deque[_Held]
) -> Iterator[list[Outcome]]:
    """Outcomes until all tasks are done or a worker dies; then each running task becomes a suspect."""
    running: dict[Future[list[Outcome]], _Held] = {}
    broken = False
    try:
        while running or waiting or suspects:
            while not broken and (suspects or waiting) and len(running) < (1 if suspects else workers * _AHEAD):
                # Suspects run alone: the next death identifies the task.
                held = suspects.popleft() if suspects else waiting.popleft()
                with _interrupts_wait():
                    running[pool.submit(run_tasks, [held.task])] = held
            alone = len(running) == 1
            done = wait(running, return_when=FIRST_COMPLETED).done
            # Yield results first: a task that found the disk full ends the run.
            for future in sorted(done, key=lambda future: future.exception() is not None):
                held = running.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool:
                    suspects.append(_Held(held.task, held.deaths + alone))
                    broken = True
            if broken and not running:
                return
    except BrokenProcessPool:  # raised by `submit`
        suspects.extend((held, *running.values()))


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Block SIGINT: a process that starts meanwhile inherits the mask and is never interrupted."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _follow_the_parent() -> None:
    """Ignore SIGINT, and exit when the parent exits; a killed parent cannot stop its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
