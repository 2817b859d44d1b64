"""FastRTC, the real package: its own emptying loop and resampler after a handler with cues."""

import asyncio
import gc
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from fastrtc import AdditionalOutputs, AsyncStreamHandler, CloseStream, StreamHandler, wait_for_item
from fastrtc.utils import player_worker_decode

from cues import Cue
from cues.adapters.fastrtc import with_cues
from cues.errors import CueTypeError, CueValueError
from cues.meters.clicks import find_clicks
from cues.signal.fades import raised_cosine
from cues.signal.resample import resample
from stream.clock import WallClock
from stream.events import StreamFailed, TextDelta, ToolCallStart, ToolResult
from tests.support.listening import RATE, first_sound, last_sound, new_clicks, splatter_db, steady_voice
from tests.support.routing import spoken
from tests.support.virtual_loop import LoopClock, run_virtually

CHUNK = round(0.02 * RATE)
LIMIT_S = 20.0  # A test that waits for what never comes fails; nothing waits for this time to pass.


class Talker(AsyncStreamHandler):
    """Emits what it is given, as fast as it is asked."""

    def __init__(self, output_sample_rate=RATE):
        super().__init__(output_sample_rate=output_sample_rate)
        self.items = asyncio.Queue()

    async def receive(self, frame): ...

    async def emit(self):
        return await self.items.get()

    def copy(self):
        return Talker(self.output_sample_rate)

    def say(self, samples, rate=RATE, n_pieces=10):
        for piece in np.array_split(np.asarray(samples), n_pieces):
            self.items.put_nowait((rate, piece.reshape(1, -1)))


class Heard:
    """Output of FastRTC's emptying loop, with its times."""

    def __init__(self, clock):
        self._clock, self.frames, self.other = clock, [], []

    async def put(self, item):
        if isinstance(item, CloseStream):
            self.other.append((self._clock.now(), item))
        else:
            self.frames.append((self._clock.now(), item.to_ndarray().reshape(-1, 2)[:, 0] / 32768.0))

    def signal(self):
        """The sound: frames one after the other, gaps where none came in time."""
        out = np.zeros(0)
        for at_s, frame in self.frames:
            start = max(len(out), round(at_s * RATE))
            out = np.concatenate([out, np.zeros(start - len(out)), frame])
        return out


def run(script, **options):
    """Run `script(handler, clock)` with FastRTC's loop emptying `emit`; what it got."""

    async def go():
        clock, inner = LoopClock(), Talker()
        outer, heard = with_cues(inner, clock=clock, **options), Heard(clock)
        loop = asyncio.create_task(
            player_worker_decode(outer.emit, heard, asyncio.Event(), None, lambda _: None, False, RATE, CHUNK)
        )
        await script(inner, clock)
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)
        outer.shutdown()
        await asyncio.sleep(0)
        assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        return heard

    return run_virtually(go)


def attenuated(x):
    """FastRTC's mono: 3 dB less on each of two channels."""
    return x * np.sqrt(0.5)


@pytest.mark.parametrize("known_s", [1.001, 1.0195])
@pytest.mark.parametrize("speaking", [True, False], ids=["while speaking", "in silence"])
def test_the_cue_begins_within_two_chunks(speaking, known_s):
    async def script(talker, clock):
        if speaking:
            talker.say(steady_voice(4.0))
        await clock.sleep(known_s)
        talker.cues.handle(ToolCallStart("read_file", "1"))
        await clock.sleep(4.0)

    with_cue, without = run(script).signal(), run(script, bank={}).signal()
    n = max(len(with_cue), len(without))
    onset = first_sound(np.pad(with_cue, (0, n - len(with_cue))) - np.pad(without, (0, n - len(without))), 2e-4)
    assert known_s * RATE - 2 <= onset <= known_s * RATE + 2 * CHUNK


