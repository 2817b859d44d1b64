"""Timing for the benches: contenders take turns, so that noise affects all alike."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["best_s"]


def best_s(contenders: Mapping[str, Callable[[], object]], rounds: int = 15) -> dict[str, float]:
    """Shortest time of each contender over `rounds` rounds, in seconds, after one call to warm up."""
    for call in contenders.values():
        call()
    best = dict.fromkeys(contenders, float("inf"))
    gc.disable()
    for _ in range(rounds):
        for name, call in contenders.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    gc.enable()
    return best
