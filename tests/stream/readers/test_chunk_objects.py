"""Chunks as the client's objects take a short way where they are plain text: it must lead where the long one leads."""

from types import SimpleNamespace

import pytest
from openai._models import construct_type
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDelta

from stream import Finish, OllamaReader, OpenAIReader, ReasoningDelta, TextDelta, ToolCallEnd, ToolCallStart

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
    "kind": chunk(kind="json"),
    "kind of another case": chunk(kind="JSON"),
    "kind null": chunk(kind=None),
    "kind a number": chunk(kind=5),
    "channel": chunk(channel="text"),
    "kind on the delta": chunk({"content": "Hm.", "kind": "json"}),
    "channel on the delta": chunk({"content": "Hm.", "channel": "text"}),
    "channel on both": chunk({"content": "Hm.", "channel": "json"}, channel="text"),
    "channel and a list": chunk({"content": [{"type": "text", "text": "Hm."}]}, kind="json"),
    "channel and no content": chunk({"content": ""}, kind="json"),
    "logprobs": chunk() | {"choices": [{**chunk()["choices"][0], "logprobs": None}]},
}


def objects(chunks):
    return [construct_type(value=item, type_=ChatCompletionChunk) for item in chunks]


def read(chunks):
    reader = OpenAIReader()
    return [*(reader.feed(item) for item in chunks), reader.close()]


@pytest.mark.parametrize("name", CHUNKS)
def test_chunk_gives_the_same_events_as_object_and_as_dict_whatever_follows(name):
    # Text before it opens the short way; text after it shows its traces.
    said, more = chunk({"content": "So. "}), chunk({"content": '{"name": "f", "arguments": {}}'})
    for other in CHUNKS.values():
        chunks = [said, CHUNKS[name], other, said, more, CHUNKS[name], chunk({}, finish="stop")]
        assert read(objects(chunks)) == read(chunks), other


@pytest.mark.parametrize("name", [name for name in CHUNKS if name.split()[0] in ("kind", "channel")])
@pytest.mark.parametrize("form", [list, objects], ids=["dicts", "objects"])
def test_text_of_a_channel_is_told_apart_from_the_text_around_it(name, form):
    marked = {"kind": "json", "kind of another case": "json", "kind on the delta": "json", "channel on both": "json",
              "channel and a list": "json", "channel": "text", "channel on the delta": "text"}  # fmt: skip
    plain = chunk({"content": "So. "})
    events = [event for events in read(form([plain, plain, CHUNKS[name], plain, plain])) for event in events][:-1]
    said = [] if name == "channel and no content" else [TextDelta("Hm.", marked.get(name))]
    assert events == [TextDelta("So. "), TextDelta("So. "), *said, TextDelta("So. "), TextDelta("So. ")]


@pytest.mark.parametrize("place", ["chunk", "delta"])
@pytest.mark.parametrize("field", ["kind", "channel"])
def test_a_channel_is_also_found_in_objects_that_declare_the_field(place, field):
    class Marked(ChatCompletionChunk if place == "chunk" else ChoiceDelta):
        __annotations__ = {field: str | None}

    def marked(text, channel):
        item = construct_type(value=chunk({"content": text}), type_=ChatCompletionChunk)
        if place == "chunk":
            return Marked.model_construct(**dict(item), **{field: channel})
        item.choices[0].delta = Marked.model_construct(**dict(item.choices[0].delta), **{field: channel})
        return item

    reader = OpenAIReader()
    said = [("So. ", None), ("So. ", None), ("{}", "json"), ("So. ", None)]
    assert [event for item in said for event in reader.feed(marked(*item))] == [TextDelta(*item) for item in said]


def test_text_passed_on_the_short_way_is_remembered_where_a_line_begins():
    chunks = [chunk({"content": text}) for text in ("So", " it", " is", "[f(a=1)]", "\n", "[f(a=1)]")]
    events = [event for events in read(objects(chunks)) for event in events]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "So it is[f(a=1)]\n"


def test_the_objects_of_ollama_are_read_as_its_lines():
    calls = [SimpleNamespace(function=SimpleNamespace(name="f", arguments={"a": [1]}))]
    message = SimpleNamespace(role="assistant", content="Hm.", thinking="Why?", tool_calls=calls)
    events = OllamaReader().feed(SimpleNamespace(model="m", message=message, done=True, done_reason="stop"))
    assert events == [
        ReasoningDelta("Why?"), TextDelta("Hm."), ToolCallStart("f"), ToolCallEnd("f", arguments_json='{"a": [1]}'),
        Finish("stop"),
    ]  # fmt: skip
