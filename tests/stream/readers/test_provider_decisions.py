"""The decisions about providers' streams, one by one, on messages that no recording holds."""

import json

import pytest

import stream
from stream import Finish
from tests.stream.providers import FOLDER

CASES = [json.loads(line) for line in (FOLDER / "decisions.jsonl").read_text(encoding="utf-8").split("\n") if line]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_decision_holds_for_decoded_messages_and_for_bytes(case):
    body = "".join(f"data: {json.dumps(message)}\n\n" for message in case["messages"]).encode()
    assert list(map(repr, stream.read_sync(case["messages"]))) == case["events"]
    assert list(map(repr, stream.read_sync([body]))) == case["events"]


def test_options_reach_the_reader_that_is_found():
    thinking = {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "Hm."}
    ended = {"type": "response.completed", "response": {"status": "completed"}}
    assert list(stream.read_sync([thinking, ended], reasoning=False)) == [Finish("completed")]
    (failed,) = stream.read_sync([b'{"type": "ping", "x": "' + b"a" * 500], max_line_chars=100)
    assert failed.code == "line_too_long"
