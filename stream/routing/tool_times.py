"""How long each tool takes, learned from its results."""

import json
from collections import OrderedDict, deque
from collections.abc import Iterable
from math import ceil
from statistics import median
from threading import Lock
from typing import NamedTuple, Self

from stream.checks import check_number
from stream.errors import StreamValueError

__all__ = ["Took", "ToolTimes", "left_s", "took"]

KEPT = 20
"""Durations a tool: old ones are of another network, another load."""
MOST_NAMES = 512  # A cap, because the names come from a model.
_LONGEST_NAME = 128
_LONGEST_S = 86400.0


class Took(NamedTuple):
    """Earlier durations: median and 90th percentile, seconds."""

    median_s: float
    p90_s: float


def took(durations_s: Iterable[float]) -> Took | None:
    """Median and 90th percentile (nearest rank) of some durations; `None` of none.

    >>> took([1.0, 2.0, 9.0])
    Took(median_s=2.0, p90_s=9.0)
    """
    ordered = sorted(durations_s)
    return Took(median(ordered), ordered[ceil(0.9 * len(ordered)) - 1]) if ordered else None


def left_s(usual: Took | None, elapsed_s: float) -> float | None:
    """The time left after `elapsed_s`; `None` if nothing is known, or it took longer than nine times in ten.

    >>> usual = Took(median_s=2.0, p90_s=9.0)
    >>> [left_s(usual, elapsed_s) for elapsed_s in (0.5, 3.0, 10.0)]
    [1.5, 6.0, None]
    """
    if usual is None or elapsed_s > usual.p90_s:
        return None
    return (usual.median_s if elapsed_s <= usual.median_s else usual.p90_s) - elapsed_s


class ToolTimes:
    """The durations of each tool's last 20 runs; of 512 tools at most, those used last. Any thread.

    A router learns them by itself. One object for all sessions, kept as JSON between them, knows the tools from the
    first call on: `stream.CueRouter(bank, mixer, times=times)`.

    Examples
    --------
    >>> times = ToolTimes()
    >>> for took_s in (1.0, 2.0, 9.0):
    ...     times.note("search", took_s)
    >>> ToolTimes.from_json(times.to_json()).usual("search")
    Took(median_s=2.0, p90_s=9.0)
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._took_s: OrderedDict[str, deque[float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._took_s)

    def note(self, tool_name: str, took_s: float) -> None:
        """Add the duration of one run, seconds; it counts as 0 … one day."""
        took_s = min(max(check_number("took_s", took_s), 0.0), _LONGEST_S)
        name = tool_name[:_LONGEST_NAME]
        with self._lock:
            self._took_s.setdefault(name, deque(maxlen=KEPT)).append(took_s)
            self._took_s.move_to_end(name)
            if len(self._took_s) > MOST_NAMES:
                self._took_s.popitem(last=False)

    def usual(self, tool_name: str) -> Took | None:
        """Median and 90th percentile of a tool, seconds; `None` if it has not run yet."""
        with self._lock:
            return took(self._took_s.get(tool_name[:_LONGEST_NAME], ()))

    def to_json(self) -> str:
        """The durations as JSON, to the millisecond."""
        with self._lock:
            return json.dumps({name: [round(one, 3) for one in of_name] for name, of_name in self._took_s.items()})

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The times that `to_json` wrote; raises `StreamValueError` for any other text."""
        times = cls()
        try:
            for name, durations_s in json.loads(text).items():
                for took_s in durations_s:
                    times.note(name, took_s)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise StreamValueError(f"not the JSON of ToolTimes (names, durations in seconds): {error}") from error
        return times
