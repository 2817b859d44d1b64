"""The pages for the pipelines: their code runs."""

import asyncio
import json
import re
import socket
import struct
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from openai import AsyncOpenAI
from websockets.exceptions import ConnectionClosedError

import cues.adapters
import stream
from stream.events import Finish, TextDelta, ToolCallStart
from tests.support.livekit_session import ScriptedLLM, VoiceLikeTTS
from tests.support.realtime_server import RealtimeServer, recorded, renamed, spoken
from tests.support.turns import chunks_with_a_call

PAGES = sorted(Path(cues.adapters.__file__).parent.glob("*.md"))
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def block(name, **namespace):
    """Run the code block after the marker of that name, with the names given; what it defined."""
    code = re.search(rf"<!-- run: {name} -->\n```python\n(.*?)```", TEXT, re.DOTALL)
    assert code, f"no block {name}"
    exec(compile(code.group(1), f"adapters: {name}", "exec"), namespace)
    return namespace


def test_the_common_lines_make_rules_and_listen_to_spans(capsys):
    names = block("common")
    mixer = cues.Mixer()
    router = stream.CueRouter(names["bank"], mixer, rules=names["rules"])
    router.spans.subscribe(names["hold_the_recognizer"])
    assert router.handle(ToolCallStart("read_file", "1")) is None
    assert router.handle(ToolCallStart("search_web", "2")).cue == "motif:search_web"
    assert "motif:search_web: 0.00 s to" in capsys.readouterr().out


def test_the_lines_for_pipecat_make_a_mixer_for_the_transport():
    names = block("pipecat")
    assert names["params"].audio_out_mixer is names["cue_mixer"]


def test_the_lines_for_pipecat_hold_its_voice_detector_while_a_cue_sounds():
    mixer = block("pipecat")["cue_mixer"]
    detector = block("pipecat gate", cue_mixer=mixer)["DeafToCues"](sample_rate=16000)
    detector.set_sample_rate(16000)
    voice = (20000 * np.sign(np.sin(2 * np.pi * 150 * np.arange(512) / 16000))).astype("<i2").tobytes()
    free = detector.voice_confidence(voice)
    mixer.router.handle(ToolCallStart(tool_name="look", tool_call_id="1"))
    asyncio.run(mixer.mix(bytes(960)))
    assert free > 0.0
    assert detector.voice_confidence(voice) == 0.0
    asyncio.run(mixer.mix(bytes(48000)))
    assert detector.voice_confidence(voice) > 0.0


def test_the_lines_for_livekit_guard_the_model_and_attach_to_a_session_that_has_started(monkeypatch):
    from livekit.agents import AgentSession

    from cues.adapters.livekit import CueOutput, guarded
    from tests.support.livekit_session import ListSink
    from tests.support.virtual_loop import LoopClock

    class StartedSession(AgentSession):
        def __init__(self, llm, **_models):
            assert type(llm) is type(guarded(ScriptedLLM([])))
            super().__init__(llm=ScriptedLLM([]), tts=VoiceLikeTTS())
            self.output.audio = ListSink(LoopClock())
            sessions.append(self)

        async def start(self, agent, *, room):  # noqa: ARG002  (the scripted session has no room)
            await super().start(agent)

    monkeypatch.setenv("LIVEKIT_API_KEY", "none")
    monkeypatch.setenv("LIVEKIT_API_SECRET", "none" * 8)
    names, sessions = block("livekit"), []
    names["AgentSession"] = StartedSession

    async def go():
        await names["entrypoint"](SimpleNamespace(room=None))
        (session,) = sessions
        output = session.output.audio
        while not isinstance(output, CueOutput):
            output = output.next_in_chain
        await output.aclose()
        await session.aclose()
        return output.router

    assert not asyncio.run(go()).waits


def test_the_lines_for_livekit_hold_its_microphone():
    from cues.adapters.livekit import DeafToCues

    session = SimpleNamespace(input=SimpleNamespace(audio="the room's"))
    block("livekit gate", agent_session=session, handle=SimpleNamespace(router=None))
    assert isinstance(session.input.audio, DeafToCues)
    assert session.input.audio.source == "the room's"


def test_the_lines_for_a_track_give_frames():
    async def first():
        frames = block("livekit-track")["frames"]
        frame = await anext(frames)
        await frames.aclose()
        return frame

    assert asyncio.run(first()).sample_rate == 48000


def realtime_round(n_calls):
    """The events of a response with that many calls, up to its end; and that end."""
    begun, *call, done = recorded("openai-tool-round.jsonl")[4:23]
    calls = [event for number in range(n_calls) for event in renamed(call, number)]
    return [begun, *({**event, "response_id": begun["response"]["id"]} for event in calls)], done


