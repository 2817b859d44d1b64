"""FastRTC's `ReplyOnPause`, which most use: its reply function runs in worker threads, and its barge-in as well."""

import asyncio
import contextvars
import gc
import threading

import numpy as np
import pytest
from fastrtc import ReplyOnPause, Stream, WebRTCData

from cues.adapters.fastrtc import current_router, with_cues
from stream.errors import StreamValueError
from stream.events import ToolCallStart, ToolResult
from tests.fastrtc.test_handler import Talker
from tests.support.listening import RATE, first_sound, steady_voice

LIMIT_S = 20.0  # A test that waits for what never comes fails; nothing waits for this time to pass.


class Loudness:
    """A pause detector: as much speech as there are loud samples."""

    def vad(self, audio, _options):
        sample_rate, samples = audio
        return float(np.count_nonzero(np.abs(samples) > 1000)) / sample_rate, []

    def warmup(self):
        pass


def reply_on_pause(reply, **options):
    return ReplyOnPause(reply, model=Loudness(), input_sample_rate=16000, output_sample_rate=RATE, **options)


async def say_something(handler):
    """The user's speech, and the pause after it."""
    for loud in (True, False):
        await handler.receive((16000, np.full((1, 9600), 10000 if loud else 0, dtype=np.int16)))


async def hear(handler, enough):
    """Take what `emit` gives until `enough(signal)`."""
    frames = []
    while not enough(signal := np.concatenate([np.zeros(0, dtype=np.float32), *frames])):
        item = await handler.emit()
        if item is not None:
            frames.append(item[1])
    return signal


def converse(handler, script):
    async def go():
        handler._loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(LIMIT_S):
                return await script()
        finally:
            handler.shutdown()

    return asyncio.run(go())


def cues_of(handler):
    return [span.cue for span in handler.router.spans if span.cue != "working"]


def reply_in_a_thread(audio):
    seen.append((current_router(), threading.current_thread()))
    current_router().handle(ToolCallStart("read_file", "1"))
    yield RATE, steady_voice(0.5).reshape(1, -1)
    current_router().handle(ToolResult(tool_name="read_file", tool_call_id="1", is_error=True, content=""))


async def reply_on_the_loop(audio):
    for item in reply_in_a_thread(audio):
        yield item


def reply_with(audio):
    """A function that asks for the router as it is called, and gives a generator."""
    return reply_in_a_thread(current_router())


seen = []


@pytest.mark.parametrize(
    "reply", [reply_in_a_thread, reply_on_the_loop, reply_with], ids=["generator", "async generator", "function"]
)
def test_a_reply_function_reaches_the_router_of_its_connection(reply):
    seen.clear()
    handlers = [with_cues(reply_on_pause(reply)) for _ in range(2)]
    for handler in handlers:

        async def script(handler=handler):
            await say_something(handler)
            return await hear(handler, lambda signal: len(signal) > 0.4 * RATE)

        assert first_sound(converse(handler, script)) is not None
    assert [router for router, _ in seen] == [handler.router for handler in handlers]
    assert [cues_of(handler) for handler in handlers] == [["tool_call", "error"]] * 2
    is_loops = {thread is threading.main_thread() for _, thread in seen}
    assert is_loops == {reply is reply_on_the_loop}


def test_outside_of_a_reply_function_there_is_no_router():
    with pytest.raises(StreamValueError, match="no handler made by with_cues"):
        current_router()


