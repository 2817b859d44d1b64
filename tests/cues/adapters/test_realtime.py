"""OpenAI Realtime: the recorded events in, frames with cues out, and what the server learns of a barge-in."""

import asyncio
import base64

import numpy as np
import pytest

from cues.adapters.realtime import RealtimeCues
from cues.signal.fades import raised_cosine
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from stream.events import Finish, StreamFailed, TextDelta, ToolCallEnd, ToolCallStart
from stream.routing.rules import CueRules
from tests.support.listening import RATE, first_sound, last_sound, new_clicks, splatter_db, steady_voice
from tests.support.realtime_server import recorded, renamed, spoken
from tests.support.routing import ALL as TONES
from tests.support.routing import spoken as phrase
from tests.support.turn_matrix import Played
from tests.support.virtual_loop import LoopClock, run_virtually

VOICE = float_of_pcm16(pcm16_of_float(steady_voice(3.0)))
SPOKEN = spoken(recorded("openai-spoken-turn.jsonl"), VOICE)
TOOL_ROUND = recorded("openai-tool-round.jsonl")
SPEECH_STARTED = {"type": "input_audio_buffer.speech_started", "event_id": "e", "item_id": "i", "audio_start_ms": 9000}
NAMED = next(
    e for e in TOOL_ROUND if e["type"] == "response.output_item.added" and e["item"]["type"] == "function_call"
)
NEXT = renamed(SPOKEN, 2)  # the next answer
CALL = TOOL_ROUND[: 1 + next(n for n, e in enumerate(TOOL_ROUND) if e["type"] == "response.done")]


def converse(script, **options):
    """Run `script(voice, clock, sent)`; what was written."""

    async def go():
        clock, sent = LoopClock(), []

        async def send(event):
            sent.append((clock.now(), event))

        played = Played(clock)
        voice = RealtimeCues(played.add, send, clock=clock, **options)
        running = asyncio.create_task(voice.run())
        await script(voice, clock, sent)
        voice.close()
        await running
        return played, voice, sent

    return run_virtually(go)


async def feed(voice, events):
    for event in events:
        await voice.feed(event)


def test_the_models_voice_is_heard_whole_and_at_its_pace():
    async def script(voice, clock, sent):
        await feed(voice, SPOKEN)
        await asyncio.sleep(4.0)

    played, voice, sent = converse(script)
    heard = played.signal()
    at = first_sound(heard) - first_sound(VOICE)
    assert np.array_equal(heard[at : at + len(VOICE)], VOICE)
    assert last_sound(heard) < at + len(VOICE)
    assert sent == []
    assert voice.router.is_over


def cut_anew(events, n_bytes):
    """The events with their audio in deltas of `n_bytes`."""
    first, *others = [event for event in events if event["type"] == "response.output_audio.delta"]
    pcm = b"".join(base64.b64decode(event["delta"]) for event in [first, *others])
    pieces = [pcm[start : start + n_bytes] for start in range(0, len(pcm), n_bytes)]
    at = events.index(first)
    return [
        *events[:at],
        *({**first, "delta": base64.b64encode(piece).decode()} for piece in pieces),
        *(event for event in events[at:] if event not in others and event is not first),
    ]


@pytest.mark.parametrize("n_bytes", [1, 959, 4801])
def test_deltas_that_end_within_a_sample_are_heard_as_whole_ones(n_bytes):
    async def script(voice, clock, sent):
        await feed(voice, cut_anew(SPOKEN, n_bytes))
        await asyncio.sleep(4.0)

    heard = converse(script)[0].signal()
    at = first_sound(heard) - first_sound(VOICE)
    assert np.array_equal(heard[at : at + len(VOICE)], VOICE)


