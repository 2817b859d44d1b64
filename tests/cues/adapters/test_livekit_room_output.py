"""LiveKit's own end of the audio chain, the room's output with its native audio source, without a room."""

import asyncio
from types import SimpleNamespace

import numpy as np
from livekit import rtc
from livekit.agents.voice.room_io._output import _ParticipantAudioOutput

from cues.adapters.livekit import CueOutput
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from stream.events import ToolCallStart
from tests.support.listening import RATE, first_sound, last_sound, new_clicks, steady_voice

CHUNK = round(0.02 * RATE)
FADE_S = 0.03
LONGEST_S = 0.1  # The longest lead and a frame; without a pacer the source's 200 ms are full.


class Source(rtc.AudioSource):
    """The native source, with a record of what it was given."""

    def __init__(self):
        super().__init__(RATE, 1, queue_size_ms=200)
        self.frames, self.queued_s, self.n_cleared = [], [], 0
        self._got_more = asyncio.Event()

    async def capture_frame(self, frame):
        self.frames.append(float_of_pcm16(bytes(frame.data)))
        await super().capture_frame(frame)
        self.queued_s.append(self.queued_duration)
        self._got_more.set()

    def clear_queue(self):
        self.n_cleared += 1
        super().clear_queue()

    @property
    def signal(self):
        return np.concatenate([np.zeros(0), *self.frames])

    async def has(self, seconds):
        """Wait until it was given so much."""
        while len(self.signal) < seconds * RATE:
            self._got_more.clear()
            await self._got_more.wait()


async def publish_track(_track, _options):
    async def subscribed():
        return None

    return SimpleNamespace(sid="TR_1", wait_for_subscription=subscribed)


def play(script, **options):
    """Run `script(output, source)` against the room's output; the source with its record, and playback events."""

    async def go():
        room = SimpleNamespace(local_participant=SimpleNamespace(publish_track=publish_track))
        sink = _ParticipantAudioOutput(
            room, sample_rate=RATE, num_channels=1, track_publish_options=rtc.TrackPublishOptions()
        )
        source = sink._audio_source = Source()
        await sink.start()
        output, finished = CueOutput(sink, **options), []
        output.on("playback_finished", finished.append)
        try:
            async with asyncio.timeout(30.0):
                await script(output, source)
        finally:
            await output.aclose()
            await sink.aclose()
        return source, finished

    return asyncio.run(go())


async def say(output, samples):
    """As the framework does: all frames at once, then a flush."""
    for start in range(0, len(samples), 4800):
        piece = samples[start : start + 4800]
        await output.capture_frame(rtc.AudioFrame(pcm16_of_float(piece), RATE, 1, len(piece)))
    output.flush()


def test_the_room_gets_all_speech_with_a_cue_in_it_and_little_of_it_ahead():
    x = float_of_pcm16(pcm16_of_float(steady_voice(1.5)))
    lag_s = []

    async def script(output, source):
        await say(output, x)
        await source.has(0.5)
        played = len(source.signal) - source.queued_duration * RATE
        output.router.handle(ToolCallStart("read_file", "1"))
        await output.wait_for_playout()
        differs = first_sound(source.signal[: len(x)] - x, 1e-3)
        lag_s.append((differs - played) / RATE)

    source, finished = play(script)
    assert last_sound(source.signal) == last_sound(x)
    assert new_clicks(source.signal[: len(x)], x) == []
    assert max(source.queued_s) <= LONGEST_S
    assert 0.0 <= lag_s[0] <= LONGEST_S
    assert [event.playback_position for event in finished] == [len(x) / RATE]


def test_a_pause_lets_the_room_play_the_fade_and_cuts_nothing_off():
    x = steady_voice(1.5)

    async def script(output, source):
        await say(output, x)
        await source.has(0.5)
        n_given = len(source.signal)
        output.pause()
        await source.has((n_given + FADE_S * RATE) / RATE)
        output.resume()
        await output.wait_for_playout()

    source, finished = play(script)
    assert source.n_cleared == 0
    assert new_clicks(source.signal, np.zeros_like(source.signal)) == []
    assert [event.playback_position for event in finished] == [len(x) / RATE]
