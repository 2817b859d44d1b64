"""The decisions about providers' streams, one by one, on messages that no recording holds."""

import base64
import json

import pytest

import stream
from stream.events import (
    AudioDelta,
    Finish,
    Interrupted,
    ReasoningDelta,
    ServerError,
    StreamFailed,
    TaskStatus,
    TextDelta,
    ToolCallCancelled,
    ToolCallEnd,
    ToolCallStart,
    TranscriptDelta,
    Usage,
)


def read(*messages):
    return list(stream.read_sync(messages))


def response(kind, **fields):
    return {"type": f"response.{kind}", **fields}


def added(item, at=0, **fields):
    return response("output_item.added", output_index=at, item=item, **fields)


def done(item, at=0, **fields):
    return response("output_item.done", output_index=at, item=item, **fields)


def call(call_id="c", name="f", arguments="", **fields):
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **fields}


def piece(delta, at=0, **fields):
    return response("function_call_arguments.delta", output_index=at, delta=delta, **fields)


def said(text, at=0, **fields):
    return response("output_text.delta", output_index=at, content_index=0, delta=text, **fields)


def ended(kind="completed", **fields):
    return response(kind, response={"status": kind, **fields})


def text_of(events):
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def ends(events):
    return [
        (event.tool_name, event.tool_call_id, event.arguments if event.status == "ok" else event.status)
        for event in events
        if isinstance(event, ToolCallEnd)
    ]


# --- OpenAI Responses -------------------------------------------------------------------------------------------------


def test_unknown_events_items_and_parts_say_nothing():
    odd = [
        response("of_tomorrow", delta="no"), added({"type": "shell_call", "name": "no"}), {"type": "keepalive"},
        done({"type": "message", "content": [{"type": "hologram", "text": "no"}]}), response("output_text.delta"),
        response("output_text.delta", delta=5), added(None), added("no"), done({"type": ["no"]}), {"type": 5}, {},
        {"type": "response.output_item.added", "item": {"type": "mcp_list_tools", "name": "no"}},
    ]  # fmt: skip
    assert read(said("Yes."), *odd, ended()) == [TextDelta("Yes."), Finish("completed")]


def test_a_call_is_announced_when_its_name_has_come():
    events = read(
        said(""), added(call(name="")), piece('{"a"'), added(call(name="f")), piece(": 1}"), done(call()), ended()
    )
    assert [type(event) for event in events] == [ToolCallStart, ToolCallEnd, Finish]
    assert ends(events) == [("f", "c", {"a": 1})]


def test_pieces_belong_to_their_call_by_id_else_by_item_else_by_place():
    events = read(
        added(call("a", id="i")), added(call("b", id="j"), 1), piece('{"n": 1', item_id="i"),
        piece('{"n": 2', 1, item_id="?"),
        piece("}", 1, item_id="i"), piece("}", 1), done(call("b"), 1), done(call("a")), ended(),
    )  # fmt: skip
    assert ends(events) == [("f", "a", {"n": 1}), ("f", "b", {"n": 2})]


def test_another_call_id_is_another_call_also_at_a_place_that_is_taken():
    events = read(
        added(call("a")), done(call("a", arguments="{}")), added(call("b")), done(call("b", arguments="{}")), ended()
    )
    assert ends(events) == [("f", "a", {}), ("f", "b", {})]


@pytest.mark.parametrize(
    "messages",
    [
        [piece('{"a": 1}'), done(call(arguments=""))],
        [done(call(arguments='{"a": 1}'))],
        [piece('{"a'), response("function_call_arguments.done", output_index=0, arguments='{"a": 1}'), done(call())],
        [piece('{"a'), ended(output=[call(arguments='{"a": 1}')])],
        [piece('{"a": 1}')],
    ],
    ids=["pieces", "item", "done", "snapshot", "no end"],
)
def test_whole_arguments_count_where_no_piece_came_or_the_call_is_open(messages):
    assert ends(read(added(call()), *messages, ended())) == [("f", "c", {"a": 1})]