@pytest.mark.parametrize("end", ["response.output_audio.done", "response.done", "another item", "barge-in"])
def test_half_a_sample_at_the_end_of_an_item_is_not_part_of_what_follows(end):
    tone = np.full(4800, 0.25, dtype=np.float32)

    def delta(item_id, pcm):
        response_id = "r2" if item_id == "b" and end == "barge-in" else "r"
        data = {"delta": base64.b64encode(pcm).decode(), "content_index": 0, "response_id": response_id}
        return {"type": "response.output_audio.delta", "item_id": item_id, "output_index": 0, **data}

    async def script(voice, clock, sent):
        await voice.feed(delta("a", b"\x00\x00\x7f"))
        if end == "barge-in":
            await voice.barge_in()
            await asyncio.sleep(0.5)
        elif end != "another item":
            await voice.feed({"type": end, "response_id": "r", "response": {"id": "r", "status": "completed"}})
        is_same = end.startswith("response")
        await voice.feed(delta("a" if is_same else "b", pcm16_of_float(tone)))
        await asyncio.sleep(1.0)

    heard = converse(script)[0].signal()
    assert np.abs(heard).max() == pytest.approx(0.25, abs=1e-3)
    assert np.count_nonzero(np.abs(heard - 0.25) < 1e-3) > 4000


@pytest.mark.parametrize("known_s", [1.001, 1.0133, 1.0195])
def test_a_cue_begins_within_40_ms_after_the_name_of_the_call_and_makes_the_speech_no_longer(known_s):
    async def script(voice, clock, sent):
        before = [event for event in SPOKEN if event["type"] != "response.done"]
        await feed(voice, before)
        await asyncio.sleep(known_s)
        await voice.feed(NAMED)
        await asyncio.sleep(4.0 - known_s)

    with_cue, without = (converse(script, **options)[0].signal() for options in ({}, {"bank": {}}))
    n = min(len(with_cue), len(without))
    onset = first_sound(with_cue[:n] - without[:n])
    assert known_s * RATE - 1 <= onset <= (known_s + 0.04) * RATE
    assert last_sound(with_cue[: len(VOICE) + RATE]) == last_sound(without[: len(VOICE) + RATE])
    assert new_clicks(with_cue[:n], without[:n]) == []


@pytest.mark.parametrize("moment_s", [0.3, 1.007, 2.0133])
def test_a_barge_in_truncates_within_a_frame_of_what_was_heard(moment_s):
    async def script(voice, clock, sent):
        await feed(voice, SPOKEN)  # All of it is there long before it is heard, response.done included.
        await asyncio.sleep(moment_s)
        await voice.feed(SPEECH_STARTED)
        await voice.feed(SPEECH_STARTED)
        await feed(voice, [e for e in SPOKEN if e["type"] == "response.output_audio.delta"][:2])  # Late: it was cut.
        await asyncio.sleep(2.0)

    played, _, sent = converse(script)
    ((at_s, cut),) = sent
    assert (cut["type"], at_s) == ("conversation.item.truncate", moment_s)
    assert cut["item_id"] == next(e["item_id"] for e in SPOKEN if e["type"] == "response.output_audio.delta")
    heard = played.signal()
    heard_ms = (last_sound(heard, 0.01) + 1) * 1000 / RATE
    assert cut["audio_end_ms"] == pytest.approx(heard_ms, abs=20.0)
    assert last_sound(heard, 0.0) <= (moment_s + 0.04 + 0.03) * RATE
    assert new_clicks(heard, np.zeros_like(heard)) == []


BEGUN = [n for n, event in enumerate(SPOKEN) if event["type"] == "response.output_audio.delta"]


