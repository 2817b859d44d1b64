"""The page on what servers send: every line of it is read, and gives the events that the page says.

A line with → is an event that the line of JSON before it gives; `[DONE]` and `(end)` are the end of the body. Where the
paragraph before a block links a recording, the block's lines are parts of it.
"""

import json
import re
from pathlib import Path

import pytest

import stream
from stream.readers.formats.message_reader import MessageReader

PAGE = Path(__file__).resolve().parents[2] / "stream" / "readers" / "SERVERS.md"
READERS: dict[str, type[MessageReader]] = {
    "/v1/chat/completions": stream.OpenAIReader,
    "/api/chat": stream.OllamaReader,
    "/v1/responses": stream.ResponsesReader,
}
ENDS = ("[DONE]", "(end)")
EVENTS = {name: getattr(stream, name) for name in stream.__all__}


def shapes():
    """The endpoint, the paragraph before it, and the lines of each block."""
    found = []
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        endpoint = re.match(r"`([^`]+)`", part)[1]
        for said, block in re.findall(r"([^\n]+(?:\n[^\n`][^\n]*)*)\n\n```\n(.*?)```", part, re.DOTALL):
            found.append(pytest.param(endpoint, said, block.splitlines(), id=f"{endpoint} {len(found)}"))
    return found


def joined(events):
    """The events, with neighboring text of one channel as one."""
    joint = []
    for event in events:
        last = joint[-1] if joint else None
        if isinstance(event, stream.TextDelta) and isinstance(last, stream.TextDelta) and last.channel == event.channel:
            joint[-1] = stream.TextDelta(last.text + event.text, event.channel)
        else:
            joint.append(event)
    return joint


@pytest.mark.parametrize(("endpoint", "said", "lines"), shapes())
def test_each_line_gives_the_events_that_the_page_says(endpoint, said, lines):
    reader = READERS[endpoint]()
    seen, expected = [], []
    for line in lines:
        if line.startswith("→ "):
            expected.append(eval(line[2:], EVENTS))
            continue
        assert repr(joined(seen)) == repr(expected), line  # `==` does not look at every field
        seen, expected = (reader.close() if line in ENDS else reader.feed(json.loads(line))), []
    assert repr(joined(seen)) == repr(expected)


@pytest.mark.parametrize(("endpoint", "said", "lines"), shapes())
def test_what_the_page_calls_recorded_was_recorded(endpoint, said, lines):
    recordings = [PAGE.parent / path for path in re.findall(r"\]\((\.\./\.\./samples/streams/[^)]+)\)", said)]
    sent = [
        json.loads(line.removeprefix("data: "))
        for path in recordings
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip() and line != "data: [DONE]"
    ]
    for line in lines:
        if sent and not line.startswith(("→", *ENDS)):
            assert any(is_part(json.loads(line), whole) for whole in sent), line


def is_part(value, whole):
    if isinstance(value, dict) and isinstance(whole, dict):
        return all(key in whole and is_part(value[key], whole[key]) for key in value)
    if isinstance(value, list) and isinstance(whole, list):
        return len(value) == len(whole) and all(map(is_part, value, whole))
    return value == whole
