"""unmute's handler: what it emits when the model calls a tool, and what it asks the model."""

import asyncio
import contextlib
import logging
import re
from dataclasses import replace

import numpy as np
import pytest
from openai import AsyncOpenAI
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosedOK

import stream
from cues.adapters.unmute import PATCH, ModelError, UnmuteCues, chat_events, with_ticks
from cues.errors import CueTypeError, CueValueError
from cues.meters.clicks import find_clicks
from stream.events import (
    CallStatus,
    Finish,
    StreamFailed,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
    ToolsLeftOut,
)
from stream.replay.server import ReplayServer
from stream.routing.rules import CueRules
from tests.support.listening import first_sound, last_sound, new_clicks, steady_voice
from tests.support.talks.unmute import UnmuteTalk, Voice
from tests.support.turn_matrix import CHAIN, VOICE, check_silent_after, play
from tests.support.unmute_model import BEFORE, Model, called, recording, refusal, said
from tests.support.virtual_loop import LoopClock, run_virtually

RATE = 24000
TTS_FRAME = 1920


# The patch. `bench/unmute_package.py` applies it to a checkout and lets that speak.


def test_the_patch_is_well_formed_and_changes_the_files_that_use_a_chat_completion():
    patch = PATCH.read_text(encoding="utf-8")
    assert re.findall(r"^\+\+\+ b/(\S+)$", patch, re.MULTILINE) == [
        "frontend/src/app/Unmute.tsx",
        "unmute/llm/llm_utils.py",
        "unmute/main_websocket.py",
        "unmute/openai_realtime_api_events.py",
        "unmute/scripts/vllm_wrapper_example.py",
        "unmute/tts/text_to_speech.py",
        "unmute/unmute_handler.py",
    ]
    hunks = re.findall(r"^@@ -\d+,(\d+) \+\d+,(\d+) @@.*\n((?:[ +-].*\n)*)", patch, re.MULTILINE)
    assert len(hunks) == patch.count("\n@@ ")
    for old, new, body in hunks:
        lines = [line for line in body.split("\n")[:-1] if not line.startswith(("---", "+++"))]
        assert sum(not line.startswith("+") for line in lines) == int(old)
        assert sum(not line.startswith("-") for line in lines) == int(new)


def test_all_that_the_patch_asks_of_us_is_there():
    added = "\n".join(re.findall(r"^\+(?!\+\+)(.*)$", PATCH.read_text(encoding="utf-8"), re.MULTILINE))
    ours = re.findall(r"^from (?:cues|stream)\b.* import .*$", added, re.MULTILINE)
    assert len(ours) == 7
    names = {}
    exec("\n".join(ours), names)
    assert (names["chat_events"], names["with_ticks"]) == (chat_events, with_ticks)
    methods = re.findall(r"self\.cues\.(\w+)\(", added)
    assert sorted(methods) == ["begin_response", "end_response", "finish", "in_time", "interrupt", "next_item"]
    assert all(hasattr(UnmuteCues, method) for method in methods)
    (statuses,) = re.findall(r"status: (Literal\[.*\])", added)
    assert statuses == str(CallStatus).replace("typing.", "").replace("'", '"')


# The voice's messages, over a WebSocket.


def test_a_voice_that_pauses_gives_ticks_and_none_of_its_messages_is_lost_or_late():
    sent = [str(number) for number in range(60)]

    async def voice(websocket):
        for number, message in enumerate(sent):
            await asyncio.sleep(0.003 * (number % 4))
            await websocket.send(message)
        await websocket.recv()

    async def go():
        found = []
        async with serve(voice, "127.0.0.1", 0) as server:
            (host, port), *_ = (one.getsockname()[:2] for one in server.sockets)
            async with connect(f"ws://{host}:{port}") as websocket:
                with contextlib.suppress(ConnectionClosedOK):  # with_ticks itself never ends
                    async for message in with_ticks(websocket, 0.005):
                        found.append(message)
                        if message is None and sent[-1] in found:
                            await websocket.send("done")
        return found

    found = asyncio.run(asyncio.wait_for(go(), 30.0))
    assert [message for message in found if message is not None] == sent
    assert None in found


# The answer of a model, over HTTP.


def ask(model, tools=stream.services.FILESYSTEM_TOOLS, n_turns=1, **options):
    """For each question to one server: the events of its answer, and the error that ended it."""
    request = {"model": "loopback", "messages": [{"role": "user", "content": "Birds?"}], "temperature": 0.3}

    async def go():
        turns = []
        async with (
            asyncio.timeout(30.0),
            ReplayServer(model) as server,
            AsyncOpenAI(base_url=server.base_url, api_key="none") as client,
        ):
            for _ in range(n_turns):
                events, error = [], None
                try:
                    async for event in chat_events(client, tools, **options, **request):
                        events.append(event)  # noqa: PERF401  (a failure keeps those before it)
                except ModelError as raised:
                    error = raised
                turns.append((events, error))
        return turns

    return asyncio.run(go())


