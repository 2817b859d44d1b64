"""A million streams of providers' messages, mixed up, spoilt and cut: the readers must keep their promises on each.

    python -m bench.stream_formats_fuzz [--streams 1000000] [--seed 1]

For each stream: nothing raises; every start has its end, and no call has two; a failure is the last event; the whole,
random cuts and the decoded messages give the same events; every field can be written as JSON. The first streams that
break a promise are printed; the exit code says whether there were any. Last runs: seeds
2, 21, 22, 31 and 33, a million streams; one broken promise, at 31:123807, which is a case of `test_framing.py` now.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from bench.fuzzing import run
from stream.events import AudioDelta, StreamFailed, ToolCallEnd, ToolCallStart
from stream.readers.formats.any_format import AnyReader
from tests.stream.comparing import random_splits
from tests.stream.providers import EXPECTED, messages_of

if TYPE_CHECKING:
    import random

VALUES = [
    None, True, 0, -1, 7, 1.5, "", "x", "é\ud83d", "f", "c1", [], {}, [None], [{}], {"a": 1}, '{"a"', "{}",
    "STOP", "completed",
    "<tool_call>", '<tool_call>{"name": "f", "arguments": {}}</tool_call>', "text", "tool_use", "function_call", [[]],
    "response.completed", "response.output_item.added", "message_start", "content_block_stop",
    10**30, "$.a[0].b", "aGk=",
]  # fmt: skip
LONGEST = 1200  # characters of a message: snapshots with all options cost time and say little
RECORDINGS = [[text for text in map(json.dumps, messages_of(name)) if len(text) < LONGEST] for name in EXPECTED]
MESSAGES = [text for texts in RECORDINGS for text in texts]


def spoil(value: Any, rng: random.Random) -> Any:
    """The value with something inside replaced, lost or doubled."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        roll = rng.random()
        if roll < 0.15:
            del value[key]
        elif roll < 0.3:
            value[rng.choice(["type", "index", "id", "name", "delta", "text", "call_id", key])] = copy.deepcopy(
                rng.choice(VALUES)
            )
        else:
            value[key] = spoil(value[key], rng)
        return value
    if isinstance(value, list) and value and rng.random() < 0.7:
        at = rng.randrange(len(value))
        if rng.random() < 0.3:
            value.insert(at, copy.deepcopy(value[at]))
        else:
            value[at] = spoil(value[at], rng)
        return value
    return copy.deepcopy(rng.choice(VALUES))


def make_messages(rng: random.Random) -> list[Any]:
    """A piece of a recording, with messages lost, doubled, moved, spoilt and of other formats."""
    source = rng.choice(RECORDINGS)
    start = rng.choice((0, 0, rng.randrange(len(source))))
    messages = [json.loads(text) for text in source[start : start + rng.randint(1, 9)]]
    for _ in range(rng.choice((0, 1, 2, 4))):
        at = rng.randrange(len(messages) + 1)
        roll = rng.random()
        if roll < 0.2:
            messages.insert(at, json.loads(rng.choice(MESSAGES)))
        elif at < len(messages):
            if roll < 0.35:
                messages.insert(at, copy.deepcopy(messages[at]))
            elif roll < 0.45 and len(messages) > 1:
                del messages[at]
            elif roll < 0.55:
                rng.shuffle(messages)
            else:
                messages[at] = spoil(messages[at], rng)
    return [message for message in messages if isinstance(message, dict)]


def framed(messages: list[Any], rng: random.Random) -> bytes:
    """The bytes of the messages in one of the framings."""
    kind = rng.choice(("events", "events", "lines", "array", "glued", "printed"))
    end = rng.choice(("\n", "\n", "\r\n", "\r"))
    texts = [json.dumps(message, ensure_ascii=True, indent=2 if kind == "printed" else None) for message in messages]
    if kind == "events":
        return "".join(f"data:{rng.choice((' ', ''))}{text}{end}{end}" for text in texts).encode()
    if kind in ("array", "printed"):
        return ("[" + f",{end}".join(texts) + "]").encode()
    return (end if kind == "lines" else "").join(texts).encode()


def garbled(data: bytes, rng: random.Random) -> bytes:
    """The bytes with a few of them lost, doubled or replaced."""
    found = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(found) or 1)
        found[at : at + rng.randint(0, 3)] = rng.choice(
            (b"", b"\n", b"{", b"}", b'"', b"\\", b"\xff", b"data: ", b"x", b"\r")
        )
    return bytes(found)


def read(items: list[Any]) -> list[Any]:
    reader = AnyReader()
    return [event for item in items for event in reader.feed(item)] + reader.close()


def cut(data: bytes, rng: random.Random) -> list[bytes]:
    return next(random_splits(data, rng, 1, sizes=(1, 2, 5, 20, 80, 300)))


def fault_in(events: list[Any]) -> str | None:
    """Faults of the events by themselves."""
    started = [event.index for event in events if isinstance(event, ToolCallStart)]
    ended = [event.index for event in events if isinstance(event, ToolCallEnd)]
    if len(set(started)) != len(started) or len(set(ended)) != len(ended) or not set(started) <= set(ended):
        return f"starts {started}, ends {ended}"
    if any(isinstance(event, ToolCallEnd) and event.status == "ok" and event.arguments is None for event in events):
        return "a call without arguments"
    if any(isinstance(event, StreamFailed) for event in events[:-1]):
        return "events after a failure"
    for event in events:
        if not isinstance(event, AudioDelta):
            json.dumps([getattr(event, name) for name in event.__dataclass_fields__])
    return None


def broken_promise(rng: random.Random) -> str | None:
    """Make one stream and read it; return what is wrong."""
    messages = make_messages(rng)
    data = framed(messages, rng)
    spoilt = rng.random() < 0.3
    if spoilt:
        data = garbled(data, rng)
    elif rng.random() < 0.3:
        data, spoilt = data[: rng.randrange(len(data) + 1)], True
    try:
        whole = read([data])
        if fault := fault_in(whole):
            return f"{data!r}: {fault}: {whole}"
        if read(cut(data, rng)) != whole:
            return f"{data!r}: differs in cuts"
        if not spoilt and read(messages) != whole:
            return f"{data!r}: differs decoded: {whole} {read(messages)}"
    except Exception as error:  # noqa: BLE001  (whatever it is, it is a finding)
        return f"{data!r}: {type(error).__name__} {error}"
    return None


if __name__ == "__main__":
    raise SystemExit(run(__doc__, broken_promise))