def test_whole_text_counts_as_far_as_it_goes_beyond_its_pieces():
    part = {"type": "output_text", "text": "Hello there."}
    whole = [
        response("output_text.done", output_index=0, content_index=0, text="Hello the"),
        response("content_part.done", output_index=0, content_index=0, part=part),
        done({"type": "message", "content": [part]}),
    ]
    assert text_of(read(said("Hel"), *whole, ended(output=[{"type": "message", "content": [part]}]))) == "Hello there."
    assert text_of(read(said("Bye"), *whole, ended())) == "Bye", "no continuation of what was said"


def test_the_snapshot_gives_messages_and_calls_only_where_nothing_came():
    output = [{"type": "message", "content": [{"type": "output_text", "text": "Hi."}]}, call("x", arguments='{"a": 1}')]
    events = read(response("created"), ended(output=output))
    assert (text_of(events), ends(events)) == ("Hi.", [("f", "x", {"a": 1})])
    events = read(said("Ho."), ended(output=output))
    assert (text_of(events), ends(events)) == ("Ho.", [("f", "x", {"a": 1})])


def numbered(*messages):
    return [{**message, "sequence_number": number} for number, message in enumerate(messages)]


def test_events_of_a_resumed_response_are_read_once():
    events = numbered(
        response("created"), said("Hi"), added(call(), 1), piece("{}", 1), said(" there"), done(call(), 1)
    )
    assert read(*events[:4], *events[2:], *events[5:], ended()) == read(*events, ended())


@pytest.mark.parametrize("number", [0, None])
def test_a_server_that_does_not_number_its_events_may_repeat_itself(number):
    events = [{**said("ha"), "sequence_number": number} for _ in range(3)]
    assert text_of(read(*events, ended())) == "hahaha"
    first = {**said("ho"), "sequence_number": number}
    assert text_of(read(first, *events, ended())) == "hohahaha"


def test_a_custom_tools_text_is_its_input_and_no_json():
    item = {"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": ""}
    pieces = [response("custom_tool_call_input.delta", output_index=0, delta=text) for text in ("SELECT ", '"a"')]
    assert ends(read(added(item), *pieces, done(item), ended())) == [("sql", "c", {"input": 'SELECT "a"'})]
    assert ends(read(added(item), *pieces)) == [("sql", "c", "incomplete")]


def test_a_refusal_is_spoken_and_reasoning_is_not():
    refusal = response("refusal.delta", output_index=0, content_index=0, delta="I cannot.")
    summary = response("reasoning_summary_text.delta", output_index=1, summary_index=0, delta="Hm.")
    assert read(refusal, summary, ended()) == [TextDelta("I cannot."), ReasoningDelta("Hm."), Finish("completed")]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ("", {}),
        ("null", {}),
        ('{"a": ', "incomplete"),
        ('{"a": tr', "incomplete"),
        ("oops", "malformed"),
        ("[1]", "malformed"),
    ],
)
def test_arguments_are_empty_cut_off_or_no_json(arguments, status):
    events = read(added(call()), piece(arguments), done(call(arguments=arguments)), ended())
    assert ends(events) == [("f", "c", status)]


def test_open_calls_are_incomplete_unless_the_response_completes():
    opened = [added(call()), piece('{"a": 1}')]
    assert ends(read(*opened, ended())) == [("f", "c", {"a": 1})]
    for end in ([ended("incomplete")], [ended("cancelled")], [], [{"type": "error", "message": "x"}]):
        assert ends(read(*opened, *end)) == [("f", "c", "incomplete")]
    assert ends(read(*opened, done(call(status="incomplete")), ended())) == [("f", "c", "incomplete")]


def test_a_servers_tool_is_a_task_by_its_name_and_never_a_call():
    search = {"type": "web_search_call", "id": "w", "status": "completed"}
    mcp = {"type": "mcp_call", "id": "m", "name": "roll", "arguments": "{}", "error": "boom", "status": "failed"}
    events = read(added(search), done({**search, "id": "other"}), added(mcp, 1), done(mcp, 1), ended())
    assert [(event.task_id, event.status, event.tool_name) for event in events[:-1]] == [
        ("w", "working", "web_search"), ("w", "completed", "web_search"),
        ("m", "working", "roll"), ("m", "failed", "roll"),
    ]  # fmt: skip