def test_the_error_that_unmute_logs_keeps_its_reason():
    said = "cannot connect: [Errno 111] Connection refused"
    assert str(ModelError(StreamFailed(said))).startswith(said)


@pytest.mark.parametrize(
    ("said", "logged"),
    [
        # Ollama for gpt-oss: https://github.com/ollama/ollama/issues/12884
        ('error parsing tool call: raw=\'{"password": "hunter2"}]\', err=invalid', "error parsing tool call"),
        ("error parsing tool call: raw='hunter2', err=invalid character", "error parsing tool call"),
        # llama-server, common/chat.cpp
        ("Failed to parse input at pos 11: <tool_call>hunter2", "Failed to parse input at pos 11"),
        ('Invalid tool call: [{"password": "hunter2"}]', "Invalid tool call"),
    ],
)
def test_the_error_that_unmute_logs_leaves_out_the_call_that_a_server_quotes(said, logged):
    error = ModelError(StreamFailed(said, status=500))
    assert str(error) == f"{logged} (status 500, code None)"
    assert "hunter2" in error.event.message


def unfinished(steps, end):
    """A stream without a finish reason, and with another end than its `[DONE]`."""
    whole = recording(steps, finish="stop")
    lines = [line for line in whole.body.split(b"\n\n") if b'"finish_reason": "stop"' not in line]
    body = b"\n\n".join(line for line in lines if b"[DONE]" not in line) + end
    return replace(whole, body=body, reads=((len(body), 0.0),))


def text_of(events):
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def test_the_tools_are_in_the_request_and_without_tools_it_is_as_unmutes_own():
    question = [{"role": "user", "content": "Birds?"}]
    bare = {"model": "loopback", "messages": question, "temperature": 0.3, "stream": True}
    model = Model(recording(said(BEFORE)))
    ((events, error),) = ask(model)
    assert error is None
    assert [event.text for event in events if isinstance(event, TextDelta)][:3] == ["Let", " me", " look"]
    assert isinstance(events[-1], Finish)
    ask(model, None)
    assert model.requests == [{**bare, "tools": stream.services.FILESYSTEM_TOOLS}, bare]


def test_thoughts_whose_opening_tag_is_in_the_prompt_are_not_words():
    ((events, error),) = ask(Model(recording(said(f"They ask for birds. </think> {BEFORE}"))), start="reasoning")
    assert error is None
    assert text_of(events).strip() == BEFORE


def test_a_stream_that_breaks_gives_what_was_said_and_its_failure_and_then_raises():
    steps = [*said(BEFORE), *called(0.5)[:-1]]
    ((events, error),) = ask(Model(recording(steps, finish=None)))
    assert text_of(events) == BEFORE
    assert [event.status for event in events if isinstance(event, ToolCallEnd)] == ["incomplete"]
    assert isinstance(events[-1], StreamFailed)
    assert error.event is events[-1]
    assert error.event.code == "connection"


@pytest.mark.parametrize(("status", "message"), [(401, "no such key"), (400, "too long")])
def test_a_request_that_fails_gives_its_failure_before_it_raises_and_is_not_repeated(status, message):
    model = Model(refusal(status, message))
    ((events, error),) = ask(model)
    assert [type(event) for event in events] == [StreamFailed]
    assert error.event.status == status
    assert message in str(error)
    assert ["tools" in request for request in model.requests] == [True]


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_server_that_refuses_the_tools_is_asked_without_them_and_not_offered_them_again(status, caplog):
    model = Model(refusal(status, "loopback does not support tools"), without_tools=recording(said(BEFORE)))
    for events, error in ask(model, n_turns=2):
        assert error is None
        assert events[0] == ToolsLeftOut(("list_directory", "read_file"), "refused")
        assert text_of(events) == BEFORE
    assert ["tools" in request for request in model.requests] == [True, False, False]
    (record,) = [record for record in caplog.records if record.name == "cues.adapters.unmute"]
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("2 tools not offered to loopback")
    assert record.getMessage().endswith(": 'list_directory', 'read_file'")


