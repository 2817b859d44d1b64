"""Threads that take turns as often as the interpreter can, and fail together."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["forced_switching", "run_together"]


@contextmanager
def forced_switching() -> Iterator[None]:
    """Let threads take turns as often as the interpreter can."""
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval_s)


def run_together(*acts: Callable[[], object]) -> None:
    """Run each act in a thread of its own under forced switching, and raise what one of them raises."""
    raised: list[BaseException] = []
    start = threading.Barrier(len(acts))

    def guarded(act: Callable[[], object]) -> None:
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
