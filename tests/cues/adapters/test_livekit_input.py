"""A LiveKit session whose microphone hears the loudspeaker: what its voice detector gets."""

import pytest
from livekit.agents import Agent, AgentSession

from cues.adapters.livekit import DeafToCues, attach
from cues.errors import CueTypeError
from stream.events import ToolCallStart, ToolResult
from tests.support.livekit_session import Detector, ListSink, Microphone, ScriptedLLM, VoiceLikeTTS
from tests.support.virtual_loop import LoopClock, run_virtually


def test_a_session_without_an_input_is_refused_with_a_sentence():
    with pytest.raises(CueTypeError, match=r"no audio input.*after `await session.start"):
        DeafToCues(None, None)


@pytest.mark.parametrize("is_interrupted", [False, True], ids=["whole cue", "interrupted"])
def test_the_detector_of_a_session_hears_nothing_while_a_cue_sounds_and_all_else(is_interrupted):
    async def go():
        clock = LoopClock()
        detector = Detector(clock)
        session = AgentSession(llm=ScriptedLLM([]), tts=VoiceLikeTTS(), vad=detector)
        session.input.audio, session.output.audio = Microphone(), ListSink(clock)
        await session.start(Agent(instructions="test"))
        handle = attach(session, clock=clock)
        session.input.audio = DeafToCues(session.input.audio, handle.router)
        await clock.sleep_until(1.0)
        handle.router.handle(ToolCallStart("read_file", "1"))
        if is_interrupted:
            await clock.sleep_until(1.1)
            session.interrupt(force=True)
            handle.router.barge_in()
        else:
            handle.router.handle(ToolResult(tool_name="read_file", tool_call_id="1", is_error=True, content=""))
        await clock.sleep_until(4.0)
        await session.aclose()
        return detector, handle.router

    detector, router = run_virtually(go)
    sounds_s = max(span.end_s for span in router.spans)  # The output has begun with the first cue.
    assert not any(detector.deaf(0.1, 1.0))
    assert all(detector.deaf(1.04, 1.0 + sounds_s + 0.2))
    assert not any(detector.deaf(1.0 + sounds_s + 0.5, 4.0))
    assert len(detector.deaf(0.1, 4.0)) == pytest.approx(195, abs=2)