def test_other_output_passes_at_once_and_the_end_comes_after_the_speech():
    async def script(talker, clock):
        talker.items.put_nowait(((RATE, steady_voice(1.0)), AdditionalOutputs("said")))
        talker.items.put_nowait(CloseStream("bye"))
        await clock.sleep(3.0)

    heard = run(script)
    assert len(heard.other) == 1
    assert 0.85 <= heard.other[0][0] <= 1.3


class Polled(Talker):
    """Emits None while it has nothing: after 100 ms, as FastRTC's own examples, or at once."""

    waits = True

    async def emit(self):
        if self.waits:
            return await wait_for_item(self.items)
        return None if self.items.empty() else self.items.get_nowait()


class Impatient(Polled):
    waits = False


def emitted(inner, script, seconds, *, phone=False):
    """Run `script(inner)`; what `emit` gave of audio until then, in one piece, and the handler."""

    async def go():
        clock = LoopClock()
        outer = with_cues(inner, clock=clock)
        if phone:
            outer.phone_mode = True
        feeding = asyncio.create_task(script(inner))
        pieces, items = [], []
        while clock.now() < seconds:
            item = await outer.emit()
            (pieces if isinstance(item, tuple) else items).append(item)
        await feeding
        outer.shutdown()
        await asyncio.sleep(0)
        return np.concatenate([samples for _, samples in pieces]), outer

    return run_virtually(go)


def long_tone(rate, seconds):
    tone = 0.4 * np.sin(2 * np.pi * 223 * np.arange(round(seconds * rate)) / rate)
    n_edge = rate // 20
    tone[:n_edge] *= raised_cosine(n_edge)
    tone[-n_edge:] *= raised_cosine(n_edge)[::-1]
    return tone.astype(np.float32)


@pytest.mark.parametrize("handler", [Talker, Polled, Impatient])
@pytest.mark.parametrize(("rate", "phone"), [(16000, False), (22050, False), (24000, True)], ids=str)
@pytest.mark.parametrize("piece_s", [0.2, 0.02], ids=["slow", "all at once"])
def test_speech_of_another_rate_has_no_seam_between_pieces_however_long_they_take(handler, rate, phone, piece_s):
    tone, n_piece = long_tone(rate, 2.0), round(piece_s * rate)

    async def script(inner):
        for start in range(0, len(tone), n_piece):
            inner.items.put_nowait((rate, tone[None, start : start + n_piece]))
            await asyncio.sleep(0.15 if piece_s > 0.1 else 0.0)

    heard, outer = emitted(handler(), script, 2.6, phone=phone)
    own_rate = 8000 if phone else RATE
    assert splatter_db(heard, 2500, own_rate) < -90
    assert outer.pacer.underruns == 1, "at its end: a handler has no other"
    assert abs(len(heard) - 2.0 * own_rate) <= 0.04 * own_rate
    np.testing.assert_allclose(heard[: 2 * own_rate], resample(tone, rate, own_rate), atol=0.001)


@pytest.mark.parametrize("begin_s", [0.0, 0.3021], ids=["from silence", "in mid-sound"])
@pytest.mark.parametrize(("rate", "phone"), [(16000, False), (22050, False), (24000, True)], ids=str)
def test_speech_of_another_rate_that_stops_in_mid_sound_fades_out_and_what_follows_fades_in(rate, phone, begin_s):
    tone = long_tone(rate, 1.0)

    async def script(inner):
        inner.items.put_nowait((rate, tone[None, : round(0.5013 * rate)]))
        await asyncio.sleep(1.0)
        inner.items.put_nowait((rate, tone[None, round(begin_s * rate) :]))

    heard, _ = emitted(Polled(), script, 2.6, phone=phone)
    assert splatter_db(heard, 4000 if not phone else 2500, 8000 if phone else RATE) < -95


