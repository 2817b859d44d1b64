"""The options that every adapter takes: one that does not exist is refused by name."""

import pytest

from cues.adapters.agents_sdk import AgentCues
from cues.adapters.agents_voice import VoiceCues
from cues.adapters.audiosocket import AudioSocketLine
from cues.adapters.livekit import CueOutput, SessionCues
from cues.adapters.pipecat import create
from cues.adapters.realtime import RealtimeCues
from cues.adapters.telephony import PhoneLine
from cues.adapters.unmute import UnmuteCues
from cues.errors import CueTypeError
from stream.clock import WallClock
from tests.support.livekit_session import ListSink

PACED = {
    "AgentCues": lambda **options: AgentCues(print, **options),
    "VoiceCues": lambda **options: VoiceCues(print, **options),
    "AudioSocketLine": lambda **options: AudioSocketLine(print, **options),
    "CueOutput": lambda **options: CueOutput(ListSink(WallClock()), **options),
    "SessionCues": SessionCues,
    "RealtimeCues": lambda **options: RealtimeCues(print, **options),
    "PhoneLine": lambda **options: PhoneLine(print, **options),
}


@pytest.mark.parametrize("make", PACED.values(), ids=PACED)
@pytest.mark.parametrize("name", ["ruels", "is_constant", "now_s"])
def test_a_misspelt_option_is_refused_by_name_with_those_that_there_are(make, name):
    with pytest.raises(CueTypeError, match=f"{name} is no option.*bank, rules, tools, limits, times, lead_ms, clock"):
        make(**{name: None})


@pytest.mark.parametrize("make", [create, UnmuteCues])
@pytest.mark.parametrize("name", ["ruels", "lead_ms"])
def test_so_is_one_of_an_adapter_that_its_pipeline_paces(make, name):
    with pytest.raises(CueTypeError, match=f"{name} is no option.*bank, rules, tools, limits, times$"):
        make(**{name: None})
