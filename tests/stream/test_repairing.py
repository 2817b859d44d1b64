"""A repaired stream, as the framework behind it sees it: an accumulator of deltas that knows nothing of our readers."""

import asyncio
import itertools
import json
import logging
import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

import stream
from stream import OpenAIReader, complete_calls
from stream.errors import StreamTypeError, StreamValueError
from stream.repairing.chat import ChatRepair
from stream.repairing.sse import SseRepair
from tests.stream.comparing import load, normalise, same_value, splits

TEXT_CASES = list(load("content", "content_extra", "false_positive", "decisions"))
CHUNK_CASES = list(load("openai_chunks", "reviewed_chunks"))


def chunk_of(content=None, reason=None, **delta):
    delta |= {} if content is None else {"content": content}
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
    }


def turn(text, reason="stop"):
    return [chunk_of(role="assistant", content=""), *map(chunk_of, text), chunk_of(reason=reason)]


def accumulated(chunks, index=0):
    """What a plain client makes of the chunks: text, calls by their index, the last finish reason."""
    text, thoughts, calls, reasons = "", "", {}, []
    for chunk in chunks:
        for choice in chunk.get("choices") or ():
            if choice.get("index", 0) != index:
                continue
            delta = choice.get("delta") or {}
            fragments = delta.get("tool_calls") or []
            if delta.get("function_call") and not fragments:
                fragments = [{"index": 0, "function": delta["function_call"]}]
            if delta.get("role") == "tool":
                continue
            assert not (delta.get("content") and fragments), "content and calls in one chunk"
            assert len(fragments) <= 1, "two calls in one chunk"
            content = delta.get("content")
            parts = [content] if isinstance(content, str) else content if isinstance(content, list) else []
            text += "".join(part if isinstance(part, str) else part["text"] for part in parts)
            thoughts += delta.get("reasoning_content") or delta.get("reasoning") or ""
            for fragment in fragments:
                assert fragment["index"] in (*calls, len(calls)), "indices count from 0"
                call = calls.setdefault(fragment["index"], {"id": "", "name": "", "arguments": ""})
                call["id"] += fragment.get("id") or ""
                function = fragment.get("function") or {}
                call["name"] += function.get("name") or ""
                call["arguments"] += function.get("arguments") or ""
            if choice.get("finish_reason"):
                reasons.append(choice["finish_reason"])
    return text, thoughts, list(calls.values()), reasons


def repaired(chunks, tools, **options):
    repair = ChatRepair(tools, **options)
    return [clean for chunk in chunks for clean in repair.feed(chunk)] + repair.close()


def options_for(case):
    """Cases without tools do not say what is offered: then all calls are to be seen."""
    known = {"tools": case.get("tools"), "start": case.get("start", "text")}
    return known | ({} if "tools" in case else {"not_offered": "pass"})


def assert_as_expected(case, chunks):
    text, _, calls, reasons = accumulated(chunks)
    expected = normalise(case["expect"])
    wanted = "".join(event["text"] for event in expected if event["type"] == "text")
    assert "".join(text.split()) == "".join(wanted.split())
    called = [
        event for event in expected if event["type"] in ("tool_call", "incomplete", "malformed") and event["name"]
    ]
    if case["kind"] == "content":  # written as text: only what can be run is left
        offered = case.get("tools", [event["name"] for event in called])
        called = [event for event in called if event["type"] == "tool_call" and event["name"] in offered]
        called = [event for event in called if not event.get("told")]
    assert [call["name"] for call in calls] == [event["name"] for event in called]
    for call, event in zip(calls, called, strict=True):
        assert event["type"] != "tool_call" or same_value(event["arguments"], _decoded(call["arguments"]))
        assert call["id"] or case["kind"] != "content"
    if reasons and reasons[-1] in ("stop", "tool_calls") and case["kind"] == "content":
        assert reasons[-1] == ("tool_calls" if calls else "stop")


def _decoded(arguments):
    value = json.loads(arguments or "{}")
    return _decoded(value) if isinstance(value, str) else value or {}


@pytest.mark.parametrize("case", TEXT_CASES, ids=lambda case: case["id"])
def test_only_what_may_be_spoken_is_left_of_a_text_however_it_is_cut(case):
    for pieces in splits(case["input"], step=5, rounds=3):
        chunks = turn(pieces, case.get("finish", "stop"))
        assert_as_expected(case, repaired(chunks, **options_for(case)))


@pytest.mark.parametrize("case", CHUNK_CASES, ids=lambda case: case["id"])
def test_a_server_s_chunks_come_out_clean(case):
    chunks = repaired(case["input"], **options_for(case))
    assert_as_expected(case, chunks)
    again = repaired(chunks, **options_for(case))
    assert accumulated(again) == accumulated(chunks), "what is clean stays as it is"


@pytest.mark.parametrize("case", CHUNK_CASES, ids=lambda case: case["id"])
def test_objects_and_bytes_come_out_as_dicts_do(case, monkeypatch):
    from openai._models import construct_type
    from openai.types.chat import ChatCompletionChunk

    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * size)
    wanted = repaired(case["input"], **options_for(case))
    objects = [construct_type(value=chunk, type_=ChatCompletionChunk) for chunk in case["input"]]
    found = repaired(objects, **options_for(case))
    assert all(isinstance(chunk, ChatCompletionChunk) for chunk in found)
    as_dicts = [chunk.model_dump(exclude_unset=True, warnings=False) for chunk in found]
    assert accumulated(as_dicts) == accumulated(wanted)
    body = b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in case["input"]) + b"data: [DONE]\n\n"
    for cut in ([body], [body[at : at + 1] for at in range(len(body))]):
        assert accumulated(decoded(sse_repaired(cut, **options_for(case)))) == accumulated(wanted)


def sse_repaired(reads, tools, **options):
    repair = SseRepair(ChatRepair(tools, **options))
    return b"".join([out for data in reads for out in repair.feed(data)] + repair.close())


def decoded(body):
    events = [event for event in body.decode().split("\n\n") if event.strip()]
    assert events[-1] == "data: [DONE]"
    return [json.loads(event.strip().removeprefix("data:")) for event in events[:-1]]


