"""Bytes that real servers have streamed, in reads of any size; test_recordings_spoken.py has the real client."""

import json

import pytest

from stream import ReasoningDelta, StreamFailed, TextDelta, ToolCallEnd, read_sync
from stream.replay.recording import samples_folder

FOLDER = samples_folder()
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


def summary(events):
    """The entry of a recording in expected.json, from our events."""
    ends = [event for event in events if isinstance(event, ToolCallEnd)]
    found = {
        "calls": [[end.tool_name, json.loads(end.arguments_json)] for end in ends if end.status == "ok"],
        "text": "".join(event.text for event in events if isinstance(event, TextDelta)).strip(),
        "thinking": "".join(event.text for event in events if isinstance(event, ReasoningDelta)).strip(),
    }
    failures = [event for event in events if isinstance(event, StreamFailed)]
    if any(failed.code == "unfinished" for failed in failures):
        found["unfinished"] = True
    elif failures:
        found["error"] = True
    if any(getattr(event, "reason", "") == "length" for event in events):
        found["cut"] = True
    return found


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("size", [1, 7, 1000, 10**6])
def test_recorded_bytes_read_as_expected_in_reads_of_any_size(name, size):
    body = (FOLDER / name).read_bytes()
    assert summary(list(read_sync(body[at : at + size] for at in range(0, len(body), size)))) == EXPECTED[name]
