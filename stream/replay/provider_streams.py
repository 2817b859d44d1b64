"""Writes a script as the APIs of OpenAI (Responses), Anthropic and Google stream it. Pure: steps in, bytes out.

Beside the steps of `behavior`: ``["server", name, text]``, a tool that the server runs itself. `Behavior.quirks` are
written as the providers were seen to.
"""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

from stream.replay.behavior import call_id, dumped, grouped, parts, words, written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stream.replay.behavior import Behavior, Json, Steps

__all__ = ["anthropic_events", "gemini_events", "responses_events"]

_USAGE = {"input_tokens": 20, "output_tokens": 10}
SIGNATURE = "c2lnbmVkIGJ5IHRoZSBtb2RlbA=="
"""Of thoughts: base64, as both providers have it."""


def responses_events(steps: Steps, behavior: Behavior, model: str) -> tuple[list[bytes], bool]:
    """The server-sent events of a script on OpenAI's `/responses`, and whether the answer is complete."""
    numbers = count()
    comment = b": OPENROUTER PROCESSING\n\n" if "comments" in behavior.quirks else b""
    events = _responses(steps, behavior, model)
    return written(events, lambda event: comment + _event({**event, "sequence_number": next(numbers)}))


def _event(event: Json) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), dumped(event))


def _responses(steps: Steps, behavior: Behavior, model: str) -> Iterator[Json]:
    head = {"id": "resp_1", "object": "response", "created_at": 1700000000, "model": model, "error": None}
    head |= {"incomplete_details": None, "parallel_tool_calls": True, "tools": [], "tool_choice": "auto"}
    output: list[Json] = []
    status, extra = "completed", dict[str, Any]()
    yield {"type": "response.created", "response": {**head, "status": "in_progress", "output": []}}
    for step in grouped(steps):
        if step[0] == "fail":
            error = {"code": "server_error", "message": step[1]}
            yield {"type": "error", **error, "param": None}
            yield {"type": "response.failed", "response": {**head, "status": "failed", "output": [], "error": error}}
            return
        if step[0] == "finish":
            status, extra = "incomplete", {"incomplete_details": {"reason": step[1]}}
            continue
        for item, deltas in _items(step, behavior):
            place = 0 if behavior.same_index and item["type"] != "reasoning" else len(output)
            yield from _item_events(item, deltas, place, behavior)
            output.append(item)
    last = {**head, **extra, "status": status, "output": output, "usage": {**_USAGE, "total_tokens": 30}}
    yield {"type": f"response.{status}", "response": last}


def _items(step: Sequence[Any], behavior: Behavior) -> Iterator[tuple[Json, list[Json]]]:
    """The finished items of a step, and the deltas in each."""
    match step:
        case "say", text:
            delta = {"type": "response.output_text.delta", "content_index": 0}
            part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
            deltas = [{**delta, "delta": one, "logprobs": []} for one in words(text)]
            yield {"type": "message", "role": "assistant", "content": [part]}, deltas
        case "think", text:
            delta = {"type": "response.reasoning_summary_text.delta", "summary_index": 0}
            summary = [{"type": "summary_text", "text": text}]
            item = {"type": "reasoning", "summary": summary, "encrypted_content": SIGNATURE}
            yield item, [{**delta, "delta": one} for one in words(text)]
        case "calls", calls:
            delta = {"type": "response.function_call_arguments.delta"}
            for place, name, arguments in calls:
                text = json.dumps(arguments, ensure_ascii=False)
                call = {"type": "function_call", "call_id": call_id(place, behavior), "name": name, "arguments": text}
                yield call, [{**delta, "delta": one} for one in parts(text, behavior.fragment)]
        case "server", _, query:
            yield {"type": "web_search_call", "action": {"type": "search", "query": query}}, []


def _item_events(item: Json, deltas: list[Json], place: int, behavior: Behavior) -> Iterator[Json]:
    turning = count()

    def identity() -> str:
        return f"item_{place}_{next(turning) if 'rotating-ids' in behavior.quirks else 0}"

    empty = {key: type(value)() for key, value in item.items() if key in ("content", "summary", "arguments")}
    where = {"output_index": place}
    begun = {**item, **empty, "id": identity(), "status": "in_progress"}
    yield {"type": "response.output_item.added", **where, "item": begun}
    for delta in deltas:
        yield {**where, "item_id": identity(), **delta}
    if item["type"] == "function_call":
        text = item["arguments"]
        done = {"type": "response.function_call_arguments.done", "item_id": identity(), "name": item["name"]}
        yield {**where, **done, "arguments": text}
    item |= {"id": identity(), "status": "completed"}
    yield {"type": "response.output_item.done", **where, "item": item}


def anthropic_events(steps: Steps, behavior: Behavior, model: str) -> tuple[list[bytes], bool]:
    """The server-sent events of a script on Anthropic's `/messages`, and whether the answer is complete."""
    return written(_anthropic(steps, behavior, model), _event)