def test_a_reply_that_ends_with_a_call_open_ends_the_call():
    def reply(audio):
        current_router().handle(ToolCallStart("read_file", "1"))
        yield RATE, np.zeros((1, 480), dtype=np.float32)

    handler = with_cues(reply_on_pause(reply))

    async def script():
        await say_something(handler)
        await hear(handler, lambda _: cues_of(handler) and not handler.router.waits)

    converse(handler, script)
    assert cues_of(handler) == ["tool_call"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_reply_that_raises_sounds_as_a_failure(capfd):
    def reply(audio):
        current_router().handle(ToolCallStart("read_file", "1"))
        raise ConnectionError("no model at that address")
        yield

    handler = with_cues(reply_on_pause(reply))

    async def script():
        await say_something(handler)
        return await hear(handler, lambda signal: len(signal) > 0.2 * RATE)

    assert first_sound(converse(handler, script)) is not None
    assert cues_of(handler) == ["tool_call", "error"]
    assert "no model at that address" in capfd.readouterr().err  # FastRTC prints it, too.


async def nothing_more(): ...


def interrupted(handler, asked, go_on, afterwards=nothing_more):
    """What is heard when the user speaks again while the reply, once it has `asked`, waits to `go_on`."""

    async def script():
        await say_something(handler)
        frames = asyncio.create_task(hear(handler, lambda signal: np.count_nonzero(signal) > 4000))
        await asyncio.to_thread(asked.wait, LIMIT_S)
        await say_something(handler)
        go_on.set()
        signal = await frames
        await afterwards()
        return signal

    return converse(handler, script)


def test_speech_that_a_closed_reply_still_gives_is_not_heard():
    asked, go_on, n_replies = threading.Event(), threading.Event(), []

    def reply(audio):
        n_replies.append(1)
        if len(n_replies) == 1:
            yield RATE, np.zeros((1, 480), dtype=np.float32)
            asked.set()
            go_on.wait(LIMIT_S)
            yield RATE, np.full((1, 4800), 0.5, dtype=np.float32)  # of the answer that was interrupted
        yield RATE, np.full((1, 4800), 0.125, dtype=np.float32)

    handler = with_cues(reply_on_pause(reply))

    signal = interrupted(handler, asked, go_on)
    assert np.abs(signal).max() == pytest.approx(0.125, rel=0.01)


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "in a thread"])
def test_of_a_step_that_goes_on_after_a_barge_in_nothing_is_heard(is_async):
    go_on, n_replies = threading.Event(), []

    def steps():
        n_replies.append(1)
        if len(n_replies) > 1:
            yield RATE, np.full((1, 4800), 0.125, dtype=np.float32)
            return
        current_router().handle(ToolCallStart("read_file", "1"))
        yield RATE, np.zeros((1, 480), dtype=np.float32)
        yield None
        current_router().handle(ToolResult(tool_name="read_file", tool_call_id="1", is_error=True, content=""))
        current_router().handle(ToolCallStart("write_file", "2"))
        yield RATE, np.full((1, 480), 0.25, dtype=np.float32)

    async def reply_async(_audio):
        for item in steps():
            if item is None:
                await asyncio.to_thread(go_on.wait, LIMIT_S)
            else:
                yield item

    def reply(_audio):
        for item in steps():
            if item is None:
                go_on.wait(LIMIT_S)
            else:
                yield item

    handler = with_cues(reply_on_pause(reply_async if is_async else reply))

    async def script():
        await say_something(handler)
        await hear(handler, lambda signal: len(signal) > 4800 and cues_of(handler))
        await say_something(handler)
        go_on.set()
        signal = await hear(handler, lambda signal: np.isclose(signal, 0.125, atol=0.002).any())
        assert not handler.router.waits
        return signal

    signal = converse(handler, script)
    assert cues_of(handler) == ["tool_call"]
    assert not np.isclose(signal, 0.25, atol=0.002).any()


def test_what_an_interrupted_reply_has_started_is_not_heard_in_the_next():
    next_runs, started = asyncio.Event(), []

    async def background():
        await next_runs.wait()
        current_router().handle(ToolCallStart("read_file", "1"))

    async def reply(_audio):
        if started:
            yield RATE, np.full((1, 480), 0.125, dtype=np.float32)
            next_runs.set()
            await started[0]
            yield RATE, np.full((1, 9600), 0.125, dtype=np.float32)
            return
        started.append(asyncio.create_task(background()))
        yield RATE, np.zeros((1, 4800), dtype=np.float32)
        yield RATE, np.zeros((1, 4800), dtype=np.float32)

    handler = with_cues(reply_on_pause(reply))

    async def script():
        await say_something(handler)
        await hear(handler, lambda signal: len(signal) > 480)
        await say_something(handler)
        await hear(handler, lambda signal: np.count_nonzero(signal) > 4000)

    converse(handler, script)
    assert cues_of(handler) == []