def test_the_reason_of_an_incomplete_response_is_its_own_and_its_usage_is_counted():
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    events = read(said("Hi"), ended("incomplete", incomplete_details={"reason": "max_output_tokens"}, usage=usage))
    assert events[1:] == [Usage(3, 4, 7), Finish("max_output_tokens")]


def test_a_raw_call_in_any_formats_text_is_a_call():
    raw = ['Wait. <tool_call>{"name": "f", ', '"arguments": {"a": 1}}</tool_call>']
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    ways = {
        "responses": [*map(said, raw), ended()],
        "realtime": [*(said(text, event_id="e") for text in raw), response("done", event_id="e", response={})],
        "anthropic": [
            block, *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
                for text in raw),
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        ],
        "gemini": [
            *({"candidates": [{"content": {"parts": [{"text": text}]}}]} for text in raw),
            {"candidates": [{"finishReason": "STOP"}]},
        ],
        "live": [
            *({"serverContent": {"modelTurn": {"parts": [{"text": text}]}}} for text in raw),
            {"serverContent": {"turnComplete": True}},
        ],
    }  # fmt: skip
    for name, messages in ways.items():
        events = read(*messages)
        assert text_of(events).strip() == "Wait.", name
        assert ends(events) == [("f", "", {"a": 1})], name
        assert events[0] == TextDelta("Wait. "), f"{name} held the text back"


# --- Realtime ---------------------------------------------------------------------------------------------------------


def rt(kind, **fields):
    return {"type": kind, "event_id": "e", **fields}


def rt_done(status="completed", **fields):
    return rt("response.done", response={"id": "r", "status": status, **fields})


OPENED = rt("response.created", response={"id": "r", "object": "realtime.response"})


def test_items_of_the_conversation_say_nothing():
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Old."}]}
    events = read(
        *(rt(f"conversation.item.{kind}", item=old) for kind in ("added", "done", "created") for old in (item, call()))
    )
    assert events == []


def test_an_error_of_a_session_does_not_end_it():
    events = read(
        rt("error", error={"type": "invalid_request_error", "code": None, "message": "No."}), OPENED,
        rt_done("failed", status_details={"type": "failed", "error": {"code": "server_error", "message": "Ow."}}),
        OPENED, said("Hi.", response_id="r", event_id="e"), rt_done(),
    )  # fmt: skip
    assert events == [
        ServerError("No.", "invalid_request_error"), ServerError("Ow.", "server_error"), Finish("failed"),
        TextDelta("Hi."), Finish("completed"),
    ]  # fmt: skip


def test_an_interruption_comes_once_for_the_response_that_is_then_cancelled():
    started = rt("input_audio_buffer.speech_started")
    cancelled = rt_done("cancelled", status_details={"type": "cancelled", "reason": "turn_detected"})
    assert read(OPENED, started, cancelled, started) == [Interrupted(), Finish("cancelled"), Interrupted()]


def test_a_session_that_closes_between_responses_is_complete_and_one_within_is_not():
    assert read(rt("session.created", session={})) == []
    assert read(OPENED, rt_done()) == [Finish("completed")]
    assert read(OPENED)[-1].code == "unfinished"
    assert read(OPENED, rt("response.created", response={"id": "s"}), rt_done())[-1].code == "unfinished"


def test_calls_of_two_open_responses_end_with_their_own():
    other = rt("response.created", response={"id": "s"})
    events = read(
        OPENED, other, added(call("a"), response_id="r", event_id="e"), added(call("b"), response_id="s", event_id="e"),
        piece('{"n": 2', response_id="s"), rt_done(), piece("}", response_id="s"),
        rt("response.done", response={"id": "s", "status": "completed"}),
    )  # fmt: skip
    assert ends(events) == [("f", "a", {}), ("f", "b", {"n": 2})]


def test_what_the_user_said_comes_when_it_is_complete():
    kind = "conversation.item.input_audio_transcription"
    events = read(
        rt(f"{kind}.delta", delta="He"), rt(f"{kind}.completed", transcript="Hel", status="in_progress"),
        rt(f"{kind}.updated", transcript="Hello"), rt(f"{kind}.completed", transcript="Hello."),
    )  # fmt: skip
    assert events == [TranscriptDelta("Hello.", "user")]


