"""Thoughts whose opening tag stands in the prompt, so that the answer begins with them: `start="reasoning"`."""

import json

import pytest
from openai.types.chat import ChatCompletionChunk

import stream
from stream import (
    AnthropicReader,
    Finish,
    GeminiReader,
    OllamaReader,
    OpenAIReader,
    ReasoningDelta,
    ResponsesReader,
    TextDelta,
    ToolCallEnd,
)
from stream.errors import StreamValueError
from tests.stream.comparing import splits

CALL = '<tool_call>{"name": "lock", "arguments": {}}</tool_call>'
THOUGHTS = "They greet me < twice."
ANSWER = f"{THOUGHTS}</think>\n\nGood evening. {CALL}"


def chunk(reason=None, **delta):
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def line(reason=None, **message):
    message = {"role": "assistant", "content": "", **message}
    return {"model": "m", "created_at": "1", "message": message, "done": bool(reason)} | (
        {"done_reason": reason} if reason else {}
    )


def block(kind, **fields):
    return {"type": f"content_block_{kind}", "index": 0, **fields}


def part(text, **fields):
    return {"candidates": [{"content": {"parts": [{"text": text, **fields}]}}]}


FORMS = {
    "chunks": (OpenAIReader, lambda pieces: [*(chunk(content=one) for one in pieces), chunk("stop")]),
    "objects of openai": (
        OpenAIReader,
        lambda pieces: [
            ChatCompletionChunk.model_validate(one)
            for one in (chunk(role="assistant", content=""), *(chunk(content=one) for one in pieces), chunk("stop"))
        ],
    ),
    "bytes": (
        OpenAIReader,
        lambda pieces: [
            f"data: {json.dumps(one)}\n\n".encode()
            for one in (chunk(role="assistant", content=""), *(chunk(content=one) for one in pieces), chunk("stop"))
        ],
    ),
    "lines of Ollama": (OllamaReader, lambda pieces: [*(line(content=one) for one in pieces), line("stop")]),
    "Anthropic": (
        AnthropicReader,
        lambda pieces: [
            block("start", content_block={"type": "text", "text": ""}),
            *(block("delta", delta={"type": "text_delta", "text": one}) for one in pieces),
            block("stop"),
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        ],
    ),
    "Gemini": (GeminiReader, lambda pieces: [*map(part, pieces), {"candidates": [{"finishReason": "STOP"}]}]),
    "Responses": (
        ResponsesReader,
        lambda pieces: [
            *(
                {
                    "type": "response.output_text.delta",
                    "item_id": "i",
                    "output_index": 0,
                    "content_index": 0,
                    "delta": one,
                }
                for one in pieces
            ),
            {"type": "response.completed", "response": {"status": "completed", "output": []}},
        ],
    ),
}


def summed(events):
    """Thoughts, text and the names of complete calls."""
    thoughts, text = (
        "".join(event.text for event in events if isinstance(event, kind)) for kind in (ReasoningDelta, TextDelta)
    )
    return thoughts, text.strip(), [e.tool_name for e in events if isinstance(e, ToolCallEnd) and e.status == "ok"]


def read(messages, make=OpenAIReader, **options):
    reader = make(["lock"], start="reasoning", **options)
    return [event for message in messages for event in reader.feed(message)] + reader.close()


@pytest.mark.parametrize(("make", "messages"), FORMS.values(), ids=FORMS)
def test_text_up_to_the_end_of_the_block_is_reasoning_however_it_is_cut(make, messages):
    for pieces in splits(ANSWER, rounds=4):
        assert summed(read(messages(pieces), make)) == (THOUGHTS, "Good evening.", ["lock"])


@pytest.mark.parametrize(("make", "messages"), FORMS.values(), ids=FORMS)
def test_without_it_they_are_text(make, messages):
    reader = make(["lock"])
    events = [event for message in messages([ANSWER]) for event in reader.feed(message)] + reader.close()
    assert THOUGHTS in summed(events)[1]


@pytest.mark.parametrize("form", ["chunks", "bytes", "lines of Ollama", "Gemini"])
def test_a_stream_of_any_format_is_read_so(form):
    messages = FORMS[form][1]([ANSWER[:30], ANSWER[30:]])
    found = summed(list(stream.read_sync(messages, ["lock"], start="reasoning")))
    assert found == (THOUGHTS, "Good evening.", ["lock"])