def test_an_interrupted_reply_is_closed_though_what_it_started_lives_on():
    asked, go_on, contexts, closed = threading.Event(), threading.Event(), [], asyncio.Event()

    async def reply(_audio):
        if contexts:
            yield RATE, np.full((1, 9600), 0.125, dtype=np.float32)
            return
        try:
            yield RATE, np.zeros((1, 480), dtype=np.float32)
            current_router()
            contexts.append(contextvars.copy_context())  # as a connection to a model keeps it
            asked.set()
            await asyncio.to_thread(go_on.wait, LIMIT_S)
            yield RATE, np.zeros((1, 480), dtype=np.float32)
        finally:
            closed.set()

    handler = with_cues(reply_on_pause(reply))

    async def is_closed():
        gc.collect()
        await closed.wait()

    interrupted(handler, asked, go_on, is_closed)


def test_a_first_step_that_asks_for_the_router_after_a_barge_in_sounds_nothing():
    asked, go_on, n_replies = threading.Event(), threading.Event(), []

    def reply(_audio):
        n_replies.append(1)
        if len(n_replies) == 1:
            asked.set()
            go_on.wait(LIMIT_S)
            for number in ("1", "2"):
                current_router().handle(ToolCallStart("read_file", number))
        yield RATE, np.full((1, 4800), 0.125, dtype=np.float32)

    handler = with_cues(reply_on_pause(reply))

    interrupted(handler, asked, go_on)
    assert cues_of(handler) == []


def test_a_barge_in_and_events_may_come_from_other_threads():
    handler = with_cues(reply_on_pause(reply_in_a_thread))

    async def script():
        await handler.emit()
        await asyncio.to_thread(handler.router.handle, ToolCallStart("read_file", "1"))
        await hear(handler, lambda signal: len(signal) > 960)
        await asyncio.to_thread(handler.inner.clear_queue)
        await hear(handler, lambda _: handler.router.spans.overlaps(0, 10) is not None)

    converse(handler, script)
    assert cues_of(handler) == ["tool_call"]
    assert not handler.router.waits


class Channel:
    def send(self, message): ...


def streamed(handler, **ui_args):
    """The stream's own copy of a handler, as FastRTC connects it, and the stream."""
    stream = Stream(handler, modality="audio", mode="send-receive", ui_args=ui_args)
    copy = stream.event_handler.copy()
    copy._loop = asyncio.get_running_loop()
    copy.set_channel(Channel())
    stream.handlers["1"], stream.connections["1"] = copy, [copy]
    return copy, stream


@pytest.mark.filterwarnings("ignore:.* in Gradio 6.0:DeprecationWarning")  # how fastrtc calls gradio
def test_a_text_that_is_typed_into_the_text_box_is_answered():
    typed = []

    def reply(data):
        typed.append(data.textbox)
        yield RATE, steady_voice(0.5).reshape(1, -1)

    handler = with_cues(reply_on_pause(reply))

    async def script():
        copy, stream = streamed(handler, variant="textbox")
        stream.set_input_on_submit(WebRTCData(webrtc_id="1", textbox="Good evening"))
        try:
            return await hear(copy, lambda signal: len(signal) > 0.2 * RATE)
        finally:
            copy.shutdown()

    assert first_sound(converse(handler, script)) is not None
    assert typed == ["Good evening"]


@pytest.mark.filterwarnings("ignore:.* in Gradio 6.0:DeprecationWarning")
def test_without_a_text_box_the_reply_gets_the_audio():
    handler = with_cues(reply_on_pause(lambda _audio: iter(()), needs_args=True))

    async def script():
        return streamed(handler)[0].inner.needs_args

    assert not converse(handler, script)


def test_a_handler_without_a_text_box_shows_none():
    handler = with_cues(Talker())
    assert not hasattr(handler, "needs_args")
    assert not hasattr(handler, "trigger_response")
