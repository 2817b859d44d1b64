"""`cues live` over real HTTP and WebSockets on loopback, without a browser."""

import asyncio
import json
import socket
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager

import numpy as np
import pytest
from click.testing import CliRunner
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

import cues
from cues.cli import group
from cues.cli._page_server import MAX_MESSAGE_BYTES, watched_bank
from cues.cli.live.browser import app as app_module
from cues.cli.live.browser.conversation import Conversation, ConversationOptions, Line
from cues.cli.live.scripts import Script, built_in_scripts, script_of
from cues.cli.live.turn import Target
from stream.events import Finish, TextDelta, ToolsLeftOut
from stream.replay.recording import Recording, load_recording, samples_folder
from stream.services.connection import LONGEST_LEARNING_S
from tests.support.live_server import live_server
from tests.support.virtual_loop import LoopClock, run_virtually

QUICK = 2000.0  # tokens per second
NOBODY = Target(base_url="http://127.0.0.1:9/v1", model="m", api="chat")


def answer(text, name="answer"):
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": text}}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
    ]
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return Recording(name=name, kind="sse", body=body.encode())


def with_call(tool_s=0.05, text="Yes.", result="fine"):
    demo = built_in_scripts()[0]
    return Script(
        title="call",
        prompt="?",
        turns=[demo.turns[0], answer(text)],
        results={"get_weather": result},
        tool_s=tool_s,
        tokens_per_s=QUICK,
    )


def silent_call():
    """A call without a word before it, and none after it."""
    recording = load_recording(samples_folder() / "llama-server/hermes-one-call.sse")
    return Script(title="call", prompt="?", turns=[recording, answer(" ")], tool_s=0.6, tokens_per_s=QUICK)


def plain(text):
    return Script(title="plain", prompt="?", turns=[answer(text)], tokens_per_s=QUICK)


class Page:
    """A page's end of the WebSocket: sends commands, and keeps what it gets."""

    def __init__(self, socket):
        self.socket, self.events, self.frames = socket, [], []

    async def send(self, **command):
        await self.socket.send(json.dumps(command))

    async def until(self, kind, count=1):
        """Receive until `count` events of a kind have come; returns the last one."""
        while len(found := self.of(kind)) < count:
            message = await asyncio.wait_for(self.socket.recv(), 30)
            if isinstance(message, str):
                self.events.append(json.loads(message))
            else:
                turn, position, mixed, speech = struct.unpack_from("<IIff", message)
                self.frames.append((turn, position, mixed, speech, np.frombuffer(message, "<f4", offset=16)))
        return found[-1]

    async def until_answered(self, text):
        """Receive until the turn of a question has ended; those before it may have had turns."""
        while (await self.until("live.turn", len(self.of("live.end")) + 1))["text"] != text:
            await self.until("live.end", len(self.of("live.turn")))
        await self.until("live.end", len(self.of("live.turn")))

    def of(self, kind):
        return [event for event in self.events if event["type"] == kind]

    def kinds(self):
        return [event["type"] for event in self.events]

    def sound(self, turn):
        return np.concatenate([frame[4] for frame in self.frames if frame[0] == turn])


async def ask(page, count=1, script=0):
    """Ask a question and wait for the end of its answer, the `count`-th one."""
    await page.send(type="ask", text="And?", script=script)
    await page.until("live.end", count)


def talk(server, conversation=ask, **options):
    """Run a page's side of a conversation: an async function of a `Page`."""

    async def run():
        url = server.url.replace("http", "ws") + "socket"
        async with connect(url, max_queue=None, **options) as socket:
            page = Page(socket)
            await page.until("live.hello")
            await conversation(page)
            return page

    return asyncio.run(run())


def talked(conversation=ask, **options):
    """The page after its side of a conversation with a server of its own."""
    with live_server(**options) as server:
        return talk(server, conversation)


