"""No reader keeps more than its bounds, however much a server sends; measured in memory, not in time."""

import gc
import json
import logging
import tracemalloc

import pytest

from stream import (
    AnthropicReader,
    GeminiReader,
    OllamaReader,
    OpenAIReader,
    RealtimeReader,
    ReasoningDelta,
    ResponsesReader,
    StreamFailed,
    TextDelta,
    TextReader,
    ToolCallEnd,
    ToolCallStart,
)
from stream.readers.calls import fragments, order
from stream.readers.text.dialect_table import table_for
from stream.repairing.chat import ChatRepair
from tests.stream.providers import read_all

MIB = 1 << 20
WORDS = "lorem ipsum "
CALL = '<tool_call>{"name": "f", "arguments": {"n": 1}}</tool_call>'


def pieces(head, filler, size, piece):
    """A head and then so much of a filler, in pieces."""
    yield head
    text = filler * (piece // len(filler) + 1)
    for _ in range(size // piece):
        yield text[:piece]


def kept(reader, items):
    """The most bytes that reading takes at once, what comes of it left aside; and how the stream failed."""
    for table in (table_for(None), table_for(frozenset({"f"}))):
        assert table.recovery  # and others are compiled where they are first needed
        assert table.glued.recovery
    feed, failures = reader.feed, []
    gc.collect()
    gc.freeze()  # Among many other objects of the process, cycles would be collected later.
    gc.collect()  # From here on the collector counts only what reading makes.
    tracemalloc.start()
    try:
        for item in items:
            failures += [event for event in feed(item) if isinstance(event, StreamFailed)]
        return tracemalloc.get_traced_memory()[1], failures
    finally:
        tracemalloc.stop()
        gc.unfreeze()
        reader.close()


def read(reader, text, piece):
    """All events of a text in pieces."""
    return read_all(reader, (text[start : start + piece] for start in range(0, len(text), piece)))


def said(events):
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def ends_of(events):
    return [event for event in events if isinstance(event, ToolCallEnd)]


def chunk(**delta):
    return {"choices": [{"delta": delta, "finish_reason": None}]}


TEXTS = {
    "reasoning": ("<think>", WORDS),
    "reasoning of one word": ("<think>", "a"),
    "reasoning of backticks": ("<think>", "`"),
    "reasoning that begins like a call": ("<think><tool_call>", WORDS),
    "an object in reasoning": ('<think>{"a": "', WORDS),
    "a call's beginning in reasoning": ('<think>{"name": "f", "x": "', WORDS),
    "white space after a call in reasoning": (f"<think>{CALL}", " "),
    "calls in reasoning": ("<think>", CALL),
    "calls and text in reasoning": ("<think>", CALL + WORDS),
    "harmony reasoning": ("<|channel|>analysis<|message|>", WORDS),
    "a harmony header": ("<|channel|>", "a"),
    "a harmony header of spaces": ("<|channel|>", " "),
    "a harmony message of nobody": ("<|start|>user<|message|>", WORDS),
    "a marker and text": ("<tool_call>", WORDS),
    "a marker and a word": ("<tool_call>", "a"),
    "markers": ("<tool_call>", "<tool_call>"),
    "a marker and spaces": ('<tool_call>{"name":', " "),
    "an object that may be a call, and spaces": ('{"name":', " "),
    "an object that may be a call, and a text": ('{"id": "', WORDS),
    "text like an object": ('{"a": "', WORDS),
    "a header": ("<|tool_call_begin|>", WORDS),
    "a call that cannot be read": ("<tool_call>{'", WORDS),
    "lines after a call that cannot be read": ("<tool_call>{'\n", WORDS + "\n"),
    "a line end and spaces after a call that cannot be read": ('{"name": "f", "arguments": {"a"\n', " "),
    "separators after a call": (CALL, ", ; "),
    "arguments": ('<tool_call>{"name": "f", "arguments": {"a": "', WORDS),
    "arguments of brackets": ('<tool_call>{"name": "f", "arguments": {"a": ', "["),
    "text of brackets": ('{"a": ', "["),
    "Python of brackets": ("[f(a=", "["),
    "Python text": ('[f(a="', WORDS),
    "values with keys": ("<tool_call>f", "<arg_key>k</arg_key><arg_value></arg_value>"),
    "items in braces": ("<start_function_call>call:f{a:[", "1,"),
    "a name": ('<tool_call>{"name": "', "a"),
    "backticks": ("", "`"),
    "a fence": ("```json\n", " "),
    "inline code": ("`<tool_call>", "a"),
    "an invented result": ("<tool_response>\n", WORDS),
    "a role": ("<|start_header_id|>", "a"),
    "plain text": ("", WORDS),
}


@pytest.mark.parametrize(
    ("shape", "reasoning"),
    [*((shape, True) for shape in TEXTS), *((shape, False) for shape in TEXTS if "reas" in shape)],
)
def test_text_of_any_length_is_read_in_bounded_memory(shape, reasoning):
    head, filler = TEXTS[shape]
    quick = filler in (WORDS, "a", " ")
    most = 0
    for size in (1 << 14, 4 * MIB if quick else MIB // 4):  # in the first, patterns are compiled, too
        reader = TextReader(["f"], max_argument_chars=1 << 14, reasoning=reasoning)
        most, _ = kept(reader, pieces(head, filler, size, 1 << 10))
    # What is undecided may be a mebibyte of text; everything else is less.
    assert most < (1.5 * MIB if quick else 0.75 * MIB)


@pytest.mark.parametrize("piece", [1 << 20, 1 << 16, 3], ids=["mebibytes", "64 KiB", "tokens"])
@pytest.mark.parametrize(
    "shape", ["reasoning", "a marker and text", "a call that cannot be read", "a harmony header", "plain text"]
)
def test_the_size_of_the_pieces_does_not_matter(shape, piece):
    head, filler = TEXTS[shape]
    most, _ = kept(TextReader(), pieces(head, filler, 8 * MIB if piece > 3 else MIB // 4, piece))
    assert most < 0.5 * MIB + 8 * piece


@pytest.mark.parametrize(
    "detail",
    [
        {"type": "reasoning.text", "text": WORDS * 100, "index": 0},
        {"type": "reasoning.encrypted", "data": WORDS * 100},
        {"type": "reasoning.text", "text": "a"},
    ],
    ids=["a text", "blocks", "tokens"],
)
def test_blocks_of_reasoning_that_a_server_wants_back_are_bounded_and_dropped_above(detail):
    def chunks(n):
        return (chunk(reasoning_details=[{**detail, "index": detail.get("index", at % 1000)}]) for at in range(n))

    reader = OpenAIReader(max_argument_chars=1 << 16)
    most, _ = kept(reader, chunks(4000))
    assert most < 0.5 * MIB
    for n, is_kept in ((20, True), (4000, False)):
        reader = OpenAIReader(max_argument_chars=1 << 16)
        (finish,) = [*read_all(reader, [*chunks(n), {"choices": [{"delta": {}, "finish_reason": "stop"}]}])][-1:]
        assert bool(finish.reasoning_details) is is_kept


@pytest.mark.parametrize("reasoning", [True, False], ids=["passed on", "dropped"])
@pytest.mark.parametrize("shape", ["reasoning", "harmony reasoning", "a marker and text"])
def test_the_servers_readers_keep_as_little(shape, reasoning):
    texts = list(pieces(*TEXTS[shape], 4 * MIB, 1 << 16))
    most, _ = kept(OpenAIReader(reasoning=reasoning), (chunk(content=text) for text in texts))
    assert most < MIB
    lines = ({"message": {"content": text}} for text in texts)
    most, _ = kept(OllamaReader(reasoning=reasoning), (json.dumps(line).encode() + b"\n" for line in lines))
    assert most < MIB


@pytest.mark.parametrize("piece", [100, 1 << 16])
@pytest.mark.parametrize(("head", "filler"), [('Hm {"a": "', WORDS), ("Hm [", '"lorem ipsum", ')])
def test_what_may_be_data_at_the_end_of_thoughts_is_held_back_only_so_long(head, filler, piece):
    texts = list(pieces(head, filler, 2 * MIB, piece))
    reader = OpenAIReader(calls_in_text=False, start="reasoning")
    events = [event for text in texts for event in reader.feed(chunk(content=text))] + reader.close()
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "".join(texts)
    reader = OpenAIReader(calls_in_text=False, start="reasoning", reasoning=False)
    assert kept(reader, (chunk(content=text) for text in texts))[0] < 2.5 * MIB


def not_offered(name, number):
    text = WORDS * 1000
    yield chunk(content=f'<tool_call>{{"name": "{name}", "arguments": {{"{number}": "{text}"}}}}</tool_call> ')


def structured_too(name, number):
    function = {"name": name, "arguments": json.dumps({str(number): WORDS * 1000})}
    yield from not_offered(name, number)
    yield chunk(tool_calls=[{"index": number, "id": f"c{number}", "function": function}])


def another_choice(_, number):
    yield {"choices": [{"index": number, "delta": {"content": "Hello."}, "finish_reason": None}]}


@pytest.mark.parametrize("chunks", [not_offered, structured_too, another_choice])
def test_a_repair_keeps_little_more_than_its_reader(chunks, caplog):
    caplog.set_level(logging.CRITICAL, "stream.repairing")  # the log is kept by pytest
    several = [one for number in range(400) for one in chunks(f"g{number}", number)]
    most, _ = kept(ChatRepair(["f"]), several)
    least, _ = kept(OpenAIReader(["f"]), several)
    assert most < least + 1.25 * MIB


@pytest.mark.parametrize("head", [b'{"message":{"content":"', b'{"a":', b"data: {", b"", b"x"], ids=repr)
@pytest.mark.parametrize("filler", [b"a", b"[", b'{"a":', b" ", b"\xf0\x9f\x98\x80"], ids=repr)
def test_a_line_without_an_end_is_not_kept(head, filler):
    read = (filler * (1 << 16))[: 1 << 16]
    reader = OllamaReader(max_line_chars=1 << 17)
    said = reader.feed(b'{"message": {"content": "Hello."}, "done": false}\n')
    assert said == [TextDelta("Hello.")]
    most, failures = kept(reader, [head, *[read] * 64])
    assert most < 2 * MIB
    assert {failed.code for failed in failures} <= {"line_too_long"}
    assert failures or not (head + filler).startswith((b'{"message":{"content":"a', b'{"a": '))


def test_a_line_past_the_longest_fails_the_stream_and_what_was_said_is_kept():
    reader = OllamaReader(max_line_chars=1000)
    fits = json.dumps({"message": {"content": "a" * 972}})
    assert len(fits) == 1000
    longer = fits.replace("aa", "aaa", 1)
    for cut in (1, 999, 5000):
        reader = OllamaReader(max_line_chars=1000)
        data = f"{fits}\n{longer}\n{fits}\n".encode()
        events = [event for start in range(0, len(data), cut) for event in reader.feed(data[start : start + cut])]
        assert "".join(event.text for event in events[:-1]) == "a" * 972
        assert events[-1] == StreamFailed("a line is longer than 1000 characters", code="line_too_long")
        assert reader.close() == []


def test_objects_that_follow_each_other_in_one_line_may_be_longer_together():
    one = json.dumps({"message": {"content": "a" * 500}})
    reader = OllamaReader(max_line_chars=1000)
    assert reader.feed((one * 10 + "\n").encode()) == [TextDelta("a" * 500)] * 10


def test_the_longest_line_is_bounded_by_default():
    most, failures = kept(OllamaReader(), [b'{"message":{"content":"', *[b"a" * (1 << 16)] * 128])
    assert [failed.code for failed in failures] == ["line_too_long"]
    assert most < 5 * MIB


# --- text behind an open call


def opened(index=0, arguments='{"n": '):
    call = {"index": index, "id": f"c{index}", "function": {"name": "f", "arguments": arguments}}
    return chunk(tool_calls=[call])


def closing(index=0):
    return chunk(tool_calls=[{"index": index, "function": {"arguments": "1}"}}])


@pytest.mark.parametrize("piece", [1 << 16, 5])
def test_text_behind_an_open_call_waits_only_so_long(piece):
    size = 4 * MIB if piece > 5 else MIB // 4
    most, _ = kept(OpenAIReader(), [opened(), *(chunk(content=text) for text in pieces("", WORDS, size, piece))])
    assert most < (MIB if piece > 5 else 3 * MIB)


@pytest.mark.parametrize("piece", [1000, 1, 70_000])
@pytest.mark.parametrize("size", [65_536, 65_537, 100_000])
def test_a_call_ends_behind_the_text_that_could_not_wait_for_it(size, piece):
    text = (WORDS * (size // len(WORDS) + 1))[:size]
    reader = OpenAIReader()
    chunks = [opened(), *(chunk(content=text[start : start + piece]) for start in range(0, size, piece)), closing()]
    events = [event for item in [*chunks, chunk(content="Behind.")] for event in reader.feed(item)]
    (end,) = ends_of(events)
    before = said(events[: events.index(end)])
    assert (end.status, end.arguments_json) == ("ok", '{"n": 1}')
    assert before == ("" if size <= 65_536 else text)
    assert said(events) == text + "Behind."


def test_the_rest_of_a_long_text_that_the_server_repeats_whole_is_spoken():
    reader = ResponsesReader()
    place = {"output_index": 0, "content_index": 0}
    text = "word " * 180_000  # in more pieces than are kept apart, and less than is kept of them
    for start in range(0, len(text), 100):
        reader.feed({"type": "response.output_text.delta", **place, "delta": text[start : start + 100]})
    whole = {"type": "response.output_text.done", **place, "text": text + "Done."}
    assert reader.feed(whole) == [TextDelta("Done.")]


def test_calls_that_only_such_text_kept_waiting_are_announced():
    reader = OpenAIReader()
    events = [event for item in (opened(0), chunk(content="a "), opened(1)) for event in reader.feed(item)]
    assert [event.index for event in events if isinstance(event, ToolCallStart)] == [0]
    events = reader.feed(chunk(content=WORDS * 10_000))
    assert [event.index for event in events if isinstance(event, ToolCallStart)] == [1]
    assert said(events) == "a " + WORDS * 10_000
    ends = ends_of(reader.feed(closing(1)) + reader.feed(closing(0)))
    assert sorted(event.index for event in ends) == [0, 1]


# --- many calls


def test_the_memory_of_many_calls_is_bounded(monkeypatch):
    monkeypatch.setattr(order, "MOST_KEPT", 256)
    monkeypatch.setattr(fragments, "MOST_KEPT", 256)

    def calls(count):
        for n in range(count):
            call = {"index": n, "id": f"c{n}", "function": {"name": "f", "arguments": f'{{"n": {n}}}'}}
            yield chunk(tool_calls=[call])

    some, _ = kept(OpenAIReader(), calls(500))
    most, _ = kept(OpenAIReader(), calls(5000))
    assert most < 1.5 * some


def test_calls_that_are_begun_and_never_ended_are_ended_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr(fragments, "MOST_KEPT", 1000)
    reader = OpenAIReader()
    events = [event for n in range(2200) for event in reader.feed(opened(n))]
    ends = [event for event in events if isinstance(event, ToolCallEnd)]
    assert [end.tool_call_id for end in ends] == [f"c{n}" for n in range(1500)]
    assert {end.status for end in ends} == {"incomplete"}
    later = [event for event in reader.feed(closing(2199)) + reader.close() if isinstance(event, ToolCallEnd)]
    assert [end.tool_call_id for end in later] == [f"c{n}" for n in range(1500, 2200)]
    assert later[-1].status == "ok"


@pytest.mark.parametrize("count", [3, 40])
def test_calls_that_have_ended_wait_for_an_earlier_one_only_so_long(count):
    long = json.dumps({"text": "a" * (1 << 16)})
    calls = [opened(n, long) for n in range(1, count)]
    reader = OpenAIReader()
    ends = [event for item in (opened(0), *calls, closing(0)) for event in reader.feed(item)]
    order = [event.index for event in ends if isinstance(event, ToolCallEnd)]
    assert order == (list(range(count)) if count == 3 else [*range(1, count), 0])
    most, _ = kept(OpenAIReader(), (opened(n, long if n else "{") for n in range(100)))
    assert most < 2 * MIB


def test_long_arguments_are_told_apart_though_they_are_not_kept():
    def calls():
        for n in range(64):
            arguments = json.dumps({"text": WORDS * 5000, "n": n // 2})
            yield chunk(tool_calls=[{"index": 0, "id": "c", "function": {"name": "f", "arguments": arguments}}])

    reader = OpenAIReader()
    ends = [event for item in calls() for event in reader.feed(item) if isinstance(event, ToolCallEnd)]
    assert [json.loads(end.arguments_json)["n"] for end in ends] == list(range(32))
    most, _ = kept(OpenAIReader(), calls())
    assert most < MIB


# --- calls in reasoning


def reasoned(text, piece, **options):
    """The reasoning, and the ends of calls, of a text in pieces."""
    events = read(TextReader(**options), text, piece)
    return "".join(event.text for event in events if isinstance(event, ReasoningDelta)), ends_of(events)


@pytest.mark.parametrize("piece", [1 << 20, 4096, 7])
@pytest.mark.parametrize("closer", ["", "</think>"], ids=["never closed", "closed"])
def test_a_call_that_ends_long_reasoning_is_real_and_the_reasoning_is_the_same_however_it_is_cut(closer, piece):
    long = json.dumps({"text": WORDS * 12_000})
    text = f'<think>{WORDS * 20_000}<tool_call>{{"name": "f", "arguments": {long}}}</tool_call>{closer}'
    reasoning, (end,) = reasoned(text, piece)
    assert (end.status, end.arguments_json) == ("ok", long)
    assert reasoning == reasoned(text, 1 << 20)[0]
    assert reasoning.startswith(WORDS * 20_000)


@pytest.mark.parametrize("piece", [1 << 20, 997])
def test_a_call_before_more_text_in_reasoning_is_a_rehearsal_and_all_of_the_reasoning_comes(piece):
    long = f'<tool_call>{{"name": "f", "arguments": {{"text": "{WORDS * 12_000}"}}}}</tool_call>'
    inside = f"{WORDS}{long}{WORDS * 100}{long}"
    reasoning, ends = reasoned(f"<think>{inside}</think>Done.", piece)
    assert (reasoning, ends) == (inside, [])


def test_of_more_calls_in_reasoning_than_can_be_kept_the_last_ones_are():
    calls = "".join(f'<tool_call>{{"name": "f", "arguments": {{"n": {n}}}}}</tool_call>' for n in range(1000))
    _, ends = reasoned(f"<think>{calls}", 4096, max_argument_chars=10_000)
    numbers = [json.loads(end.arguments_json)["n"] for end in ends]
    assert numbers == list(range(1000 - len(numbers), 1000))
    assert len(numbers) > 10


# --- past a cap


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>f"
        + "".join(f"<arg_key>k{n}</arg_key><arg_value></arg_value>" for n in range(500))
        + "</tool_call>",
        "<tool_call><function=f>" + "<parameter=k></parameter>" * 500 + "</function></tool_call>",
        "<start_function_call>call:f{a:[" + "1," * 2000 + "]}<end_function_call>",
        "<start_function_call>call:f{" + "".join(f"k{n}:1," for n in range(500)) + "}<end_function_call>",
    ],
    ids=["keys", "one key", "items", "members"],
)
def test_many_small_values_are_arguments_past_the_cap_too(text):
    for piece in (1, 100, 100_000):
        (end,) = ends_of(read(TextReader(max_argument_chars=1000), f"{text} Done.", piece))
        assert (end.tool_name, end.status, end.arguments_json) == ("f", "malformed", "")


def test_text_comes_again_behind_more_separators_than_can_be_held():
    reader = TextReader()
    events = read_all(reader, (CALL, " ;" * MIB, ' A text with {"a": 1} in it.'))
    assert said(events).endswith('A text with {"a": 1} in it.')


def test_a_longer_fence_than_any_is_text():
    text = "`" * 300 + "\ncode\n" + "`" * 300 + "\nAnd text.\n" + CALL
    for piece in (1, 64, 1000):
        events = read(TextReader(), text, piece)
        assert said(events).rstrip() == text.removesuffix(CALL).rstrip()
        assert [end.status for end in ends_of(events)] == ["ok"]


def spoken(text, place=0):
    """A piece of text of the Responses API."""
    at = {"item_id": "i", "output_index": place, "content_index": 0}
    return {"type": "response.output_text.delta", **at, "delta": text}


def done(text, place=0):
    return {**spoken("", place), "type": "response.output_text.done", "text": text}


def block(number):
    content = {"type": "tool_use", "id": "", "name": "f"}
    return {"type": "content_block_start", "index": number, "content_block": content}


@pytest.mark.parametrize(
    ("reader", "events"),
    [
        (ResponsesReader, lambda: (spoken("a " * 32768) for _ in range(1024))),
        (ResponsesReader, lambda: (spoken(str(number)) for number in range(350_000))),
        (ResponsesReader, lambda: (spoken("a " * 4096, place) for place in range(8000))),
        (ResponsesReader, lambda: (done("a " * 4096, place) for place in range(8000))),
        (ResponsesReader, lambda: (spoken("a ", place) for place in range(100_000))),
        (AnthropicReader, lambda: (block(number) for number in range(50_000))),
    ],
    ids=["long pieces", "tokens", "many parts", "many whole parts", "many short parts", "open blocks"],
)
def test_what_formats_of_parts_and_blocks_keep_is_bounded(reader, events):
    most, failures = kept(reader(["f"]), events())
    assert not failures
    assert most < 16 * MIB


LONG = "Ab" * (1 << 15)


def chat_call(number):
    call = {"index": f"{number}{LONG}", "id": f"{number}{LONG}", "function": {"name": f"f{number}{LONG}"}}
    return chunk(tool_calls=[call])


def chat_custom_call(number):
    custom = {"name": f"f{number}{LONG}", "input": ""}
    return chunk(tool_calls=[{"index": f"{number}{LONG}", "id": f"{number}{LONG}", "type": "custom", "custom": custom}])


def ollama_call(number):
    return {"message": {"tool_calls": [{"id": f"{number}{LONG}", "function": {"name": f"f{number}{LONG}"}}]}}


def anthropic_block(kind):
    def begun(number):
        block = {"type": kind or f"{number}{LONG}", "id": f"{number}{LONG}", "name": f"f{number}{LONG}"}
        return {"type": "content_block_start", "index": number, "content_block": block}

    return begun


def responses_item(kind):
    def begun(number):
        item = {"type": kind, "id": f"{number}{LONG}", "call_id": f"c{number}{LONG}", "name": f"f{number}{LONG}"}
        event = {"type": "response.output_item.added", "response_id": f"{number}{LONG}", "output_index": number}
        return {**event, "item": item}

    return begun


def gemini_part(name):
    def begun(number):
        part = {name: {"id": f"{number}{LONG}", "name": f"f{number}{LONG}", "willContinue": True, "toolType": LONG}}
        return {f"k{number}{LONG}": 1, "candidates": [{"content": {"parts": [part]}}]}

    return begun


def gemini_arguments(number):
    piece = {"jsonPath": f"$.k{number}{LONG}", "stringValue": ""}
    call = {"partialArgs": [piece], "willContinue": True, **({} if number else {"name": "f"})}
    return {"candidates": [{"content": {"parts": [{"functionCall": call}]}}]}


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (OpenAIReader, chat_call),
        (OpenAIReader, chat_custom_call),
        (OllamaReader, ollama_call),
        (AnthropicReader, anthropic_block("")),
        (AnthropicReader, anthropic_block("tool_use")),
        (AnthropicReader, anthropic_block("server_tool_use")),
        (ResponsesReader, responses_item("function_call")),
        (ResponsesReader, responses_item("mcp_call")),
        (RealtimeReader, responses_item("function_call")),
        (RealtimeReader, lambda number: {"type": "response.created", "response": {"id": f"{number}{LONG}"}}),
        (GeminiReader, gemini_part("functionCall")),
        (GeminiReader, gemini_part("toolCall")),
        (GeminiReader, gemini_arguments),
    ],
    ids=[
        "chat calls",
        "chat calls of custom tools",
        "ollama calls",
        "anthropic blocks",
        "anthropic calls",
        "anthropic server tools",
        "responses calls",
        "responses tasks",
        "realtime calls",
        "realtime responses",
        "gemini calls",
        "gemini server tools",
        "gemini arguments",
    ],
)
def test_of_long_names_ids_and_keys_only_their_beginning_is_kept(reader, message):
    kept(reader(), [message(0)])  # what is compiled and imported at the first one stays
    most, failures = kept(reader(), (message(number) for number in range(1000)))
    assert not failures
    assert most < 10 * MIB


def test_a_repair_keeps_as_little_of_them():
    for make in (chat_call, chat_custom_call):
        most, _ = kept(ChatRepair(["f"]), (make(number) for number in range(1000)))
        assert most < 12 * MIB


def test_the_names_of_fields_do_not_outlive_their_reader():
    gc.collect()
    tracemalloc.start()
    for number in range(200):
        GeminiReader().feed({f"own{number}{LONG}": 1})
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert left < MIB


def test_a_server_tool_with_a_long_id_ends_as_it_began():
    reader = AnthropicReader()
    begun, ended = {"id": LONG, "name": LONG, "type": "mcp_tool_use"}, {"tool_use_id": LONG, "type": "mcp_tool_result"}
    found = [*reader.feed({"type": "content_block_start", "index": 0, "content_block": begun})]
    found += reader.feed({"type": "content_block_start", "index": 1, "content_block": ended})
    assert [(one.task_id, one.tool_name, one.status) for one in found] == [
        (LONG[:1024], LONG[:1024], "working"),
        (LONG[:1024], LONG[:1024], "completed"),
    ]


def test_responses_that_begin_and_never_end_are_forgotten_where_there_are_too_many():
    most, _ = kept(
        RealtimeReader(),
        ({"type": "response.created", "response": {"id": f"{number:400}"}} for number in range(60_000)),
    )
    assert most < 12 * MIB


@pytest.mark.parametrize("n_pieces", [1, 4095, 4096, 4097, 20_000, 600_000])
def test_a_whole_text_after_its_pieces_is_not_said_again_however_long_it_is(n_pieces):
    reader = ResponsesReader()
    reader.feed(spoken("Hi. "))
    for _ in range(n_pieces):
        reader.feed(spoken("a "))
    assert not [event for event in reader.feed(done("Hi. " + "a " * n_pieces)) if isinstance(event, TextDelta)]
    lacking = [] if n_pieces > 1 << 19 else [TextDelta("end")]  # so long a text is not kept
    assert reader.feed(done("Hi. " + "a " * n_pieces + "end")) == lacking


@pytest.mark.parametrize("rest", ["", " to=functions.f json<|message|>{}<|call|> hello"])
@pytest.mark.parametrize("length", [200, 230, 256, 300, 2000])
def test_a_header_that_is_too_long_is_given_up_at_the_same_character_over_every_cut(length, rest):
    text = f"<|start|>assistant to=x {'~' * length}{rest}"

    assert len({said(read(TextReader(["f"]), text, piece)) for piece in (1, 100, 10_000)}) == 1
