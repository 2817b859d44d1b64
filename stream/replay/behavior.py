"""Writes a script as a given model server would stream it. Pure: steps in, bytes out.

A script is a list of steps: ``["say", text]``, ``["think", text]``, ``["call", name, arguments]`` (consecutive calls
are parallel calls of one answer), ``["results", [text, …]]`` (the server ran the tools itself), ``["finish", reason]``
in mid-stream, ``["announce"]`` (an empty `tool_calls` array), ``["fail", error]`` and ``["break"]`` (the connection
breaks).
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

from stream.errors import StreamValueError

__all__ = ["Behavior", "native_lines", "sse_events"]

Json = dict[str, Any]
Steps: TypeAlias = Sequence[Sequence[Any]]
Call: TypeAlias = tuple[int, str, Any]
"""Place in the answer, name, arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behavior:
    """How one server writes."""

    role_everywhere: bool = False  # in every chunk, not only in the first
    empty_content: bool = False  # `content: ""` in chunks without content
    fragment: int = 0  # length of the pieces of arguments, characters; 0 sends them whole
    ids: str = "call"  # `call_` and 8 digits; "long" for longer ids, "none" for empty strings
    same_index: bool = False  # index 0 for every call
    repeat_head: bool = False  # id and name in every piece of a call
    duplicate: bool = False  # every call twice
    nulls: bool = False  # `null` for every empty field
    usage: bool = True  # a usage chunk at the end
    done: bool = True  # `[DONE]` at the end
    no_finish: bool = False  # no finish reason
    double_finish: bool = False  # the last chunk twice
    calls_on_done: bool = False  # on Ollama's own endpoint, all calls in the `done` line
    task: bool = False  # `task_id` and `task_status`, because the server runs the tools itself
    reasoning: str = "reasoning"  # the field for reasoning on the OpenAI-compatible endpoint
    kind: str = ""  # the channel of the text


def sse_events(steps: Steps, behavior: Behavior, model: str) -> list[bytes]:
    """The server-sent events of a script on Chat Completions."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": model}
    chunks = (value if "error" in value else {**head, **value} for value in _chunks(steps, behavior))
    events = [b"data: %b\n\n" % _dumped(chunk) for chunk in chunks]
    if behavior.done and not (steps and steps[-1][0] in ("fail", "break")):
        events.append(b"data: [DONE]\n\n")
    return events


def _grouped(steps: Steps) -> Iterator[Sequence[Any]]:
    """The steps, with consecutive calls as one: `["calls", [Call, …]]`."""
    calls = 0
    for kind, group in groupby(steps, lambda step: step[0]):
        if kind == "call":
            row = [(place, name, arguments) for place, (_, name, arguments) in enumerate(group, calls)]
            calls += len(row)
            yield ["calls", row]
        else:
            yield from group


def _chunks(steps: Steps, behavior: Behavior) -> Iterator[Json]:
    first, reason = True, "stop"
    for step in _grouped(steps):
        deltas: list[Json] = []
        match step:
            case ("break",):
                return
            case "fail", error:
                yield {"error": error}
                return
            case "finish", why:
                yield _chunk({}, behavior, finish=why, first=first)
            case "say", text:
                reason, deltas = "stop", [{"content": word} for word in _words(text)]
            case "think", text:
                deltas = [{behavior.reasoning: word} for word in _words(text)]
            case ("announce",):
                reason, deltas = "tool_calls", [{"tool_calls": []}]
            case "calls", calls:
                reason, pieces = "tool_calls", (piece for call in calls for piece in _call_pieces(call, behavior))
                deltas = [{"tool_calls": [piece]} for piece in pieces]
            case "results", _:
                reason = "stop"  # This endpoint never shows the results of the server's tools.
            case _:
                raise StreamValueError(f"a step is {step[0]!r}; stream.replay.behavior lists the steps")
        for delta in deltas:
            yield _chunk(delta, behavior, first=first)
            first = False
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


def _call_pieces(call: Call, behavior: Behavior) -> Iterator[Json]:
    place, name, arguments = call
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    index = {"index": 0 if behavior.same_index else place}
    head = {**index, "id": _call_id(place, behavior), "type": "function"}
    size = behavior.fragment
    for _ in range(2 if behavior.duplicate else 1):
        yield {**head, "function": {"name": name, "arguments": "" if size else text}}
        for piece in [text[start : start + size] for start in range(0, len(text), size)] if size else ():
            if behavior.repeat_head:
                yield {**head, "function": {"name": name, "arguments": piece}}
            else:
                yield {**index, "function": {"arguments": piece}}


def native_lines(steps: Steps, behavior: Behavior, model: str) -> list[bytes]:
    """The JSON lines of a script on Ollama's own endpoint."""
    head = {"model": model, "created_at": "2026-01-02T03:04:05.678901Z"}
    lines = (line if set(line) == {"error"} else {**head, **line} for line in _lines(steps, behavior))
    return [_dumped(line) + b"\n" for line in lines]


