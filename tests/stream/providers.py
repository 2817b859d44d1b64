"""The recorded streams of providers, what must come out of them, and ways to feed them."""

import json
import random
from pathlib import Path

from stream.events import (
    AudioDelta,
    Finish,
    Interrupted,
    ReasoningDelta,
    ServerError,
    StreamFailed,
    TaskStatus,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    TranscriptDelta,
)
from tests.stream.comparing import random_splits

FOLDER = Path(__file__).parent / "data" / "providers"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
SILENT = {"calls": [], "text": "", "thinking": "", "finish": []}


def data_of(name):
    """The bytes of a recording."""
    return (FOLDER / name).read_bytes()


def messages_of(name):
    """A recording's messages, decoded by other means than ours."""
    text = data_of(name).decode()
    if name.endswith(".json"):
        return json.loads(text)
    lines = [line.removeprefix("data:").strip() for line in text.split("\n")]
    return [json.loads(line) for line in lines if line.startswith("{")]


def outcome(events):
    """The events in the notation of `expected.json`; a start must have its end."""
    found = {**SILENT, "calls": [], "finish": []}
    started, ended, tasks, transcript = set(), set(), {}, {}
    for event in events:
        match event:
            case TextDelta():
                found["text"] += event.text
            case ReasoningDelta():
                found["thinking"] += event.text
            case Finish():
                found["finish"].append(event.reason)
            case ToolCallStart():
                started.add(event.index)
            case ToolCallEnd(status="ok"):
                found["calls"].append([event.tool_name, event.arguments])
                ended.add(event.index)
            case ToolCallEnd():
                found.setdefault(event.status, []).append(event.tool_name)
                ended.add(event.index)
            case TranscriptDelta():
                transcript[event.speaker] = transcript.get(event.speaker, "") + event.text
            case AudioDelta():
                found["audio_bytes"] = found.get("audio_bytes", 0) + len(event.pcm)
            case TaskStatus():
                tasks.setdefault(event.task_id, []).append(event.status)
            case Interrupted():
                found["interrupted"] = found.get("interrupted", 0) + 1
            case ServerError():
                found["server_error"] = event.code
            case StreamFailed(code="unfinished"):
                found["unfinished"] = True
            case StreamFailed():
                found["error"] = event.code
    assert started <= ended, "a start without its end"
    if transcript:
        found["transcript"] = {speaker: squeezed(text) for speaker, text in transcript.items()}
    if tasks:
        found["tasks"] = list(tasks.values())
    return {**found, "text": squeezed(found["text"]), "thinking": squeezed(found["thinking"])}


def expected(name):
    """Expected text of a recording, white space squeezed."""
    wanted = {**SILENT, **EXPECTED[name]}
    wanted |= {"text": squeezed(wanted["text"]), "thinking": squeezed(wanted["thinking"])}
    if "transcript" in wanted:
        wanted["transcript"] = {speaker: squeezed(text) for speaker, text in wanted["transcript"].items()}
    return wanted


def squeezed(text):
    return " ".join(text.split())


def cuts(data, seed, rounds=10):
    """Ways to cut bytes: whole, one by one, in two, and at random."""
    yield [data]
    yield [data[at : at + 1] for at in range(len(data))]
    rng = random.Random(seed)
    for _ in range(rounds):
        cut = rng.randrange(len(data))
        yield [data[:cut], data[cut:]]
    yield from random_splits(data, rng, rounds, sizes=(1, 3, 17, 90, 500, 4000))


def read_all(reader, items):
    """All events of a reader for these items."""
    return [event for item in items for event in reader.feed(item)] + reader.close()