def test_an_example_is_text_though_the_server_has_refused_the_tools():
    example = 'So:\n```json\n{"name": "Ada", "parameters": {"born": 1815}}\n```\nAn example.'
    without = recording([(0.0, {"content": example})])
    for events, error in ask(Model(refusal(400, "loopback does not support tools"), without_tools=without), n_turns=2):
        assert error is None
        assert text_of(events).split() == example.split()


@pytest.mark.parametrize(
    ("end", "is_done"),
    [
        (b"data: [DONE]\n\n", True),
        (b"data:[DONE]\r\n\r\n", True),
        (b"data: [DONE]\n\n: keep-alive\n\n", True),
        (b"", False),
    ],
    ids=["[DONE]", "no space", "a comment after it", "no end"],
)
def test_an_answer_that_ends_with_done_needs_no_finish_reason(end, is_done, caplog):
    caplog.set_level(logging.INFO)
    ((events, error),) = ask(Model(unfinished(said(BEFORE), end)))
    assert text_of(events) == BEFORE
    assert (error is None) == is_done
    assert ("without a finish reason" in caplog.text) == is_done


def test_an_answer_that_ends_with_done_waits_for_no_end_of_the_connection():
    whole = unfinished(said(BEFORE), b"data: [DONE]\n\n\n")
    ((events, error),) = ask(Model(replace(whole, reads=((len(whole.body) - 1, 0.0), (1, 60_000.0)))))
    assert error is None
    assert text_of(events) == BEFORE


def test_a_call_is_logged_with_its_name_and_no_value_of_an_argument(caplog):
    caplog.set_level(logging.DEBUG)
    cues_ = UnmuteCues()
    for name, arguments, status in (
        ("read_file", '{"path": "hunter2", "depth": 7}', "ok"),
        ("read_file", '{"path": "hunter2', "incomplete"),
        ("list_directory\n", "hunter2", "malformed"),
    ):
        cues_.handle(ToolCallEnd(name, arguments_json=arguments, status=status))
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [line for line in lines if "Tool call" in line[1]] == [
        ("INFO", 'Tool call: read_file({"path": "str", "depth": "int"})'),
        ("WARNING", "Tool call: read_file(no JSON), incomplete"),
        ("WARNING", "Tool call: list_directory...(no JSON), malformed"),
    ]
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize(
    ("between", "fails_s"),
    [
        (ToolResult(tool_name="read_file", tool_call_id="1", is_error=False, content=""), 360.0),
        (TextDelta("One moment."), 900.0),
    ],
    ids=["a result", "text"],
)
def test_while_a_call_is_open_the_limit_is_that_of_the_tools(between, fails_s):
    async def events():
        for call_id in "12":
            yield ToolCallStart("read_file", call_id)
            yield ToolCallEnd("read_file", call_id)
        yield between
        await asyncio.sleep(300.0)
        yield ToolResult(tool_name="read_file", tool_call_id="2", is_error=False, content="")
        await asyncio.sleep(1e6)

    async def go():
        begin_s = asyncio.get_running_loop().time()
        with pytest.raises(ModelError, match="stalled"):
            async for _ in UnmuteCues(clock=LoopClock()).in_time(events()):
                pass
        return asyncio.get_running_loop().time() - begin_s

    assert run_virtually(go) == pytest.approx(fails_s, abs=1.0)


# The details, on a clock that is passed in.


def on_virtual_clock(script, **options):
    async def go():
        clock = LoopClock()
        cues_ = UnmuteCues(clock=clock, **options)
        queue, items = asyncio.Queue(), []

        async def emit():
            while True:
                item = await cues_.next_item(queue)
                if item is not None:
                    items.append((clock.now(), item))

        emitting = asyncio.create_task(emit())
        await script(cues_, queue, clock)
        emitting.cancel()
        await asyncio.gather(emitting, return_exceptions=True)
        return items, cues_

    return run_virtually(go)


async def speak(queue, clock, seconds):
    """Frames as the text-to-speech releases them: four ahead, then one every 80 ms."""
    voice = steady_voice(seconds)
    for n, start in enumerate(range(0, len(voice), TTS_FRAME)):
        if n >= 4:
            await clock.sleep(TTS_FRAME / RATE)
        await queue.put((RATE, voice[start : start + TTS_FRAME]))


def test_idle_audio_passes_as_the_same_samples_and_other_items_as_they_are():
    async def script(_cues, queue, clock):
        await queue.put("event")
        await speak(queue, clock, 1.0)
        await clock.sleep(0.5)

    items, _ = on_virtual_clock(script)
    assert items[0][1] == "event"
    assert np.array_equal(np.concatenate([item[1] for _, item in items[1:]]), steady_voice(1.0))


