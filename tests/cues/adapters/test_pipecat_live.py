"""Pipecat with a model that speaks by itself: Gemini Live's own service, over a session that is a script."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from google.genai.types import LiveServerMessage
from pipecat.frames.frames import LLMContextFrame
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.services.google.gemini_live.llm import GeminiLiveLLMService

from cues.adapters.pipecat import create
from cues.signal.pcm import pcm16_of_float
from tests.support.listening import RATE, last_sound, speech
from tests.support.pipecat_pipeline import run_pipeline

MIME = f"audio/pcm;rate={RATE}"
DONE = {"server_content": {"turn_complete": True}}
RESULTS = "results"  # the session waits for the results of all calls before
BREAKS = "breaks"  # it breaks off, and so does each that is tried after it


def says(text, seconds=0.5):
    audio = pcm16_of_float(speech()[: round(seconds * RATE)])
    return [
        {"server_content": {"output_transcription": {"text": text}}},
        {"server_content": {"model_turn": {"parts": [{"inline_data": {"data": audio, "mime_type": MIME}}]}}},
    ]


def calls(*ids):
    named = [{"id": call_id, "name": "read_file", "args": {}} for call_id in ids]
    return {"tool_call": {"function_calls": named}}


class Session:
    """A stand-in for a `google.genai` session. Its steps are messages, pauses in seconds, `RESULTS` and `BREAKS`."""

    def __init__(self, steps):
        self._steps, self._n_awaited, self._answered = steps, 0, asyncio.Event()

    async def receive(self):
        for step in self._steps:
            if step == RESULTS:
                while self._n_awaited > 0:
                    self._answered.clear()
                    await self._answered.wait()
            elif step == BREAKS:
                self._steps = [BREAKS]
                raise ConnectionError("internal error")
            elif isinstance(step, float):
                await asyncio.sleep(step)
            else:
                self._n_awaited += len(step.get("tool_call", {}).get("function_calls", ()))
                yield LiveServerMessage.model_validate(step)
        await asyncio.Event().wait()

    async def send_tool_response(self, **_):
        self._n_awaited -= 1
        self._answered.set()

    async def send_realtime_input(self, **_):
        pass

    send_client_content = close = send_realtime_input


def service_of(session, *, tool_s):
    """The service in that session; its tools take as long."""

    @asynccontextmanager
    async def connect(**_):
        yield session

    class Service(GeminiLiveLLMService):
        def create_client(self):
            self._client = SimpleNamespace(aio=SimpleNamespace(live=SimpleNamespace(connect=connect)))

    async def read_file(params):
        await asyncio.sleep(tool_s)
        await params.result_callback("text")

    llm = Service(api_key="none")
    llm.register_function("read_file", read_file)
    return llm


def played(steps, *, tool_s=0.5, knows_llm=True, lasts_s=90.0):
    """The sound of a session, and the mixer."""
    llm = service_of(Session([0.5, *steps]), tool_s=tool_s)
    mixer, tap = create(RATE, llm=llm if knows_llm else None)

    async def script(send, clock):
        await send(LLMContextFrame(LLMContext([{"role": "user", "content": "hi"}])))
        await clock.sleep(lasts_s)

    return run_pipeline(mixer, [llm, tap], script), mixer


ANSWER = says("It is dark.")
WORDS = says("Let me look.")
HEARD = ANSWER[1:]  # without its text


@pytest.mark.parametrize("knows_llm", [True, False])
@pytest.mark.parametrize("tool_s", [0.0, 0.5, 4.0])
@pytest.mark.parametrize(
    "steps",
    [
        [calls("1"), RESULTS, 0.2, *ANSWER, DONE],
        [*WORDS, calls("1"), RESULTS, 0.2, *ANSWER, DONE],
        [*WORDS, DONE, calls("1"), RESULTS, 0.2, *ANSWER, DONE],
        [calls("1", "2"), RESULTS, *ANSWER, DONE],
        [calls("1"), RESULTS, calls("2"), RESULTS, 0.2, *ANSWER, DONE],
        [calls("1"), RESULTS, 0.2, *WORDS, calls("2"), RESULTS, 0.2, *ANSWER, DONE],
        [*WORDS, calls("1"), RESULTS, 0.2, *HEARD, 0.3, *ANSWER, DONE],
        [*WORDS, calls("1"), RESULTS, 0.2, *HEARD, DONE],
    ],
    ids=["a call", "words first", "after words", "two calls", "chained", "words between", "heard first", "only heard"],
)
def test_after_the_answer_of_a_model_that_speaks_nothing_waits(steps, tool_s, knows_llm):
    sound, mixer = played(steps, tool_s=tool_s, knows_llm=knows_llm)
    assert {span.cue for span in mixer.router.spans} <= {"tool_call", "success", "working"}
    assert mixer.router.is_over
    assert last_sound(sound) < 15.0 * RATE


@pytest.mark.parametrize("steps", [[calls("1"), RESULTS, 0.2, BREAKS], [calls("1"), RESULTS, *ANSWER, BREAKS]])
def test_a_session_that_breaks_off_sounds_as_an_error_and_nothing_waits(steps):
    sound, mixer = played(steps)
    assert [span.cue for span in mixer.router.spans] == ["tool_call", "success", "error"]
    assert mixer.router.is_over
    assert last_sound(sound) < 3.0 * RATE
