"""`cues demo`: from a model server's bytes to a WAV file, with this package alone."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack
from urllib.parse import urlsplit

import click

import stream
from cues.cli import _options
from cues.cli.live.scripts import demo_script, served
from cues.cli.live.timeline import report
from cues.cli.live.turn import Setup, TurnReport, run_turn
from stream.clock import WallClock
from stream.services.tool import as_tools

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
    from pathlib import Path

    from stream.events import ServiceEvent
    from stream.replay.recording import Recording
    from stream.services.chat_request import Message
    from stream.services.source import ChatFields
    from stream.services.tool import ToolLike

__all__ = ["command"]


@click.command()
@_options.out
@_options.speaker
@_options.pack
@_options.fast
@click.option("--speed", type=click.FloatRange(0.0, 100.0, min_open=True), help="Speed; 1 is real time.")
@click.option("--text", help="What the assistant says instead; the tool is called after the first sentence.")
@click.option("--lang", "language", help="Language of TEXT, as espeak-ng names its voices: de, fr, es, …")
@_options.json_output
def command(
    *,
    out: Path,
    speaker: str,
    pack: Path | None,
    fast: bool,
    speed: float | None,
    text: str | None,
    language: str | None,
    as_json: bool,
) -> None:
    """Hear it: a recorded model stream becomes speech with cues.

    A local server replays a recorded stream of llama-server: a sentence, then a call of get_weather. The stream's bytes
    are read, the speech is synthesized, and the cue plays over it as soon as the call is known. Then the tool and the
    model answer (this part is scripted, not recorded).

    Writes demo.wav, demo-speech.wav (without cues), demo.png and demo.json. Ctrl-C ends the demo and keeps the files of
    an earlier one.
    """
    if language and not text:
        raise click.UsageError("--lang is the language of --text: give both")
    if text is not None and not text.strip():
        raise click.BadParameter("is empty; give at least one word", param_hint="'--text'")
    if fast and speed:
        raise click.UsageError(f"--fast is --speed {_options.FAST_SPEED:g}: give one of them")
    clock = WallClock(speed or (_options.FAST_SPEED if fast else 1.0))
    setup = Setup(
        clock=clock, out=out, stem="demo", speaker=speaker, language=language, pack=pack, keeps_interrupted=False
    )
    report(asyncio.run(_demo(setup, text)), as_json=as_json)


async def _demo(setup: Setup, text: str | None) -> TurnReport:
    script = demo_script()
    turns = list(script.turns)
    if text is not None:
        turns = [_saying(turn, words) for turn, words in zip(turns, _before_and_after(text), strict=True)]
    first, second = (turn.name for turn in turns)
    title = f"{first} at {script.tokens_per_s} tokens/s, then {second}"
    async with served([replace(script, turns=turns)], setup.clock) as (replayed,):
        target = replace(replayed, source=lambda tap: _Replayed(target.base_url, tap), rounds=None)
        return await run_turn(target, [{"role": "user", "content": script.prompt}], setup, title=title)


class _Replayed:
    """A source that reads the server's bytes itself: the `openai` package takes longer to import than all the rest."""

    model = "replay"

    def __init__(self, base_url: str, tap: Callable[[bytes], None]) -> None:
        self._url, self._tap = urlsplit(base_url), tap

    async def chat(
        self, messages: Sequence[Message], *, tools: Iterable[ToolLike] | None = None, **_: Unpack[ChatFields]
    ) -> AsyncGenerator[ServiceEvent, None]:
        offered = as_tools(tools or ())
        reader = stream.OpenAIReader(offered)  # before the request: it compiles patterns for the tools
        body = {"model": self.model, "stream": True, "messages": messages, "tools": [tool.openai() for tool in offered]}
        async for event in stream.read(self._answer(json.dumps(body).encode()), reader=reader):
            yield event

    async def _answer(self, body: bytes) -> AsyncIterator[bytes]:
        """Body of an answer whose end is the end of the connection (HTTP/1.0)."""
        reader, writer = await asyncio.open_connection(self._url.hostname, self._url.port)
        try:
            head = f"POST {self._url.path}/chat/completions HTTP/1.0\r\nHost: {self._url.netloc}\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            await reader.readuntil(b"\r\n\r\n")
            while data := await reader.read(1 << 16):
                self._tap(data)
                yield data
        finally:
            writer.close()


def _before_and_after(text: str) -> tuple[str, str]:
    """The first sentence of a text, and the rest."""
    first, *rest = re.split(r"(?<=[.!?…])\s+|(?<=[。！？])", text.strip(), maxsplit=1)
    return first, "".join(rest)


def _saying(recording: Recording, text: str) -> Recording:
    """The recording with `text` in place of its own, a word a chunk."""
    pieces: list[bytes] = []
    words = re.findall(r"\S+\s*", text)
    for piece in recording.pieces():
        chunk = json.loads(piece[6:]) if piece.startswith(b"data: {") else {}
        choices = chunk.get("choices")
        if choices and choices[0]["delta"].get("content"):
            for word in words:
                choices[0]["delta"]["content"] = word
                pieces.append(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            words = []
        else:
            pieces.append(piece)
    return replace(recording, body=b"".join(pieces), reads=())