def test_a_cue_in_silence_clocks_itself_and_comes_at_once():
    async def script(cues_, _queue, clock):
        await clock.sleep(1.0)
        cues_.handle(ToolCallStart("read_file", "1"))
        await clock.sleep(2.0)
        cues_.router.cancel()
        await clock.sleep(2.0)

    items, _ = on_virtual_clock(script)
    assert items[0][0] == pytest.approx(1.0, abs=1e-6)
    assert first_sound(items[0][1][1]) is not None
    for n, (at_s, _) in enumerate(items):
        assert at_s >= 1.0 + n * 0.02 - 0.08 - 1e-6
    assert items[-1][0] < 3.1  # And when nothing sounds or waits, nothing is sent.


def test_a_cue_while_speech_flows_goes_into_the_speech_and_makes_no_frames_of_its_own():
    async def script(cues_, queue, clock):
        speaking = asyncio.create_task(speak(queue, clock, 2.0))
        await clock.sleep(0.5)
        cues_.handle(ToolCallStart("read_file", "1"))
        await speaking
        cues_.router.cancel()
        await clock.sleep(1.0)

    items, _ = on_virtual_clock(script, rules=CueRules(working=None))
    assert sum(len(item[1]) for _, item in items) == len(steady_voice(2.0))
    mixed = np.concatenate([item[1] for _, item in items])
    onset = first_sound(mixed - steady_voice(2.0))
    assert 0.5 * RATE <= onset <= (0.5 + 0.32) * RATE + TTS_FRAME


def test_an_interruption_fades_what_sounds_and_what_is_still_written_is_not_heard():
    async def script(cues_, queue, clock):
        speaking = asyncio.create_task(speak(queue, clock, 5.0))
        await clock.sleep(1.0)
        cues_.handle(ToolCallStart("read_file", "1"))
        await clock.sleep(0.1)
        cues_.interrupt()
        await clock.sleep(1.0)  # The old task goes on writing.
        cues_.handle(ToolResult(tool_name="read_file", tool_call_id="1", is_error=False, content=""))
        await clock.sleep(1.0)
        speaking.cancel()
        cues_.begin_response()
        await queue.put((RATE, steady_voice(1.0)))
        await clock.sleep(1.0)

    items, _ = on_virtual_clock(script)
    before = np.concatenate([item[1] for at_s, item in items if at_s < 3.05])
    until = sum(len(item[1]) for at_s, item in items if at_s < 1.1 - 1e-6)
    assert last_sound(before, 0.0) <= until + 0.05 * RATE
    assert new_clicks(before, np.zeros_like(before)) == []
    assert max(np.abs(item[1]).max() for at_s, item in items if at_s > 3.05) > 0.05


def test_speech_that_is_held_back_in_the_midst_of_a_vowel_dies_away_and_comes_back_without_a_click():
    voice, half = steady_voice(1.6), 10 * TTS_FRAME

    async def script(cues_, queue, clock):
        # What unmute's text-to-speech does while a tool runs: the rest stays where it is until more text comes.
        await queue.put((RATE, voice[:half]))
        await clock.sleep(0.5)
        cues_.handle(ToolCallStart("read_file", "1"))
        await clock.sleep(1.5)
        cues_.handle(ToolResult(tool_name="read_file", tool_call_id="1", is_error=False, content=""))
        await queue.put((RATE, voice[half:]))
        await clock.sleep(2.0)

    items, _ = on_virtual_clock(script)
    emitted = np.concatenate([item[1] for _, item in items])
    assert np.abs(voice[half - 100 : half + 100]).min() < 0.1 < np.abs(voice[half - 100 : half + 100]).max()
    assert len(emitted) > len(voice) + RATE // 2
    assert find_clicks(emitted).tolist() == []


@pytest.mark.parametrize("speech_s", [0.0, 5.0], ids=["in silence", "over speech"])
def test_before_a_handler_is_closed_the_cue_of_a_failure_is_emitted_and_heard(speech_s):
    done_s = []

    async def script(cues_, queue, clock):
        speaking = asyncio.create_task(speak(queue, clock, speech_s))
        await clock.sleep(1.0)
        cues_.handle(StreamFailed("broken"))
        await cues_.finish()
        done_s.append(clock.now())
        speaking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await speaking

    items, cues_ = on_virtual_clock(script)
    (span,) = cues_.router.spans
    assert span.cue == "error"
    emitted_s = sum(len(item[1]) for at_s, item in items if at_s <= done_s[0]) / RATE
    assert emitted_s >= span.end_s
    assert 1.0 + (span.end_s - span.start_s) <= done_s[0] <= 3.0


