"""Calls of functions that may block, in a daemon thread of their own."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any
from weakref import finalize

__all__ = ["OwnThread"]

_Jobs = SimpleQueue[Callable[[], None] | None]


class OwnThread:
    """Runs functions that may block, one after the other; the first call starts the thread.

    asyncio's executor has a few threads for the whole process: functions that wait for long keep them from all others.
    Python cannot stop a function, so a call that is cancelled keeps this thread until it returns, and the next call
    has a new one. `close` ends the thread, and so does the end of this object.

    Parameters
    ----------
    name : str
        The thread's name.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._executor: _OneThread | None = None

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The function's result; it sees this context, as with `asyncio.to_thread`."""
        self._executor = self._executor or _OneThread(self._name)
        work = partial(copy_context().run, function, *arguments)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)
        except asyncio.CancelledError:
            self.close()
            raise

    def close(self) -> None:
        """End the thread after the call that it runs; a later call starts another."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.end()


class _OneThread(Executor):
    """An executor whose thread is a daemon: a call that hangs does not keep the program alive."""

    def __init__(self, name: str) -> None:
        jobs: _Jobs = SimpleQueue()
        self._jobs, self.end = jobs, finalize(self, jobs.put, None)
        self.end.atexit = False
        # The thread knows the queue alone: it does not keep this object alive, or what called.
        Thread(target=_work, args=(jobs,), name=name, daemon=True).start()

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._jobs.put(partial(_run, future, partial(function, *arguments, **named)))
        return future


def _work(jobs: _Jobs) -> None:
    while (job := jobs.get()) is not None:
        job()
        del job  # or its handler lives until the next


def _run(future: Future[Any], work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except StopIteration as error:  # asyncio cannot pass it on
        failure = RuntimeError("the function raised StopIteration")
        failure.__cause__ = error
        future.set_exception(failure)
    except BaseException as error:  # noqa: BLE001  (raised again in the coroutine)
        future.set_exception(error)
    else:
        future.set_result(result)