@pytest.mark.parametrize("name", ["response.output_audio.delta", "response.audio.delta"])
@pytest.mark.parametrize(
    ("session", "mime", "pcm"),
    [
        ({}, "audio/pcm;rate=24000", b"\xff\x7f\x00"),
        (
            {"audio": {"output": {"format": {"type": "audio/pcm", "rate": 16000}}}},
            "audio/pcm;rate=16000",
            b"\xff\x7f\x00",
        ),
        ({"audio": {"output": {"format": {"type": "audio/pcmu"}}}}, "audio/pcm;rate=8000", b"\x00\x00\x00\x00\x84\x82"),
        ({"output_audio_format": "g711_alaw"}, "audio/pcm;rate=8000", b"\x50\x03\xb0\xfc\x80\xea"),
        ({"output_audio_format": "pcm16"}, "audio/pcm;rate=24000", b"\xff\x7f\x00"),
    ],
    ids=["default", "16 kHz", "µ-law", "A-law", "beta"],
)
def test_audio_is_decoded_by_the_format_of_the_session(name, session, mime, pcm):
    audio = rt(name, delta=base64.b64encode(b"\xff\x7f\x00").decode())
    assert read(rt("session.updated", session=session), audio) == [AudioDelta(pcm, mime)]
    assert read(OPENED, rt(name, delta="!"), rt_done())[-1] == Finish("completed")


def test_text_of_a_response_without_text_comes_from_its_snapshot():
    output = [{"type": "message", "content": [{"type": "output_audio", "transcript": "Hi."}]}]
    assert read(OPENED, rt_done(output=output)) == [TranscriptDelta("Hi.", "assistant"), Finish("completed")]


# --- Anthropic --------------------------------------------------------------------------------------------------------


def block(index=0, **content):
    return {"type": "content_block_start", "index": index, "content_block": content}


def delta(index=0, **content):
    return {"type": "content_block_delta", "index": index, "delta": content}


def stop(index=0):
    return {"type": "content_block_stop", "index": index}


def reason(name="tool_use"):
    return {"type": "message_delta", "delta": {"stop_reason": name}, "usage": {"output_tokens": 2}}


def test_a_call_made_by_the_servers_code_is_the_clients_and_its_input_is_whole():
    made = block(type="tool_use", id="t", name="f", input={"a": 1}, caller={"type": "code_execution_20250825"})
    assert ends(read(made, stop(), reason())) == [("f", "t", {"a": 1})]


@pytest.mark.parametrize(
    ("written", "status"),
    [('{"a": 1}', {"a": 1}), ('{"a": ', "incomplete"), ("{oops}", "malformed"), ('{"a": 1}}', "malformed")],
)
def test_a_blocks_json_is_whole_cut_off_or_none_when_it_stops(written, status):
    opened = [block(type="tool_use", id="t", name="f", input={}), delta(type="input_json_delta", partial_json=written)]
    assert ends(read(*opened, stop(), reason("max_tokens"))) == [("f", "t", status)]
    assert ends(read(*opened)) == [("f", "t", "incomplete")]


def test_results_of_server_tools_end_their_tasks_by_id():
    events = read(
        block(0, type="server_tool_use", id="s", name="web_search"), stop(0),
        block(1, type="web_search_tool_result", tool_use_id="s", content={"type": "web_search_tool_result_error"}),
        stop(1),
        block(2, type="mcp_tool_use", id="m", name="roll"), stop(2),
        block(3, type="mcp_tool_result", tool_use_id="m", is_error=False, content=[{"type": "text", "text": "6"}]),
        stop(3),
        block(4, type="text", text="Six."), delta(4, type="citations_delta", citation={}), stop(4), reason("end_turn"),
    )  # fmt: skip
    assert [event for event in events if isinstance(event, TaskStatus)] == [
        TaskStatus("s", "working"), TaskStatus("s", "failed"), TaskStatus("m", "working"), TaskStatus("m", "completed"),
    ]  # fmt: skip
    assert text_of(events) == "Six."