def test_a_question_is_answered_with_frames_words_calls_and_cues_in_order():
    page = talked(scripts=[with_call()])
    kinds = page.kinds()
    wanted = ["live.hello", "live.turn", "live.call", "unmute.tool_call", "cues.tool_result", "live.end"]
    assert [kind for kind in kinds if kind in wanted] == wanted
    assert {"cues.span", "response.text.delta", "response.audio.done"} <= set(kinds)
    end = page.events[-1]
    assert (end["failure"], end["interrupted"]) == (None, False)
    assert [cue["cue"] for cue in end["cues"]] == ["tool_call", "success"]
    assert {frame[0] for frame in page.frames} == {1}
    *frames, last = page.frames
    assert {len(frame[4]) for frame in frames} == {480}
    assert len(last[4]) == 0
    assert [frame[1] for frame in page.frames] == list(range(0, 480 * len(page.frames), 480))


def test_without_speech_the_sound_of_a_call_is_its_cue_to_the_bit():
    page = talked(scripts=[silent_call()])
    onset = round(24000 * page.events[-1]["cues"][0]["onset_s"])
    cue = cues.load_bank("")["tool_call"].samples
    np.testing.assert_array_equal(page.sound(1)[onset : onset + len(cue)], cue)
    assert not page.sound(1)[:onset].any()


def test_each_frame_has_the_levels_of_the_mix_and_of_the_speech():
    page = talked(scripts=[plain("Good day.")])
    for _, _, mixed, speech, samples in page.frames[:-1]:
        assert mixed == speech == pytest.approx(np.sqrt(np.mean(np.square(samples))), rel=1e-5)


def test_an_interrupted_answer_fades_out_and_ends():
    async def conversation(page):
        await page.send(type="ask", text="And?", script=0)
        await page.until("response.text.delta")
        await page.send(type="interrupt")
        await page.until("live.end")

    page = talked(conversation, scripts=[plain("word " * 60)])
    assert "unmute.interrupted_by_vad" in page.kinds()
    assert page.events[-1]["interrupted"]
    assert np.abs(page.sound(1)[-24:]).max() == 0.0


def test_a_new_question_interrupts_the_answer_and_only_the_latest_waits():
    async def conversation(page):
        await page.send(type="ask", text="first", script=0)
        await page.until("response.text.delta")
        for text in ("second", "third", "fourth"):
            await page.send(type="ask", text=text, script=1)
        await page.until("live.end", 2)

    page = talked(conversation, scripts=[plain("word " * 60), plain("Done.")])
    assert [event["text"] for event in page.events if event["type"] == "live.turn"] == ["first", "fourth"]
    assert [event["interrupted"] for event in page.events if event["type"] == "live.end"] == [True, False]
    positions = [frame[1] for frame in page.frames if len(frame[4])]
    assert positions == list(range(0, 480 * len(positions), 480))


def test_of_5000_questions_at_once_the_newest_is_answered_and_the_server_serves_other_pages():
    async def conversation(page):
        await asyncio.gather(*(page.send(type="ask", text=f"{number}", script=0) for number in range(5000)))
        assert await asyncio.to_thread(status_of, server.url) == 200
        await page.until_answered("4999")

    with live_server(scripts=[plain("Done.")]) as server:
        page = talk(server, conversation)
    assert len(page.of("live.turn")) < 1000
    assert page.events[-1]["failure"] is None


def test_an_interrupt_before_the_answer_begins_drops_the_question():
    async def conversation(page):
        await page.send(type="ask", text="first", script=0)
        await page.send(type="interrupt")
        await page.send(type="ask", text="second", script=0)
        await page.until_answered("second")  # the first one's turn may have begun
        await page.send(type="interrupt")  # nothing to interrupt

    page = talked(conversation, scripts=[plain("Done.")])
    assert [event["text"] for event in page.events if event["type"] == "live.turn"][-1] == "second"
    assert page.events[-1]["failure"] is None


def asked_twice(*events):
    """The page after two questions to a model that answers with these events, and the messages of its requests."""
    asked = []

    class Model:
        model = "m"

        async def chat(self, messages, **_):
            asked.append([(message["role"], message["content"]) for message in messages])
            for event in events:
                yield event

    async def conversation(page):
        await ask(page)
        await ask(page, 2)

    target = Target(base_url="", model="m", source=lambda _: Model())
    return talked(conversation, scripts=[], targets=[target]), asked


