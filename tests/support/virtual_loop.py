"""An event loop whose time is virtual: a package's own timers and timeouts run on it, at once and in order."""

import asyncio
import selectors


class _Jumping(selectors.DefaultSelector):
    """Waits for threads alone: if no socket is ready, the loop's time jumps to its next timer."""

    now_s = 0.0
    threads = 0

    def select(self, timeout=None):
        ready = super().select(None if self.threads and timeout != 0 else 0)
        if ready or timeout == 0:
            return ready
        assert timeout is not None, "everything waits, and nothing waits for time to pass"
        self.now_s += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its time stands still while a job of its executor runs; it does not wait for other threads."""

    def __init__(self):
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self):
        return self._jumping.now_s

    def run_in_executor(self, executor, func, *args):
        future = super().run_in_executor(executor, func, *args)
        self._jumping.threads += 1
        future.add_done_callback(self._one_less)
        return future

    async def shutdown_default_executor(self, *timeout):
        self._jumping.threads += 1
        await super().shutdown_default_executor(*timeout)

    def _one_less(self, _):
        self._jumping.threads -= 1


class LoopClock:
    """The time of the running loop, as a `stream.clock.Clock`."""

    speed = 1.0

    def now(self):
        return asyncio.get_running_loop().time()

    async def sleep(self, duration_s):
        await asyncio.sleep(max(duration_s, 0.0))

    async def sleep_until(self, at_s):
        await self.sleep(at_s - self.now())


def run_virtually(main):
    """Run a coroutine function on a virtual loop."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())