@pytest.mark.parametrize("seconds", [0.03, 0.5, 0.51])
@pytest.mark.parametrize("close", [True, False], ids=["closed", "left open"])
@pytest.mark.parametrize("handler", [Talker, Polled, Impatient])
def test_speech_of_another_rate_is_heard_to_its_last_sample(handler, close, seconds):
    voice = np.full(round(16000 * seconds), 0.3, dtype=np.float32)

    async def script(inner):
        inner.items.put_nowait((16000, voice[None]))
        if close:
            inner.items.put_nowait(CloseStream())

    heard, outer = emitted(handler(), script, 1.5)
    assert abs(np.count_nonzero(heard > 0.2) - seconds * RATE) <= 160
    assert outer.pacer.queued_samples == 0


@pytest.mark.parametrize("kind", ["int16", "other rate"])
def test_speech_of_other_kinds_is_converted(kind):
    x = steady_voice(1.0)

    async def script(talker, clock):
        if kind == "int16":
            talker.say((x * 32767).astype(np.int16))
        else:
            talker.say(steady_voice(1.0, rate=16000), rate=16000)
        talker.items.put_nowait(None)
        await clock.sleep(2.0)

    signal = np.concatenate([f for _, f in run(script).frames])
    assert np.abs(signal).max() == pytest.approx(np.abs(attenuated(x)).max(), rel=0.03)
    assert last_sound(signal, 1e-3) == pytest.approx(RATE, rel=0.03)
    assert new_clicks(signal, np.zeros(1)) == []


def test_audio_that_cannot_carry_cues_is_refused_with_a_sentence():
    outer = with_cues(Talker())
    with pytest.raises(CueValueError, match="stereo"):
        outer._take((RATE, np.zeros((2, 480), dtype=np.float32), "stereo"))
    with pytest.raises(CueTypeError, match="int32"):
        outer._take((RATE, np.zeros(480, dtype=np.int32)))


def test_a_copy_is_a_handler_of_its_own_with_the_same_options():
    inner = Talker()
    outer = with_cues(inner, bank={})
    copy = outer.copy()
    assert copy.inner is not inner
    assert copy.router is not outer.router
    assert copy.inner.cues is copy.router
    assert (copy.output_sample_rate, copy.input_sample_rate) == (inner.output_sample_rate, inner.input_sample_rate)


def test_a_synchronous_handler_emits_from_a_thread_and_may_play_cues_there():
    class Blocking(StreamHandler):
        def __init__(self):
            super().__init__(output_sample_rate=RATE)
            self.n_asked, self.threads = 0, set()

        def receive(self, frame):
            pass

        def emit(self):
            self.n_asked += 1
            self.threads.add(threading.current_thread())
            if self.n_asked == 1:
                self.cues.handle(ToolCallStart("read_file", "1"))
                return RATE, np.zeros((1, 480), dtype=np.float32)
            return None

        def copy(self):
            return Blocking()

    async def go():
        blocking = Blocking()
        outer = with_cues(blocking)
        frames = []
        while sum(len(frame) for frame in frames) < 2400:
            item = await outer.emit()
            if item is not None:
                frames.append(item[1])
        outer.shutdown()
        return blocking, np.concatenate(frames)

    blocking, signal = asyncio.run(go())
    assert threading.main_thread() not in blocking.threads
    assert first_sound(signal) is not None


@pytest.mark.parametrize("end", ["interrupt", "shutdown"])
def test_a_failure_of_the_handler_that_an_interruption_drops_is_logged(end, caplog):
    class Failing(Talker):
        async def emit(self):
            raise OSError("no voice")

    async def go():
        unretrieved = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unretrieved.append(context))
        handler = with_cues(Failing(), bank={}, clock=LoopClock())
        handler._asked = asyncio.ensure_future(handler.inner.emit())  # it is done while FastRTC sends
        await asyncio.sleep(0)
        getattr(handler, end)()
        gc.collect()
        await asyncio.sleep(0)
        return unretrieved

    assert run_virtually(go) == []
    assert "no voice" in caplog.text