def test_a_voice_that_breaks_off_while_a_tool_runs_gets_the_cue_of_a_failure_and_ends_the_waiting_sound():
    done_s = []

    async def script(cues_, queue, clock):
        cues_.handle(ToolCallStart("read_file", "1"))
        await clock.sleep(6.0)
        await cues_.finish()  # as the patched handler does when the text-to-speech has closed its connection
        done_s.append(clock.now())

    items, cues_ = on_virtual_clock(script)
    assert [span.cue for span in cues_.router.spans] == ["tool_call", "working", "error"]
    assert 6.2 < done_s[0] < 7.0
    emitted = np.concatenate([item[1] for _, item in items])
    assert find_clicks(emitted).tolist() == []


def test_words_that_wait_for_their_sound_are_sent_before_a_handler_is_closed_however_slow_the_server_sends():
    async def go():
        cues_, queue, sent = UnmuteCues(clock=LoopClock(), bank={}), asyncio.Queue(), []

        async def emit():
            while True:
                if (item := await cues_.next_item(queue)) is not None:
                    await asyncio.sleep(0.05)
                    sent.append(item)

        emitting = asyncio.create_task(emit())
        for word in ("Let", "me", "look"):
            queue.put_nowait((RATE, np.zeros(5 * TTS_FRAME, dtype=np.float32)))
            queue.put_nowait(word)
        cues_.handle(StreamFailed("broken"))
        await cues_.finish()
        emitting.cancel()
        return [item for item in sent if isinstance(item, str)]

    assert run_virtually(go) == ["Let", "me", "look"]


def test_a_handler_that_nobody_listens_to_is_closed_all_the_same():
    async def go():
        clock = LoopClock()
        cues_ = UnmuteCues(clock=clock)
        cues_.handle(StreamFailed("broken"))
        await cues_.finish()
        return clock.now()

    assert run_virtually(go) == pytest.approx(2.0, abs=0.05)


def test_an_interruption_after_silence_brings_nothing_back():
    async def script(cues_, queue, clock):
        await queue.put((RATE, steady_voice(1.0)[: 5 * TTS_FRAME]))
        await queue.put((RATE, np.zeros(5 * TTS_FRAME, dtype=np.float32)))
        await clock.sleep(0.2)
        cues_.interrupt()
        await clock.sleep(0.5)

    items, _ = on_virtual_clock(script)
    assert sum(len(item[1]) for _, item in items) <= 10 * TTS_FRAME
    assert not items[-1][1][1].any()


@pytest.mark.parametrize(
    ("item", "error"),
    [
        ((48000, np.zeros(1920, dtype=np.float32)), (CueValueError, "48000 Hz")),
        ((RATE, np.zeros(1920, dtype=np.int16)), (CueTypeError, "int16")),
        ((RATE, np.zeros((1, 1920))), None),
    ],
    ids=["rate", "dtype", "2-D float64"],
)
def test_audio_that_cues_cannot_be_mixed_into_is_refused_with_a_sentence(item, error):
    async def emit():
        queue = asyncio.Queue()
        queue.put_nowait(item)
        return await UnmuteCues().next_item(queue)

    if error is None:
        assert asyncio.run(emit())[1].shape == (1920,)
        return
    with pytest.raises(error[0], match=error[1]):
        asyncio.run(emit())


def test_calls_that_nobody_runs_end_with_the_response():
    heard, *_ = play(UnmuteTalk, CHAIN, finish="tool_calls", lasts_s=20.0)
    assert heard.cues == ("tool_call",)
    check_silent_after(heard, heard.spans[0].end_samples)


def test_after_a_long_tool_speech_is_kept_to_280_ms_and_a_cue_is_no_later():
    """Speech before and after a tool of 12 s: the queue of the text-to-speech then releases two seconds at once."""

    async def go():
        async with UnmuteTalk(CHAIN, LoopClock()) as talk:
            voice, clock = Voice(talk.queue), LoopClock()
            talk.cues.begin_response()
            await voice.speak(VOICE)
            await asyncio.sleep(12.0)
            burst_s = clock.now()
            await voice.speak(VOICE)
            assert clock.now() - burst_s < 0.01
            await asyncio.sleep(0.5)
            n_emitted = talk.played.n_mixed
            talk.cues.handle(ToolCallStart("search", "2"))
            await asyncio.sleep(2.0)
            return max(talk.ahead_s), n_emitted, next(iter(talk.router.spans)).start_samples

    most_ahead_s, n_emitted, onset = run_virtually(go)
    assert most_ahead_s <= 0.28 + 1e-6
    assert onset == n_emitted