@pytest.mark.parametrize("n_before", [BEGUN[0], BEGUN[2]], ids=["before its first audio", "all heard so far"])
@pytest.mark.parametrize("drops", [lambda voice: voice.barge_in(), lambda voice: voice.feed(SPEECH_STARTED)])
def test_audio_of_an_interrupted_answer_is_dropped_though_all_before_it_was_heard(drops, n_before):
    async def script(voice, clock, sent):
        await feed(voice, SPOKEN[:n_before])
        await asyncio.sleep(5.0)
        await drops(voice)
        await feed(voice, SPOKEN[n_before:])
        await asyncio.sleep(5.0)
        await feed(voice, NEXT[2:])
        await asyncio.sleep(5.0)

    played, _, sent = converse(script, rules=CueRules(working=None))
    audio = [event for event in SPOKEN[:n_before] if event["type"] == "response.output_audio.delta"]
    n_heard = sum(len(base64.b64decode(event["delta"])) // 2 for event in audio)
    heard = played.signal()
    assert not heard[5 * RATE : 10 * RATE].any()
    assert np.count_nonzero(heard[: 5 * RATE]) <= n_heard + 0.01 * RATE  # it fades out
    assert np.count_nonzero(heard[10 * RATE :]) > 0.8 * len(VOICE)
    ((_, cut),) = sent
    assert cut["audio_end_ms"] == pytest.approx(1000 * n_heard / RATE, abs=1)


@pytest.mark.parametrize("interrupts", [True, False])
def test_a_noise_before_an_answer_that_the_server_lets_go_on_silences_none_of_it(interrupts):
    detection = {"type": "server_vad", "interrupt_response": interrupts}

    async def script(voice, clock, sent):
        await voice.feed({"type": "session.updated", "session": {"audio": {"input": {"turn_detection": detection}}}})
        await feed(voice, SPOKEN[2 : BEGUN[0]])
        await voice.feed(SPEECH_STARTED)
        await feed(voice, SPOKEN[BEGUN[0] :])
        await asyncio.sleep(5.0)

    heard = converse(script, rules=CueRules(working=None))[0].signal()
    assert (np.count_nonzero(heard) > 0.8 * len(VOICE)) == (not interrupts)


def test_words_while_the_server_lets_a_response_go_on_begin_no_turn():
    detection = {"type": "server_vad", "interrupt_response": False}

    async def script(voice, clock, sent):
        await voice.feed({"type": "session.updated", "session": {"audio": {"input": {"turn_detection": detection}}}})
        await feed(voice, SPOKEN[2 : BEGUN[2]])
        await asyncio.sleep(0.2)
        await voice.feed(SPEECH_STARTED)
        await voice.feed({**SPEECH_STARTED, "type": "input_audio_buffer.speech_stopped"})
        await feed(voice, SPOKEN[BEGUN[2] :])
        await asyncio.sleep(70.0)

    _, voice, _ = converse(script)
    assert list(voice.router.spans) == []


def test_an_answer_after_a_barge_in_is_truncated_by_its_own_time():
    async def script(voice, clock, sent):
        await feed(voice, SPOKEN)
        await asyncio.sleep(1.0)
        await voice.feed(SPEECH_STARTED)
        await asyncio.sleep(1.0)
        await feed(voice, NEXT[2:])
        await asyncio.sleep(0.5)
        await voice.feed(SPEECH_STARTED)
        await asyncio.sleep(0.5)

    _, _, sent = converse(script)
    assert sent[1][1]["item_id"].startswith("item_2_")
    assert sent[1][1]["audio_end_ms"] == pytest.approx(555, abs=40)


def detecting(**fields):
    detection = {"turn_detection": {"type": "server_vad", **fields}}
    return [{"audio": {"input": detection}}, detection]  # of today, and of the beta


@pytest.mark.parametrize("session", [*detecting(create_response=False), *detecting(create_response=True), *detecting()])
def test_the_wait_begins_with_the_users_last_word_only_where_the_server_answers_by_itself(session):
    async def script(voice, clock, sent):
        await voice.feed({"type": "session.updated", "session": session})
        await feed(voice, [SPEECH_STARTED, {"type": "input_audio_buffer.speech_stopped"}])
        phases.append(voice.router.phase)
        await voice.feed({"type": "response.created", "response": {"id": "r"}})
        phases.append(voice.router.phase)

    phases = []
    converse(script)
    asks_itself = "False" in repr(session)
    assert phases == ["done" if asks_itself else "thinking", "thinking"]


@pytest.mark.parametrize("has_tool", [True, False])
def test_an_error_in_place_of_a_response_ends_the_wait(has_tool):
    async def script(voice, clock, sent):
        if has_tool:
            await feed(voice, CALL)
            await voice.result(NAMED["item"]["call_id"], "ok")
        else:
            await voice.feed({"type": "input_audio_buffer.speech_stopped"})
        assert voice.router.phase != "done"
        await voice.feed({"type": "error", "error": {"type": "server_error", "message": "The server had an error."}})
        assert voice.router.phase == "done"
        await asyncio.sleep(70.0)
        cues = [span.cue for span in voice.router.spans]
        assert cues[-1] == "error"
        assert cues.count("error") == 1

    played, _, _ = converse(script)
    assert last_sound(played.signal()) < 3 * 24000


def test_an_error_while_a_response_or_a_tool_is_under_way_ends_no_wait():
    wrong = {"type": "error", "error": {"type": "invalid_request_error", "message": "Audio content is too short."}}

    async def script(voice, clock, sent):
        await voice.feed({"type": "input_audio_buffer.speech_stopped"})
        await feed(voice, [{"type": "response.created", "response": {"id": "r"}}, wrong])
        assert voice.router.phase == "thinking"
        await feed(voice, [*CALL, wrong])
        assert voice.router.phase == "working", "the tool runs on"

    converse(script)


def faded_tone():
    tone = 0.4 * np.sin(2 * np.pi * 220 * np.arange(RATE) / RATE)
    tone[:480] *= raised_cosine(480)
    tone[-480:] *= raised_cosine(480)[::-1]
    return tone


def answer(name, samples, status):
    of = {"response_id": name, "item_id": f"item {name}", "output_index": 0, "content_index": 0}
    yield {"type": "response.created", "response": {"id": name, "status": "in_progress"}}
    for piece in np.split(samples, range(4800, len(samples), 4800)):
        delta = base64.b64encode(pcm16_of_float(piece)).decode()
        yield {"type": "response.output_audio.delta", "delta": delta, **of}
    yield {"type": "response.output_audio.done", **of}
    yield {"type": "response.done", "response": {"id": name, "status": status, "output": []}}


@pytest.mark.parametrize("rate", [24000, 16000, 8000, 48000])
def test_another_response_that_ends_meanwhile_ends_no_speech(rate):
    spoken = list(answer("a", faded_tone(), "completed"))
    other = {"id": "out of band", "conversation_id": None, "status": "completed", "output": []}

    async def script(voice, clock, _):
        await feed(voice, [*spoken[:4], {"type": "response.done", "response": other}, *spoken[4:]])
        await clock.sleep(1.4)

    async def alone(voice, clock, _):
        await feed(voice, spoken)
        await clock.sleep(1.4)

    played, expected = (converse(each, sample_rate=rate)[0].signal() for each in (script, alone))
    np.testing.assert_array_equal(played, expected)


def test_an_answer_that_is_cut_off_in_mid_sound_fades_out_under_the_next_one_that_is_queued():
    tone = faded_tone()

    async def script(voice, clock, _):
        await feed(voice, answer("a", tone[:19325], "incomplete"))
        await clock.sleep(0.3)
        await feed(voice, answer("b", tone, "completed"))
        await clock.sleep(1.4)

    played, voice, _ = converse(script)
    assert splatter_db(np.append(tone[:19325], tone), 4000) > -40, "what it would be without"
    assert splatter_db(played.signal(), 4000) < -65, "the noise of int16"
    assert voice.pacer.underruns == 0


def test_events_after_the_close_do_nothing():
    async def script(voice, clock, sent):
        voice.close()
        assert await voice.feed(NAMED) == []
        await feed(voice, [*SPOKEN, SPEECH_STARTED])

    played, _, sent = converse(script)
    assert (len(played.signal()), sent) == (0, [])


NOTHING = ["", "{", b"\xff", "[]", '{"type": 5}', {"type": "ping"}, None, {"type": []}, 7]


@pytest.mark.parametrize("event", NOTHING, ids=repr)
def test_an_event_that_says_nothing_does_nothing(event):
    async def script(voice, clock, sent):
        assert await voice.feed(event) == []
        await asyncio.sleep(1.0)

    played, _, sent = converse(script)
    assert (len(played.signal()), sent) == (0, [])


@pytest.mark.parametrize(
    "form", [{"rate": 1}, {"rate": 10**30}, {"rate": -8000}, {"type": "audio/opus"}, {"type": "a/rate=0"}]
)
def test_audio_of_a_rate_or_format_that_cannot_be_played_is_dropped(form):
    answer = [event for event in SPOKEN if not event["type"].startswith("session.")]

    async def script(voice, clock, sent):
        audio = {"output": {"format": {"type": "audio/pcm", **form}}}
        await voice.feed({"type": "session.updated", "session": {"audio": audio}})
        await feed(voice, answer)
        assert voice.pacer.queued_samples == 0
        audio = {"output": {"format": {"type": "audio/pcm", "rate": 24000}}}
        await voice.feed({"type": "session.updated", "session": {"audio": audio}})
        await feed(voice, NEXT[2:])
        assert voice.pacer.queued_samples > 0

    converse(script)


def steps_of(text):
    """The steps of a session: `(verb, name, whether an answer is asked for after it)`."""
    for step in text.split(", "):
        verb, _, name = step.rstrip("!").partition(" ")
        yield verb, name, step.endswith("!")


def server_events(verb, name, response):
    """The events of a step; calls are those of the latest `response`."""
    call = {"id": f"i{name}", "type": "function_call", "call_id": name, "name": "look"}
    item = {"call_id": name, "type": "function_call_output", "output": "ok"}
    of = {"response_id": response, "item_id": f"i{name}", "output_index": ord(name[:1] or "-")}
    part, _, status = name.partition(" ")
    done = {"id": part, "conversation_id": "c", "output": []}
    return {
        "begin": [{"type": "response.created", "response": {"id": name, "conversation_id": "c"}}],
        "aside": [{"type": "response.created", "response": {"id": name, "conversation_id": None}}],
        "end": [{"type": "response.done", "response": {**done, "status": status or "completed"}}],
        "call": [
            {"type": "response.output_item.added", **of, "item": {**call, "arguments": ""}},
            {"type": "response.output_item.done", **of, "item": {**call, "arguments": "{}", "status": "completed"}},
        ],
        "cut": [{"type": "response.output_item.added", **of, "item": {**call, "arguments": ""}}],
        "bad": [{"type": "response.output_item.done", **of, "item": {**call, "arguments": "{", "status": "completed"}}],
        "input": [{"type": f"input_audio_buffer.{name}"}],
        "error": [{"type": "error", "error": {"type": "server_error", "message": "No."}}],
        "added": [{"type": "conversation.item.added", "item": item}],
    }[verb]


SPEECH = "input speech_started, input speech_stopped"


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param("begin r, call a, end r, result a!, begin s, end s", id="one call"),
        pytest.param("begin r, call a, result a, end r!, begin s, end s", id="a result before its response is done"),
        pytest.param("begin r, call a, call b, end r, result a, result b!, begin s", id="two calls"),
        pytest.param("begin r, call a, result a, call b, end r, result b!", id="a call after the result of another"),
        pytest.param("begin r, call a, call b, end r, failed a, failed b!", id="tools that fail"),
        pytest.param("begin r, call a, call b, end r, silent a, result b!", id="one that wants no answer"),
        pytest.param("begin r, call a, call b, end r, result a, silent b!", id="the last one wants no answer"),
        pytest.param("begin r, call a, end r, silent a", id="no answer is wanted"),
        pytest.param("begin r, call a, cut b, result a, end r incomplete!", id="a response that is incomplete"),
        pytest.param("begin r, call a, cut b, end r cancelled, result a!", id="a response that is canceled"),
        pytest.param("begin r, call a, end r failed, result a!", id="a response that fails"),
        pytest.param(
            "begin r, bad a, call b, end r, result a, result b!", id="a result for a call that cannot be read"
        ),
        pytest.param(
            "begin r, call a, end r, result a!, begin s, call b, end s, result b!, begin t", id="a round more"
        ),
        pytest.param("begin r, call a, end r, begin s, result a, end s!", id="a result while another response goes on"),
        pytest.param(
            "begin r, call a, end r, begin s, call b, end s, result b!, begin t, result a, end t!",
            id="a slow tool of an earlier response",
        ),
        pytest.param(
            "begin r, call a, end r, begin s, call b, end s, result a!, result b, begin t, end t!",
            id="a result just after the question",
        ),
        pytest.param(
            f"begin r, call a, end r, {SPEECH}, result a, begin s, end s", id="a result after the user's words"
        ),
        pytest.param("begin r, call a, end r, input speech_started, result a, begin s, end s", id="during them"),
        pytest.param(
            f"begin r, call a, call b, end r, result a, {SPEECH}, begin s, end s, result b!", id="between two"
        ),
        pytest.param("begin r, call a, input speech_started, end r cancelled, result a, begin s", id="interrupted"),
        pytest.param(f"begin r, call a, {SPEECH}, end r, result a!", id="words that get no response of their own"),
        pytest.param("begin r, call a, end r, input speech_started, input cleared, result a!", id="words withdrawn"),
        pytest.param(f"begin r, call a, end r, {SPEECH}, error, result a!", id="an error in place of the response"),
        pytest.param("begin r, call a, end r, result a!, error, result b!", id="an error in place of the answer"),
        pytest.param("begin r, call a, end r, input speech_started, error, result a, begin s", id="an error meanwhile"),
        pytest.param(f"begin r, call a, end r, {SPEECH}, result a, begin s, added a, end s!", id="an output too late"),
        pytest.param(f"begin r, call a, end r, {SPEECH}, result a, added a, begin s, end s", id="an output in time"),
        pytest.param("begin r, call a, result a, aside o, end o, end r!", id="a response out of band"),
        pytest.param("begin r, call a, end r, aside o, result a!, end o, begin s, end s", id="beside the question"),
    ],
)
def test_the_answer_is_asked_for_once_when_the_response_is_done_and_its_calls_have_results(steps):
    async def script(voice, clock, sent):
        response = ""
        for verb, name, asks in steps_of(steps):
            response = name if verb == "begin" else response
            n_sent = len(sent)
            if verb in ("result", "failed", "silent"):
                await voice.result(name, "ok", is_error=verb == "failed", respond=verb != "silent")
                assert sent.pop(n_sent)[1]["item"]["call_id"] == name, "the output itself is sent at once"
            else:
                await feed(voice, server_events(verb, name, response))
            asked = [event["type"] for _, event in sent[n_sent:] if event["type"] != "conversation.item.truncate"]
            assert asked == ["response.create"] * asks, (verb, name)

    converse(script)