class Reply(Polled):
    """Says its items, then is over: a handler as those that wrap a generator."""

    def __init__(self, *items):
        super().__init__()
        for item in items:
            self.items.put_nowait(item)

    async def emit(self):
        item = await super().emit()
        return item(self) if callable(item) else item


class ReplyInThread(StreamHandler):
    """The same, synchronous: FastRTC's wrapper calls it in a thread."""

    def __init__(self, *items):
        super().__init__(output_sample_rate=RATE)
        self._items = list(items)

    def receive(self, frame): ...

    def emit(self):
        item = self._items.pop(0) if self._items else None
        return item(self) if callable(item) else item

    def copy(self):
        return ReplyInThread(*self._items)


def told(*events, then=None):
    """An item that first handles events."""

    def item(handler):
        for event in events:
            handler.cues.handle(event)
        return then

    return item


def until_closed(inner, longest_s=8.0, meanwhile=None, **options):
    """Take `emit` until its `CloseStream`: the sound, the time and the handler."""

    async def go():
        clock = WallClock() if isinstance(inner, StreamHandler) else LoopClock()
        outer, pieces = with_cues(inner, clock=clock, **options), [np.zeros(0, dtype=np.float32)]
        began_s = clock.now()
        while not isinstance(item := await outer.emit(), CloseStream):
            assert clock.now() < began_s + longest_s, "no CloseStream came"
            if isinstance(item, tuple):
                pieces.append(item[1])
                if meanwhile:
                    meanwhile(outer, sum(map(len, pieces)))
        outer.shutdown()
        await asyncio.sleep(0)
        return np.concatenate(pieces), clock.now() - began_s, outer

    return asyncio.run(go()) if isinstance(inner, StreamHandler) else run_virtually(go)


FAILED = StreamFailed("no more", code="handler")


@pytest.mark.parametrize("kind", [Reply, ReplyInThread], ids=["async", "in a thread"])
@pytest.mark.parametrize("speech_s", [0.0, 0.2], ids=["alone", "after speech"])
def test_the_end_of_the_stream_waits_for_a_cue_that_sounds(kind, speech_s):
    said = (RATE, np.zeros((1, round(speech_s * RATE)), dtype=np.float32)) if speech_s else None
    inner = kind(said, told(ToolCallStart("read_file", "1"), FAILED, then=CloseStream("bye")))
    heard, _, outer = until_closed(inner)
    error = next(span for span in outer.router.spans if span.cue == "error")
    assert error.end_samples <= len(heard)
    assert np.abs(heard[error.start_samples :]).max() > 0.01
    assert np.abs(heard[-24:]).max() < 1e-3
    assert find_clicks(heard, RATE).tolist() == []


@pytest.mark.parametrize("together", [True, False], ids=["with its speech", "after it"])
@pytest.mark.parametrize("n_samples", [9600, 9700], ids=["whole frames", "part of a frame"])
def test_speech_that_the_end_of_the_stream_cuts_in_mid_sound_fades_out_first(n_samples, together):
    voice = (RATE, long_tone(RATE, 1.0)[None, :n_samples])
    items = [(voice, CloseStream())] if together else [voice, CloseStream()]
    heard, _, outer = until_closed(Reply(*items))
    assert len(heard) >= n_samples + 240
    assert np.abs(heard[-24:]).max() < 1e-3
    assert splatter_db(heard, 4000) < -90
    assert not outer.pacer.fades_out


def test_the_end_of_the_stream_waits_for_an_error_that_follows_the_words():
    words = (RATE, steady_voice(1.0)[None])
    answer = (RATE, steady_voice(0.6)[None])
    call = (
        ToolCallStart("read_file", "1"),
        ToolResult(tool_name="read_file", tool_call_id="1", is_error=False, content=""),
    )

    inner = Reply(
        told(TextDelta("Let me look."), then=words),
        told(*call, TextDelta("It is"), then=answer),
        told(FAILED, then=CloseStream()),
    )
    heard, _, outer = until_closed(inner, bank={"error": spoken("error")})
    (error,) = [span for span in outer.router.spans if span.cue == "error"]
    assert error.end_samples <= len(heard)
    assert error.end_samples - error.start_samples >= 0.39 * RATE


