"""Tags around the words to speak, after reasoning that came in a field: read as after a block of it in the text."""

import json

import pytest

import stream
from stream import OpenAIReader, TextReader
from stream.errors import StreamValueError
from tests.stream.comparing import splits

SPOKEN = "There you go."
WORDS = ("response", "answer", "assistant")


def chunk(reason=None, **delta):
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "ernie-4.5", "choices": [choice]}


def line(reason=None, **message):
    whole = {"model": "ernie-4.5", "created_at": "2026-01-08T09:14:05.000185Z", "message": {"role": "assistant"}}
    whole["message"] |= {"content": "", **message}
    return whole | ({"done": True, "done_reason": reason} if reason else {"done": False})


def sse(*messages):
    return [f"data: {json.dumps(one)}\n\n".encode() for one in messages]


def event(kind, **fields):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def part(text, **fields):
    return {"candidates": [{"content": {"parts": [{"text": text, **fields}]}}]}


def block(index, kind, *pieces, name):
    yield event("content_block_start", index=index, content_block={"type": kind, name: ""})
    for piece in pieces:
        yield event("content_block_delta", index=index, delta={"type": f"{kind}_delta", name: piece})
    yield event("content_block_stop", index=index)


def of_chunks(field):
    def body(thoughts, pieces):
        first = chunk(role="assistant", content="")
        said = (chunk(content=one) for one in pieces)
        return sse(first, *(chunk(**{field: one}) for one in thoughts), *said, chunk("stop"))

    return body


def of_lines(thoughts, pieces):
    lines = (*(line(thinking=one) for one in thoughts), *(line(content=one) for one in pieces), line("stop"))
    return [json.dumps(one).encode() + b"\n" for one in lines]


def of_anthropic(thoughts, pieces):
    start = event("message_start", message={"type": "message", "role": "assistant", "content": []})
    end = event("message_delta", delta={"stop_reason": "end_turn"}) + event("message_stop")
    first = block(0, "thinking", *thoughts, name="thinking") if thoughts else ()
    return [start, *first, *block(1, "text", *pieces, name="text"), end]


def of_responses(thoughts, pieces):
    at = {"item_id": "i", "output_index": 1, "content_index": 0}
    before = {"item_id": "r", "output_index": 0, "content_index": 0}
    return [
        *(event("response.reasoning_text.delta", delta=one, **before) for one in thoughts),
        *(event("response.output_text.delta", delta=one, **at) for one in pieces),
        event("response.completed", response={"status": "completed", "output": []}),
    ]


def of_gemini(thoughts, pieces):
    parts = (*(part(one, thought=True) for one in thoughts), *map(part, pieces))
    return sse(*parts, {"candidates": [{"finishReason": "STOP"}]})


BODIES = {
    "reasoning_content": of_chunks("reasoning_content"),
    "reasoning": of_chunks("reasoning"),
    "Ollama": of_lines,
    "Anthropic": of_anthropic,
    "Responses": of_responses,
    "Gemini": of_gemini,
}
IN_EACH = pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)


def spoken(source):
    return "".join(one.text for one in stream.read_sync(source) if isinstance(one, stream.TextDelta))


def wrapped(word, before=""):
    return f"{before}<{word}>\n{SPOKEN}\n</{word}>\n"


@IN_EACH
@pytest.mark.parametrize("before", ["", "\n\n"], ids=repr)
@pytest.mark.parametrize("word", WORDS)
def test_they_are_not_spoken_however_the_text_is_cut(body, word, before):
    for pieces in splits(wrapped(word, before), step=3, rounds=3):
        assert spoken(body(["They want", " it."], pieces)).strip() == SPOKEN


@IN_EACH
def test_without_reasoning_they_are_text(body):
    answer = wrapped("response")
    for pieces in splits(answer, step=5, rounds=3):
        assert spoken(body([], pieces)) == answer


@IN_EACH
def test_behind_words_they_are_text(body):
    answer = "It is `in` a tag: <answer>42</answer>."
    for pieces in splits(answer, step=5, rounds=3):
        assert spoken(body(["They want it."], pieces)) == answer


def spoken_of(*deltas):
    return spoken(sse(*deltas, chunk("stop")))


THOUGHT = chunk(reasoning_content="Hm.")


def test_they_count_after_reasoning_between_two_texts():
    assert spoken_of(chunk(content="One moment. "), THOUGHT, chunk(content="<answer>Yes.</answer>")) == (
        "One moment. Yes."
    )
    assert spoken_of(chunk(content="\n"), THOUGHT, chunk(content="<answer>Yes.</answer>")) == "\nYes."


def test_what_goes_on_with_the_text_before_the_reasoning_is_text():
    assert spoken_of(chunk(content="In a <"), THOUGHT, chunk(content="answer> tag.")) == "In a <answer> tag."


def test_the_reasoning_of_a_round_does_not_count_in_the_next_one():
    result = chunk(role="tool", tool_call_id="1", content="12 degrees")
    assert spoken_of(THOUGHT, chunk("tool_calls"), result, chunk(content="<answer>Yes.")) == "<answer>Yes."


def test_reasoning_before_data_does_not_count_for_the_text_after_it():
    data = chunk(content="{}", channel="json")
    assert spoken_of(THOUGHT, chunk(content="Yes. "), data, chunk(content="<answer>")) == "Yes. {}<answer>"


def test_they_are_not_spoken_if_the_reasoning_comes_in_the_same_message_or_is_not_passed_on():
    assert spoken_of(chunk(reasoning_content="Hm.", content="<answer>Yes.</answer>")) == "Yes."
    reader = OpenAIReader(reasoning=False)
    assert [*reader.feed(THOUGHT), *reader.feed(chunk(content="<answer>Yes."))] == [stream.TextDelta("Yes.")]


def test_a_reader_of_text_can_be_told_of_the_reasoning():
    reader = TextReader()
    reader.note_reasoning()
    assert reader.feed("<answer>Yes.") == [stream.TextDelta("Yes.")]
    reader.close()
    with pytest.raises(StreamValueError, match="the reader is closed"):
        reader.note_reasoning()


@pytest.mark.parametrize("before", ["", "\n", "Hm."])
def test_told_of_it_a_reader_takes_what_comes_next_for_text_also_if_the_prompt_opens_a_block(before, caplog):
    reader = TextReader(start="reasoning")
    events = reader.feed(before)
    reader.note_reasoning()
    events += [*reader.feed("Yes."), *reader.close()]
    thought = [stream.ReasoningDelta(before)] if before else []
    assert events == [*thought, stream.TextDelta("Yes."), stream.Finish("stop")]
    assert caplog.text == ""
