"""The Agents SDK's voice pipeline: turns of a conversation, handoffs, failures, and your own workflows."""

import asyncio
import subprocess
import sys

import numpy as np
import pytest
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
)
from agents.voice import AudioInput, StreamedAudioInput, TTSModelSettings, VoicePipeline, VoicePipelineConfig
from agents.voice.testing import ScriptedSTTModel, ScriptedTranscriptionSession, ScriptedTTSModel
from agents.voice.workflow import VoiceWorkflowBase
from openai import AsyncOpenAI

from cues.adapters.agents_voice import VoiceCues
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from stream.replay.scenarios import Scenario
from stream.replay.server import ReplayServer
from tests.support.listening import RATE, first_sound, last_sound, new_clicks, steady_voice
from tests.support.responses_server import ResponsesScript
from tests.support.talks.agents_voice import AgentsVoiceTalk
from tests.support.turn_matrix import TURNS, Played, check_silent_after, play
from tests.support.virtual_loop import LoopClock, run_virtually

UNTRACED = RunConfig(tracing_disabled=True)
SILENCE = AudioInput(np.zeros(480, np.int16))
LONG, SHORT = (float_of_pcm16(pcm16_of_float(steady_voice(seconds))) for seconds in (8.0, 1.0))
MODELS = {"responses": OpenAIResponsesModel, "chat": OpenAIChatCompletionsModel}


class Ears(ScriptedTranscriptionSession):
    """Hears each text at its time."""

    def __init__(self, turns):
        super().__init__()
        self._timed = turns

    async def transcribe_turns(self):
        for at_s, text in self._timed:
            await LoopClock().sleep_until(at_s)
            yield text


def voice_of(*speeches):
    """A voice that speaks one after the other; an exception fails."""
    return ScriptedTTSModel([x if isinstance(x, Exception) else [pcm16_of_float(x)] for x in speeches])


def converse(talk, *says, api="chat", stt=None, tts=None, workflow=None, dtype=np.int16, **options):
    """Run `talk(pipeline, voice, clock)` at a server that answers with `says`; what was written, and the requests."""

    async def go():
        clock, requests = LoopClock(), []
        played = Played(clock)
        script = ResponsesScript(says) if api == "responses" else Scenario(name="own", about="", turns=says)
        async with ReplayServer(script, clock=clock, on_request=lambda _, body: requests.append(body)) as server:
            client = AsyncOpenAI(base_url=server.base_url, api_key="none")
            voice = VoiceCues(played.add, clock=clock, **options)
            model = MODELS[api]("model", client)
            pipeline = VoicePipeline(
                workflow=(workflow or agent_of)(voice, model),
                stt_model=stt or ScriptedSTTModel(["Hello?"]),
                tts_model=tts or voice_of(SHORT),
                config=VoicePipelineConfig(
                    tracing_disabled=True, tts_settings=TTSModelSettings(buffer_size=1, dtype=dtype)
                ),
            )
            running = asyncio.create_task(voice.run())
            await talk(pipeline, voice, clock)
            await asyncio.sleep(70.0)
            assert voice.router.is_over
            voice.close()
            await running
            await client.close()
        return played.signal(), [span.cue for span in voice.router.spans], requests

    return run_virtually(go)


def agent_of(voice, model, session=None, **options):
    @function_tool
    async def read_folder() -> str:
        """Read."""
        await asyncio.sleep(1.0)
        return "two files"

    agent = Agent(name="test", instructions="test", tools=[read_folder], model=model, **options)
    return voice.workflow(agent, run_config=UNTRACED, **({"session": session} if session else {}))


async def answer(pipeline, voice, _clock):
    await voice.play(await pipeline.run(SILENCE))


def ends_with(heard, speech):
    """Whether the last third of `speech` is the end of `heard`; a cue may sound over what comes before."""
    end = last_sound(heard, 0.0) + len(speech) - last_sound(speech, 0.0)
    n = len(speech) // 3
    padded = np.pad(heard, (0, max(0, end - len(heard))))
    return np.abs(padded[end - n : end] - speech[-n:]).max() < 2e-4


CALL, SAY = [["call", "read_folder", {}]], [["say", "Two files."]]


@pytest.mark.parametrize("api", MODELS)
@pytest.mark.parametrize("dtype", [np.int16, np.float32])
def test_an_answer_is_heard_whole_after_the_cues_of_its_call(api, dtype):
    heard, sounded, requests = converse(answer, CALL, SAY, api=api, dtype=dtype)
    assert sounded == ["tool_call", "success"]
    assert len(requests) == 2
    assert ends_with(heard, SHORT)
    assert new_clicks(heard, np.zeros_like(heard)) == []


def test_words_before_a_call_are_spoken_and_do_not_end_the_turn():
    words = [["say", "Let me look that up for you. One moment."], *CALL]
    heard, sounded, _ = converse(answer, words, SAY, tts=voice_of(SHORT, LONG))
    assert sounded == ["tool_call", "success"]
    assert last_sound(heard) > len(SHORT) + RATE


