"""Cues in a loop of your own: a model's stream, a voice and a mixer; a file stands in for the loudspeaker.

`pip install 'cue-engine[demo]'`, then `python samples/own_loop.py --loopback OUT.wav`: recordings answer, and no model
is needed. `--pack my-sounds` takes your sounds; `--base-url http://localhost:11434 --model qwen3:8b OUT.wav` asks your
model.
"""

import argparse
import asyncio
import time

import numpy as np
import soundfile

import cues
import stream
from cues.cli.live.scripts import demo_script
from stream.replay.server import ReplayServer
from stream.speech import choose_speaker

RATE, FRAME = 24000, 480


async def get_weather(city: str) -> str:
    """Get the weather in a city."""
    await asyncio.sleep(1.0)
    return f"{city}: 12 degrees"


class Loop:
    """One session: a mixer, its pacer, its router, and the voice."""

    def __init__(self, bank, speaker):
        self.mixer = cues.Mixer(sample_rate=RATE)
        self.pacer = cues.Pacer(self.mixer, frame_samples=FRAME, continuous=True)
        # A clock: between two turns no frame is written.
        self.router = stream.CueRouter(bank, self.mixer, now_samples=lambda: round(time.monotonic() * RATE))
        self.speaker = speaker

    async def answer(self, events):
        """Hand every event to the router, and the words to the voice."""
        self.router.begin_turn()
        async for event in stream.words(events):
            self.router.handle(event)
            if isinstance(event, stream.TextDelta):
                await self.speaker.send(event.text)
            else:
                await self.speaker.flush()  # a call comes: say what is complete
            if isinstance(event, stream.StreamFailed):
                print(event.message)
        self.router.end_stream()
        await self.speaker.finish()

    async def speak(self):
        """Queue the voice's speech, which comes faster than real time."""
        async for speech in self.speaker:
            self.pacer.push(speech.samples)
            self.router.speech(self.mixer.position + self.pacer.queued_samples)
        self.pacer.end()

    async def play(self, turn, write):
        """Write a frame every 20 ms until the turn is over and nothing sounds."""
        while not turn.done() or self.pacer.queued_samples or self.mixer.active:
            if turn.done():
                turn.result()  # raises if the model or the voice has failed, although a call waits for its outcome
            for frame in self.pacer.due():
                write(frame)
            self.router.poll()
            await asyncio.sleep(0.005)


async def converse(base_url, model, pack, path):
    """Ask once; write what is heard."""
    print("loading the mixing loops; a new machine compiles them once, which takes 10 to 50 seconds", flush=True)
    cues.warm_up()
    loop, heard = Loop(cues.load_bank(pack), await choose_speaker()), []
    async with stream.connect(base_url, model) as service:
        runner = stream.ToolRunner(service, [get_weather])  # runs the calls, and asks again with their results
        events = runner.chat([{"role": "user", "content": "What is the weather in Tokyo?"}])
        turn = asyncio.gather(loop.answer(events), loop.speak())
        await loop.play(turn, heard.append)
        await turn  # raises if the voice has failed
    await loop.speaker.aclose()
    soundfile.write(path, np.concatenate(heard), RATE)
    for span in loop.router.spans:
        print(f"{span.cue} at {span.start_s:.2f} s")


async def with_recordings(pack, path):
    """The same with a server that plays the demo's recordings: a call, then the answer to its result."""
    async with ReplayServer(demo_script().turns, tokens_per_s=15) as server:
        await converse(server.base_url, "replay", pack, path)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--loopback", action="store_true", help="recordings answer")
    options.add_argument("--pack", help="folder with your cues")
    options.add_argument("--base-url", default="http://localhost:11434")
    options.add_argument("--model", default="qwen3:8b")
    options.add_argument("out", metavar="OUT.wav")
    given = options.parse_args()
    if given.loopback:
        asyncio.run(with_recordings(given.pack, given.out))
    else:
        asyncio.run(converse(given.base_url, given.model, given.pack, given.out))
