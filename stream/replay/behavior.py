"""Writes a script as a given model server would stream it. Pure: steps in, bytes out.

A script is a list of steps: ``["say", text]``, ``["think", text]``, ``["call", name, arguments]`` (consecutive calls
are parallel calls of one answer), ``["results", [text, …]]`` (the server ran the tools itself), ``["finish", reason]``
in mid-stream, ``["announce"]`` (an empty `tool_calls` array), ``["fail", error]`` and ``["break"]`` (the connection
breaks).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream.errors import StreamValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["Behavior", "call_id", "dumped", "grouped", "native_lines", "sse_events", "words", "written"]

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Behavior:
    """How one server writes.

    Attributes
    ----------
    role_everywhere, empty_content : bool
        `role` in every chunk, not only in the first; `content: ""` in chunks without content.
    fragment : int
        Length of the pieces of arguments, characters; 0 sends them whole.
    ids : {"call", "long", "none"}
        `call_` and 8 digits; longer ids; empty strings.
    same_index, repeat_head, duplicate : bool
        Index 0 for every call; id and name in every piece of a call; every call twice.
    nulls : bool
        `null` for every empty field.
    usage, done, no_finish, double_finish : bool
        A usage chunk at the end; `[DONE]` at the end; no finish reason; the last chunk twice.
    calls_on_done : bool
        On Ollama's own endpoint, all calls in the `done` line.
    task : bool
        `task_id` and `task_status`, because the server runs the tools itself.
    reasoning, kind : str
        The field for reasoning on the OpenAI-compatible endpoint; the channel of the text.
    quirks : tuple of str
        Of `provider_streams`: `"comments"` (between events), `"rotating-ids"` (of items, in every event), `"spliced"`
        (a second message begins in the middle of a call), `"no-end"` (of streamed arguments).
    """

    role_everywhere: bool = False
    empty_content: bool = False
    fragment: int = 0
    ids: str = "call"
    same_index: bool = False
    repeat_head: bool = False
    duplicate: bool = False
    nulls: bool = False
    usage: bool = True
    done: bool = True
    no_finish: bool = False
    double_finish: bool = False
    calls_on_done: bool = False
    task: bool = False
    reasoning: str = "reasoning"
    kind: str = ""
    quirks: tuple[str, ...] = ()


def written(events: Iterable[Json | None], write: Callable[[Json], bytes]) -> tuple[list[bytes], bool]:
    """Each event as bytes, and whether the answer is complete; `None` is where the connection breaks."""
    pieces: list[bytes] = []
    for event in events:
        if event is None:
            return pieces, False
        pieces.append(write(event))
    return pieces, True


def sse_events(steps: Sequence[Sequence[Any]], behavior: Behavior, model: str) -> tuple[list[bytes], bool]:
    """The server-sent events of a script, and whether the answer is complete."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": model}

    def write(value: Json) -> bytes:
        return b"data: " + dumped(value if "error" in value else {**head, **value}) + b"\n\n"

    pieces, complete = written(_chunks(steps, behavior), write)
    if complete and behavior.done and not (steps and steps[-1][0] == "fail"):
        pieces.append(b"data: [DONE]\n\n")
    return pieces, complete


def native_lines(steps: Sequence[Sequence[Any]], behavior: Behavior, model: str) -> tuple[list[bytes], bool]:
    """The JSON lines of a script, as on Ollama's own endpoint, and whether the answer is complete."""
    head = {"model": model, "created_at": "2026-01-02T03:04:05.678901Z"}
    lines = _lines(steps, behavior)
    return written(lines, lambda one: dumped(one if set(one) == {"error"} else {**head, **one}) + b"\n")


def _chunks(steps: Sequence[Sequence[Any]], behavior: Behavior) -> Iterator[Json | None]:
    first, reason, calls = True, "stop", 0
    for step in grouped(steps):
        kind = step[0]
        if kind == "break":
            yield None
            return
        if kind == "fail":
            yield {"error": step[1]}
            return
        if kind == "finish":
            yield _chunk({}, behavior, finish=step[1], first=first)
        elif kind == "results":
            reason = "stop"  # This endpoint never shows the results of the server's tools.
        else:
            reason = "tool_calls" if kind in ("calls", "announce") else reason if kind == "think" else "stop"
            for delta in _deltas(step, behavior, calls):
                yield _chunk(delta, behavior, first=first)
                first = False
            calls += len(step[1]) if kind == "calls" else 0
    if not behavior.no_finish:
        for _ in range(2 if behavior.double_finish else 1):
            yield _chunk({}, behavior, finish=reason, first=first)
    if behavior.usage:
        yield {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}}


def _chunk(delta: Json, behavior: Behavior, *, finish: str | None = None, first: bool = False) -> Json:
    if first or behavior.role_everywhere:
        delta = {"role": "assistant", **delta}
    if behavior.empty_content and "content" not in delta:
        delta["content"] = ""
    if behavior.nulls:
        delta = {"content": None, "tool_calls": None, "function_call": None, "refusal": None, **delta}
    marked = {"kind": behavior.kind} if behavior.kind and delta.get("content") else {}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **marked}