HERMES = '<tool_call>{{"name": "{}", "arguments": {{"percent": 40}}}}</tool_call>'
DIM = HERMES.format("dim")
DIM_ANSWER = json.dumps({"choices": [{"index": 0, "message": {"content": DIM}, "finish_reason": "stop"}]})


@pytest.mark.parametrize("size", [1, 7, 10**6])
@pytest.mark.parametrize(
    "text", [DIM_ANSWER, '{"error": "no <tool_call>"}', '{"cut": ', "<h1>No</h1>", "[1]", "", 'data: {"cu']
)
def test_bytes_that_are_no_events_pass_and_a_whole_answer_is_repaired(text, size):
    body = text.encode()
    found = sse_repaired([body[at : at + size] for at in range(0, len(body), size)], ["dim"])
    if text == DIM_ANSWER:
        assert json.loads(found)["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "dim"
    else:
        assert found == body


PIECES = st.lists(st.text(max_size=12), max_size=12)


@given(PIECES, st.booleans())
def test_a_clean_stream_passes_as_the_same_objects(pieces, calls):
    chunks = [chunk_of(role="assistant", content=""), *map(chunk_of, pieces)]
    for index in range(2 * calls):
        function = {"name": f"_{index}", "arguments": ""}
        chunks.append(
            chunk_of(tool_calls=[{"index": index, "id": f"c{index}", "type": "function", "function": function}])
        )
        chunks += [chunk_of(tool_calls=[{"index": index, "function": {"arguments": one}}]) for one in ('{"x"', ": 1}")]
    chunks += [chunk_of(reason="tool_calls" if calls else "stop"), {"choices": [], "usage": {"total_tokens": 3}}]
    found = repaired(chunks, ["_0", "_1"])
    text, *rest = accumulated(found)
    if text == "".join(pieces):  # else hypothesis has written a marker
        assert rest == list(accumulated(chunks)[1:])
    reader = stream.TextReader(["_0", "_1"])
    if all(reader.feed(piece) == [stream.TextDelta(piece)] * bool(piece) for piece in pieces):  # else it may be a call
        assert [id(chunk) for chunk in found] == [id(chunk) for chunk in chunks]


@pytest.mark.parametrize(
    ("text", "tools", "options", "spoken", "called", "reason"),
    [
        (DIM, ["dim"], {}, "", ["dim"], "tool_calls"),
        ("One moment. " + DIM + " Done.", ["dim"], {}, "One moment.  Done.", ["dim"], "tool_calls"),
        ("No. " + DIM, ["lock"], {}, "No. ", [], "stop"),
        ("No. " + DIM, ["lock"], {"not_offered": "pass"}, "No. ", ["dim"], "tool_calls"),
        ("No. " + DIM, [], {}, "No. ", [], "stop"),
        ("No. " + DIM, None, {}, "No. ", [], "stop"),
        ("No. " + DIM, None, {"without_tools": "pass"}, "No. " + DIM, [], "stop"),
        (DIM * 2, ["dim"], {}, "", ["dim"], "tool_calls"),
        (DIM + DIM.replace("40", "broken"), ["dim"], {}, "", ["dim"], "tool_calls"),
        (DIM[:-20], ["dim"], {}, "", [], "stop"),
        ("<think>Which lamp?</think>All.", ["dim"], {}, "All.", [], "stop"),
    ],
)
def test_what_becomes_of_a_text(text, tools, options, spoken, called, reason):  # noqa: PLR0917  (a table)
    found, _, calls, reasons = accumulated(repaired(turn([text]), tools, **options))
    assert (found.strip(), [call["name"] for call in calls], reasons) == (spoken.strip(), called, [reason])


def test_what_is_dropped_is_logged_by_its_name_alone(caplog):
    with caplog.at_level(logging.DEBUG):
        repaired(turn([HERMES.format("unlock")]), ["dim"])
    assert "unlock" in caplog.text
    assert "percent" not in caplog.text


def test_a_part_of_thinking_in_the_content_becomes_reasoning_content():
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    parts = [thinking, {"type": "text", "text": "Hi."}]
    clean = repaired([chunk_of(parts), chunk_of(" Yes."), chunk_of(reason="stop")], ["dim"])
    assert accumulated(clean) == ("Hi. Yes.", "Hm.", [], ["stop"])
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": parts}, "finish_reason": "stop"}]}
    (choice,) = ChatRepair(["dim"]).whole(answer)["choices"]
    assert choice["message"] == {"role": "assistant", "content": "Hi.", "reasoning_content": "Hm."}


@pytest.mark.parametrize("before", [[], [chunk_of(reasoning_content="Hm.")]], ids=["no thoughts", "thoughts"])
def test_tags_around_the_answer_go_if_thoughts_came_in_a_field(before):
    answer = "\n<response>\nAll.\n</response>"
    for pieces in splits(answer, step=5, rounds=3):
        chunks = [chunk_of(role="assistant", content=""), *before, *map(chunk_of, pieces), chunk_of(reason="stop")]
        body = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in chunks) + b"data: [DONE]\n\n"
        for found in (repaired(chunks, []), decoded(sse_repaired([body], []))):
            text, thoughts, *_ = accumulated(found)
            assert (text.strip(), thoughts) == (("All.", "Hm.") if before else (answer.strip(), ""))
    message = {"role": "assistant", "content": answer, "reasoning_content": "Hm." if before else None}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    (choice,) = ChatRepair([]).whole(whole)["choices"]
    assert choice["message"]["content"].strip() == ("All." if before else answer.strip())
    assert choice["message"]["reasoning_content"] == message["reasoning_content"]


def test_thoughts_in_the_text_become_reasoning_content():
    assert accumulated(repaired(turn("<think>Which lamp?</think>All."), []))[:2] == ("All.", "Which lamp?")


def structured(name, arguments, index=0):
    function = {"name": name, "arguments": arguments}
    return chunk_of(tool_calls=[{"index": index, "id": "s1", "type": "function", "function": function}])


