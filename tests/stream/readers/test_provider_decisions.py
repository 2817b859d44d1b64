"""The decisions about providers' streams, one by one, on messages that no recording holds."""

import json

import pytest

import stream
from stream import Finish, TaskStatus, TextDelta
from tests.stream.providers import FOLDER

CASES = [json.loads(line) for line in (FOLDER / "decisions.jsonl").read_text(encoding="utf-8").split("\n") if line]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_decision_holds_for_decoded_messages_and_for_bytes(case):
    body = "".join(f"data: {json.dumps(message)}\n\n" for message in case["messages"]).encode()
    assert list(map(repr, stream.read_sync(case["messages"]))) == case["events"]
    assert list(map(repr, stream.read_sync([body]))) == case["events"]


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_the_bytes_of_chat_completions_and_ollama_go_through_the_same_door(cut):
    chunks = [{"choices": [{"delta": {"content": "Hi é."}}]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}]
    body = "".join(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    lines = '{"task_status": "working", "task_id": "t"}\n{"message": {"content": "Hi."}, "done": false}\n'
    lines += '{"message": {"content": ""}, "done": true, "done_reason": "stop"}\n'
    for text, events in (
        (body, [TextDelta("Hi é."), Finish("stop")]),
        (lines, [TaskStatus("t", "working"), TextDelta("Hi."), Finish("stop")]),
    ):
        data = text.encode()
        assert list(stream.read_sync(data[at : at + cut] for at in range(0, len(data), cut))) == events


def test_options_reach_the_reader_that_is_found():
    thinking = {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "Hm."}
    ended = {"type": "response.completed", "response": {"status": "completed"}}
    assert list(stream.read_sync([thinking, ended], reasoning=False)) == [Finish("completed")]
    (failed,) = stream.read_sync([b'{"type": "ping", "x": "' + b"a" * 500], max_line_chars=100)
    assert failed.code == "line_too_long"
