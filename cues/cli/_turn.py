"""One turn from a model server to a WAV: what `cues demo` and `cues speak` have in common."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import cues
import stream
from cues.cli._files import TurnFiles
from cues.cli._timeline import draw_timeline
from cues.errors import MissingFeatureError
from stream.events import StreamFailed, ToolCallEnd, ToolResult
from stream.session import VoiceSession
from stream.speech.choice import choose_speaker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from stream.clock import WallClock
    from stream.events import Event
    from stream.journal import Journal

__all__ = ["Request", "Setup", "TurnReport", "client_for", "run_turn"]

SAMPLE_RATE = 24000
MAX_ROUNDS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the model is asked.

    Attributes
    ----------
    model : its name on the server.
    messages : the conversation so far.
    tools : tool definitions, OpenAI's form; without any, the request is as if tools did not exist.
    run_tool : runs a tool that the model called; `None`: the turn ends with the call.
    """

    model: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    run_tool: Callable[[ToolCallEnd], Awaitable[ToolResult]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How the answer is spoken.

    Attributes
    ----------
    clock : stream time.
    out, stem : folder and name of the files.
    speaker : one of `stream.speech.choice.SPEAKERS`.
    pack : folder with cues that replace the built-in ones, if any.
    """

    clock: WallClock
    out: Path
    stem: str
    speaker: str
    pack: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReport:
    """A finished turn: its record, the files, and the speaker that was taken."""

    journal: Journal
    files: TurnFiles
    speaker: str
    notes: tuple[str, ...] = field(default=())


async def run_turn(request: Request, base_url: str, setup: Setup, *, title: str, api_key: str = "none") -> TurnReport:
    """Ask the model, speak what it answers with cues, and leave the files."""
    bank = cues.load_bank(setup.pack)
    mixer = cues.Mixer(SAMPLE_RATE)
    clock = setup.clock
    speaker = await choose_speaker(setup.speaker)
    try:
        with TurnFiles(setup.out, setup.stem, SAMPLE_RATE) as files:
            client, last_read_s = client_for(base_url, api_key, clock)
            router = stream.CueRouter(bank, mixer)
            session = VoiceSession(mixer=mixer, router=router, speaker=speaker, sink=files, clock=clock)
            async with client:
                journal = await session.run(converse(client, request), bytes_s=last_read_s)
    finally:
        await speaker.aclose()
        mixer.close()
    files.write_json({"speaker": speaker.name, "model": request.model, "speed": clock.speed, **journal.as_dict()})
    notes = []
    try:
        draw_timeline(journal, files.read_wav(), f"{title} — speaker: {speaker.name}", files.png)
    except MissingFeatureError as error:
        notes.append(str(error))
    return TurnReport(journal=journal, files=files, speaker=speaker.name, notes=tuple(notes))


def client_for(base_url: str, api_key: str, clock: WallClock) -> tuple[Any, Callable[[], float | None]]:
    """An `AsyncOpenAI` client, and a function that tells when it last read bytes (stream seconds)."""
    try:
        import httpx2
        from openai import AsyncOpenAI

        from stream.arrival import TimedTransport
    except ImportError as error:
        raise MissingFeatureError(
            f"reading a model server needs the openai package: pip install 'cue-engine[openai]' ({error})"
        ) from error
    transport = TimedTransport(clock)
    http_client = httpx2.AsyncClient(transport=transport, timeout=httpx2.Timeout(600.0, connect=5.0))
    client = AsyncOpenAI(base_url=base_url, api_key=api_key, http_client=http_client, max_retries=0)
    return client, lambda: transport.last_read_s


async def converse(client: Any, request: Request) -> AsyncIterator[Event]:
    """The events of an answer: of the first stream, of the tools that it calls, of the stream after that, and so on."""
    import openai

    messages = [*request.messages]
    for _ in range(MAX_ROUNDS):
        extra = {"tools": [*request.tools]} if request.tools else {}
        calls: list[ToolCallEnd] = []
        try:
            chunks = await client.chat.completions.create(model=request.model, messages=messages, stream=True, **extra)
        except openai.OpenAIError as error:
            yield _failure(error, str(client.base_url))
            return
        async for event in stream.read(chunks, tools=[*request.tools] or None):
            yield event
            if isinstance(event, ToolCallEnd) and event.status == "ok":
                calls.append(event)
        if not calls or request.run_tool is None:
            return
        messages.append(_assistant_message(calls))
        for call in calls:
            result = await request.run_tool(call)
            yield result
            messages.append({"role": "tool", "tool_call_id": call.tool_call_id, "content": result.content})


def _assistant_message(calls: Sequence[ToolCallEnd]) -> dict[str, Any]:
    """The assistant's message with its calls, as a server wants it back."""
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": call.tool_call_id,
                "type": "function",
                "function": {"name": call.tool_name, "arguments": call.arguments_json},
            }
            for call in calls
        ],
    }


def _failure(error: Exception, base_url: str) -> StreamFailed:
    """A request that never became a stream, in one line that says what and where."""
    status = getattr(error, "status_code", None)
    if status is None:
        cause = error.__cause__ or error
        return StreamFailed(f"cannot reach {base_url}: {str(cause) or type(cause).__name__}", code="unreachable")
    detail = getattr(error, "body", None)
    if isinstance(detail, dict):
        detail = detail.get("message") or json.dumps(detail)
    return StreamFailed(f"{base_url} answered HTTP {status}: {detail or error}", status=status)
