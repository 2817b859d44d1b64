"""Chunks as the client's objects take a short way where they are plain text: it must lead where the long one leads."""

import itertools

import pytest
from openai._models import construct_type
from openai.types.chat import ChatCompletionChunk

from stream import OpenAIReader, TextDelta, ToolResult

USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def chunk(delta=None, *, index=0, finish=None, **beside):
    choice = {"index": index, "delta": {"content": "Hm."} if delta is None else delta, "finish_reason": finish}
    return {
        "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **beside,
    }  # fmt: skip


CHUNKS = {
    "plain": chunk(),
    "role": chunk({"role": "assistant", "content": "Hm."}),
    "role tool": chunk({"role": "tool", "content": "12 degrees", "tool_call_id": "a"}),
    "reasoning_content null": chunk({"content": "Hm.", "reasoning_content": None}),
    "reasoning_content": chunk({"content": "Hm.", "reasoning_content": "Why?"}),
    "reasoning and no content": chunk({"content": None, "reasoning": "Why?"}),
    "reasoning and empty content": chunk({"content": "", "thinking": "Why?"}),
    "no tool_calls": chunk({"content": "Hm.", "tool_calls": []}),
    "tool_calls null": chunk({"content": "Hm.", "tool_calls": None}),
    "tool_calls": chunk({"content": "Hm.", "tool_calls": [CALL]}),
    "function_call": chunk({"content": "Hm.", "function_call": {"name": "f", "arguments": "{}"}}),
    "refusal": chunk({"content": "Hm.", "refusal": "No."}),
    "no content": chunk({}),
    "content empty": chunk({"content": ""}),
    "content a list": chunk({"content": [{"type": "text", "text": "Hm."}, {"type": "image"}]}),
    "content a number": chunk({"content": 5}),
    "content with a marker": chunk({"content": "See <tool_call>"}),
    "content of white space": chunk({"content": " \n"}),
    "content with a backtick": chunk({"content": "`"}),
    "long content": chunk({"content": "Words and words and words and words."}),
    "finish_reason": chunk(finish="stop"),
    "finish_reason empty": chunk(finish=""),
    "second answer": chunk(index=1),
    "two choices": chunk() | {"choices": [*chunk()["choices"], *chunk({"content": "No."}, index=1)["choices"]]},
    "no choices": chunk() | {"choices": []},
    "choices null": chunk() | {"choices": None},
    "usage": chunk(usage=USAGE),
    "usage null": chunk(usage=None),
    "usage and no choices": chunk(usage=USAGE) | {"choices": []},
    "timings": chunk(timings={"prompt_ms": 1.5, "predicted_ms": 2}),
    "task_status": chunk(task_id="t", task_status="working"),
    "tool_results": chunk(tool_results=[{"name": "f", "content": "12"}]),
    "error": chunk(error={"message": "gone", "code": 503}),
    "error null": chunk(error=None),
    "logprobs": chunk() | {"choices": [{**chunk()["choices"][0], "logprobs": None}]},
}


def objects(chunks):
    return [construct_type(value=item, type_=ChatCompletionChunk) for item in chunks]


def read(chunks):
    reader = OpenAIReader()
    return [*(reader.feed(item) for item in chunks), reader.close()]


@pytest.mark.parametrize("name", CHUNKS)
def test_chunk_gives_the_same_events_as_object_and_as_dict(name):
    # Text before it opens the short way; text behind it shows what it has left behind.
    said, more = chunk({"content": "So. "}), chunk({"content": '{"name": "f", "arguments": {}}'})
    chunks = [said, said, CHUNKS[name], said, more, CHUNKS[name], chunk({}, finish="stop")]
    assert read(objects(chunks)) == read(chunks)


def test_any_two_chunks_give_the_same_events_as_objects_and_as_dicts():
    for pair in itertools.product(CHUNKS.values(), repeat=2):
        chunks = [chunk(), *pair, chunk()]
        assert read(objects(chunks)) == read(chunks), pair


def test_text_passed_on_the_short_way_is_remembered_where_a_line_begins():
    chunks = [chunk({"content": text}) for text in ("So", " it", " is", "[f(a=1)]", "\n", "[f(a=1)]")]
    events = [event for events in read(objects(chunks)) for event in events]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "So it is[f(a=1)]\n"


def test_result_that_a_server_sends_as_a_message_is_never_spoken():
    events = read(objects([chunk(), CHUNKS["role tool"]]))
    assert [type(event) for event in events[1]] == [ToolResult]