def test_pieces_in_blocks_of_another_type_say_nothing():
    text = {"type": "text_delta", "text": "no"}
    thinking = {"type": "thinking_delta", "thinking": "no"}
    kinds = ("compaction", "fallback", "redacted_thinking", "of_tomorrow", "tool_use")
    events = read(
        *(message for kind in kinds for message in (block(type=kind), delta(**text), delta(**thinking), stop())),
        reason(),
    )
    assert [event for event in events if isinstance(event, TextDelta | ReasoningDelta)] == []


def test_an_anthropic_stream_without_a_stop_reason_is_unfinished():
    assert read(block(type="text", text="Hi."), stop(), {"type": "message_stop"})[-1].code == "unfinished"


# --- Gemini and Live --------------------------------------------------------------------------------------------------


def answer(*parts, **candidate):
    return {"candidates": [{"content": {"parts": list(parts)}, **candidate}]}


def part(**fields):
    return {"functionCall": fields}


def test_other_candidates_are_not_read():
    other = {"content": {"parts": [{"text": "no"}]}, "index": 1, "finishReason": "STOP"}
    events = read(answer({"text": "Yes."}), {"candidates": [other]}, answer(finishReason="MAX_TOKENS"))
    assert events == [TextDelta("Yes."), Finish("MAX_TOKENS")]


def test_equal_calls_in_parts_of_their_own_are_two_and_a_repeated_id_is_one():
    events = read(
        answer(part(name="f"), part(name="f"), part(name="g", id="1"), part(name="g", id="1")),
        answer(finishReason="STOP"),
    )
    assert ends(events) == [("f", "", {}), ("f", "", {}), ("g", "1", {})]


def test_a_malformed_call_is_an_end_without_a_name():
    events = read(
        answer({"text": "Hm."}), answer(finishReason="MALFORMED_FUNCTION_CALL", finishMessage="Malformed: no")
    )
    assert events == [
        TextDelta("Hm."),
        ToolCallEnd("", arguments_json="", status="malformed"),
        Finish("MALFORMED_FUNCTION_CALL"),
    ]


def streamed(*pieces, goes_on=True):
    return answer(part(partialArgs=list(pieces), **({"willContinue": True} if goes_on else {})))


START = answer(part(name="f", willContinue=True))
END = answer(part())


@pytest.mark.parametrize(
    ("pieces", "arguments"),
    [
        ([{"jsonPath": "$.a", "numberValue": 5}, {"jsonPath": "$.b", "boolValue": False}], {"a": 5, "b": False}),
        ([{"jsonPath": "$.a", "nullValue": None}, {"jsonPath": "$['b c'][0]", "stringValue": ""}],
            {"a": None, "b c": [""]}),
        ([{"jsonPath": "$.a", "numberValue": 5, "willContinue": True}, {"jsonPath": "$.a", "stringValue": "x"}],
            {"a": "x"}),
        ([{"jsonPath": "$.a[0]", "stringValue": "x", "willContinue": True},
          {"jsonPath": "$.a[1]", "stringValue": "y", "willContinue": True}, {"jsonPath": "$.a[1]", "stringValue": "z"}],
            {"a": ["x", "yz"]}),
        ([{"jsonPath": "$.a[0].b[0]", "stringValue": "x", "willContinue": True},
          {"jsonPath": "$.a[1].b[0]", "numberValue": 5}], {"a": [{"b": ["x"]}, {"b": [5]}]}),
        ([{"jsonPath": "$.a[0]", "stringValue": "x", "willContinue": True}, {"jsonPath": "$.b", "boolValue": True}],
            {"a": ["x"], "b": True}),
        ([{"jsonPath": "$.a[1]", "numberValue": 5}], "malformed"),
        ([{"jsonPath": "$.a", "numberValue": 5}, {"jsonPath": "$.a.b", "numberValue": 5}], "malformed"),
        ([{"jsonPath": "a", "numberValue": 5}], "malformed"),
        ([{"jsonPath": "$.a[999999999]", "numberValue": 5}], "malformed"),
        ([{"jsonPath": "$" + ".a" * 5000, "numberValue": 5}], "malformed"),
    ],
)  # fmt: skip
def test_streamed_arguments_are_put_together_by_their_paths(pieces, arguments):
    assert ends(read(START, streamed(*pieces), END, answer(finishReason="STOP"))) == [("f", "", arguments)]
    assert ends(read(START, streamed(*pieces, goes_on=False), answer(finishReason="STOP"))) == [("f", "", arguments)]