def _anthropic(steps: Steps, behavior: Behavior, model: str) -> Iterator[Json]:
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": _USAGE}
    start = {"type": "message_start", "message": message}
    reason, place = "end_turn", 0
    yield start
    yield {"type": "ping"}
    for step in grouped(steps):
        if step[0] == "fail":
            yield {"type": "error", "error": {"type": "overloaded_error", "message": step[1]}}
            return
        if step[0] == "finish":
            reason = step[1]
            continue
        blocks = [*_blocks(step, behavior)]
        if step[0] == "calls":
            reason = "tool_use"
            if "spliced" in behavior.quirks:
                yield {"type": "content_block_start", "index": place, "content_block": blocks[0][0]}
                yield start  # a proxy begins again in the middle of a call
                place = 0
        for block, deltas in blocks:
            yield {"type": "content_block_start", "index": place, "content_block": block}
            yield from ({"type": "content_block_delta", "index": place, "delta": delta} for delta in deltas)
            yield {"type": "content_block_stop", "index": place}
            place += 1
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": _USAGE}
    yield {"type": "message_stop"}


def _blocks(step: Sequence[Any], behavior: Behavior) -> Iterator[tuple[Json, list[Json]]]:
    match step:
        case "say", text:
            yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": one} for one in words(text)]
        case "think", text:
            deltas = [{"type": "thinking_delta", "thinking": one} for one in words(text)]
            signature = {"type": "signature_delta", "signature": SIGNATURE}
            yield {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signature]
        case "calls", calls:
            for place, name, arguments in calls:
                text = json.dumps(arguments, ensure_ascii=False) if arguments else ""
                pieces = ("", *parts(text, behavior.fragment))
                block = {"type": "tool_use", "id": call_id(place, behavior), "name": name, "input": {}}
                yield block, [{"type": "input_json_delta", "partial_json": one} for one in pieces]
        case "server", name, query:
            delta = {"type": "input_json_delta", "partial_json": json.dumps({"query": query})}
            yield {"type": "server_tool_use", "id": "srvtoolu_1", "name": name, "input": {}}, [delta]
            yield {"type": f"{name}_tool_result", "tool_use_id": "srvtoolu_1", "content": []}, []


def gemini_events(steps: Steps, behavior: Behavior, model: str) -> tuple[list[bytes], bool]:
    """The server-sent events of a script on Gemini's `:streamGenerateContent`, and whether the answer is complete."""
    return written(_gemini(steps, behavior, model), lambda event: b"data: %b\r\n\r\n" % dumped(event))


def _gemini(steps: Steps, behavior: Behavior, model: str) -> Iterator[Json]:
    reason, head = "STOP", {"modelVersion": model, "responseId": "r1"}
    counts = {"promptTokenCount": 20, "candidatesTokenCount": 10, "totalTokenCount": 30}
    for step in grouped(steps):
        if step[0] == "fail":
            yield {"error": {"code": 503, "message": step[1], "status": "UNAVAILABLE"}}
            return
        reason = step[1] if step[0] == "finish" else reason
        for part in _parts(step, behavior):
            yield {"candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}], **head}
    content = {} if reason == "MALFORMED_FUNCTION_CALL" else {"content": {"parts": [{"text": ""}], "role": "model"}}
    yield {"candidates": [{**content, "finishReason": reason, "index": 0}], "usageMetadata": counts, **head}


def _parts(step: Sequence[Any], behavior: Behavior) -> Iterator[Json]:
    match step:
        case "say", text:
            yield from ({"text": one} for one in words(text))
        case "think", text:
            yield from ({"text": one, "thought": True} for one in words(text))
        case "calls", calls:
            for number, (_, name, arguments) in enumerate(calls):
                for part in _call_parts(name, arguments, behavior):
                    # Only the first of parallel calls has a signature.
                    yield part if number else {"thoughtSignature": SIGNATURE, **part}
        case "server", _, code:
            yield {"executableCode": {"language": "PYTHON", "code": code}}
            yield {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "4\n"}}


def _call_parts(name: str, arguments: Json, behavior: Behavior) -> Iterator[Json]:
    """A call whole, or (with `fragment`) its text arguments in pieces."""
    if not behavior.fragment:
        yield {"functionCall": {"name": name, "args": arguments}}
        return
    yield {"functionCall": {"name": name, "willContinue": True}}
    for key, value in arguments.items():
        for piece in parts(value, behavior.fragment):
            partial = {"jsonPath": f"$.{key}", "stringValue": piece, "willContinue": True}
            yield {"functionCall": {"partialArgs": [partial], "willContinue": True}}
        end = {"jsonPath": f"$.{key}", "stringValue": ""}
        goes_on = {} if "no-end" in behavior.quirks else {"willContinue": True}
        yield {"functionCall": {"partialArgs": [end], **goes_on}}
    if "no-end" not in behavior.quirks:
        yield {"functionCall": {}}
