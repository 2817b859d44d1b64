"""Calls of functions that may block, in a daemon thread of their own."""

import asyncio
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import pytest

from cues.adapters._own_thread import OwnThread

LIMIT_S = 20.0  # A test that waits for what never comes fails; nothing waits for this time to pass.


def run(script):
    async def go():
        async with asyncio.timeout(LIMIT_S):
            return await script()

    return asyncio.run(go())


class Blocked:
    """A function that waits until it may go on."""

    def __init__(self):
        self.begun, self.go_on, self.thread = threading.Event(), threading.Event(), None

    def __call__(self):
        self.thread = threading.current_thread()
        self.begun.set()
        assert self.go_on.wait(LIMIT_S)

    async def begin(self, own):
        call = asyncio.ensure_future(own.run(self))
        await asyncio.to_thread(self.begun.wait, LIMIT_S)
        return call

    def ends(self):
        """Whether the thread ends once the function has returned."""
        self.go_on.set()
        self.thread.join(LIMIT_S)
        return not self.thread.is_alive()


def test_all_calls_run_in_one_daemon_thread_and_see_the_context_of_the_caller():
    number = ContextVar("number")

    async def script():
        own, seen = OwnThread("mine"), []
        for n in range(3):
            number.set(n)
            seen.append(await own.run(lambda more: (number.get() + more, threading.current_thread()), 10))
        own.close()
        return seen

    seen = run(script)
    assert [result for result, _ in seen] == [10, 11, 12]
    assert {(thread.name, thread.daemon) for _, thread in seen} == {("mine", True)}
    assert len({thread for _, thread in seen}) == 1


@pytest.mark.parametrize(("error", "raised"), [(OSError, OSError), (StopIteration, RuntimeError)], ids=str)
def test_an_exception_reaches_the_caller_and_the_thread_goes_on(error, raised):
    def fail():
        raise error("no more")

    async def script():
        own = OwnThread("mine")
        with pytest.raises(raised):
            await own.run(fail)
        return await own.run(lambda: 1)

    assert run(script) == 1


def test_a_call_that_waits_takes_no_thread_from_others():
    async def script():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        blocked, own = [Blocked(), Blocked()], [OwnThread("a"), OwnThread("b")]
        calls = [asyncio.ensure_future(a.run(b)) for a, b in zip(own, blocked, strict=True)]
        for one in blocked:
            await asyncio.to_thread(one.begun.wait, LIMIT_S)
            one.go_on.set()
        await asyncio.gather(*calls)

    run(script)


def test_after_a_cancelled_call_the_next_has_another_thread_and_the_old_one_ends_with_its_function():
    async def script():
        own, blocked = OwnThread("mine"), Blocked()
        call = await blocked.begin(own)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert await own.run(threading.current_thread) is not blocked.thread
        assert blocked.ends()

    run(script)


@pytest.mark.parametrize("end", ["closed", "dropped"])
def test_the_thread_ends_with_its_object(end):
    async def script():
        own = OwnThread("mine")
        thread = await own.run(threading.current_thread)
        if end == "closed":
            own.close()
        del own
        gc.collect()
        thread.join(LIMIT_S)
        return thread.is_alive()

    assert not run(script)


def test_an_idle_thread_keeps_nothing_that_it_has_called():
    class Handler:
        def receive(self):
            return 1

    async def script():
        own, gone = OwnThread("mine"), threading.Event()
        handler = Handler()
        weakref.finalize(handler, gone.set)
        await own.run(handler.receive)
        del handler
        gc.collect()
        assert await asyncio.to_thread(gone.wait, LIMIT_S)

    run(script)