def test_a_streamed_call_that_does_not_end_is_incomplete():
    going = streamed({"jsonPath": "$.a", "stringValue": "x", "willContinue": True})
    for end in ([answer(finishReason="STOP")], [], [answer(part(name="g")), answer(finishReason="STOP")]):
        assert ends(read(START, going, *end))[0] == ("f", "", "incomplete")


def test_the_servers_code_is_a_task():
    run = [
        {"executableCode": {"code": "1/0", "language": "PYTHON"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_FAILED"}},
    ]
    search = [{"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB"}}, {"toolResponse": {"id": "t"}}]
    events = read(answer(*run, *search, {"text": "", "thoughtSignature": "x"}), answer(finishReason="STOP"))
    assert [(event.task_id, event.status) for event in events[:-1]] == [
        ("", "working"), ("", "failed"), ("t", "working"), ("t", "completed"),
    ]  # fmt: skip


def test_a_blocked_prompt_fails_with_its_reason():
    (failed,) = read({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})
    assert (type(failed), failed.code) == (StreamFailed, "PROHIBITED_CONTENT")


def test_a_call_that_is_taken_back_is_cancelled_by_its_id():
    calls = {"toolCall": {"functionCalls": [{"name": "f", "id": "1"}, {"name": "f", "id": "2"}]}}
    events = read(calls, {"serverContent": {"interrupted": True}}, {"toolCallCancellation": {"ids": ["1", "2"]}},
                  {"serverContent": {"turnComplete": True, "turnCompleteReason": "RESPONSE_REJECTED"}})  # fmt: skip
    assert events[4:] == [Interrupted(), ToolCallCancelled("1"), ToolCallCancelled("2"), Finish("RESPONSE_REJECTED")]


def test_a_live_session_is_unfinished_only_within_a_turn():
    speaks = {"serverContent": {"outputTranscription": {"text": "Hi."}}}
    heard = {"serverContent": {"inputTranscription": {"text": "Hello."}}}
    assert read(heard) == [TranscriptDelta("Hello.", "user")]
    assert read(speaks)[-1].code == "unfinished"
    assert read(speaks, {"serverContent": {"turnComplete": True}}, {"goAway": {}})[-1] == Finish("turn_complete")


# --- the door ---------------------------------------------------------------------------------------------------------


def test_nothing_is_decided_by_what_says_nothing():
    for first in ({"type": "ping"}, {"type": "keepalive"}, {"type": "of.tomorrow"}, {}, {"usage": {}}):
        assert text_of(read(first, answer({"text": "Hi."}, finishReason="STOP"))) == "Hi."


def test_the_first_message_decides_for_good():
    chat = {"choices": [{"delta": {"content": "no"}, "finish_reason": "stop"}]}
    assert read(said("Yes."), chat, ended()) == [TextDelta("Yes."), Finish("completed")]


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_the_bytes_of_chat_completions_and_ollama_go_through_the_same_door(cut):
    chunks = [{"choices": [{"delta": {"content": "Hi é."}}]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}]
    body = (
        "".join(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks).encode() + b"data: [DONE]\n\n"
    )
    lines = b'{"task_status": "working", "task_id": "t"}\n{"message": {"content": "Hi."}, "done": false}\n'
    lines += b'{"message": {"content": ""}, "done": true, "done_reason": "stop"}\n'
    assert read(*(body[at : at + cut] for at in range(0, len(body), cut))) == [TextDelta("Hi é."), Finish("stop")]
    assert read(*(lines[at : at + cut] for at in range(0, len(lines), cut))) == [
        TaskStatus("t", "working"), TextDelta("Hi."), Finish("stop"),
    ]  # fmt: skip


def test_options_reach_the_reader_that_is_found():
    thinking = response("reasoning_text.delta", output_index=0, delta="Hm.")
    events = list(stream.read_sync([thinking, ended()], reasoning=False))
    assert events == [Finish("completed")]
    (failed,) = stream.read_sync([b'{"type": "ping", "x": "' + b"a" * 500], max_line_chars=100)
    assert failed.code == "line_too_long"