def _lines(steps: Steps, behavior: Behavior) -> Iterator[Json]:
    on_done: list[Json] = []
    has_called = False
    for step in _grouped(steps):
        match step:
            case ("break",):
                return
            case "fail", str(error):
                yield {"error": error}
                return
            case "fail", error:
                yield {**_line(behavior), "done": True, "error": error}
                return
            case "say", text:
                yield from (_line(behavior, content=word) for word in _words(text))
            case "think", text:
                yield from (_line(behavior, thinking=word) for word in _words(text))
            case ("announce",):
                yield _line(behavior, tool_calls=[])
            case "results", results:
                yield {**_line(behavior), "tool_results": [{"content": one} for one in results]}
            case "finish", _:
                yield {**_line(behavior), **_DONE}
            case "calls", calls:
                has_called = True
                native = [_native_call(call, behavior) for call in calls]
                if behavior.calls_on_done:
                    on_done += native
                    continue
                for call in native:
                    for _ in range(2 if behavior.duplicate else 1):
                        yield {**_line(behavior, tool_calls=[call]), **_task(behavior, "working")}
    last = _line(behavior, **({"tool_calls": on_done} if on_done else {}))
    end = {} if behavior.no_finish else _DONE
    yield {**last, **end, **(_task(behavior, "completed") if has_called else {})}


def _line(behavior: Behavior, **message: Any) -> Json:
    line: Json = {"message": {"role": "assistant", "content": "", **message}, "done": False}
    return {**line, "kind": behavior.kind} if behavior.kind and message.get("content") else line


def _task(behavior: Behavior, status: str) -> Json:
    return {"task_id": "5f0c6c1e-0000-4000-8000-000000000001", "task_status": status} if behavior.task else {}


def _native_call(call: Call, behavior: Behavior) -> Json:
    place, name, arguments = call
    identity = _call_id(place, behavior)
    function = {"index": 0 if behavior.same_index else place, "name": name, "arguments": arguments}
    return {"id": identity, "function": function} if identity else {"function": function}


_DONE = {
    "done": True,
    "done_reason": "stop",
    "total_duration": 188_000_000,
    "load_duration": 12_000_000,
    "prompt_eval_count": 20,
    "prompt_eval_duration": 60_000_000,
    "eval_count": 10,
    "eval_duration": 110_000_000,
}


def _call_id(place: int, behavior: Behavior) -> str:
    """The id of a call; `""` if the server gives none."""
    if behavior.ids == "none":
        return ""
    return f"call_{place:08x}" if behavior.ids == "call" else f"chatcmpl-tool-{place:032x}"


def _words(text: str) -> list[str]:
    """The text in pieces of about one token: words with the space before them."""
    return re.findall(r"\s*\S+\s*$|\s*\S+", text) or [text]


def _dumped(value: Json) -> bytes:
    """An object as JSON; lone surrogates, which UTF-8 does not have, become `?`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