def test_the_next_answer_knows_what_was_heard():
    _, asked = asked_twice(TextDelta("Good day."), Finish("stop"))
    assert asked[0] == [("user", "And?")]
    assert asked[1] == [("user", "And?"), ("assistant", "Good day."), ("user", "And?")]


def test_the_page_tells_once_of_tools_that_the_model_is_not_offered():
    page, _ = asked_twice(ToolsLeftOut(("get_weather",), "untrained"), TextDelta("Good day."), Finish("stop"))
    told = "tools not offered (the model calls no tools): get_weather"
    assert [event["text"] for event in page.of("live.note")] == [told]


def test_a_tool_that_fails_is_heard_as_an_error():
    page = talked(scripts=[with_call(result="error: no network")])
    assert [event["is_error"] for event in page.events if event["type"] == "cues.tool_result"] == [True]
    assert [cue["cue"] for cue in page.events[-1]["cues"]] == ["tool_call", "error"]


def test_a_model_that_cannot_be_reached_is_a_failure_on_the_page_and_the_next_turn_is_tried():
    async def conversation(page):
        await ask(page)
        await ask(page, 2)

    page = talked(conversation, scripts=[], targets=[NOBODY])
    failures = [event["failure"] for event in page.events if event["type"] == "live.end"]
    assert len(failures) == 2
    assert all(failures)


def test_the_cue_of_a_failed_request_is_timed_from_the_failure_and_not_from_an_earlier_answer():
    async def conversation(page):
        await ask(page)
        await ask(page, 2, script=1)

    page = talked(conversation, scripts=[], targets=[plain("A short answer.").target(), NOBODY])
    (cue,) = page.of("live.end")[1]["cues"]
    assert cue["cause"] == "the failure"
    began_s = page.of("live.turn")[1]["at_s"]
    assert 0.0 <= cue["delay_ms"] <= 1000.0 * (cue["onset_s"] - began_s)


@pytest.mark.parametrize(
    "message",
    [
        "",
        "null",
        '{"type":"ask"}',
        '{"type":"ask","text":"  ","script":0}',
        '{"type":"ask","text":"a","script":9}',
        '{"type":"ask","text":1,"script":0}',
        json.dumps({"type": "ask", "text": "a" * 4001, "script": 0}),
        "[" * 9000,
        b"\x00\xff",
    ],
    ids=lambda message: str(message[:24]),
)
def test_a_message_that_makes_no_sense_is_answered_with_an_error_and_the_page_stays_open(message):
    async def conversation(page):
        await page.socket.send(message)
        error = await page.until("error")
        assert error["code"] == "message"
        await page.send(type="ask", text="And? \ud83d", script=0)
        await page.until("live.end")

    with live_server(scripts=[plain("Yes.")]) as server:
        assert talk(server, conversation).events[-1]["failure"] is None


def test_a_message_that_is_too_large_ends_the_connection():
    async def conversation(page):
        await page.socket.send("x" * (MAX_MESSAGE_BYTES + 1))
        with pytest.raises(ConnectionClosed):
            await page.until("live.end")

    talked(conversation, scripts=[plain("Yes.")])


def test_more_pages_than_allowed_are_told_to_come_later(monkeypatch):
    monkeypatch.setattr(app_module, "MAX_PAGES", 1)

    async def conversation(_):
        async with connect(server.url.replace("http", "ws") + "socket") as second:
            with pytest.raises(ConnectionClosed):
                await second.recv()
            assert second.close_code == 1013

    with live_server(scripts=[plain("Yes.")]) as server:
        talk(server, conversation)
        talk(server, lambda page: page.send(type="interrupt"))  # there is room again


def test_a_page_that_leaves_in_mid_answer_ends_its_session():
    async def conversation(page):
        await page.send(type="ask", text="And?", script=0)
        await page.until("response.text.delta")

    with live_server(scripts=[with_call(text="word " * 60)]) as server:
        talk(server, conversation)
        page = talk(server, conversation)
        assert page.events[1]["turn"] == 1


def test_a_page_that_does_not_read_is_noticed_and_holds_10_s_at_most():
    async def run():
        mixer = cues.Mixer(24000)
        line = Line(mixer)
        frame = np.zeros(480, dtype=np.float32)
        for _ in range(500):
            line.write(frame, frame)
        assert not line.overflowed.is_set()
        line.write(frame, frame)
        assert line.overflowed.is_set()

    asyncio.run(run())


