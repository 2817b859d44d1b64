"""Pipecat with OpenAI Realtime: its own service, over a socket that is a script."""

import asyncio
import json

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
    """A server that answers each `response.create` with the next response."""

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
                yield json.dumps({"event_id": "event_2", "previous_item_id": None, **event})
        await asyncio.Event().wait()


@pytest.mark.parametrize("tool_s", [0.5, 4.0])
@pytest.mark.parametrize("responses", [[FAILED], [BROKEN], [CALL, FAILED], [CALL, BROKEN]])
def test_a_response_that_fails_sounds_as_an_error(monkeypatch, responses, tool_s):
    # The service tells of the failure after the response's end, and then of none.
    async def talk():
        socket = Socket(responses)

        async def connect(**_):
            return socket

        async def read_file(params):
            await asyncio.sleep(tool_s)
            await params.result_callback("text")

        async def script(send, clock):
            await send(LLMContextFrame(context))
            await clock.sleep(90.0)

        monkeypatch.setattr(realtime, "websocket_connect", connect)
        context = LLMContext([{"role": "user", "content": "hi"}])
        llm = realtime.OpenAIRealtimeLLMService(api_key="none")
        llm.register_function("read_file", read_file)
        mixer, tap = create(RATE, llm=llm)
        pair = LLMContextAggregatorPair(context)
        return await played_by(mixer, [pair.user(), llm, tap], script, after=[pair.assistant()]), mixer.router

    sound, router = run_virtually(talk)
    assert [span.cue for span in router.spans].count("error") == 1
    assert router.is_over
    assert last_sound(sound) < 6.0 * RATE