@pytest.mark.parametrize(
    ("steps", "waits"),
    [
        ("begin r, call a, end r, silent a", False),
        ("begin r, call a, silent a, end r", False),
        ("begin r, bad a, end r", False),
        ("begin r, bad a, bad b, end r", False),
        ("begin r, cut a, end r incomplete", False),
        ("begin r, call a, bad b, end r, silent a", False),
        ("begin r, call a, end r, result a", True),
        ("begin r, bad a, end r, result a", True),
        ("begin r, bad a, call b, end r", True),
        ("begin r, call a, call b, end r, silent a, result b", True),
        (f"begin r, call a, end r, {SPEECH}, silent a", True),
    ],
)
def test_where_nobody_asks_for_an_answer_none_is_waited_for(steps, waits):
    async def script(voice, clock, sent):
        response = ""
        for verb, name, _ in steps_of(steps):
            response = name if verb == "begin" else response
            if verb in ("result", "silent"):
                await voice.result(name, "ok", respond=verb == "result")
                await feed(voice, server_events("begin", "s", "s") if verb == "result" else ())
            else:
                await feed(voice, server_events(verb, name, response))
        await asyncio.sleep(10.0)

    _, voice, _ = converse(script)
    assert ("working" in [span.cue for span in voice.router.spans]) == waits


