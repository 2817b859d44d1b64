"""Cues in FastRTC: a `ReplyOnPause` whose reply function reads a model's stream.

`pip install 'cue-engine[fastrtc,services]'`, then `python samples/fastrtc_reply.py --base-url http://localhost:11434/v1`
and open the page that it names. `--loopback OUT.wav` needs neither browser nor model: a question goes in, and what a
browser would play is written to the file.
"""

import argparse
import asyncio

import numpy as np
import soundfile
from fastrtc import ReplyOnPause, Stream

import cues
import stream
from cues.adapters.fastrtc import current_router, with_cues
from cues.synthesis.voicelike import speak_voice_like
from stream.replay.scenarios import scenario
from stream.replay.server import ReplayServer

RATE = 24000


class Loudness:
    """A pause detector: loud is speech. FastRTC's own needs a model from the network."""

    def vad(self, audio, _options):
        rate, samples = audio
        return float(np.count_nonzero(np.abs(samples) > 1000)) / rate, []

    def warmup(self):
        pass


async def list_directory(path: str) -> str:
    """List the names of a folder's files."""
    await asyncio.sleep(1.0)
    return f"two files in {path}"


def replies(base_url, model):
    """The reply function. Put your recognizer where the question is, and your voice where it is spoken."""
    runner = stream.ToolRunner(stream.connect(base_url, model), [list_directory])

    async def reply(_audio):
        question = [{"role": "user", "content": "What is in my folder?"}]
        async for event in stream.words(runner.chat(question)):
            current_router().handle(event)
            if isinstance(event, stream.TextDelta):
                yield RATE, speak_voice_like(event.text, sample_rate=RATE).reshape(1, -1)

    return reply


def handler_for(base_url, model):
    return with_cues(ReplyOnPause(replies(base_url, model), model=Loudness(), input_sample_rate=16000))


async def loopback(path):
    """Ask once, and write the answer."""
    async with ReplayServer(scenario("ollama-tool-call")) as server:
        handler = handler_for(server.base_url, "any")
        handler._loop = asyncio.get_running_loop()  # noqa: SLF001  (FastRTC sets it for each connection)
        for loud in (True, False):
            await handler.receive((16000, np.full((1, 9600), 9000 * loud, dtype=np.int16)))
        frames, quiet = [], 0
        while quiet < 10:  # a second in which nothing comes
            item = await handler.emit()
            quiet = quiet + 1 if item is None else 0
            frames += [] if item is None else [item[1]]
        handler.shutdown()
    soundfile.write(path, np.concatenate(frames), RATE)
    for span in handler.router.spans:
        print(f"{span.cue} at {span.start_s:.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-url", default="http://localhost:11434/v1")
    parser.add_argument("--model", default="qwen3")
    parser.add_argument("--loopback", metavar="OUT.wav")
    options = parser.parse_args()
    cues.warm_up()
    if options.loopback:
        asyncio.run(loopback(options.loopback))
    else:
        Stream(handler_for(options.base_url, options.model), modality="audio", mode="send-receive").ui.launch()


if __name__ == "__main__":
    main()