@pytest.mark.parametrize("api", MODELS)
def test_an_example_of_a_call_of_another_tool_is_heard_as_it_is_written(api):
    example = 'Send this:\n```json\n{"name": "create_user", "arguments": {"age": 30}}\n```\nThat is all.'
    tts = voice_of(*[SHORT] * 5)
    _, sounded, _ = converse(answer, [["say", example]], api=api, tts=tts)
    assert sounded == []
    assert "create_user" in " ".join(call.text for call in tts.calls)


@pytest.mark.parametrize("keeps", [False, True], ids=["the workflow", "a session"])
def test_the_conversation_is_kept_once(keeps):
    async def three(pipeline, voice, clock):
        for _ in range(3):
            await answer(pipeline, voice, clock)

    def workflow(voice, model):
        return agent_of(voice, model, session=SQLiteSession("one") if keeps else None)

    stt, tts = ScriptedSTTModel(["One?", "Two?", "Three?"]), voice_of(SHORT, SHORT, SHORT)
    _, _, requests = converse(three, SAY, SAY, SAY, workflow=workflow, stt=stt, tts=tts)
    asked = [message["content"] for message in requests[-1]["messages"] if message["role"] == "user"]
    assert asked == ["One?", "Two?", "Three?"]


def interrupted(at_s, *says, **options):
    """As `converse`: a first turn of a session that the user interrupts, and a second one."""

    async def script(pipeline, voice, clock):
        playing = asyncio.create_task(voice.play(await pipeline.run(StreamedAudioInput())))
        await clock.sleep_until(at_s)
        voice.barge_in()
        await playing

    stt = ScriptedSTTModel(sessions=[Ears([(1.0, "First?"), (6.0, "Second?")])])
    heard, sounded, requests = converse(script, *says, stt=stt, **options)
    assert ends_with(heard, SHORT)
    return heard, sounded, [item["role"] for item in requests[1]["messages"]]


def test_after_a_barge_in_the_next_turn_of_the_session_is_heard_alone():
    heard, _, roles = interrupted(4.0, [["say", "An answer."]], tts=voice_of(LONG, SHORT))
    assert last_sound(heard[: 6 * RATE]) < 4.1 * RATE
    assert first_sound(heard[6 * RATE :]) < RATE
    assert new_clicks(heard, np.zeros_like(heard)) == []
    assert roles == ["system", "user", "assistant", "user"]


def test_a_barge_in_while_a_tool_runs_leaves_no_call_without_an_output_in_the_conversation():
    _, sounded, roles = interrupted(1.8, CALL, SAY)
    assert roles == ["system", "user", "user"]
    assert sounded == ["tool_call", "tool_call", "success"]


@pytest.mark.parametrize(("end", "after_s"), [("cancel", 0.5), ("close", 0.5), ("close", 1.5)])
def test_an_answer_that_is_cancelled_or_closed_is_over_at_once_and_quietly(end, after_s):
    async def script(pipeline, voice, clock):
        playing = asyncio.create_task(voice.play(await pipeline.run(SILENCE)))
        await asyncio.sleep(after_s)
        voice.close() if end == "close" else playing.cancel()
        await asyncio.wait([playing])
        assert playing.cancelled() == (end == "cancel")
        assert playing.cancelled() or playing.exception() is None
        assert voice.router.is_over

    heard, sounded, _ = converse(script, CALL, SAY, tts=voice_of(LONG))
    assert last_sound(heard, 0.0) <= (after_s + 0.11) * RATE
    assert sounded == ["tool_call", "success"][: 1 + (after_s > 1.0)]


def test_the_answer_after_one_that_is_cancelled_at_that_moment_is_asked_for_and_heard():
    async def script(pipeline, voice, clock):
        first = asyncio.create_task(answer(pipeline, voice, clock))
        await clock.sleep(0.5)
        first.cancel()
        voice.router.begin_turn()
        second = asyncio.create_task(answer(pipeline, voice, clock))  # before the first has ended
        await asyncio.wait([first, second])
        assert first.cancelled()

    stt = ScriptedSTTModel(["First?", "Second?"])
    heard, sounded, requests = converse(script, CALL, SAY, stt=stt)
    assert len(requests) == 3  # the second question calls the tool, too
    assert sounded == ["tool_call", "tool_call", "success"]
    assert ends_with(heard, SHORT)


class HangingRecognizer(ScriptedSTTModel):
    async def transcribe(self, *_args, **_options):
        await asyncio.Event().wait()


class HangingVoice(ScriptedTTSModel):
    async def run(self, _text, _settings):
        yield pcm16_of_float(SHORT)
        await asyncio.Event().wait()