def test_a_tool_that_ends_while_a_barge_in_is_being_sent_asks_for_no_answer():
    """The user speaks: the server makes the next response by itself."""

    async def go():
        sent, is_writable = [], asyncio.Event()

        async def send(event):
            sent.append(event["type"])
            if event["type"] == "conversation.item.truncate":
                await is_writable.wait()

        voice = RealtimeCues(lambda _: None, send, clock=LoopClock())
        await feed(voice, [*SPOKEN, *CALL])
        cut = asyncio.create_task(voice.feed(SPEECH_STARTED))
        await asyncio.sleep(0)
        await voice.result(NAMED["item"]["call_id"], "ok")
        is_writable.set()
        await cut
        return sent

    assert run_virtually(go) == ["conversation.item.truncate", "conversation.item.create"]


@pytest.mark.parametrize(
    ("session", "server_hears"),
    [
        ({"audio": {"input": {"turn_detection": None}}}, False),
        ({"turn_detection": None}, False),
        ({"turn_detection": {"type": None}}, False),
        ({"audio": {"input": {"turn_detection": {"type": "semantic_vad"}}}}, True),
    ],
)
def test_a_program_that_hears_the_user_itself_asks_itself_for_the_answer(session, server_hears):
    """Push to talk: the server tells nothing of the user's words."""

    async def script(voice, clock, sent):
        await feed(voice, [*CALL, {"type": "session.updated", "session": session}])
        await voice.barge_in()
        await voice.result(NAMED["item"]["call_id"], "ok")
        asked = [event["type"] for _, event in sent]
        assert asked == ["conversation.item.create"] + ["response.create"] * server_hears
        if server_hears:  # a noise that it did not take for words
            return
        await feed(voice, server_events("begin", "r2", "r2"))  # the answer that the program asks for
        await feed(voice, server_events("call", "b", "r2"))
        await feed(voice, server_events("end", "r2", "r2"))
        await voice.result("b", "ok")
        assert [event["type"] for _, event in sent][1:] == ["conversation.item.create", "response.create"]

    converse(script)


