"""Counters of attempts, retries, invalid calls and tool results; nothing is sent anywhere."""

import logging
from collections import Counter
from typing import Any, Literal, TypeAlias, get_args

from stream.events import InvalidToolCall, ToolResult

__all__ = ["Attempts", "Position"]

Position: TypeAlias = Literal["first_query", "later_query", "retry"]

METRICS = {
    "attempts": ("Questions asked, by position and outcome.", "position", "outcome"),
    "attempt_seconds": ("Time spent on questions, seconds.", "position"),
    "empty_answers": ("Answers without text or calls.",),
    "invalid_calls": ("Calls that were not run, by reason.", "reason"),
    "tool_results": ("Results of tools, by tool and outcome.", "tool", "outcome"),
}
"""Meaning of each counter, and its labels after the model's."""
OUTCOMES = {True: "success", False: "failure"}

logger = logging.getLogger(__name__)


class Attempts:
    """Counters per model: outcomes by position, empty answers, invalid calls, results by tool.

    First questions are counted apart from later ones and retries: a cold model and a long tool list hurt them most.
    Sessions of one event loop may share an object.
    """

    def __init__(self) -> None:
        self._counts: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in METRICS}
        self._last: ToolResult | None = None

    def record(self, model: str, position: Position, *, ok: bool, seconds: float = 0.0, retry: int = 0) -> None:
        """Count and log one attempt; `retry` is the number of the retry, from 1."""
        self._counts["attempts"][model, position, OUTCOMES[ok]] += 1
        self._counts["attempt_seconds"][model, position] += seconds  # type: ignore[assignment]  # typed for int alone
        asked = {"first_query": "First query", "later_query": "Later query", "retry": f"Retry {retry}"}[position]
        rate = self.rate(model, position)
        logger.info("%s: %s (%s, %.2f s, rate %.3f)", asked, OUTCOMES[ok], model, seconds, rate)

    def empty(self, model: str) -> None:
        """Count an answer without text or calls."""
        self._counts["empty_answers"][model,] += 1

    def invalid(self, model: str, call: InvalidToolCall) -> None:
        """Count an invalid call."""
        self._counts["invalid_calls"][model, call.reason] += 1

    def result(self, model: str, result: ToolResult) -> None:
        """Count the result of a registered tool; invented names would be labels without bound."""
        if result is not self._last:  # A result of a fallback passes the `Recovery`, then the runner around it.
            self._counts["tool_results"][model, result.tool_name, OUTCOMES[not result.is_error]] += 1
        self._last = result

    def rate(self, model: str, position: Position) -> float:
        """Share of attempts that succeeded, 0 to 1; 0 without attempts."""
        return self._rates("attempts", model, position)["rate"]

    def snapshot(self) -> dict[str, Any]:
        """All counts by model, as JSON values."""
        return {model: self._of(model) for model in sorted({key[0] for keys in self._counts.values() for key in keys})}

    def _of(self, model: str) -> dict[str, Any]:
        seconds, invalid = self._counts["attempt_seconds"], self._counts["invalid_calls"]
        tools = sorted({key[1] for key in self._counts["tool_results"] if key[0] == model})
        return {
            **{
                position: self._rates("attempts", model, position) | {"seconds": seconds[model, position]}
                for position in get_args(Position)
            },
            "empty_answers": self._counts["empty_answers"][model,],
            "invalid_calls": {key[1]: count for key, count in sorted(invalid.items()) if key[0] == model},
            "tools": {tool: self._rates("tool_results", model, tool) for tool in tools},
        }

    def _rates(self, name: str, model: str, label: str) -> dict[str, float]:
        good, bad = (self._counts[name][model, label, outcome] for outcome in ("success", "failure"))
        return {"success": good, "failure": bad, "rate": good / (good + bad) if good + bad else 0.0}

    def prometheus(self, prefix: str = "cue_engine") -> str:
        """All counts in Prometheus' text-based exposition format, version 0.0.4."""
        lines = []
        for name, (meaning, *labels) in METRICS.items():
            metric = f"{prefix}_{name}_total"
            lines += [f"# HELP {metric} {meaning}", f"# TYPE {metric} counter"]
            for key, count in sorted(self._counts[name].items()):
                escaped = (one.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for one in key)
                values = ",".join(
                    f'{label}="{value}"' for label, value in zip(("model", *labels), escaped, strict=True)
                )
                lines.append(f"{metric}{{{values}}} {count}")
        return "\n".join(lines) + "\n"