@pytest.mark.parametrize(
    ("tools", "name", "arguments", "called"),
    [
        (["dim"], "dim", '{"percent": 40}', [("dim", 40)]),
        (["dim"], "dim", '{"percent": 50}', [("dim", 40), ("dim", 50)]),
        (["dim", "lock"], "lock", '{"percent": 1}', [("dim", 40), ("lock", 1)]),
        (["lock"], "dim", '{"percent": 40}', [("dim", 40)]),  # structured calls always pass
        (["lock"], "dim", '{"percent": 50}', [("dim", 50)]),
    ],
)
def test_the_same_call_as_text_and_structured_comes_once(tools, name, arguments, called):
    chunks = [
        chunk_of(DIM),
        structured(name, ""),
        chunk_of(tool_calls=[{"index": 0, "function": {"arguments": arguments}}]),
    ]
    _, _, calls, reasons = accumulated(repaired([*chunks, chunk_of(reason="tool_calls")], tools))
    assert [(call["name"], json.loads(call["arguments"])["percent"]) for call in calls] == called
    assert all(call["id"] for call in calls)
    assert reasons == ["tool_calls"]


@pytest.mark.parametrize("place", [{}, {"index": 0}], ids=["no index", "an index"])
def test_what_a_server_sends_beside_a_call_goes_out_with_it(place):
    signed = {"extra_content": {"google": {"thought_signature": "c2ln"}}}  # Gemini refuses a result without it
    call = {**place, "id": "c1", "type": "function", "function": {"name": "dim", "arguments": "{}"}, **signed}
    found = repaired([chunk_of(tool_calls=[call]), chunk_of(reason="tool_calls")], ["dim"])
    sent = [one for chunk in found for one in chunk["choices"][0]["delta"].get("tool_calls") or ()]
    assert sent == [{"index": 0, **call}]


def test_a_call_that_waited_beside_an_equal_name_goes_out_under_its_own_id():
    written = '<tool_call>{"name": "dim", "arguments": {"percent": 40}}</tool_call>'
    waits = chunk_of(tool_calls=[{"index": 0, "id": "s0", "function": {"name": "dim", "arguments": ""}}])
    second = chunk_of(tool_calls=[{"index": 1, "id": "s1", "function": {"name": "dim", "arguments": "{}"}}])
    chunks = [chunk_of(written), waits, chunk_of("Dimmed."), second, chunk_of(reason="stop")]
    _, _, calls, _ = accumulated(repaired(chunks, ["dim"]))
    assert [one["arguments"] for one in calls] == ['{"percent": 40}', "{}", "{}"]
    assert [one["id"] for one in calls[1:]] == ["s0", "s1"]


def fragment(arguments, **beside):
    return {"index": 0, **beside, "function": {"arguments": arguments}}


PLACEHOLDER = structured("dim", "{}")


@pytest.mark.parametrize(
    ("pieces", "arguments"),
    [
        (['{"percent"', ": 40}"], '{"percent": 40}'),
        (["{}", '{"percent": 40}'], '{"percent": 40}'),
        (["", "<|im_end|>"], "{}"),
        ([], "{}"),
    ],
)
@pytest.mark.parametrize("first", ["{}", "", "{}<|call|>"])
def test_an_empty_object_in_place_of_arguments_that_come_later_does_not_go_out_before_them(first, pieces, arguments):
    pieces = pieces if first else ["{}", *pieces]
    chunks = [
        structured("dim", first),
        *(chunk_of(tool_calls=[fragment(piece)]) for piece in pieces),
        chunk_of(reason="tool_calls"),
    ]
    text, _, calls, reasons = accumulated(repaired(chunks, ["dim"]))
    assert (text, [(one["name"], one["arguments"]) for one in calls]) == ("", [("dim", arguments)])
    assert reasons == ["tool_calls"]


def test_values_in_tags_have_the_types_of_the_schema():
    """Tags hold every value as text, and `false` as text would be true."""
    types = {"percent": ["integer", "null"], "on": "boolean", "name": "string", "rest": "object"}
    schema = {"type": "object", "properties": {key: {"type": one} for key, one in types.items()}}
    values = {"percent": "40", "on": "False", "name": "1", "rest": '{"a": 1}', "other": "2"}
    tags = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items())
    tool = {"type": "function", "function": {"name": "dim", "parameters": schema}}
    written = f"<tool_call>\n<function=dim>\n{tags}</function>\n</tool_call>"
    _, _, (call,), _ = accumulated(repaired(turn(written), [tool]))
    expected = {"percent": 40, "on": False, "name": "1", "rest": {"a": 1}, "other": "2"}
    assert json.loads(call["arguments"]) == expected
    whole = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": written}}]}
    (choice,) = ChatRepair.of_request({"tools": [tool]}).whole(whole)["choices"]
    assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"]) == expected


@pytest.mark.parametrize("piece", ["}", "{}", "<|call|>"])
def test_what_is_left_over_after_an_empty_object_is_dropped(piece):
    for again in ({}, {"id": "s1"}):
        pieces = [fragment(""), fragment("{}"), {**fragment(piece), **again}]
        chunks = [structured("dim", ""), *(chunk_of(tool_calls=[one]) for one in pieces), chunk_of(reason="tool_calls")]
        _, _, calls, _ = accumulated(repaired(chunks, ["dim"]))
        assert [(one["name"], one["arguments"]) for one in calls] == [("dim", "{}")]


def test_a_name_that_spells_null_does_not_go_out():
    """As LiteLLM writes it in later pieces."""
    later = {"index": 0, "id": "", "type": "function", "function": {"name": "null", "arguments": '": 40}'}}
    chunks = [structured("dim", '{"percent'), chunk_of(tool_calls=[later]), chunk_of(reason="tool_calls")]
    _, _, calls, _ = accumulated(repaired(chunks, ["dim"]))
    assert [(one["name"], one["arguments"]) for one in calls] == [("dim", '{"percent": 40}')]


@pytest.mark.parametrize("empty", [{}, {"id": None}, {"id": ""}], ids=["no id", "null", "empty"])
@pytest.mark.parametrize("pieces", [['{"percent": 40}'], ["", '{"percent"', ": 40}"]], ids=["whole", "in pieces"])
def test_a_structured_call_without_an_id_gets_one(pieces, empty):
    two = [
        chunk_of(tool_calls=[{"index": n, **empty, "function": {**({} if k else {"name": "dim"}), "arguments": piece}}])
        for n in (0, 1)
        for k, piece in enumerate(pieces)
    ]
    _, _, calls, _ = accumulated(repaired([*two, chunk_of(reason="tool_calls")], ["dim"]))
    assert [(one["name"], one["arguments"]) for one in calls] == [("dim", '{"percent": 40}')] * 2
    assert len({one["id"] for one in calls} - {""}) == 2


