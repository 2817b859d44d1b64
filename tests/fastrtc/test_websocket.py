"""FastRTC over its WebSockets, a telephone's and a program's: what the far end hears, in virtual time."""

import asyncio
import base64
import threading

import numpy as np
import pytest
from fastapi import WebSocketDisconnect
from fastapi.websockets import WebSocketState
from fastrtc import CloseStream, ReplyOnPause, Stream, StreamHandler, get_current_context

from cues.adapters.fastrtc import with_cues
from cues.signal.g711 import samples_of_bytes
from cues.signal.resample import resample
from tests.fastrtc.test_handler import LIMIT_S, Talker
from tests.fastrtc.test_reply_on_pause import Loudness
from tests.support.listening import RATE, steady_voice
from tests.support.virtual_loop import LoopClock, run_virtually

pytestmark = pytest.mark.filterwarnings("ignore:.* in Gradio 6.0:DeprecationWarning")  # how fastrtc calls gradio

SEND_S = 0.003  # What a message costs FastRTC's loop, on top of its sleep.
LASTS_S = 8.0
STEP = 0.02  # µ-law's at the level of speech.


class FarEnd:
    """A WebSocket, as FastRTC uses one, whose client plays what comes: after what still plays."""

    application_state = WebSocketState.CONNECTED

    def __init__(self, rate):
        self._rate, self._has_started, self._began_s = rate, False, 0.0
        self.heard = np.zeros(0, dtype=np.float32)  # from the first message on

    async def accept(self): ...

    async def receive_json(self):
        if not self._has_started:
            self._has_started = True
            return {"event": "start", "streamSid": "MZ1", "websocket_id": "1"}
        await asyncio.sleep(LASTS_S)
        raise WebSocketDisconnect

    async def send_json(self, message):
        await asyncio.sleep(SEND_S)
        now_s = LoopClock().now()
        self._began_s = self._began_s or now_s
        start = max(len(self.heard), round((now_s - self._began_s) * self._rate))
        samples = samples_of_bytes(base64.b64decode(message["media"]["payload"]))
        self.heard = np.concatenate([self.heard, np.zeros(start - len(self.heard), np.float32), samples])


class Caller(Talker):
    """Speaks as soon as it is called; `items` are those of the class."""

    said = ()

    async def start_up(self):
        for item in self.said:
            self.items.put_nowait(item)

    async def emit(self):
        item = await self.items.get()
        if isinstance(item, Exception):
            raise item
        return item

    def copy(self):
        return type(self)()


def connect(handler, *, is_phone):
    """What the far end hears, and what runs on when it has gone."""

    async def go():
        far = FarEnd(8000 if is_phone else RATE)
        stream = Stream(with_cues(handler, clock=LoopClock(), bank={}), modality="audio", mode="send-receive")
        await (stream.telephone_handler(far) if is_phone else stream.websocket_offer(far))
        await asyncio.sleep(0.01)
        return far.heard, [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    return run_virtually(go)


def pieces(x):
    return [(RATE, piece.reshape(1, -1)) for piece in np.array_split(x, max(1, len(x) // 2400))]


@pytest.mark.parametrize("is_phone", [True, False], ids=["telephone", "WebSocket"])
def test_the_far_end_hears_the_speech_at_its_pace_and_without_a_hole_or_a_seam(is_phone):
    x = steady_voice(5.0)

    class Speaker(Caller):
        said = (*pieces(x), None)

    heard, left = connect(Speaker(), is_phone=is_phone)
    expected = resample(x, RATE, 8000) if is_phone else x
    assert np.abs(heard[: len(expected)] - expected).max() < STEP
    assert left == []


def test_an_emit_that_raises_does_not_end_the_call(caplog):
    class Failing(Caller):
        said = (ConnectionError("no model at that address"), *pieces(steady_voice(1.0)))

    heard, _ = connect(Failing(), is_phone=True)
    assert len(heard) == pytest.approx(8000, rel=0.05)
    assert "no model at that address" in caplog.text


class Asking(StreamHandler):
    """A handler whose `emit` waits, in its thread, until the call has started."""

    def __init__(self):
        super().__init__(output_sample_rate=RATE)
        self._started = threading.Event()

    def receive(self, frame): ...

    def start_up(self):
        self._started.set()

    def emit(self):
        assert self._started.wait(LIMIT_S)
        seen.append(get_current_context().webrtc_id)
        return CloseStream()

    def copy(self):
        return Asking()


class AskingOnTheLoop(Caller):
    async def emit(self):
        await asyncio.sleep(1.0)
        seen.append(get_current_context().webrtc_id)
        return CloseStream()


def ask(*_):
    """A reply function, which `startup_fn` calls, too."""
    seen.append(get_current_context().webrtc_id)
    yield CloseStream()


async def ask_on_the_loop(*_):
    for item in ask():
        yield item


def replying(fn):
    return ReplyOnPause(fn, startup_fn=fn, model=Loudness(), output_sample_rate=RATE)


seen = []


@pytest.mark.parametrize("is_phone", [True, False], ids=["telephone", "WebSocket"])
@pytest.mark.parametrize(
    "make",
    [Asking, AskingOnTheLoop, lambda: replying(ask), lambda: replying(ask_on_the_loop)],
    ids=["in a thread", "async", "generator", "async generator"],
)
def test_a_handler_knows_its_connection(make, is_phone):
    seen.clear()
    connect(make(), is_phone=is_phone)
    assert set(seen) == {"MZ1" if is_phone else "1"}
