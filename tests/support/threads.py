"""Threads that take turns as often as the interpreter can, and fail together."""

import sys
import threading
from contextlib import contextmanager


@contextmanager
def forced_switching():
    """Let threads take turns as often as the interpreter can."""
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval_s)


def run_together(*acts):
    """Run each act in a thread of its own under forced switching, and raise what one of them raises."""
    raised = []
    start = threading.Barrier(len(acts))

    def guarded(act):
        start.wait()
        try:
            act()
        except BaseException as error:  # noqa: BLE001  (raised below, in the caller's thread)
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(act,)) for act in acts]
    with forced_switching():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for error in raised:
        raise error