def test_a_call_without_arguments_and_one_of_its_name_at_its_index_are_two():
    two = [{"index": 0, "id": "", "function": {"name": "dim", "arguments": one}} for one in ("{}", '{"percent": 40}')]
    chunks = [*(chunk_of(tool_calls=[one]) for one in two), chunk_of(reason="tool_calls")]
    _, _, calls, _ = accumulated(repaired(chunks, ["dim"]))
    assert [one["arguments"] for one in calls] == ["{}", '{"percent": 40}']


ARGUMENTS = ("{}", '{"k": "A"}', '{"k": "B"}')


def without_ids(calls, form):
    """Structured calls without ids, as chunks: in one chunk, one each, or in pieces; or all at one index."""
    if form.startswith(("in_one", "one_each")):
        heads = [fragment(one, index=k * ("at_one_index" not in form)) for k, one in enumerate(calls)]
    else:
        heads = [fragment("", index=k) for k in range(len(calls))]
    heads = [{**head, "function": {"name": "f", **head["function"]}} for head in heads]
    if form.startswith("in_one"):
        return [chunk_of(tool_calls=heads)]
    rest = [[fragment(piece, index=k) for piece in re.split("(?<=[{:])", one)] for k, one in enumerate(calls)]
    if form.startswith("one_each"):
        found = heads
    elif form == "in_pieces":
        found = [one for head, pieces in zip(heads, rest, strict=True) for one in (head, *pieces)]
    else:
        found = [*heads, *itertools.chain.from_iterable(rest)]
    return [chunk_of(tool_calls=[one]) for one in found]


FORMS = ("in_one", "one_each", "in_pieces", "names_first", "in_one_at_one_index", "one_each_at_one_index")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("written", [(), *((one,) for one in ARGUMENTS), ARGUMENTS[1:]], ids=str)
def test_calls_without_ids_after_a_text_call_of_their_tool_go_out_as_they_are_read(written, form):
    text = [chunk_of(f'<tool_call>{{"name": "f", "arguments": {one}}}</tool_call>') for one in written]
    for calls in (calls for n in (1, 2, 3) for calls in itertools.product(ARGUMENTS, repeat=n)):
        chunks = [*text, *without_ids(calls, form), chunk_of(reason="tool_calls")]
        reader = OpenAIReader(["f"])
        events = [event for chunk in chunks for event in reader.feed(chunk)] + reader.close()
        found = accumulated(repaired(chunks, [{"name": "f"}]))[2]
        assert [json.loads(call["arguments"]) for call in found] == [call.arguments for call in complete_calls(events)]
        assert len({call["id"] for call in found}) == len(found)


@pytest.mark.parametrize("form", ["one_each", "in_pieces"])
@pytest.mark.parametrize("text", ["", DIM])
def test_structured_calls_go_out_as_they_came_and_count_on_though_one_is_held(text, form):
    for names in itertools.product(("dim", "look"), repeat=3):
        for arguments in itertools.product(ARGUMENTS[:2], repeat=3):
            sent, pieces = [], list[dict]()
            for k, (name, one) in enumerate(zip(names, arguments, strict=True)):
                sent.append({"id": f"call_{k}", "name": name, "arguments": one})
                head = {**fragment("", index=k, id=f"call_{k}"), "function": {"name": name, "arguments": ""}}
                if form == "one_each":
                    pieces.append({**head, "function": {"name": name, "arguments": one}})
                else:
                    pieces += [head, fragment(one[:1], index=k), fragment(one[1:], index=k)]
            chunks = [chunk_of(text), *(chunk_of(tool_calls=[one]) for one in pieces), chunk_of(reason="tool_calls")]
            assert accumulated(repaired(chunks, ["dim", "look"]))[2][bool(text) :] == sent


TWICE = [{**fragment('{"k": "A"}', index=1, id="own"), "function": {"name": "f", "arguments": '{"k": "A"}'}}] * 2
IN_PIECES = [fragment("", index=1, id="own"), fragment('{"k":', index=1), fragment(' "A"}', index=1)]
IN_PIECES[0] = {**IN_PIECES[0], "function": {"name": "f", "arguments": ""}}
COMPLETE = {
    "twice": TWICE,
    "in_pieces_and_whole": [*IN_PIECES, TWICE[0]],
    "with_what_is_left_over": [*IN_PIECES, fragment("}", index=1)],
    "after_an_empty_object": [IN_PIECES[0], fragment("{}", index=1), fragment('{"k": "A"}', index=1)],
}


@pytest.mark.parametrize(
    ("form", "in_one"), [*((form, False) for form in COMPLETE), ("twice", True), ("after_an_empty_object", True)]
)
def test_a_call_that_is_complete_behind_one_without_arguments_goes_out_once(form, in_one):
    first = chunk_of(tool_calls=[{**fragment("", id="first"), "function": {"name": "f", "arguments": ""}}])
    rest = [chunk_of(tool_calls=COMPLETE[form])] if in_one else [chunk_of(tool_calls=[one]) for one in COMPLETE[form]]
    found = accumulated(repaired([first, *rest, chunk_of(reason="tool_calls")], [{"name": "f"}]))[2]
    assert [call["arguments"] or "{}" for call in found] == ["{}", '{"k": "A"}']


@pytest.mark.parametrize(
    "arguments", ["path=x", '```json\n{"a": "x"}\n```', '\ufeff{"a": "x"}', "{'a': 'x'}", '{"a": NaN}', '{"a": "x",}']
)
def test_arguments_that_cannot_be_read_go_out_as_they_came(arguments):
    came = [structured("f", arguments), chunk_of(reason="tool_calls")]
    assert [call["arguments"] for call in accumulated(repaired(came, [{"name": "f"}]))[2]] == [arguments]


def test_a_call_does_not_go_out_under_the_id_of_the_next():
    calls = [fragment("{}"), fragment("", index=1, id="own"), fragment('{"k": "A"}', index=1)]
    calls[:2] = [{**one, "function": {"name": "f", **one["function"]}} for one in calls[:2]]
    text = '<tool_call>{"name": "f", "arguments": {"k": "B"}}</tool_call>'
    chunks = [chunk_of(text), *(chunk_of(tool_calls=[one]) for one in calls), chunk_of(reason="tool_calls")]
    found = {call["arguments"]: call["id"] for call in accumulated(repaired(chunks, ["f"]))[2]}
    assert found['{"k": "A"}'] == "own" != found["{}"]


