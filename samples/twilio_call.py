"""Cues in a telephone call: a server for Twilio Media Streams.

`pip install 'cue-engine[services,live]'`, then `python samples/twilio_call.py`, and let a call's TwiML be
`<Response><Connect><Stream url="wss://YOUR-HOST/call"/></Connect></Response>`. `--loopback OUT.wav` needs no account: a
client in Twilio's place calls the server over a WebSocket, and what the caller hears is written to the file.
"""

import argparse
import asyncio
import base64
import json
import time

import numpy as np
import soundfile
import uvicorn
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from websockets.asyncio.client import connect

import cues
import stream
from cues.adapters.telephony import CallerAudio, PhoneLine
from cues.signal.g711 import samples_of_bytes
from cues.synthesis.voicelike import speak_voice_like
from stream.replay.scenarios import scenario
from stream.replay.server import ReplayServer

RATE = 24000


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


def app_for(base_url, model):
    async def call(websocket):
        await websocket.accept()
        line = PhoneLine(websocket.send_text)
        sending, answering = asyncio.create_task(line.run()), None
        try:
            while (message := await websocket.receive())["type"] == "websocket.receive":
                event = line.feed(message.get("text") or message.get("bytes") or "")
                # Your detector of speech.
                is_speech = isinstance(event, CallerAudio) and np.abs(event.samples).max(initial=0.0) > 0.1
                if is_speech and (answering is None or answering.done()):
                    answering = asyncio.create_task(answer(line, base_url, model))
        finally:  # nothing of a call outlives it
            if answering is not None:
                answering.cancel()
            line.close()
            await asyncio.gather(sending, *filter(None, [answering]), return_exceptions=True)
        for span in line.router.spans:
            print(f"{span.cue} at {span.start_s:.2f} s")

    return Starlette(routes=[WebSocketRoute("/call", call)])


async def caller(url):
    """Call, speak once, and return what is heard until nothing has come for a second (at first: for a minute)."""
    heard, ends_s = [], time.monotonic()
    async with connect(url) as socket:
        start = {"streamSid": "MZ1", "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1}}
        await socket.send(json.dumps({"event": "start", "streamSid": "MZ1", "start": start}))
        loud = base64.b64encode(bytes([0x10]) * 160).decode()
        await socket.send(json.dumps({"event": "media", "media": {"track": "inbound", "payload": loud}}))
        while True:
            try:
                message = json.loads(await asyncio.wait_for(socket.recv(), timeout=1.0 if heard else 60.0))
            except TimeoutError:
                break
            if message["event"] == "media":
                samples = samples_of_bytes(base64.b64decode(message["media"]["payload"]))
                starts_s = max(time.monotonic(), ends_s)
                heard += [np.zeros(round((starts_s - ends_s) * 8000), np.float32), samples]
                ends_s = starts_s + len(samples) / 8000
            elif message["event"] == "mark":  # as Twilio: when all before it has been played
                await asyncio.sleep(max(0.0, ends_s - time.monotonic()))
                await socket.send(json.dumps(message))
        await socket.send(json.dumps({"event": "stop", "streamSid": "MZ1"}))
    return np.concatenate(heard)


async def loopback(path):
    async with ReplayServer(scenario("ollama-tool-call")) as model:
        server = uvicorn.Server(uvicorn.Config(app_for(model.base_url, "any"), port=0, log_level="warning"))
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        soundfile.write(path, await caller(f"ws://127.0.0.1:{port}/call"), 8000)
        server.should_exit = True
        await serving


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-url", default="http://localhost:11434/v1")
    parser.add_argument("--model", default="qwen3")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--loopback", metavar="OUT.wav")
    options = parser.parse_args()
    cues.warm_up()
    if options.loopback:
        asyncio.run(loopback(options.loopback))
    else:
        uvicorn.run(app_for(options.base_url, options.model), port=options.port)


if __name__ == "__main__":
    main()
