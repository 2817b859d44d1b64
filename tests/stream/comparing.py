"""Loading stream cases, cutting them into chunks, and comparing what comes out with what must."""

import json
import random
from pathlib import Path

from stream import EmptyToolCalls, ReasoningDelta, StreamFailed, TextDelta, ToolCallEnd, ToolCallStart

DATA = Path(__file__).parent / "data"


def load(*names):
    """All cases of the named files, in file order."""
    for name in names:
        with (DATA / "cases" / f"{name}.jsonl").open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.strip())


def splits(text, seed=0, rounds=8, step=1):
    """Ways to cut a text: whole, by character, cuts in two `step` characters apart, and at random."""
    yield [text]
    yield list(text)
    for cut in range(1, len(text), step):
        yield [text[:cut], text[cut:]]
    yield from random_splits(text, random.Random(f"{seed}:{text}"), rounds)


def random_splits(text, rng, rounds, sizes=(1, 1, 2, 3, 4, 5, 8, 13, 40)):
    for _ in range(rounds):
        parts, start = [], 0
        while start < len(text):
            size = rng.choice(sizes)
            parts.append(text[start : start + size])
            start += size
        yield parts


def reads(items):
    """Raw network reads of an NDJSON input, or None when the items are already objects."""
    if all(isinstance(item, dict) and set(item) != {"hex"} for item in items):
        return None
    return [bytes.fromhex(item["hex"]) if isinstance(item, dict) else item.encode() for item in items]


def as_case_events(events, *, at_start=False):
    """Our events in the notation of the cases; a call stands where it ends, or where it starts."""
    found, open_calls, ended = [], {}, set()
    for event in events:
        if isinstance(event, TextDelta):
            found.append({"type": "text", "text": event.text})
        elif isinstance(event, ReasoningDelta):
            found.append({"type": "reasoning", "text": event.text})
        elif isinstance(event, ToolCallStart):
            assert event.index not in open_calls
            open_calls[event.index] = {"type": "open", "name": event.tool_name}
            if at_start:
                found.append(open_calls[event.index])
        elif isinstance(event, ToolCallEnd):
            started = open_calls.get(event.index)
            ended.add(event.index)
            assert event.status != "ok" or started is not None, "an end without its start"
            if started is None or not at_start:
                started = {}
                found.append(started)
            started.update(_call(event))
        elif isinstance(event, StreamFailed) and event.code != "unfinished":
            found.append({"type": "error", "message": event.message, "code": event.code, "status": event.status})
        elif isinstance(event, EmptyToolCalls):
            found.append({"type": "empty_tool_calls"})
    assert open_calls.keys() <= ended, "a start without its end"
    return found


def _call(event):
    if event.status != "ok":
        return {"type": event.status, "name": event.tool_name or None}
    call = {"type": "tool_call", "name": event.tool_name, "arguments": json.loads(event.arguments_json)}
    return call | ({"id": event.tool_call_id} if event.tool_call_id else {})


def normalise(events, *, reasoning=False):
    """Drop reasoning (unless asked for), join neighbouring text, squeeze white space, drop empty text."""
    joined = []
    for event in events:
        kind = event["type"]
        if kind == "reasoning" and not reasoning:
            continue
        if kind in ("text", "reasoning") and joined and joined[-1]["type"] == kind:
            joined[-1] = {"type": kind, "text": joined[-1]["text"] + event["text"]}
        else:
            joined.append(dict(event))
    result = []
    for event in joined:
        if "text" in event:
            event["text"] = " ".join(event["text"].split())
            if not event["text"]:
                continue
            if result and result[-1]["type"] == event["type"]:
                result[-1]["text"] += " " + event["text"]
                continue
        result.append(event)
    return result


def same_value(expected, actual):
    """JSON equality; an expected string also matches the value that it spells (untyped dialects)."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(same_value(expected[k], actual[k]) for k in expected)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(same_value, expected, actual))
    if isinstance(expected, bool) or isinstance(actual, bool):
        if isinstance(expected, bool) and isinstance(actual, bool):
            return expected == actual
    elif isinstance(expected, (int, float)) and isinstance(actual, (int, float)):
        return expected == actual
    if isinstance(expected, str) and not isinstance(actual, str):
        try:
            return json.loads(expected) == actual
        except ValueError:
            return False
    return type(expected) is type(actual) and expected == actual


def same_event(expected, actual):
    kind = expected["type"]
    if kind != actual.get("type"):
        return False
    if kind in ("text", "reasoning"):
        return expected["text"] == actual["text"]
    if kind == "tool_call":
        if "id" in expected and expected["id"] != actual.get("id"):
            return False
        return expected["name"] == actual.get("name") and same_value(expected["arguments"], actual.get("arguments"))
    if kind in ("incomplete", "malformed"):
        return expected["name"] is None or expected["name"] == actual.get("name")
    if kind == "error":
        return all(actual.get(key) == value for key, value in expected.items())
    return True


def matches(case, actual, *, reasoning=False):
    left, right = normalise(case["expect"], reasoning=reasoning), normalise(actual, reasoning=reasoning)
    return len(left) == len(right) and all(map(same_event, left, right))
