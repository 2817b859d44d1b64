"""Cues in OpenAI Realtime: the model's own voice, with cues for its calls.

`pip install 'cue-engine[openai]' websockets`, set `OPENAI_API_KEY`, then
`python samples/realtime_talk.py "What is in my folder?" OUT.wav`. `--loopback OUT.wav` needs no account: a server in
this file calls and speaks over a WebSocket. `--agents` does the same with a session of the Agents SDK
(`cue-engine[agents]`). What is heard is written to the file.
"""

import argparse
import asyncio
import base64
import json
import time

import numpy as np
import soundfile
from openai import AsyncOpenAI
from websockets.asyncio.server import serve

import cues
from cues.adapters.realtime import RealtimeCues
from cues.signal.pcm import pcm16_of_float
from cues.synthesis.voicelike import speak_voice_like
from stream import ToolCallEnd

RATE = 24000
BUFFER_S = 0.08  # A player holds so much back: a frame that is late by less leaves no hole.
QUESTION = "What is in my folder?"
TOOL = {
    "type": "function",
    "name": "read_folder",
    "description": "Read the names of a folder's files.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


async def read_folder(path: str) -> str:
    """Read the names of a folder's files."""
    await asyncio.sleep(1.0)
    return f"two files in {path}"


class Tape:
    """Keeps what is heard."""

    def __init__(self):
        self._frames, self._began = [np.zeros(0, dtype=np.float32)], time.monotonic()

    def play(self, frame):
        gap = round((time.monotonic() - self._began) * RATE) - sum(map(len, self._frames))
        gap = gap if gap > BUFFER_S * RATE else 0
        self._frames += [np.zeros(gap, np.float32), frame]

    def save(self, path, router):
        soundfile.write(path, np.concatenate(self._frames), RATE)
        for span in router.spans:
            print(f"{span.cue} at {span.start_s:.2f} s")


async def talk(client, question, path):
    """Ask once; write what is heard until the answer has been spoken."""
    tape = Tape()
    async with client.realtime.connect(model="gpt-realtime") as connection:
        voice = RealtimeCues(tape.play, connection.send, tools=[TOOL["name"]])
        playing = asyncio.create_task(voice.run())
        await connection.send({"type": "session.update", "session": {"type": "realtime", "tools": [TOOL]}})
        content = [{"type": "input_text", "text": question}]
        item = {"type": "message", "role": "user", "content": content}
        await connection.send({"type": "conversation.item.create", "item": item})
        await connection.send({"type": "response.create"})
        tools, has_call = [], False
        try:
            async for server_event in connection:
                for event in await voice.feed(server_event):
                    if isinstance(event, ToolCallEnd) and event.status == "ok":
                        has_call = True
                        tools.append(asyncio.create_task(run_tool(voice, event)))  # aside: the user may speak meanwhile
                if server_event.type == "response.done":
                    if not has_call:
                        break
                    has_call = False
            await voice.played()
        finally:  # a connection that breaks, too, ends the tools and the sound
            for task in tools:
                task.cancel()
            await asyncio.gather(*tools, return_exceptions=True)
            voice.close()
            await playing
    tape.save(path, voice.router)


async def run_tool(voice, call):
    """Run the tool of a call and send its output."""
    try:
        output, is_error = await read_folder(**json.loads(call.arguments_json)), False
    except (TypeError, ValueError) as error:  # arguments that do not fit: the model learns of it
        output, is_error = f"{type(error).__name__}: {error}", True
    await voice.result(call.tool_call_id, output, is_error=is_error)


async def talk_with_agents(config, question, path):
    """The same in the Agents SDK, which runs the tool by itself."""
    from agents import function_tool, set_tracing_disabled
    from agents.realtime import RealtimeAgent, RealtimeRunner

    from cues.adapters.agents_sdk import AgentCues

    set_tracing_disabled(True)
    tape = Tape()
    voice = AgentCues(tape.play, tools=[TOOL["name"]])
    runner = RealtimeRunner(
        RealtimeAgent(name="Assistant", instructions="Be brief.", tools=[function_tool(read_folder)])
    )
    async with await runner.run(model_config={**config, "playback_tracker": voice.playback_tracker}) as session:
        playing = asyncio.create_task(voice.run())
        await session.send_message(question)
        has_call = False
        async for event in session:
            await voice.follow(event)
            is_raw = event.type == "raw_model_event" and event.data.type == "raw_server_event"
            told = event.data.data if is_raw else {"type": ""}
            if told["type"] == "response.output_item.done":
                has_call = has_call or told["item"]["type"] == "function_call"
            if event.type == "error" and not voice.router.waits:  # such as a tool that nobody has: no answer follows
                print(event.error)
                break
            if told["type"] == "response.done":
                if not has_call:
                    break
                has_call = False
        await voice.played()
        voice.close()
        await playing
    tape.save(path, voice.router)


async def server(socket):
    """A service that calls the tool and then speaks."""

    async def say(kind, **fields):
        await socket.send(json.dumps({"type": kind, "event_id": "e", **fields}))

    has_called = False
    async for message in socket:
        if json.loads(message)["type"] != "response.create":
            continue
        if not has_called:
            has_called = True
            call = {"id": "i1", "type": "function_call", "call_id": "c1", "name": "read_folder", "arguments": ""}
            place = {"response_id": "r1", "output_index": 0}
            await say("response.created", response={"id": "r1", "object": "realtime.response"})
            await say("response.output_item.added", **place, item=call)
            done = {"item_id": "i1", "call_id": "c1", "name": "read_folder", "arguments": '{"path": "."}'}
            await say("response.function_call_arguments.done", **place, **done)
            finished = {**call, "arguments": done["arguments"], "status": "completed"}
            await say("response.output_item.done", **place, item=finished)
            await say("response.done", response={"id": "r1", "status": "completed", "output": []})
        else:
            place = {"response_id": "r2", "item_id": "i2", "output_index": 0, "content_index": 0}
            pcm = pcm16_of_float(speak_voice_like("There are two files.", sample_rate=RATE))
            await say("response.created", response={"id": "r2", "object": "realtime.response"})
            for at in range(0, len(pcm), 9600):
                await say("response.output_audio.delta", **place, delta=base64.b64encode(pcm[at : at + 9600]).decode())
            await say("response.output_audio.done", **place)
            await say("response.done", response={"id": "r2", "status": "completed", "output": []})


async def loopback(path, *, agents):
    async with serve(server, "127.0.0.1", 0) as listening:
        url = f"ws://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        if agents:
            await talk_with_agents({"url": url, "api_key": "none"}, QUESTION, path)
        else:
            await talk(AsyncOpenAI(api_key="none", websocket_base_url=url), QUESTION, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument("out", metavar="OUT.wav")
    parser.add_argument("--loopback", action="store_true")
    parser.add_argument("--agents", action="store_true")
    options = parser.parse_args()
    cues.warm_up()
    if options.loopback:
        asyncio.run(loopback(options.out, agents=options.agents))
    elif options.agents:
        asyncio.run(talk_with_agents({}, options.question, options.out))
    else:
        asyncio.run(talk(AsyncOpenAI(), options.question, options.out))


if __name__ == "__main__":
    main()