def talk_at(script, run_tool, follow):
    """The page's loop with the package's client: what it sends until `follow(server)` closes its connection."""
    frames = []

    async def go():
        async with RealtimeServer(script) as server:
            client = AsyncOpenAI(api_key="none", websocket_base_url=server.url)
            async with asyncio.timeout(20), client, client.realtime.connect(model="m") as connection:
                others = asyncio.all_tasks()
                talking = asyncio.create_task(block("realtime")["talk"](connection, frames.append, run_tool))
                await follow(server)
                await server.hang_up()
                with pytest.raises(ConnectionClosedError):
                    await talking
                assert asyncio.all_tasks() <= others, "nothing is left"
        return server.received

    received = asyncio.run(go())
    assert {len(frame) for frame in frames} == {480}
    return received


def test_the_lines_for_realtime_ask_once_for_the_answer_to_two_calls():
    events, done = realtime_round(2)

    async def run_tool(call):
        return call.tool_name

    async def follow(server):
        await server.has("response.create")

    outputs = ["conversation.item.create"] * 2
    received = talk_at([*events, *outputs, done], run_tool, follow)
    assert [event["type"] for event in received] == [*outputs, "response.create"]


def test_the_lines_for_realtime_send_the_failure_of_a_tool():
    events, done = realtime_round(1)

    async def run_tool(_call):
        raise KeyError("city")

    async def follow(server):
        await server.has("response.create")

    output, _ = talk_at([*events, done], run_tool, follow)
    assert output["item"]["output"] == "KeyError: 'city'"


@pytest.mark.parametrize("ends", [True, False], ids=["that ends", "that hangs"])
def test_the_lines_for_realtime_notice_the_user_during_a_tool(ends):
    spoken_turn = spoken(recorded("openai-spoken-turn.jsonl"), np.full(24000, 0.1, np.float32))
    events, done = realtime_round(1)
    barge_in = {"type": "input_audio_buffer.speech_started", "event_id": "e", "item_id": "i", "audio_start_ms": 9000}
    may_end = asyncio.Event()

    async def run_tool(call):
        await may_end.wait()
        return call.tool_name

    async def follow(server):
        await server.has("conversation.item.truncate")
        if ends:
            may_end.set()
            await server.has("conversation.item.create")

    received = talk_at([*spoken_turn, *events, done, barge_in], run_tool, follow)
    kinds = ["conversation.item.truncate", "conversation.item.create"]
    assert [event["type"] for event in received] == kinds[: 1 + ends]


def test_the_lines_for_the_agents_sdk_end_with_their_session():
    from agents.realtime import RealtimePlaybackTracker

    class Runner:
        async def run(self, *, model_config):
            assert isinstance(model_config["playback_tracker"], RealtimePlaybackTracker)
            return self

        async def __aenter__(self):
            return self

        async def __aexit__(self, *_): ...

        async def __aiter__(self):
            for event in ():
                yield event

    asyncio.run(block("agents")["talk"](Runner(), lambda _: None))


def test_the_lines_for_the_voice_pipeline_speak_an_answer():
    from agents import set_tracing_disabled
    from agents.voice.testing import ScriptedSTTModel, ScriptedTTSModel

    from stream.replay.scenarios import Scenario
    from stream.replay.server import ReplayServer

    set_tracing_disabled(True)
    heard, clients, names = [], [], block("agents-voice")

    def client_of(server, base_url, **options):
        clients.append(AsyncOpenAI(base_url=server.base_url, **options))
        return clients[-1]

    async def go():
        says = 'Hello.<tool_call>{"name": "a", "arguments": {}}</tool_call>'
        scenario = Scenario(name="own", about="", turns=[[["say", says]]])
        voice = ScriptedTTSModel([[b"\1\2" * 2400 + bytes(960)]])  # what ends in mid-sound would be faded
        async with ReplayServer(scenario) as server:
            names["AsyncOpenAI"] = partial(client_of, server)
            models = {"stt_model": ScriptedSTTModel(["Hello?"]), "tts_model": voice}
            await names["talk"](names["assistant"]([]), [np.zeros(480, np.int16)], heard.append, **models)
            await clients[0].close()
        assert [call.text for call in voice.calls] == ["Hello."]

    asyncio.run(go())
    assert sum(np.count_nonzero(frame) for frame in heard) == 2400


def test_after_a_failure_the_lines_for_the_voice_pipeline_play_the_error_cue_to_its_end(caplog):
    from agents import set_tracing_disabled
    from agents.voice.testing import ScriptedSTTModel, ScriptedTTSModel

    set_tracing_disabled(True)
    heard, names = [], block("agents-voice")

    class Nobody(AsyncOpenAI):
        def __init__(self, **options):
            super().__init__(**options | {"base_url": "http://127.0.0.1:9/v1", "max_retries": 0})

    async def go():
        names["AsyncOpenAI"] = Nobody
        models = {"stt_model": ScriptedSTTModel(["Hello?"]), "tts_model": ScriptedTTSModel([])}
        await names["talk"](names["assistant"]([]), [np.zeros(480, np.int16)], heard.append, **models)

    asyncio.run(go())
    assert [record.message for record in caplog.records].count("no answer") == 1
    expected = cues.load_bank()["error"].samples
    np.testing.assert_allclose(np.concatenate(heard)[-len(expected) :], expected, atol=1e-4)


