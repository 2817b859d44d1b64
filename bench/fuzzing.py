"""The command line of the benches that fuzz: streams from seeds, each printed with its seed if a promise broke."""

from __future__ import annotations

import argparse
import random
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["run"]

MOST_PRINTED = 10


def run(description: str, broken_promise: Callable[[random.Random], str | None]) -> int:
    """Try `--streams` streams; 1 if one of them broke a promise. `broken_promise` makes and reads one."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--streams", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began, found = time.perf_counter(), 0
    for number in range(options.streams):
        wrong = broken_promise(random.Random(f"{options.seed}:{number}"))
        if wrong:
            found += 1
            print(f"{options.seed}:{number} {wrong}", flush=True)
            if found == MOST_PRINTED:
                break
    print(f"{number + 1} streams, {found} broken promises, {time.perf_counter() - began:.0f} s")
    return 1 if found else 0