FIELDS = {
    "reasoning": (OpenAIReader, lambda text: chunk(reasoning=text), FORMS["chunks"][1]),
    "reasoning_content": (OpenAIReader, lambda text: chunk(reasoning_content=text, content=""), FORMS["chunks"][1]),
    "thinking": (OllamaReader, lambda text: line(thinking=text), FORMS["lines of Ollama"][1]),
    "thought": (GeminiReader, lambda text: part(text, thought=True), FORMS["Gemini"][1]),
    "thinking_delta": (
        AnthropicReader,
        lambda text: block("delta", index=1, delta={"type": "thinking_delta", "thinking": text}),
        FORMS["Anthropic"][1],
    ),
}


@pytest.mark.parametrize("before", [[], ["\n\n"]], ids=["first", "after a line end"])
@pytest.mark.parametrize("field", FIELDS)
def test_a_server_with_a_field_for_reasoning_has_no_thoughts_in_its_text(field, before):
    make, thought, messages = FIELDS[field]
    begin = messages(before)[:-1] if make is not AnthropicReader else []
    if make is AnthropicReader:
        begin = [block("start", index=1, content_block={"type": "thinking", "thinking": ""})]
    found = summed(read([*begin, thought("Hm. "), thought("Yes."), *messages(["Good ", "evening."])], make))
    assert (found[0].strip(), found[1:]) == ("Hm. Yes.", ("Good evening.", []))


def test_it_holds_for_each_round_of_a_server_that_runs_the_tools():
    results = chunk(role="tool", tool_call_id="1", content="12 degrees")
    answered = [chunk("tool_calls"), results, chunk(content="So 12.</think>It is 12 degrees."), chunk("stop")]
    thoughts, text, calls = summed(read([chunk(content=f"A tool.</think>Let me look. {CALL}"), *answered]))
    assert (thoughts, calls) == ("A tool.So 12.", ["lock"])
    assert text == "Let me look. It is 12 degrees."


def test_a_structured_call_amid_the_thoughts_does_not_end_them():
    call = {"index": 0, "id": "c", "function": {"name": "lock", "arguments": "{}"}}
    events = read([chunk(content="2 <"), chunk(tool_calls=[call]), chunk(content=" 3.</th"), chunk(content="ink>Yes.")])
    assert summed(events) == ("2 < 3.", "Yes.", ["lock"])


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_without_an_end_of_the_block_all_of_it_is_reasoning(reason, caplog):
    events = read([chunk(content="Good evening."), chunk(reason)])
    assert events == [ReasoningDelta("Good evening."), Finish(reason)]
    assert ("no end of the thoughts came" in caplog.text) == (reason == "stop")


@pytest.mark.parametrize(
    ("answer", "thoughts", "data"),
    [
        ('Hm [x] </thin.</think>\n{"a": 1}', "Hm [x] </thin.", '{"a": 1}'),
        ('Hm.[/THINK]{"a": 1}', "Hm.", '{"a": 1}'),
        ('<think>Hm.</think>{"a": "</think>"}', "Hm.", '{"a": "</think>"}'),
        ('[THINK]Hm.[/THINK]{"a": 1}', "Hm.", '{"a": 1}'),
        ('\n{"a": "</think>"}', "", '{"a": "</think>"}'),
        ("[1, 2]", "", "[1, 2]"),
        ("Hm.", "Hm.", ""),
    ],
    ids=["thoughts", "another end", "with a tag", "with a token", "an object", "an array", "no end"],
)
def test_thoughts_before_data_and_data_without_any(answer, thoughts, data):
    for pieces in splits(answer, rounds=4):
        messages = [*(chunk(content=one) for one in pieces), chunk("stop")]
        assert summed(read(messages, calls_in_text=False)) == (thoughts, data, [])


@pytest.mark.parametrize(
    "make", [OpenAIReader, OllamaReader, stream.read_sync, stream.repair_sync], ids=lambda make: make.__name__
)
def test_another_value_raises(make):
    source = () if make in (OpenAIReader, OllamaReader) else ([],)
    with pytest.raises(StreamValueError, match="start is 'thoughts'; it must be 'text' or 'reasoning'"):
        make(*source, start="thoughts")