def test_arguments_at_another_index_than_their_call_go_out_at_its():
    pieces = [{**fragment(piece), "index": 1} for piece in ('{"percent"', ": 40}")]
    for last in (pieces, [fragment(""), *pieces]):
        chunks = [structured("dim", ""), *(chunk_of(tool_calls=[one]) for one in last), chunk_of(reason="tool_calls")]
        _, _, (call,), _ = accumulated(repaired(chunks, ["dim"]))
        assert (call["name"], call["arguments"]) == ("dim", '{"percent": 40}')


def test_a_call_whose_arguments_are_an_empty_object_goes_out_as_it_came_before_what_follows():
    after = [chunk_of("Dimmed."), chunk_of(reason="stop")]
    for chunks in [[PLACEHOLDER, *after], [PLACEHOLDER, chunk_of(reason="tool_calls")]]:
        assert repaired(chunks, ["dim"]) == chunks


def custom(index=0, identity="c1", name="run", **beside):
    """The pieces of a call of a custom tool, whose arguments are text."""
    yield {"index": index, "id": identity, "type": "custom", "custom": {"name": name, "input": ""}, **beside}
    yield {"index": index, "custom": {"input": "print('}')"}}
    yield {"index": index, "custom": {"input": "\n<|x|>"}}


def custom_calls(chunks):
    """Name and text of the calls of custom tools that go out, by their indexes."""
    found = {}
    for chunk in chunks:
        for call in chunk["choices"][0]["delta"].get("tool_calls") or ():
            if "custom" in call:
                assert call.get("type", "custom") == "custom"
                own = found.setdefault(call["index"], ["", ""])
                own[0] += call["custom"].get("name", "")
                own[1] += call["custom"].get("input", "")
    return found


CODE = "print('}')\n<|x|>"


@pytest.mark.parametrize("tools", [["run"], [], None])
@pytest.mark.parametrize("as_objects", [False, True], ids=["dicts", "objects"])
def test_a_call_of_a_custom_tool_passes_as_it_came(tools, as_objects):
    pieces = [*custom(), *custom(1, "c2")]
    chunks = [*(chunk_of(tool_calls=[piece]) for piece in pieces), chunk_of(reason="tool_calls")]
    came = [ChatCompletionChunk.construct(**chunk) for chunk in chunks] if as_objects else chunks
    found = repaired(came, tools)
    assert len(found) == len(came)
    assert all(one is chunk for one, chunk in zip(found, came, strict=True))


def test_a_call_of_a_custom_tool_is_renumbered_after_those_from_the_text():
    chunks = [chunk_of(DIM), *(chunk_of(tool_calls=[piece]) for piece in custom()), chunk_of(reason="stop")]
    found = repaired(chunks, ["dim", "run"])
    assert custom_calls(found) == {1: ["run", CODE]}
    assert found[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_call_of_a_custom_tool_that_may_repeat_one_in_the_text_stays_one_of_a_custom_tool():
    told = '<tool_call>{"name": "run", "arguments": {"input": "2 + 2"}}</tool_call>'
    chunks = [chunk_of(told), *(chunk_of(tool_calls=[piece]) for piece in custom()), chunk_of(reason="tool_calls")]
    assert custom_calls(repaired(chunks, ["run"])) == {1: ["run", CODE]}


@pytest.mark.parametrize("is_first", [True, False])
def test_a_call_of_a_custom_tool_stays_in_a_whole_answer(is_first):
    own = {"id": "c1", "type": "custom", "custom": {"name": "run", "input": CODE}}
    message = {"role": "assistant", "content": None if is_first else DIM, "tool_calls": [own]}
    answer = {"id": "a", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    found = ChatRepair(["dim"]).whole(answer)
    assert found["choices"][0]["message"]["tool_calls"][-1] == own
    assert (found is answer) == is_first


def test_a_recovered_call_has_an_id_that_mistrals_servers_take():
    (call,) = accumulated(repaired([chunk_of(DIM), chunk_of(reason="stop")], ["dim"]))[2]
    assert re.fullmatch("[a-zA-Z0-9]{9}", call["id"])


def test_recovered_calls_have_ids_of_their_own_in_a_conversation():
    calls = '<|tool_call_begin|>functions.dim:0<|tool_call_argument_begin|>{"percent": 1}<|tool_call_end|>'
    section = f"<|tool_calls_section_begin|>{calls}{calls.replace('1', '2')}<|tool_calls_section_end|>"
    called = [call for _ in range(2) for call in accumulated(repaired(turn([section]), ["dim"]))[2]]
    assert [call["arguments"] for call in called] == ['{"percent": 1}', '{"percent": 2}'] * 2
    assert len({call["id"] for call in called}) == 4


@pytest.mark.parametrize("in_one", [True, False], ids=["one chunk", "two"])
@pytest.mark.parametrize("tools", [None, ["play"]], ids=["no tools", "another tool"])
def test_a_structured_call_beside_its_copy_in_the_text_passes_though_its_tool_is_not_offered(in_one, tools):
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "dim", "arguments": '{"percent": 40}'}}
    sent = [chunk_of(DIM, tool_calls=[call])] if in_one else [chunk_of(DIM), chunk_of(tool_calls=[call])]
    text, _, (called,), reasons = accumulated(repaired([*sent, chunk_of(reason="stop")], tools))
    assert (text, reasons) == ("", ["tool_calls"])
    assert (called["id"], called["name"], json.loads(called["arguments"])) == ("call_1", "dim", {"percent": 40})


@pytest.mark.parametrize("order", [(1, 2), (2, 1), (2,)], ids=str)
def test_each_structured_call_of_a_tool_that_is_not_offered_keeps_its_own_arguments(order):
    text = "".join(f'<tool_call>{{"name": "dim", "arguments": {{"percent": {n}}}}}</tool_call>' for n in (1, 2))
    functions = [{"name": "dim", "arguments": f'{{"percent": {n}}}'} for n in order]
    calls = [{"index": at, "id": f"c{order[at]}", "function": one} for at, one in enumerate(functions)]
    sent = [chunk_of(text), *(chunk_of(tool_calls=[call]) for call in calls), chunk_of(reason="tool_calls")]
    called = accumulated(repaired(sent, None))[2]
    assert {call["id"]: json.loads(call["arguments"])["percent"] for call in called} == {f"c{n}": n for n in order}


