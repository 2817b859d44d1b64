"""Goals and what was measured for them: the rows that every bench prints and `python -m bench` gathers."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Figure", "at_least", "at_most", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row: a goal's key, a ratio or a size, and the limit that it has to keep.

    `measured` is None if the bench could not measure it; `note` then says why.
    """

    goal: str
    what: str
    measured: float | None
    sign: str
    limit: float
    unit: str = "×"
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the limit is kept; None if nothing was measured."""
        if self.measured is None:
            return None
        return self.measured <= self.limit if self.sign == "≤" else self.measured >= self.limit

    def __str__(self) -> str:
        value = "not measured" if self.measured is None else f"{self.measured:.3g} {self.unit}".rstrip()
        verdict = {True: "holds", False: "MISSED", None: self.note}[self.holds]
        return f"{self.goal:3} {self.what:60} {value:>14}  {self.sign} {self.limit:g}  {verdict}"


def at_most(goal: str, what: str, measured: float | None, limit: float, *, unit: str = "×", note: str = "") -> Figure:
    """A figure that must not be larger than `limit`."""
    return Figure(goal=goal, what=what, measured=_plain(measured), sign="≤", limit=limit, unit=unit, note=note)


def at_least(goal: str, what: str, measured: float | None, limit: float, *, unit: str = "×", note: str = "") -> Figure:
    """A figure that must not be smaller than `limit`."""
    return Figure(goal=goal, what=what, measured=_plain(measured), sign="≥", limit=limit, unit=unit, note=note)


def _plain(measured: float | None) -> float | None:
    return None if measured is None else float(measured)


def run(description: str | None, figures: Callable[[], Iterable[Figure]]) -> int:
    """Measure, print the rows as text or with `--json`, and return 1 if a goal was missed."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON document on the standard output")
    as_json = parser.parse_args().json
    rows = list(figures())
    print(json.dumps([asdict(row) for row in rows]) if as_json else "\n".join(str(row) for row in rows))
    return int(any(row.holds is False for row in rows))