def test_a_changed_pack_is_heard_in_the_next_answer_and_a_broken_one_is_reported(tmp_path):
    def save(text):
        """Replace the file at once: the server never sees half of it."""
        (tmp_path / "next.toml").write_text(text)
        (tmp_path / "next.toml").replace(tmp_path / "pack.toml")

    save("")

    async def conversation(page):
        await ask(page)
        save("[cues]\ntool_call = {gain_db = -12.0}\n")
        assert (await page.until("live.pack"))["problem"] is None
        await ask(page, 2)
        save("[cues")
        assert "pack.toml" in (await page.until("live.pack", 2))["problem"]
        await ask(page, 3)

    page = talked(conversation, scripts=[silent_call()], pack=tmp_path)
    loud, soft, still_soft = (peak_of_cue(page, turn) for turn in (1, 2, 3))
    assert 20 * np.log10(soft / loud) == pytest.approx(-12.0, abs=0.1)
    assert still_soft == soft


def peak_of_cue(page, turn):
    frames = [frame for frame in page.frames if frame[0] == turn]
    end = next(event for event in page.events if event["type"] == "live.end" and event["turn"] == turn)
    onset = round(24000 * end["cues"][0]["onset_s"]) - frames[0][1]
    return np.abs(page.sound(turn)[onset : onset + 1200]).max()


# Who may come in.