def test_the_end_of_the_stream_fades_a_waiting_sound_out_at_once():
    waits_s, started = 4.0, []

    class Waiting(Reply):
        async def emit(self):
            self.cues.handle(ToolCallStart("read_file", "1"))
            await asyncio.sleep(waits_s)
            return CloseStream()

    def meanwhile(outer, n_samples):
        started.extend(span for span in outer.router.spans if span.cue == "working" and not started)

    heard, closed_s, outer = until_closed(Waiting(), meanwhile=meanwhile)
    assert started, "it sounds"
    assert waits_s < closed_s < waits_s + 0.5
    assert np.abs(heard[-24:]).max() < 1e-3
    assert find_clicks(heard, RATE).tolist() == []
    assert not outer.router.waits


def test_the_end_of_the_stream_waits_two_seconds_at_most_and_fades_what_still_sounds():
    tone = 0.2 * np.sin(2 * np.pi * 440 * np.arange(6 * RATE) / RATE)
    bank = {"error": Cue(name="error", samples=tone, sample_rate=RATE)}
    heard, closed_s, _ = until_closed(Reply(told(FAILED, then=CloseStream())), bank=bank)
    assert 2.0 < closed_s < 2.3
    assert np.abs(heard[-24:]).max() < 1e-3
    assert find_clicks(heard, RATE).tolist() == []


def test_a_handler_that_goes_on_after_its_end_is_not_heard_and_does_not_put_the_end_off():
    class Endless(Reply):
        async def emit(self):
            if not self.items.empty():
                return await self.items.get()
            self.cues.handle(ToolCallStart("read_file", str(id(object()))))
            return RATE, np.full((1, 4800), 0.5, dtype=np.float32)

    heard, closed_s, _ = until_closed(Endless(CloseStream()))
    assert closed_s < 2.5
    assert np.abs(heard).max(initial=0.0) < 0.3


def test_a_handler_that_raises_after_its_end_sounds_no_error():
    class Over(Reply):
        async def emit(self):
            if self.items.empty():
                raise StopAsyncIteration
            return await self.items.get()

    _, closed_s, outer = until_closed(Over((RATE, steady_voice(0.5)[None]), CloseStream()))
    assert [span.cue for span in outer.router.spans] == []
    assert closed_s < 0.7


@pytest.mark.parametrize("end", ["shutdown", "interrupt"])
def test_a_shutdown_or_an_interruption_does_not_lose_the_end_of_the_stream(end):
    inner, ended = Reply((RATE, steady_voice(1.0)[None]), told(FAILED, then=CloseStream())), []

    def meanwhile(outer, n_samples):
        if not ended and n_samples > 0.3 * RATE:
            ended.append(getattr(outer, end)())

    heard, closed_s, _ = until_closed(inner, meanwhile=meanwhile)
    assert ended
    assert closed_s < 1.2
    assert np.abs(heard[-24:]).max() < 1e-3


class Waiting(StreamHandler):
    """The `EchoHandler` of FastRTC's guide: `emit` waits, in its thread, for what `receive` queues."""

    def __init__(self):
        super().__init__(output_sample_rate=RATE)
        self._queue, self.waits, self.threads = queue.Queue(), threading.Event(), []

    def receive(self, frame):
        self._queue.put(frame)

    def emit(self):
        self.threads.append(threading.current_thread())
        self.waits.set()
        return self._queue.get()

    def copy(self):
        return Waiting()

    def ends(self):
        """Whether its threads end once `emit` has returned."""
        self.receive(None)
        for thread in set(self.threads):
            thread.join(LIMIT_S)
        return not any(thread.is_alive() for thread in self.threads)