@pytest.mark.parametrize("drops", [lambda voice: voice.barge_in(), lambda voice: voice.feed(SPEECH_STARTED)])
def test_nobody_waits_for_a_cue_that_was_dropped_in_the_moment_in_which_it_began(drops):
    async def script(voice, clock, sent):
        await feed(voice, server_events("begin", "r", "r"))
        await clock.sleep(1.0)
        await feed(voice, server_events("call", "a", "r"))
        await drops(voice)
        async with asyncio.timeout(5.0):
            await voice.played()

    converse(script)


@pytest.mark.parametrize(
    ("options", "cue_s"),
    [({"bank": {"error": phrase("error")}}, 0.4), ({"bank": TONES, "rules": CueRules(placement="in_pause")}, 0.1)],
    ids=["phrase", "in a pause"],
)
@pytest.mark.parametrize("words", [[], SPOKEN], ids=["no words", "after words"])
def test_who_waits_for_the_end_hears_the_whole_error_that_waited_for_a_pause(options, cue_s, words):
    async def script(voice, clock, sent):
        await feed(voice, words)
        voice.router.handle(StreamFailed("no"))
        await voice.played()

    _, voice, _ = converse(script, **options)
    (error,) = [span for span in voice.router.spans if span.cue == "error"]
    assert error.end_samples - error.start_samples == pytest.approx(cue_s * RATE, abs=2)


