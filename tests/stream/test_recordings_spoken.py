"""Every recording of a real server, over real HTTP through the real client, to the words that a speaker is given."""

import asyncio
import json

import pytest

import cues
import stream
from stream.clock import WallClock
from stream.replay.recording import load_recording, samples_folder
from stream.replay.server import ReplayServer
from stream.session import VoiceSession
from stream.speech.voice_like import VoiceLikeSpeaker

SAMPLES = samples_folder()
EXPECTED = json.loads((SAMPLES / "expected.json").read_text(encoding="utf-8"))


# The clock runs 100 times as fast, and a busy machine must not look like a model that hangs.
PATIENT = stream.Limits(model_s=1e5, tool_s=1e5, speech_s=1e5)


class Listener(VoiceLikeSpeaker):
    """A silent speaker that keeps its text."""

    def __init__(self):
        super().__init__()
        self.told = ""

    async def send(self, text):
        self.told += text


class Nowhere:
    def write(self, mixed, speech):
        """Forget it."""


def turn(path):
    async def go():
        recording = load_recording(path)
        endpoint = "ollama" if recording.kind == "ndjson" else "chat"
        mixer, listener = cues.Mixer(24000), Listener()
        router = stream.CueRouter(cues.load_bank(), mixer)
        session = VoiceSession(
            mixer=mixer, router=router, speaker=listener, sink=Nowhere(), clock=WallClock(100.0), limits=PATIENT
        )
        async with (
            ReplayServer([recording], tokens_per_s=100_000.0) as server,
            stream.connect(server.base_url, "replay", api=endpoint) as connection,
        ):
            journal = await session.run(connection.chat([{"role": "user", "content": "?"}]))
        return listener.told, journal

    return asyncio.run(go())


@pytest.mark.parametrize("name", EXPECTED)
def test_no_character_of_a_call_is_spoken_and_no_other_is_lost(name):
    told, journal = turn(SAMPLES / name)
    expected = EXPECTED[name]
    assert " ".join(told.split()) == " ".join(expected["text"].split())
    ended = [seen.event for seen in journal.seen if isinstance(seen.event, stream.ToolCallEnd)]
    assert [[call.tool_name, json.loads(call.arguments_json)] for call in ended if call.status == "ok"] == expected[
        "calls"
    ]
    assert all(call.status == "ok" for call in ended) or expected["cut"]
    assert bool(journal.sounded) == bool(ended)
    assert journal.failure is None
