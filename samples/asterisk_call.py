"""Cues in a telephone call from Asterisk: a server for AudioSocket.

`pip install 'cue-engine[services]'`, then `python samples/asterisk_call.py`, and in the dialplan
`same = n,AudioSocket(${UUID},YOUR-HOST:9092)` after `Answer()`. `--loopback OUT.wav` needs no account: a client in
Asterisk's place calls the server over TCP, and what the caller hears is written to the file.
"""

import argparse
import asyncio
import time
import uuid

import numpy as np
import soundfile

import cues
import stream
from cues.adapters.audiosocket import AudioSocketLine, CallerAudio
from cues.signal.pcm import float_of_pcm16
from cues.synthesis.voicelike import speak_voice_like
from stream.replay.scenarios import scenario
from stream.replay.server import ReplayServer

RATE = 24000
BUFFER_S = 0.08  # A player holds so much back: a frame that is late by less leaves no hole.


async def list_directory(path: str) -> str:
    """List the names of a folder's files."""
    await asyncio.sleep(1.0)
    return f"two files in {path}"


async def answer(line, base_url, model):
    """Ask the model and speak. Put your recognizer where the question is, and your voice where it is spoken."""
    question = [{"role": "user", "content": "What is in my folder?"}]
    line.router.begin_turn()
    async with stream.connect(base_url, model) as connection:
        async for event in stream.words(stream.ToolRunner(connection, [list_directory]).chat(question)):
            line.router.handle(event)
            if isinstance(event, stream.StreamFailed):
                print(event)
            if isinstance(event, stream.TextDelta):
                line.push(speak_voice_like(event.text, sample_rate=RATE), RATE)
    line.router.end_stream()  # nothing more comes: a model may end without an answer
    line.end()
    await line.played()


def server_for(base_url, model):
    async def call(reader, writer):
        line = AudioSocketLine(writer.write)
        sending, answering = asyncio.create_task(line.run()), None
        try:
            while data := await reader.read(4096):
                for event in line.feed(data):
                    # Your detector of speech.
                    is_speech = isinstance(event, CallerAudio) and np.abs(event.samples).max(initial=0.0) > 0.1
                    if is_speech and (answering is None or answering.done()):
                        answering = asyncio.create_task(answer(line, base_url, model))
        except ConnectionError:
            pass  # the caller's connection was reset
        finally:  # nothing of a call outlives it
            if answering is not None:
                answering.cancel()
            line.close()
            await asyncio.gather(sending, *filter(None, [answering]), return_exceptions=True)
            writer.close()
        for span in line.router.spans:
            print(f"{span.cue} at {span.start_s:.2f} s")

    return call


async def caller(port):
    """Call, speak once, and return what is heard until nothing has come for a second (at first: for a minute)."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"\x01\x00\x10" + uuid.uuid4().bytes + b"\x10\x01\x40" + b"\x00\x40" * 160)
    heard, began = [np.zeros(0, dtype=np.float32)], time.monotonic()
    while True:
        try:
            header = await asyncio.wait_for(reader.readexactly(3), timeout=1.0 if len(heard) > 1 else 60.0)
        except TimeoutError:
            break
        gap = round((time.monotonic() - began) * 8000) - sum(map(len, heard))
        gap = gap if gap > BUFFER_S * 8000 else 0
        samples = float_of_pcm16(await reader.readexactly(int.from_bytes(header[1:], "big")))
        heard += [np.zeros(gap, np.float32), samples]
    writer.write_eof()
    await reader.read()
    writer.close()
    return np.concatenate(heard)


async def loopback(path):
    async with ReplayServer(scenario("ollama-tool-call")) as model:
        server = await asyncio.start_server(server_for(model.base_url, "any"), "127.0.0.1", 0)
        soundfile.write(path, await caller(server.sockets[0].getsockname()[1]), 8000)
        server.close()


async def serve(options):
    async with await asyncio.start_server(server_for(options.base_url, options.model), port=options.port) as server:
        await server.serve_forever()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-url", default="http://localhost:11434/v1")
    parser.add_argument("--model", default="qwen3")
    parser.add_argument("--port", type=int, default=9092)
    parser.add_argument("--loopback", metavar="OUT.wav")
    options = parser.parse_args()
    cues.warm_up()
    asyncio.run(loopback(options.loopback) if options.loopback else serve(options))


if __name__ == "__main__":
    main()
