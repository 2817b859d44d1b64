"""Scenarios by name: a table of scripts, each with the behavior of the server on which it was seen."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from stream.errors import StreamValueError
from stream.replay.behavior import Behavior, native_lines, sse_events
from stream.replay.endpoints import PATHS, api_of_path, turn_index
from stream.replay.recording import Recording

__all__ = ["Scenario", "names", "scenario"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A server's script that `ReplayServer` can serve."""

    name: str  # it starts with the server: `fork-duplicate`
    about: str  # the scenario in one sentence
    behavior: Behavior = field(default_factory=Behavior)
    turns: Sequence[Sequence[Sequence[Any]]]  # the answers, as in `ReplayServer`
    without_tools: Sequence[Sequence[Any]] | None = None  # the answer if no tools are offered, if it is another one
    endpoints: tuple[str, ...] = ("chat", "ollama")  # the APIs that have it
    refusal: Mapping[str, Any] | None = None  # status, headers and body of an answer that is not a stream
    refuses_tools_only: bool = False  # only requests with tools get the refusal
    read_bytes: int = 0  # size of each read; 0 leaves it to the server
    read_ms: float = 0.0  # time between two reads; 0 leaves it to the server
    pages: Mapping[str, Any] = field(default_factory=dict)  # other paths, and their JSON answers

    @property
    def paths(self) -> list[str]:
        """The ends of the paths that are answered."""
        return [path for path, api in PATHS.items() if api in self.endpoints]

    @property
    def as_recorded(self) -> bool:
        """Whether the scenario prescribes the reads."""
        return self.read_bytes > 0 or self.read_ms > 0.0

    def answer(self, path: str, request: Mapping[str, Any]) -> Recording | None:
        """The answer to a chat request; `None` if the server has no such endpoint."""
        api = api_of_path(path)
        if api not in self.endpoints or api is None:
            return None
        if self.refusal is not None and (request.get("tools") or not self.refuses_tools_only):
            headers = {"content-type": "application/json", **self.refusal.get("headers", {})}
            body = self.refusal["body"].encode()
            return Recording(name=self.name, kind="json", body=body, status=self.refusal["status"], headers=headers)
        steps = None if request.get("tools") else self.without_tools
        if steps is None:
            steps = self.turns[min(turn_index(request), len(self.turns) - 1)]
        pieces = _WRITERS[api](steps, self.behavior, str(request.get("model", "model")))
        return Recording(
            name=self.name,
            kind="ndjson" if api == "ollama" else "sse",
            body=b"".join(pieces),
            reads=self._reads(pieces),
            complete=not (steps and steps[-1][0] == "break"),
        )

    def _reads(self, pieces: Sequence[bytes]) -> tuple[tuple[int, float], ...]:
        if not self.as_recorded:
            return ()
        sizes = [len(piece) for piece in pieces]
        if self.read_bytes:
            total = sum(sizes)
            sizes = [min(self.read_bytes, total - start) for start in range(0, total, self.read_bytes)]
        return tuple((size, place * self.read_ms) for place, size in enumerate(sizes))


def names() -> list[str]:
    """The names of all scenarios, sorted."""
    return sorted(_table())


def scenario(name: str) -> Scenario:
    """The scenario of a name; an unknown name raises a `StreamValueError`.

    Examples
    --------
    >>> scenario("fork-duplicate").behavior.duplicate
    True
    """
    if name not in _table():
        raise StreamValueError(f"scenario is {name!r}; it must be one of {', '.join(names())}")
    return _table()[name]


_WRITERS = {"chat": sse_events, "ollama": native_lines}


@cache
def _table() -> dict[str, Scenario]:
    table = tomllib.loads(files("stream.replay").joinpath("scenarios.toml").read_text(encoding="utf-8"))
    return {entry["name"]: _made(entry, table["behavior"]) for entry in table["scenario"]}


def _made(entry: dict[str, Any], behaviors: Mapping[str, Mapping[str, Any]]) -> Scenario:
    own = {**behaviors[entry.pop("as")], **entry.pop("with", {})}
    endpoints = own.pop("endpoints", ("chat", "ollama"))
    entry["endpoints"] = tuple(entry.get("endpoints", endpoints))
    return Scenario(behavior=Behavior(**own), **entry)
