"""From the bytes of a call to the first sample of its cue leaving: `python -m bench.felt_latency [--json]`.

A model server in a process of its own writes 12 pieces of text, 100 ms apart, and a call whose name is the time at
which it was written (`CLOCK_MONOTONIC` is one clock for all processes). Each session reads it with the `openai` client
over loopback, runs a `VoiceSession` with 10 ms frames and 10 ms of lead, and notes when the cue's first sample leaves:
its frame's time plus its place in the frame. All sessions are in one process; each is asked something every 10 s, and
takes part for those 10 s. A busy core is a third process that never waits.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import openai

import cues
import stream
from bench.goals import Figure, at_most, run
from stream.session.voice_session import VoiceSession
from stream.speech.speaker import Speech

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from numpy.typing import NDArray

FRAME_SAMPLES = 240
PIECE_S, PIECES = 0.1, 12
ASKED_EVERY_S = 10.0
BUDGET_MS = 40.0
"""The delay that the demo's own check allows: two frames of output, a frame of lead and the reading."""


class Silence:
    """A speaker without a voice: every frame that is not silent is a cue's."""

    name = "silence"

    def __init__(self) -> None:
        self._finished = asyncio.Event()

    async def start(self) -> None:
        """Nothing to start."""

    async def send(self, text: str) -> None:
        """Drop the text."""

    async def flush(self) -> None:
        """Nothing is held back."""

    async def finish(self) -> None:
        """End the iteration."""
        self._finished.set()

    async def __aiter__(self) -> AsyncIterator[Speech]:
        """No speech, until `finish`."""
        await self._finished.wait()
        yield Speech(np.zeros(0, dtype=np.float32))

    async def cancel(self) -> None:
        """Nothing to drop."""

    async def aclose(self) -> None:
        """Nothing to release."""


class FirstSound:
    """A sink that notes when the first sample that is not silent left, ns of the monotonic clock."""

    def __init__(self) -> None:
        self.left_ns: float | None = None

    def write(self, mixed: NDArray[np.float32], speech: NDArray[np.float32]) -> None:  # noqa: ARG002
        """Take a frame."""
        if self.left_ns is None and mixed.any():
            self.left_ns = time.monotonic_ns() + int(np.flatnonzero(mixed)[0]) / 24000 * 1e9


def piece(delta: dict[str, Any], finish: str | None = None) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
             "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}  # fmt: skip
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kind: str) -> None:
    """One request: text, then a call that carries the time at which it was written."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
    )
    await reader.readexactly(length)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    begin = time.monotonic()
    for number in range(PIECES):
        writer.write(piece({"role": "assistant", "content": "word "}))
        await asyncio.sleep(max(0.0, begin + (number + 1) * PIECE_S - time.monotonic()))
    written = f"at_{time.monotonic_ns()}"
    if kind == "structured":
        call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": written, "arguments": "{}"}}
        writer.write(piece({"tool_calls": [call]}))
    else:
        writer.write(piece({"content": f'<tool_call>{{"name": "{written}", "arguments": {{}}}}</tool_call>'}))
    await writer.drain()
    await asyncio.sleep(0.5)
    writer.write(piece({}, finish="tool_calls" if kind == "structured" else "stop") + b"data: [DONE]\n\n")
    writer.close()


def serve(kind: str, port: multiprocessing.Queue[int]) -> None:
    async def forever() -> None:
        server = await asyncio.start_server(lambda r, w: answer(r, w, kind), "127.0.0.1", 0, backlog=1024)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(forever())


def spin() -> None:
    while True:
        pass


async def one_session(client: openai.AsyncOpenAI, bank: cues.Bank) -> float:
    """Delay of one call's cue, ms."""
    mixer, sink, written_ns = cues.Mixer(), FirstSound(), 0
    router = stream.CueRouter(bank, mixer)
    session = VoiceSession(mixer=mixer, router=router, speaker=Silence(), sink=sink, frame_samples=FRAME_SAMPLES)
    chunks = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}], stream=True)

    async def events() -> AsyncIterator[stream.Event]:
        nonlocal written_ns
        async for event in stream.read(chunks):
            if isinstance(event, stream.ToolCallStart):
                written_ns = int(event.tool_name.removeprefix("at_"))
            yield event

    await session.run(events())
    assert sink.left_ns is not None, "no cue was heard"
    return (sink.left_ns - written_ns) / 1e6


async def delays(port: int, n_sessions: int) -> list[float]:
    bank = cues.load_bank()
    async with openai.AsyncOpenAI(api_key="none", base_url=f"http://127.0.0.1:{port}/v1", max_retries=0) as client:

        async def later(number: int) -> float:
            await asyncio.sleep(ASKED_EVERY_S * number / n_sessions)
            return await one_session(client, bank)

        return list(await asyncio.gather(*(later(number) for number in range(n_sessions))))


def measured(kind: str, n_sessions: int, *, busy: bool) -> list[float]:
    """Delays of a run; a single session is run ten times."""
    context = multiprocessing.get_context("spawn")
    port: multiprocessing.Queue[int] = context.Queue()
    others = [context.Process(target=serve, args=(kind, port), daemon=True)]
    others += [context.Process(target=spin, daemon=True)] if busy else []
    for other in others:
        other.start()
    try:
        address = port.get(timeout=60)
        return [ms for _ in range(10 if n_sessions == 1 else 1) for ms in asyncio.run(delays(address, n_sessions))]
    finally:
        for other in others:
            other.terminate()
            other.join()


def figures() -> Iterator[Figure]:
    """Median and 95th percentile of each kind and load."""
    cues.warm_up()
    for kind in ("structured", "raw"):
        for n_sessions in (1, 50, 500):
            for busy in (False, True):
                ms = measured(kind, n_sessions, busy=busy)
                what = f"{kind} call, {n_sessions} sessions{', one core busy' if busy else ''}"
                p95 = statistics.quantiles(ms, n=20)[-1]
                yield at_most("F1", f"{what}: median", statistics.median(ms), BUDGET_MS, unit="ms")
                yield at_most("F1", f"{what}: 95th percentile", p95, 2 * BUDGET_MS, unit="ms")


if __name__ == "__main__":
    sys.exit(run(__doc__, figures))