def _deltas(step: Sequence[Any], behavior: Behavior, calls_before: int) -> Iterator[Json]:
    kind = step[0]
    if kind == "say":
        yield from ({"content": word} for word in words(step[1]))
    elif kind == "think":
        yield from ({behavior.reasoning: word} for word in words(step[1]))
    elif kind == "announce":
        yield {"tool_calls": []}
    elif kind == "calls":
        for place, (name, arguments) in enumerate(step[1], calls_before):
            for _ in range(2 if behavior.duplicate else 1):
                yield from ({"tool_calls": [piece]} for piece in _call_pieces(name, arguments, place, behavior))
    else:
        raise StreamValueError(f"a step is {kind!r}; stream.replay.behavior lists the steps")


def _call_pieces(name: str, arguments: Any, place: int, behavior: Behavior) -> Iterator[Json]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    index = 0 if behavior.same_index else place
    head: Json = {"index": index, "id": call_id(place, behavior), "type": "function"}
    if not behavior.fragment:
        yield {**head, "function": {"name": name, "arguments": text}}
        return
    yield {**head, "function": {"name": name, "arguments": ""}}
    for start in range(0, len(text), behavior.fragment):
        piece = text[start : start + behavior.fragment]
        if behavior.repeat_head:
            yield {**head, "function": {"name": name, "arguments": piece}}
        else:
            yield {"index": index, "function": {"arguments": piece}}


def _lines(steps: Sequence[Sequence[Any]], behavior: Behavior) -> Iterator[Json | None]:
    on_done: list[Json] = []
    calls, working = 0, False
    for step in grouped(steps):
        kind = step[0]
        if kind == "break":
            yield None
            return
        if kind == "fail":
            yield _failed(step[1])
            return
        if kind in ("say", "think"):
            field = "content" if kind == "say" else "thinking"
            yield from (_line(behavior, **{field: word}) for word in words(step[1]))
        elif kind == "announce":
            yield _line(behavior, tool_calls=[])
        elif kind == "results":
            yield {**_line(behavior), "tool_results": [{"content": one} for one in step[1]]}
        elif kind == "finish":
            yield {**_line(behavior), "done": True, "done_reason": "stop", **_TIMINGS}
        elif kind == "calls":
            written = [_native_call(name, given, place, behavior) for place, (name, given) in enumerate(step[1], calls)]
            calls += len(written)
            working = behavior.task
            if behavior.calls_on_done:
                on_done += written
                continue
            for call in written:
                for _ in range(2 if behavior.duplicate else 1):
                    yield {**_line(behavior, tool_calls=[call]), **(_task("working") if behavior.task else {})}
    last = _line(behavior, **({"tool_calls": on_done} if on_done else {}))
    end = {} if behavior.no_finish else {"done": True, "done_reason": "stop", **_TIMINGS}
    yield {**last, **end, **(_task("completed") if working else {})}


def _line(behavior: Behavior, **message: Any) -> Json:
    line: Json = {"message": {"role": "assistant", "content": "", **message}, "done": False}
    return {**line, "kind": behavior.kind} if behavior.kind and message.get("content") else line


def _task(status: str) -> Json:
    return {"task_id": "5f0c6c1e-0000-4000-8000-000000000001", "task_status": status}


def _native_call(name: str, arguments: Any, place: int, behavior: Behavior) -> Json:
    identity = call_id(place, behavior)
    function = {"index": 0 if behavior.same_index else place, "name": name, "arguments": arguments}
    return {"id": identity, "function": function} if identity else {"function": function}


def _failed(error: Any) -> Json:
    """A text becomes an error line; an object goes into the done line."""
    if isinstance(error, str):
        return {"error": error}
    return {"message": {"role": "assistant", "content": ""}, "done": True, "error": error}


_TIMINGS = {
    "total_duration": 188_000_000,
    "load_duration": 12_000_000,
    "prompt_eval_count": 20,
    "prompt_eval_duration": 60_000_000,
    "eval_count": 10,
    "eval_duration": 110_000_000,
}


def grouped(steps: Sequence[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """The steps, with consecutive calls joined to one."""
    row: list[tuple[str, Any]] = []
    for step in steps:
        if step[0] == "call":
            row.append((step[1], step[2]))
            continue
        if row:
            yield ["calls", row]
            row = []
        yield step
    if row:
        yield ["calls", row]


def call_id(place: int, behavior: Behavior) -> str:
    """The id of a call; `""` if the server gives none."""
    if behavior.ids == "none":
        return ""
    return f"call_{place:08x}" if behavior.ids == "call" else f"chatcmpl-tool-{place:032x}"


def words(text: str) -> list[str]:
    """The text in pieces of about one token: words with the space before them."""
    return re.findall(r"\s*\S+\s*$|\s*\S+", text) or [text]


def dumped(value: Json) -> bytes:
    """An object as JSON; lone surrogates, which UTF-8 does not have, become `?`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