@pytest.mark.parametrize("text", ["All of them. ", DIM], ids=["words", "a call"])
def test_the_whole_answer_after_its_deltas_passes_as_it_came(text):
    last = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}]}
    deltas = [chunk_of(text), chunk_of(reason="stop")]
    found, calls = [], []
    for chunk in repaired([*deltas, last], ["dim"]):
        found.append(chunk["choices"][0].get("delta", {}))
        calls += found[-1].get("tool_calls", [])
    assert "".join(delta.get("content") or "" for delta in found) == ("" if text == DIM else text)
    assert len(calls) == (text == DIM)


def test_a_finish_reason_that_spells_null_holds_a_call_together():
    pieces = [chunk_of(DIM[at : at + 9], "null") for at in range(0, len(DIM), 9)]
    text, _, calls, _ = accumulated(repaired([*pieces, chunk_of(reason="stop")], ["dim"]))
    assert (text, [call["name"] for call in calls]) == ("", ["dim"])


@pytest.mark.parametrize("text", [DIM, "<think>Hm.</think>"], ids=["a call", "thoughts alone"])
def test_a_whole_answer_whose_finish_reason_spells_null_has_one(text):
    choice = {"index": 0, "finish_reason": "null", "message": {"role": "assistant", "content": text}}
    (found,) = ChatRepair(["dim"]).whole({"choices": [choice]})["choices"]
    assert found["finish_reason"] == ("tool_calls" if text == DIM else "stop")


def test_arguments_that_stand_in_a_name_are_not_logged(caplog):
    repaired(turn(['<invoke name="login password=hunter2"></invoke>']), ["dim"])
    assert "login..." in caplog.text
    assert "hunter2" not in caplog.text


def test_a_refusal_stays_as_it_came():
    chunks = [chunk_of(refusal="I cannot"), chunk_of(refusal=" do that."), chunk_of(reason="stop")]
    assert repaired(chunks, ["dim"]) == chunks


def test_each_choice_is_repaired_by_itself():
    first, second = chunk_of(DIM), chunk_of("Good night.")
    second["choices"][0]["index"] = 1
    both = {**first, "choices": [*first["choices"], *second["choices"]]}
    ends = [
        {**chunk_of(reason="stop"), "choices": [{"index": index, "delta": {}, "finish_reason": "stop"}]}
        for index in (0, 1)
    ]
    found = repaired([both, *ends], ["dim"])
    assert [call["name"] for call in accumulated(found)[2]] == ["dim"]
    assert accumulated(found, index=1) == ("Good night.", "", [], ["stop"])


def test_log_probabilities_go_where_the_text_has_changed_and_other_fields_stay():
    chunk = chunk_of(DIM + " Done.") | {"system_fingerprint": "f"}
    chunk["choices"][0] |= {"logprobs": {"content": []}, "token_ids": [1]}
    first, *_, last = ChatRepair(["dim"]).feed(chunk)
    assert first["system_fingerprint"] == last["system_fingerprint"] == "f"
    assert "logprobs" not in last["choices"][0]
    assert last["choices"][0]["token_ids"] == [1]


NAMES = st.sampled_from(
    (
        "choices",
        "index",
        "delta",
        "message",
        "content",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "id",
        "role",
        "error",
    )
)
LEAVES = (
    st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from(["", "stop", "tool", "dim", "{}", DIM, "<think>x"])
)
VALUES = st.recursive(
    LEAVES, lambda of: st.lists(of, max_size=3) | st.dictionaries(NAMES, of, max_size=4), max_leaves=9
)


def fields(**of):
    return VALUES | st.fixed_dictionaries({}, optional=of)


CALLS = st.lists(fields(index=VALUES, id=VALUES, function=fields(name=VALUES, arguments=VALUES)), max_size=2)
DELTAS = fields(content=VALUES, tool_calls=VALUES | CALLS, role=VALUES, reasoning=VALUES, function_call=VALUES)
CHOICES = st.lists(fields(index=VALUES, delta=DELTAS, message=DELTAS, finish_reason=VALUES), max_size=3)


@given(st.lists(fields(choices=VALUES | CHOICES, usage=VALUES, error=VALUES), max_size=5))
def test_nothing_that_a_server_sends_raises(chunks):
    events = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
    sse_repaired(events, ["dim"])  # of which nothing may be left, if it is neither text nor a call that can be read
    for chunk in chunks:
        assert sse_repaired([json.dumps(chunk).encode()], ["dim"])


def test_a_call_with_bytes_that_are_no_text_is_still_a_call():
    broken = DIM.encode().replace(b"percent", b"per\xc3cent")
    text = json.dumps(chunk_of("?"), ensure_ascii=False).encode().replace(b"?", broken.replace(b'"', b'\\"'))
    sent = b"data: " + text + b"\n\ndata: " + json.dumps(chunk_of(reason="stop")).encode() + b"\n\n"
    found = b"".join(stream.repair_sync([sent], tools=["dim"]))
    assert b"<tool_call>" not in found
    assert b'"name":"dim"' in found