async def wait_for_audio(handler):
    """Ask for frames until they sound."""
    while not (isinstance(item := await handler.emit(), tuple) and item[1].any()):
        pass


async def is_set(event):
    """Wait for a thread's event, without the loop's executor."""
    with ThreadPoolExecutor(1) as executor:
        assert await asyncio.get_running_loop().run_in_executor(executor, event.wait, LIMIT_S)


def with_one_thread_for_all(script, release):
    """Run `script()` on a loop whose executor has one thread: a real one has few."""

    async def go():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        try:
            async with asyncio.timeout(LIMIT_S):
                await script()
        finally:
            release()

    asyncio.run(go())


@pytest.mark.parametrize("end", ["shutdown", "emit is cancelled"])
def test_emits_that_wait_do_not_stop_other_connections_and_their_threads_end(end):
    inner = [Waiting() for _ in range(3)]

    async def talk_and_leave(one):
        handler = with_cues(one, bank={})
        emitting = asyncio.create_task(wait_for_audio(handler))
        await is_set(one.waits)
        await handler.receive((RATE, np.full((1, 4800), 0.5, dtype=np.float32)))
        await emitting
        one.waits.clear()
        emitting = asyncio.create_task(wait_for_audio(handler))
        await is_set(one.waits)
        if end == "shutdown":
            handler.shutdown()
        emitting.cancel()
        await asyncio.gather(emitting, return_exceptions=True)

    async def script():
        for one in inner:
            await talk_and_leave(one)
        assert all(one.ends() for one in inner)

    with_one_thread_for_all(script, release=lambda: [one.receive(None) for one in inner])


def test_a_start_up_that_waits_does_not_stop_other_connections():
    begun, go_on = threading.Event(), threading.Event()

    class Starting(ReplyInThread):
        def start_up(self):
            begun.set()
            assert go_on.wait(LIMIT_S)

        def receive(self, _frame):
            go_on.set()

    async def script():
        handler, other = with_cues(Starting()), with_cues(Starting())
        starting = asyncio.create_task(handler.start_up())
        await is_set(begun)
        await other.receive((RATE, np.zeros((1, 480), dtype=np.int16)))
        await starting
        handler.shutdown()
        other.shutdown()

    with_one_thread_for_all(script, release=go_on.set)


def test_the_threads_of_a_connection_end_with_it():
    class Threads(ReplyInThread):
        def receive(self, frame):
            frame.append(threading.current_thread())

    async def go():
        handler, threads = with_cues(Threads()), []
        await handler.receive(threads)
        await handler.receive(threads)
        handler.shutdown()
        threads[0].join(LIMIT_S)
        return threads

    threads = asyncio.run(go())
    assert threads[0] is threads[1]
    assert not threads[0].is_alive()


def test_a_handler_that_is_shut_down_is_not_asked_again():
    class Asked(Talker):
        n_asked = 0

        async def emit(self):
            self.n_asked += 1
            return await super().emit()

    async def go():
        handler = with_cues(Asked(), clock=LoopClock())
        assert await handler.emit() is None
        emitting = asyncio.create_task(handler.emit())
        await asyncio.sleep(0)
        handler.shutdown()
        assert await emitting is None
        assert await handler.emit() is None
        await asyncio.sleep(0)
        return handler.inner.n_asked, asyncio.all_tasks() - {asyncio.current_task()}

    assert run_virtually(go) == (1, set())


def test_tools_given_as_an_iterator_are_known_to_each_connection():
    handler = with_cues(Talker(), tools=iter(["read_file"]))
    for copy in (handler.copy(), handler.copy()):
        copy.router.handle(ToolCallStart("read_file", "1"))
        assert "tool_call" in [span.cue for span in copy.router.spans]
        copy.shutdown()