def test_a_voice_that_ends_slowly_delays_no_barge_in():
    class Polite(ScriptedTTSModel):
        async def run(self, _text, _settings):
            try:
                yield pcm16_of_float(LONG)
                await asyncio.Event().wait()
            finally:
                await LoopClock().sleep(1.0)  # says goodbye to its server

    async def script(pipeline, voice, clock):
        playing = asyncio.create_task(voice.play(await pipeline.run(SILENCE)))
        await clock.sleep(1.0)
        playing.cancel()
        await asyncio.wait([playing])
        assert clock.now() >= 2.0

    heard, _, _ = converse(script, SAY, tts=Polite())
    assert last_sound(heard) <= 1.11 * RATE


@pytest.mark.parametrize("end", ["cancel", "close", "closed before"])
@pytest.mark.parametrize("hangs", ["recognizer", "voice", "session"])
def test_a_play_that_is_cancelled_or_closed_ends_a_recognizer_or_a_voice_that_hangs(end, hangs):
    async def script(pipeline, voice, clock):
        result = await pipeline.run(StreamedAudioInput() if hangs == "session" else SILENCE)
        if end == "closed before":
            voice.close()
        playing = asyncio.create_task(voice.play(result))
        await clock.sleep(3.0)
        if end == "close":
            voice.close()
            voice.close()
        elif end == "cancel":
            playing.cancel()
        async with asyncio.timeout(1.0):
            await asyncio.wait([playing])
        assert playing.cancelled() == (end == "cancel")
        assert playing.cancelled() or playing.exception() is None
        assert result.text_generation_task.done()

    stt = {"recognizer": HangingRecognizer(), "session": ScriptedSTTModel(sessions=[Ears([(1000.0, "Hello?")])])}
    converse(script, SAY, stt=stt.get(hangs), tts=HangingVoice() if hangs == "voice" else None)


def test_a_handoff_sounds_as_a_call_that_succeeds_and_the_turn_goes_on():
    def handing_over(voice, model):
        other = Agent(name="Other", instructions="test", model=model)
        return agent_of(voice, model, handoffs=[other])

    heard, sounded, _ = converse(answer, [["call", "transfer_to_other", {}]], SAY, workflow=handing_over)
    assert sounded == ["tool_call", "success"]
    assert ends_with(heard, SHORT)


@pytest.mark.parametrize("part", ["recognizer", "model", "voice"])
def test_a_failure_sounds_as_one_error_and_is_raised(part):
    failure = RuntimeError("out of order")
    stt = ScriptedSTTModel([failure]) if part == "recognizer" else None
    tts = voice_of(failure) if part == "voice" else None
    says = [["fail", {"message": "out of order"}]] if part == "model" else SAY

    async def script(*parts):
        with pytest.raises(Exception, match="out of order"):
            await answer(*parts)

    _, sounded, _ = converse(script, says, stt=stt, tts=tts)
    assert sounded == ["error"]


def test_a_workflow_of_ones_own_takes_its_text_from_the_voice():
    class Own(VoiceWorkflowBase):
        def __init__(self, voice, model):
            self.voice, self.agent = voice, Agent(name="own", instructions="test", model=model)

        async def run(self, transcription):
            yield "You said: "
            run = Runner.run_streamed(self.agent, transcription, run_config=UNTRACED)
            async for text in self.voice.text_of(run):
                yield text

    heard, sounded, requests = converse(answer, SAY, workflow=Own)
    assert sounded == []
    assert requests[0]["messages"][1:] == [{"role": "user", "content": "Hello?"}]
    assert ends_with(heard, SHORT)


def test_a_run_whose_last_word_is_a_tools_output_ends_the_turn():
    def stopping(voice, model):
        return agent_of(voice, model, tool_use_behavior="stop_on_first_tool")

    async def script(pipeline, voice, _):
        await voice.play(await pipeline.run(SILENCE))
        assert voice.router.is_over

    _, sounded, requests = converse(script, CALL, SAY, workflow=stopping)
    assert sounded == ["tool_call", "success"]
    assert len(requests) == 1


def test_a_run_that_fails_on_an_unknown_tool_sounds_as_an_error_once():
    options = {"run_config": UNTRACED, "tools": None}
    heard, is_over, _ = play(AgentsVoiceTalk, TURNS["unknown tool"], lasts_s=20.0, interrupt_s=15.0, **options)
    assert heard.cues == ("tool_call", "error")
    check_silent_after(heard, heard.spans[-1].end_samples)
    assert is_over


FIRST_WORKFLOW = """
from agents import Agent
from openai.types.responses import Response
from cues.adapters.agents_voice import VoiceCues
before = Response.__pydantic_complete__
VoiceCues(print).workflow(Agent(name="Helper"))
print(before, Response.__pydantic_complete__)
"""


def test_the_types_of_a_first_answer_are_built_with_the_workflow():
    # Built with the answer, they would hold up the event loop, and the frames of the first cue.
    done = subprocess.run(
        [sys.executable, "-c", FIRST_WORKFLOW], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["False", "True"]