def status_of(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as found:
            return found.status
    except urllib.error.HTTPError as error:
        return error.code


def test_the_page_and_its_files_are_served_to_this_machine_alone():
    with live_server() as server:
        for path in ("", "live.js", "live.css", "timeline.js", "worker.js", "worklet.js"):
            assert status_of(server.url + path) == 200
            assert status_of(server.url + path, Host="evil.example") == 403


def test_a_socket_is_for_the_page_itself_and_no_other_one():
    with live_server(scripts=[plain("Yes.")]) as server:
        talk(server, lambda page: page.send(type="interrupt"), origin=server.url.rstrip("/"))
        with pytest.raises(InvalidStatus, match="403"):
            talk(server, None, additional_headers={"Origin": "http://localhost:3000"})


def test_with_a_token_nothing_is_served_without_it():
    with live_server(token="secret", scripts=[plain("Yes.")]) as server:
        assert server.url.endswith("/secret/")
        root = server.url.removesuffix("secret/")
        for path in ("secret/", "secret/live.js"):
            assert status_of(root + path) == 200
        for path in ("", "live.js", "secret", "wrong/", "wrong/live.js", "secre/", "secret2/", "/secret/", "socket"):
            assert status_of(root + path) == 404
        talk(server, lambda page: page.send(type="interrupt"))
        server.url = root
        with pytest.raises(InvalidStatus, match="403"):
            talk(server, None)


# The command.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--base-url", "http://localhost:1/v1"], "both --base-url and --model"),
        (["--model", "m"], "both --base-url and --model"),
        (["--base-url", "http://localhost:1/v1", "--model", "m", "--replay", "x.sse"], "give one of them"),
        (["--folder", "."], "give --base-url and --model"),
        (["--api-key-env", "NOT_SET"], "NOT_SET is empty"),
        (["--api-key-env", "BLANK"], "BLANK is empty"),
        (["--api-key-env", "ODD"], "ODD has U+000A as character 3; an HTTP header takes printable ASCII alone"),
        (["--certfile", __file__], "both --certfile and --keyfile"),
        (["--host", "0.0.0.0"], "ssh -L 8486:127.0.0.1:8486"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_arguments_are_refused_with_advice(monkeypatch, arguments, message):
    monkeypatch.setenv("BLANK", " \r")
    monkeypatch.setenv("ODD", "of\nmine")
    result = CliRunner().invoke(group, ["live", *arguments], terminal_width=1000)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    ("given", "key"), [((), None), (("--api-key-env", "MINE"), "of mine")], ids=["none", "a variable"]
)
def test_a_server_gets_the_key_that_it_is_given_and_not_openais(monkeypatch, given, key):
    targets = []

    async def serve(options, *_):
        targets.extend(options.targets)

    monkeypatch.setenv("OPENAI_API_KEY", "of openai")
    monkeypatch.setenv("MINE", "of mine\r")
    monkeypatch.setattr("cues.cli.live.browser.command._serve", serve)
    result = CliRunner().invoke(group, ["live", "--base-url", "http://h:1/v1", "--model", "m", *given])
    assert result.exit_code == 0
    assert [target.api_key for target in targets] == [key]


def test_a_password_in_a_servers_address_is_shown_neither_in_the_terminal_nor_on_the_page(monkeypatch):
    told = []

    async def serve(_, hello, *__):
        told.append(hello["answers"])

    monkeypatch.setattr("cues.cli.live.browser.command._serve", serve)
    CliRunner().invoke(group, ["live", "--base-url", "http://me:hunter2@h:1/v1", "--model", "m"])
    assert told == ["m at http://h:1/v1"]


@contextmanager
def a_server_that_never_answers():
    """A model whose server accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield Target(base_url=f"http://127.0.0.1:{listening.getsockname()[1]}/v1", model="m", api="chat")


def told(target, script):
    """The events for the page of `script(conversation, clock)`, in virtual time, with the time of each."""
    events = []

    async def go():
        options = ConversationOptions(targets=[target], bank=watched_bank(""), speaker="voice-like")
        async with Conversation(options, clock) as conversation:
            conversation.line.tell = lambda kind, **fields: events.append((clock.now(), kind, fields))
            await script(conversation, clock)
            await conversation.answered()

    clock = LoopClock()
    run_virtually(go)
    return events


def test_a_server_that_never_answers_ends_the_turn_at_the_limit_with_the_error_cue():
    async def script(conversation, _):
        conversation.ask("And?")

    with a_server_that_never_answers() as target:
        events = told(target, script)
    asked_s, ended_s = (next(at_s for at_s, kind, _ in events if kind == name) for name in ("live.turn", "live.end"))
    assert asked_s == 0.0
    assert ended_s < LONGEST_LEARNING_S + 61.0
    end = events[-1][2]
    assert end["failure"] == "the model has sent nothing for 60 s"
    assert [cue["cue"] for cue in end["cues"]] == ["error"]


def test_an_interruption_ends_a_question_whose_model_is_not_ready_yet():
    async def script(conversation, clock):
        conversation.ask("And?")
        await clock.sleep(1.0)
        conversation.interrupt()

    with a_server_that_never_answers() as target:
        events = told(target, script)
    assert [(at_s, kind) for at_s, kind, _ in events] == [(0.0, "live.turn"), (1.0, "live.end")]
    assert events[-1][2] == {"failure": None, "interrupted": True, "cues": []}


FIRST_TURN = """
import asyncio, gc, sys
from cues.cli._page_server import watched_bank
from cues.cli.live.browser.command import rehearse
from cues.cli.live.browser.conversation import Conversation, ConversationOptions
from cues.cli.live.scripts import built_in_scripts

async def turn():
    bank = watched_bank("")
    await rehearse(bank)
    targets = [built_in_scripts()[-1].target()]
    async with Conversation(ConversationOptions(targets=targets, bank=bank, speaker="espeak")) as conversation:
        await conversation.answered()
        before = set(sys.modules)
        conversation.ask("And?")
        await conversation.answered()
        print(sorted(set(sys.modules) - before), gc.get_freeze_count() > 10_000)

asyncio.run(turn())
"""


def test_a_turn_after_the_rehearsal_imports_nothing_and_no_collection_walks_what_was_imported():
    done = subprocess.run([sys.executable, "-c", FIRST_TURN], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "[] True\n"


def test_every_built_in_script_has_a_question_and_its_tools_have_results():
    for script in built_in_scripts():
        assert script.prompt
        assert set(script.results) <= {tool.name for tool in script.tools()}
        assert bool(script.results) == (len(script.turns) > 1)


def test_recordings_become_a_script_with_their_own_question():
    files = [samples_folder() / "llama-server/hermes-two-calls.sse"]
    assert script_of(files).prompt == "What is the weather in Paris?"
