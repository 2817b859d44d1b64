"""Pipecat with OpenAI Realtime: its own service, over a socket that is a script."""

import asyncio
import json

import numpy as np
import pipecat.services.openai.realtime.llm as realtime
import pytest
from pipecat.frames.frames import LLMContextFrame
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair

from cues.adapters.pipecat import create
from tests.support.listening import RATE, last_sound
from tests.support.pipecat_pipeline import played_by
from tests.support.virtual_loop import run_virtually

CALL = [
    {
        "type": "conversation.item.added",
        "item": {"type": "function_call", "call_id": "call_1", "name": "read_file", "arguments": ""},
    },
    {
        "type": "response.function_call_arguments.done",
        "response_id": "response_1",
        "item_id": "item_1",
        "output_index": 0,
        "call_id": "call_1",
        "arguments": "{}",
    },
    {"type": "response.done", "response": {"status": "completed"}},
]
FAILED = [
    {
        "type": "response.done",
        "response": {"status": "failed", "status_details": {"error": {"message": "Rate limit reached"}}},
    }
]
BROKEN = [{"type": "error", "error": {"type": "server_error", "message": "The server had an error"}}]


class Socket:
    """A server that answers each `response.create` with the next response: events, and pauses in seconds."""

    def __init__(self, responses):
        self._responses, self._asked = responses, asyncio.Semaphore(0)

    async def send(self, message):
        if json.loads(message)["type"] == "response.create":
            self._asked.release()

    async def close(self):
        pass

    async def __aiter__(self):
        yield json.dumps({"event_id": "event_1", "type": "session.updated", "session": {}})
        for response in self._responses:
            await self._asked.acquire()
            await asyncio.sleep(0.3)
            for event in response:
                if isinstance(event, float):
                    await asyncio.sleep(event)
                    continue
                yield json.dumps({"event_id": "event_2", "previous_item_id": None, **event})
        await asyncio.Event().wait()


def talk(monkeypatch, socket, *, tool_s=0.5):
    """What a session plays after a question, and its router. The connection is refused if `socket` is None."""

    async def connect(**_):
        if socket is None:
            raise ConnectionRefusedError
        return socket

    async def read_file(params):
        await asyncio.sleep(tool_s)
        await params.result_callback("text")

    async def session():
        async def script(send, clock):
            await send(LLMContextFrame(context))
            await clock.sleep(90.0)

        context = LLMContext([{"role": "user", "content": "hi"}])
        llm = realtime.OpenAIRealtimeLLMService(api_key="none")
        llm.register_function("read_file", read_file)
        mixer, tap = create(RATE, llm=llm)
        pair = LLMContextAggregatorPair(context)
        return await played_by(mixer, [pair.user(), llm, tap], script, after=[pair.assistant()]), mixer.router

    monkeypatch.setattr(realtime, "websocket_connect", connect)
    return run_virtually(session)


@pytest.mark.parametrize("tool_s", [0.5, 4.0])
@pytest.mark.parametrize("responses", [[FAILED], [BROKEN], [CALL, FAILED], [CALL, BROKEN]])
def test_a_response_that_fails_sounds_as_an_error(monkeypatch, responses, tool_s):
    # The service tells of the failure after the response's end, and then of none.
    sound, router = talk(monkeypatch, Socket(responses), tool_s=tool_s)
    assert [span.cue for span in router.spans].count("error") == 1
    assert router.is_over
    assert last_sound(sound) < 6.0 * RATE


def test_each_response_that_fails_sounds_also_if_the_server_began_it(monkeypatch):
    _, router = talk(monkeypatch, Socket([[*FAILED, 7.0, *FAILED, 7.0, *FAILED]]))
    assert [span.cue for span in router.spans] == ["error"] * 3


def test_a_model_that_cannot_be_reached_sounds_as_an_error(monkeypatch):
    sound, router = talk(monkeypatch, None)
    assert [span.cue for span in router.spans] == ["error"]
    assert np.abs(sound[:RATE]).max() > 0.01
