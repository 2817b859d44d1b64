"""Counters of attempts, retries, invalid calls and tool results; nothing is sent anywhere."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream.events import InvalidToolCall, ToolResult

__all__ = ["Attempts", "Position"]

Position: TypeAlias = Literal["first_query", "later_query", "retry"]

logger = logging.getLogger(__name__)


class Attempts:
    """Counters per model: outcomes by position, empty answers, invalid calls, results by tool.

    First questions are counted apart from later ones and retries: a cold model and a long tool list hurt them most.
    Sessions of one event loop may share an object.
    """

    def __init__(self) -> None:
        self._outcomes: Counter[tuple[str, Position, bool]] = Counter()
        self._seconds: Counter[tuple[str, Position]] = Counter()
        self._empty: Counter[str] = Counter()
        self._invalid: Counter[tuple[str, str]] = Counter()
        self._results: Counter[tuple[str, str, bool]] = Counter()

    def record(self, model: str, position: Position, *, ok: bool, seconds: float = 0.0, retry: int = 0) -> None:
        """Count and log one attempt; `retry` is the number of the retry, from 1."""
        self._outcomes[model, position, ok] += 1
        self._seconds[model, position] += seconds  # type: ignore[assignment]  # a Counter's values are typed as int
        asked = {"first_query": "First query", "later_query": "Later query", "retry": f"Retry {retry}"}[position]
        rate = self.rate(model, position)
        logger.info("%s: %s (%s, %.2f s, rate %.3f)", asked, "success" if ok else "failure", model, seconds, rate)

    def empty(self, model: str) -> None:
        """Count an answer without text or calls."""
        self._empty[model] += 1

    def invalid(self, model: str, call: InvalidToolCall) -> None:
        """Count an invalid call."""
        self._invalid[model, call.reason] += 1

    def result(self, model: str, result: ToolResult) -> None:
        """Count the result of a registered tool; invented names would be labels without bound."""
        self._results[model, result.tool_name, not result.is_error] += 1

    def rate(self, model: str, position: Position) -> float:
        """Share of attempts that succeeded, 0 to 1; 0 without attempts."""
        return _outcomes(self._outcomes, model, position)["rate"]

    def snapshot(self) -> dict[str, Any]:
        """All counts by model, as JSON values."""
        counters = (self._outcomes, self._invalid, self._results)
        models = {key[0] for counter in counters for key in counter} | {*self._empty}
        return {
            model: {
                **{
                    position: _outcomes(self._outcomes, model, position) | {"seconds": self._seconds[model, position]}
                    for position in get_args(Position)
                },
                "empty_answers": self._empty[model],
                "invalid_calls": {why: count for (name, why), count in sorted(self._invalid.items()) if name == model},
                "tools": {
                    tool: _outcomes(self._results, model, tool)
                    for tool in sorted({tool for name, tool, _ in self._results if name == model})
                },
            }
            for model in sorted(models)
        }

    def prometheus(self, prefix: str = "cue_engine") -> str:
        """All counts in Prometheus' text-based exposition format, version 0.0.4."""
        tables: tuple[tuple[str, str, tuple[str, ...], Mapping[Any, float]], ...] = (
            ("attempts", "Questions asked, by position and outcome.", ("position", "outcome"), self._outcomes),
            ("attempt_seconds", "Time spent on questions, seconds.", ("position",), self._seconds),
            ("empty_answers", "Answers without text or calls.", (), self._empty),
            ("invalid_calls", "Calls that were not run, by reason.", ("reason",), self._invalid),
            ("tool_results", "Results of tools, by tool and outcome.", ("tool", "outcome"), self._results),
        )
        lines = []
        for name, meaning, labels, counts in tables:
            metric = f"{prefix}_{name}_total"
            lines += [f"# HELP {metric} {meaning}", f"# TYPE {metric} counter"]
            for key, count in sorted(counts.items()):
                values = zip(("model", *labels), key if isinstance(key, tuple) else (key,), strict=True)
                labeled = ",".join(f'{label}="{_escaped(value)}"' for label, value in values)
                lines.append(f"{metric}{{{labeled}}} {count}")
        return "\n".join(lines) + "\n"


def _outcomes(counts: Mapping[Any, int], model: str, label: str) -> dict[str, float]:
    good, bad = (counts.get((model, label, ok), 0) for ok in (True, False))
    return {"success": good, "failure": bad, "rate": good / (good + bad) if good + bad else 0.0}


def _escaped(value: str | bool) -> str:
    if isinstance(value, bool):
        return "success" if value else "failure"
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