def test_the_lines_for_a_telephone_line_answer_a_call():
    from tests.cues.adapters.test_telephony import MEDIA
    from tests.support.phone_calls import START

    names, heard = block("telephony"), []

    class Socket:
        def __init__(self):
            self.sent, self.has_sent = [], asyncio.Event()

        async def send_text(self, text):
            self.sent.append(json.loads(text)["event"])
            self.has_sent.set()

        async def iter_text(self):
            media = {"event": "media", "media": {"payload": MEDIA}}
            for message in (START, media, {"event": "stop"}):
                yield json.dumps(message)
                await asyncio.sleep(0)

    async def on_audio(line, samples):
        heard.append(len(samples))
        line.router.handle(ToolCallStart("read_file", "1"))
        await socket.has_sent.wait()

    async def go():
        nonlocal socket
        socket = Socket()
        await names["call"](socket)

    socket = None
    names["on_audio"] = on_audio
    asyncio.run(go())
    assert heard == [2]
    assert set(socket.sent) == {"media"}


def test_the_lines_for_asterisk_answer_a_call():
    from tests.support.phone_calls import FRAME, OPENING

    names, heard = block("audiosocket"), []

    async def on_audio(line, samples):
        heard.append(len(samples))
        line.router.handle(ToolCallStart("read_file", "1"))

    names["on_audio"] = on_audio

    async def go():
        async with await asyncio.start_server(names["call"], "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(OPENING + FRAME)
            header = await reader.readexactly(3)
            writer.write(bytes(3))
            writer.write_eof()
            await reader.read()
            writer.close()
            return header

    assert asyncio.run(go()) == bytes([0x10, 1, 64])
    assert heard == [160]


def test_a_reset_connection_leaves_nothing_of_the_lines_for_asterisk():
    from tests.support.phone_calls import FRAME, OPENING

    names, answered, ended = block("audiosocket"), asyncio.Event(), asyncio.Event()

    async def on_audio(line, samples):
        answered.set()

    async def call(reader, writer):
        await names["call"](reader, writer)
        ended.set()

    async def go():
        async with await asyncio.start_server(call, "127.0.0.1", 0) as server:
            before = asyncio.all_tasks()
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(OPENING + FRAME)
            await answered.wait()
            no_linger = struct.pack("ii", 1, 0)  # closes with a reset
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_linger)
            writer.transport.abort()
            await asyncio.wait_for(ended.wait(), 10.0)
            await asyncio.sleep(0)
            assert not [task for task in asyncio.all_tasks() - before if not task.done()]

    names["on_audio"] = on_audio
    asyncio.run(go())


def test_a_session_that_breaks_leaves_nothing_of_the_lines_for_the_agents_sdk():
    class Session:
        async def __aenter__(self):
            return self

        async def __aexit__(self, *exception):
            pass

        async def __aiter__(self):
            raise ConnectionError("reset")
            yield

    class Runner:
        async def run(self, **_):
            return Session()

    async def go():
        with pytest.raises(ConnectionError, match="reset"):
            await block("agents")["talk"](Runner(), lambda _: None)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(go())


def test_the_lines_for_a_loop_of_ones_own_speak_an_answer():
    history = stream.ChatHistory()
    sink, journal = asyncio.run(block("session")["converse"](chunks_with_a_call(), history))
    assert history.messages == [{"role": "assistant", "content": "Let me look Two files."}]
    assert [sounded.cue for sounded in journal.sounded] == ["tool_call"]
    assert sink.frames
    assert isinstance(journal.seen[-1].event, Finish)
    assert isinstance(journal.seen[0].event, TextDelta)


def test_the_lines_for_a_voice_make_a_speaker_that_a_session_can_use():
    mixer, sink = cues.Mixer(sample_rate=24000), block("session")["Sink"]()
    speaker = block("speaker")["Beeper"]()

    async def answer():
        for event in (TextDelta("Hello there."), Finish("stop")):
            yield event

    async def go():
        await speaker.start()
        router = stream.CueRouter(cues.load_bank(), mixer)
        return await stream.VoiceSession(mixer=mixer, router=router, speaker=speaker, sink=sink).run(answer())

    assert asyncio.run(go()).heard_text == "Hello there."
    assert sum(len(frame) for frame in sink.frames) >= len("Hello there.") * 1200
