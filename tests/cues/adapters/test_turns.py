"""The same turns through a session and each pipeline's real package, on virtual time; `tests/fastrtc` has FastRTC's."""

import pytest

from tests.support.talks.agents_voice import AgentsVoiceTalk
from tests.support.talks.livekit import LiveKitTalk
from tests.support.talks.pipecat import PipecatTalk
from tests.support.talks.realtime import AgentsRealtimeTalk, RealtimeTalk
from tests.support.talks.session import SessionTalk
from tests.support.talks.unmute import UnmuteTalk
from tests.support.turn_matrix import (
    HANGS,
    IN_PROFILES,
    PROFILES,
    STATES,
    WHOLE_TURNS,
    play_barge_in,
    play_gap,
    play_hang,
    play_whole_turn,
    play_whole_turn_in_profile,
)

PIPELINES = [SessionTalk, AgentsVoiceTalk, LiveKitTalk, PipecatTalk, RealtimeTalk, AgentsRealtimeTalk, UnmuteTalk]
each_pipeline = pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda kind: kind.__name__.removesuffix("Talk"))


@each_pipeline
@pytest.mark.parametrize(("name", "thinking"), WHOLE_TURNS)
def test_no_dead_air_up_to_the_first_word(pipeline, name, thinking):
    if (pipeline, name) == (AgentsRealtimeTalk, "unknown tool"):
        return  # The SDK asks for no answer; `test_agents_sdk.py` has this turn.
    play_whole_turn(pipeline, name, thinking=thinking)


@each_pipeline
@pytest.mark.parametrize(("name", "profile"), IN_PROFILES)
def test_no_dead_air_in_any_profile(pipeline, name, profile):
    if (pipeline, name) == (AgentsRealtimeTalk, "unknown tool"):
        return  # As above.
    play_whole_turn_in_profile(pipeline, name, profile)


@each_pipeline
@pytest.mark.parametrize("profile", PROFILES)
def test_a_model_that_hangs_without_a_call_is_heard_to_work_after_four_seconds(pipeline, profile):
    play_gap(pipeline, profile)


@each_pipeline
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("state", STATES)
def test_a_barge_in_in_each_state_is_over_after_its_fade(pipeline, state, profile):
    talk = play_barge_in(pipeline, state, profile)
    if hasattr(talk, "server"):  # A Realtime server learns what was heard of the answer.
        cuts = [cut["audio_end_ms"] for cut in talk.server.of("conversation.item.truncate")]
        assert cuts == ([pytest.approx(700, abs=20)] if state == "speaking" else [])


@each_pipeline
@pytest.mark.parametrize("name", HANGS)
@pytest.mark.parametrize("profile", [*PROFILES, "silent"])
def test_a_hang_ends_with_the_error_cue(pipeline, name, profile, caplog):
    if profile == "silent":
        play_hang(pipeline, name, caplog, sounds=False)
    else:
        play_hang(pipeline, name, caplog, profile=profile)