def test_an_output_that_fails_closes_the_mixer_and_ends_who_waits():
    async def go():
        def write(_frame):
            raise ConnectionError

        voice = RealtimeCues(write, clock=LoopClock())
        await feed(voice, SPOKEN)
        with pytest.raises(ConnectionError):
            await voice.run()
        await voice.played()
        return voice.router.phase

    assert run_virtually(go) == "done"


def sounded(voice):
    return sorted((span.cue, span.start_samples, span.end_samples) for span in voice.router.spans)


TODAY = {"modalities": "output_modalities", "text": "response.output_text"}
BETA = {"modalities": "modalities", "text": "response.text"}


def written(name, *pieces, conversation="c", names=TODAY, call="", status="completed"):
    """The events of a response in text, and of a call if one is named."""
    response = {"id": name, "conversation_id": conversation, names["modalities"]: ["text"], "output": []}
    of = {"response_id": name, "item_id": f"item {name}", "output_index": 0, "content_index": 0}
    yield {"type": "response.created", "response": {**response, "status": "in_progress"}}
    for piece in pieces:
        yield {"type": f"{names['text']}.delta", "delta": piece, **of}
    yield {"type": f"{names['text']}.done", "text": "".join(pieces), **of}
    yield from server_events("call", call, name) if call else ()
    yield {"type": "response.done", "response": {**response, "status": status}}


def aside(name="o", *pieces, **options):
    return list(written(name, *(pieces or ("sup", "port")), conversation=None, **options))


@pytest.mark.parametrize("names", [TODAY, BETA], ids=["today", "beta"])
@pytest.mark.parametrize("is_asked", [True, False])
def test_after_an_answer_in_text_no_voice_is_awaited(names, is_asked):
    async def script(voice, clock, sent):
        await feed(voice, [SPEECH_STARTED, {"type": "input_audio_buffer.speech_stopped"}] if is_asked else [])
        await feed(voice, written("r", "It is ", "dark.", names=names))
        assert voice.router.is_over
        await clock.sleep(70.0)

    assert sounded(converse(script)[1]) == []


@pytest.mark.parametrize("names", [TODAY, BETA], ids=["today", "beta"])
def test_text_beside_a_call_and_after_its_result_changes_none_of_its_cues(names):
    async def script(voice, clock, sent, words=True):
        say = ("Let me look.",) if words else ()
        await feed(voice, written("r", *say, names=names, call="a"))
        await clock.sleep(6.0)
        await voice.result("a", "ok")
        await clock.sleep(1.0)
        await feed(voice, written("s", "It is dark.", names=names))
        assert voice.router.is_over
        await clock.sleep(70.0)

    async def without_words(*parts):
        await script(*parts, words=False)

    spans = [sounded(converse(each)[1]) for each in (script, without_words)]
    assert spans[0] == spans[1]
    assert [cue for cue, *_ in spans[0]] == ["success", "tool_call", "working"]