def test_an_event_that_is_too_long_raises():
    repair = SseRepair(ChatRepair(["dim"]))
    repair.feed(b"data: ")
    with pytest.raises(StreamValueError, match="4194304 bytes"):
        repair.feed(b"x" * 2**22)


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n", b"\n\n\n\n"], ids=repr)
def test_what_stands_before_an_object_hides_it_at_no_cut(before):
    answer = before + DIM_ANSWER.encode()
    for cut in range(len(before) + 2):
        found = json.loads(sse_repaired([answer[:cut], answer[cut:]], ["dim"]))
        assert found["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "dim"


def test_line_ends_that_keep_an_answer_alive_are_not_held():
    repair = SseRepair(ChatRepair(["dim"]))
    assert [repair.feed(b"\n\n\n") for _ in range(3)] == [[b"\n\n\n"]] * 3


def test_an_object_that_is_too_long_passes(monkeypatch, caplog):
    monkeypatch.setattr("stream.repairing.sse._LONGEST_OBJECT", 1000)
    parts = [b'{"choices": "', b"x" * 1000, b"y"]
    repair = SseRepair(ChatRepair(["dim"]))
    assert b"".join([out for part in parts for out in repair.feed(part)] + repair.close()) == b"".join(parts)
    assert "passes without repair" in caplog.text


@pytest.mark.parametrize("cut", [1, 7, 10_000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=repr)
def test_other_fields_line_ends_and_data_of_several_lines_are_read_as_events(end, cut):
    chunks = [json.dumps(one, indent=1) for one in turn(["Dark. " + DIM[:20], DIM[20:]])]
    events = [["id: 7", "event: message", *(f"data: {line}" for line in one.splitlines()), ""] for one in chunks]
    sent = (
        "\ufeff: hello"
        + end
        + end
        + "".join(line + end for event in events for line in event)
        + f"data: [DONE]{end}{end}"
    )
    data = sent.encode()
    repair = SseRepair(ChatRepair(["dim"]))
    out = [one for at in range(0, len(data), cut) for one in repair.feed(data[at : at + cut])] + repair.close()
    lines = b"".join(out).decode().replace("\r\n", "\n").replace("\r", "\n")
    found = []
    for event in lines.split("\n\n"):
        data_of = [line[5:] for line in event.split("\n") if line.startswith("data:")]
        if not data_of:
            assert not event.strip() or event.endswith(": hello"), "an event without data"
        elif data_of != [" [DONE]"]:
            found.append(json.loads("\n".join(data_of)))
    text, _, calls, reasons = accumulated(found)
    assert (text.strip(), [call["name"] for call in calls], reasons) == ("Dark.", ["dim"], ["tool_calls"])


def test_a_read_that_ends_within_a_line_end_leaves_no_line_that_others_read_differently():
    # Many readers split lines at line feeds alone: a carriage return before "data:" hides an event from them.
    text = ["Yes. ", "Now <", "b. Good night. ", DIM]
    data = b"".join(b"data: " + json.dumps(one).encode() + b"\r\n\r\n" for one in turn(text))
    for cut in range(1, len(data)):
        repair = SseRepair(ChatRepair(["dim"]))
        out = b"".join([*repair.feed(data[:cut]), *repair.feed(data[cut:]), *repair.close()])
        lines = [line.removesuffix(b"\r") for line in out.split(b"\n")]
        assert not any(b"\r" in line for line in lines)
        found = accumulated(json.loads(line[6:]) for line in lines if line.startswith(b"data: "))
        assert (found[0].strip(), [call["name"] for call in found[2]]) == ("Yes. Now <b. Good night.", ["dim"])


def test_half_a_pair_of_surrogates_raises_nothing():
    chunks = [chunk_of("<think>\ud83d"), chunk_of("\ude00</think>Yes."), chunk_of(reason="stop")]
    sent = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in chunks)
    text, thoughts, _, _ = accumulated(
        [json.loads(line[6:]) for line in sse_repaired([sent], []).split(b"\n\n") if line]
    )
    assert (text, len(thoughts)) == ("Yes.", 2)


STRUCTURED = {"index": 0, "id": "a", "type": "function", "function": {"name": "dim", "arguments": ""}}
PIECES = [{"index": 0, "function": {"arguments": part}} for part in ('{"percent"', ": 5}")]


@pytest.mark.parametrize(
    "deltas",
    [
        [{"content": DIM}, {"tool_calls": [STRUCTURED]}, *({"tool_calls": [piece]} for piece in PIECES)],
        [{"tool_calls": [STRUCTURED, {**STRUCTURED, "index": 1, "id": "b"}]},
         *({"tool_calls": [piece, {**piece, "index": 1}]} for piece in PIECES)],
        [{"tool_calls": [STRUCTURED]}, {"content": "So.", "tool_calls": [PIECES[0]]}, {"tool_calls": [PIECES[1]]}],
    ],
    ids=["after a call in the text", "two in a chunk", "text beside"],
)  # fmt: skip
def test_the_openai_packages_own_accumulator_takes_what_comes(deltas):
    chunks = [{**chunk_of(**delta), "created": 1} for delta in deltas] + [
        {**chunk_of(reason="tool_calls"), "created": 1}
    ]
    state = ChatCompletionStreamState(input_tools=[{"type": "function", "function": {"name": "dim"}}])
    for clean in stream.repair_sync([ChatCompletionChunk.model_validate(one) for one in chunks], tools=["dim"]):
        state.handle_chunk(clean)
    (choice,) = state.get_final_completion().choices
    assert {call.function.name for call in choice.message.tool_calls} == {"dim"}
    assert {call.function.arguments for call in choice.message.tool_calls} >= {'{"percent": 5}'}


def test_a_megabyte_without_a_marker_is_not_held():
    repair = ChatRepair(["dim"])
    chunk = chunk_of("Good night. " * 90_000)
    assert repair.feed(chunk) == [chunk]
    assert repair.feed(chunk_of("x")) == [chunk_of("x")]


@pytest.mark.parametrize(
    ("body", "offered"),
    [
        ({}, None),
        ({"tools": [{"type": "function", "function": {"name": "dim"}}]}, {"dim"}),
        ({"tools": [{"type": "function", "function": {"name": "dim"}}], "tool_choice": "none"}, set()),
        ({"tools": [{"type": "custom", "custom": {"name": "run"}}, "odd", {"type": "function"}]}, {"run"}),
        ({"functions": [{"name": "dim"}]}, {"dim"}),
    ],
)
def test_a_request_says_what_is_offered(body, offered):
    assert ChatRepair.of_request(body).offered == offered


@pytest.mark.parametrize("asked", [{"response_format": {"type": "json_schema"}}, {"structured_outputs": {"json": {}}}])
def test_json_that_the_request_asks_for_stays_though_it_looks_like_a_call(asked):
    chunk = turn(['{"name": "dim", "arguments": {}}'])[1]
    assert ChatRepair.of_request(asked).feed(chunk) == [chunk]
    assert ChatRepair.of_request({"response_format": {"type": "text"}}).feed(chunk) != [chunk]


FOR_JSON = {"response_format": {"type": "json_schema"}}
JSON_TEXTS = [
    '{"name": "dim", "arguments": {"percent": 5}}',
    '{"a": "<think>b</think> <tool_call>"}',
    f"[{json.dumps(DIM)}]",
]


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("data", JSON_TEXTS)
@pytest.mark.parametrize(
    ("start", "before", "thought"),
    [
        ("text", "", ""),
        ("text", '<think>Hm { "a" < b.</think>', 'Hm { "a" < b.'),
        ("reasoning", "", ""),
        ("reasoning", "Hm, <tool_call> then.</think>", "Hm, <tool_call> then."),
        ("text", "<mm:think>Hm.</mm:think>", "Hm."),
        ("text", "<|channel>thought\nHm.<channel|>", "Hm."),
        ("reasoning", "Hm, <tool_call> then.</thought>", "Hm, <tool_call> then."),
        ("reasoning", "Hm, {x} then.<channel|>", "Hm, {x} then."),
    ],
)
def test_thoughts_before_json_that_the_request_asks_for_leave_it_and_it_stays(start, before, thought, data, size):
    text = before + data
    options = {"start": start, "calls_in_text": False}
    found = repaired(turn([text[at : at + size] for at in range(0, len(text), size)]), ["dim"], **options)
    assert accumulated(found) == (data, thought, [], ["stop"])
    body = {**FOR_JSON, "tools": [{"type": "function", "function": {"name": "dim"}}]}
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
    whole = ChatRepair.of_request(body, start=start).whole(answer)
    message = whole["choices"][0]["message"]
    assert (message["content"], message.get("reasoning_content", "")) == (data, thought)
    assert (whole is answer) == (not thought)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_json_stays_though_no_end_of_the_thoughts_before_it_is_known(size):
    text, data = "Hm, {x} then.</analysis>", '{"a": [1, {}]}'
    pieces = [(text + data)[at : at + size] for at in range(0, len(text + data), size)]
    repair = ChatRepair.of_request(FOR_JSON, start="reasoning")
    found = [clean for chunk in turn(pieces) for clean in repair.feed(chunk)] + repair.close()
    assert accumulated(found) == (data, text, [], ["stop"])
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": text + data}}]}
    message = ChatRepair.of_request(FOR_JSON, start="reasoning").whole(answer)["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == (data, text)


@given(
    st.lists(st.text(alphabet='{}[]"<think>/\\ \n,`', min_size=1), min_size=1), st.sampled_from(["text", "reasoning"])
)
def test_each_chunk_of_json_that_the_request_asks_for_passes_at_once(pieces, start):
    chunks = turn(["{", *pieces])
    repair = ChatRepair.of_request(FOR_JSON, start=start)
    for chunk in chunks:
        (same,) = repair.feed(chunk)
        assert same is chunk
    assert repair.close() == []


@given(st.lists(st.text(alphabet='{}[]"<think>/ TH', min_size=1)), st.sampled_from(["text", "reasoning"]))
def test_text_and_thoughts_of_json_that_was_asked_for_are_those_of_the_reader(pieces, start):
    repair, reader = ChatRepair.of_request(FOR_JSON, start=start), OpenAIReader(calls_in_text=False, start=start)
    chunks = turn(pieces)
    text, thoughts, _, _ = accumulated([clean for chunk in chunks for clean in repair.feed(chunk)])
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    assert text == "".join(event.text for event in events if isinstance(event, stream.TextDelta))
    assert thoughts == "".join(event.text for event in events if isinstance(event, stream.ReasoningDelta))


def test_each_choice_of_json_that_was_asked_for_has_its_own_thoughts():
    repair, found = ChatRepair.of_request(FOR_JSON, start="reasoning"), []
    for texts in [("Hm", "{"), (".</think>", '"a": '), ("[1]", "2}")]:
        choices = [{"index": at, "delta": {"content": text}, "finish_reason": None} for at, text in enumerate(texts)]
        found += repair.feed({"id": "c", "choices": choices})
    assert [accumulated(found, index)[:2] for index in (0, 1)] == [("[1]", "Hm."), ('{"a": 2}', "")]


@pytest.mark.parametrize("text", [DIM, "Good night.", "So. " + DIM, "<think>Hm.</think>Yes."])
def test_a_whole_answer_is_repaired_alike(text):
    message = {"role": "assistant", "content": text, "refusal": None}
    answer = {"id": "a", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {}}
    found = ChatRepair(["dim"]).whole(answer)
    streamed, thoughts, calls, (reason,) = accumulated(repaired(turn([text]), ["dim"]))
    choice = found["choices"][0]
    assert (choice["message"]["content"] or "").strip() == streamed.strip()
    assert choice["message"].get("reasoning_content", "") == thoughts
    assert choice["finish_reason"] == reason
    assert [call["function"]["name"] for call in choice["message"].get("tool_calls", ())] == [c["name"] for c in calls]
    assert (found is answer) == (text == "Good night.")


def test_a_stream_is_closed_and_its_failure_is_the_caller_s():
    closed = []

    async def source():
        try:
            yield chunk_of("Let me see <b")
            yield chunk_of('<tool_call>{"name": "dim", "argum')
            raise ConnectionError("gone")
        finally:
            closed.append(True)

    async def read():
        found = []
        try:
            async for chunk in stream.repair(source(), tools=["dim"]):
                found.append(chunk)  # noqa: PERF401  (what came before the failure counts)
        except ConnectionError:
            return accumulated(found)[0]

    assert asyncio.run(read()) == "Let me see <b"
    assert closed == [True]


def test_a_stream_that_is_left_early_is_closed():
    closed = []

    def source():
        try:
            yield from turn(["Good ", "night."])
        finally:
            closed.append(True)

    chunks = stream.repair_sync(source())
    next(chunks)
    chunks.close()
    assert closed == [True]


def test_mistakes_raise_when_they_are_made():
    with pytest.raises(StreamTypeError, match="asynchronous iterable"):
        stream.repair([])
    with pytest.raises(StreamTypeError, match="iterable"):
        stream.repair_sync(5)
    with pytest.raises(StreamValueError, match="'hide' or 'run'"):
        stream.repair_sync([], told="speak")
    with pytest.raises(StreamTypeError, match="dict, or an object"):
        ChatRepair([]).feed(SimpleNamespace(choices=[{"delta": {"content": "<think>x</think>y"}}]))