SAID = list(answer("r", faded_tone(), "completed"))
QUESTION = [SPEECH_STARTED, {"type": "input_audio_buffer.speech_stopped"}]
ASIDES = {
    "text": aside(),
    "today's names, cut off": aside(status="incomplete"),
    "the beta's names": aside(names=BETA),
    "failed": aside(status="failed"),
    "a call": aside(call="z"),
    "a call that cannot be read": [*aside()[:-1], *server_events("bad", "z", "o"), aside()[-1]],
}


def steps_around(events):
    """Steps of a talk, `None` where the aside's `events` may come at once; what it may come beside."""
    named = [{**e, "response": {**e["response"], "conversation_id": "c"}} if "response" in e else e for e in SAID]
    call = server_events("call", "a", "q")
    return {
        "alone": [None, 70.0],
        "after an answer": [*QUESTION, *named, 3.0, None, 70.0],
        "before an answer": [*QUESTION, 0.5, None, 6.0, *named, 70.0],
        "within an answer": [*QUESTION, named[0], *events[:2], *named[1:4], *events[2:], *named[4:], 70.0],
        "while an answer is heard": [*QUESTION, *named, 0.3, None, 70.0],
        "while an answer is late": [*QUESTION, named[0], 0.5, None, 6.0, *named[1:], 70.0],
        "while a tool runs": [
            *(*QUESTION, *server_events("begin", "q", "q"), *call, *server_events("end", "q", "q")),
            *(0.5, None, 6.0, "a", 1.0, *named, 70.0),
        ],
        "while a call is being written": [
            *(*QUESTION, *server_events("begin", "q", "q"), call[0], *events[:2], 0.5, call[1]),
            *(*events[2:], *server_events("end", "q", "q"), 1.0, "a", *named, 70.0),
        ],
    }


@pytest.mark.parametrize("kind", ASIDES)
@pytest.mark.parametrize("beside", steps_around([]))
def test_a_response_out_of_band_in_text_changes_nothing_that_is_heard(kind, beside):
    events = ASIDES[kind]

    def talk(*, is_there):
        async def script(voice, clock, sent):
            for step in steps_around(events)[beside]:
                if isinstance(step, float):
                    await clock.sleep(step)
                elif isinstance(step, str):
                    await voice.result(step, "ok")
                elif step is None or step in events:
                    await feed(voice, (events if step is None else [step]) if is_there else ())
                else:
                    await voice.feed(step)
            assert voice.router.is_over

        played, voice, sent = converse(script)
        return played.signal(), sounded(voice), sent

    (heard, spans, sent), alone = talk(is_there=True), talk(is_there=False)
    np.testing.assert_array_equal(heard, alone[0])
    assert (spans, sent) == alone[1:]


def test_a_response_out_of_band_is_returned_as_it_comes_and_its_call_may_have_a_result():
    async def script(voice, clock, sent):
        await feed(voice, [*server_events("begin", "r", "r"), server_events("call", "a", "r")[0]])
        told = [event for each in aside("o", "sup", "port", call="z") for event in await voice.feed(each)]
        call = ToolCallStart("look", "z"), ToolCallEnd("look", "z")
        assert told == [TextDelta("sup"), TextDelta("port"), *call, Finish("completed")]
        await voice.result("z", "no such folder", is_error=True, respond=False)
        assert [event["item"]["call_id"] for _, event in sent] == ["z"]
        assert await voice.feed(server_events("call", "a", "r")[1]) == [ToolCallEnd("look", "a")]
        await voice.result("a", "ok")

    assert [span.cue for span in converse(script)[1].router.spans] == ["tool_call", "success"]


def test_an_answer_out_of_band_that_is_spoken_begins_a_turn_and_is_heard():
    events = [{**e, "response": {**e["response"], "conversation_id": None}} if "response" in e else e for e in SAID]
    events[0]["response"]["output_modalities"] = ["audio"]

    async def script(voice, clock, sent):
        await voice.feed(events[0])
        assert voice.router.phase == "thinking"
        await feed(voice, events[1:])
        await clock.sleep(2.0)
        assert voice.router.is_over

    assert np.abs(converse(script)[0].signal()).max() == pytest.approx(0.4, abs=0.01)
