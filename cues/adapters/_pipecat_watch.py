"""The chunks of an OpenAI-compatible service of Pipecat, parsed and repaired as they pass."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from cues.adapters._pipecat_guard import CueFrame
from stream.events import Event, ReasoningDelta, TextDelta, ToolCallEnd, ToolCallStart
from stream.readers.formats.chat_completions import OpenAIReader
from stream.repairing.chat import ChatRepair

__all__ = ["watch"]


class _Chunks:
    """Chunks as the `openai` package gives them: services iterate over them, some in `async with`, and close them."""

    def __init__(self, chunks: AsyncGenerator[Any, None]) -> None:
        self._chunks = chunks

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._chunks

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._chunks.aclose()


@dataclass
class _Call:
    """A structured call as Pipecat gets it, in pieces."""

    name: str = ""
    call_id: str = ""
    arguments: str = ""


class _Response:
    """The structured calls of a response as Pipecat gets them, of which it drops those that are not JSON, silently."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}  # names of the calls that were told of, by id
        self._calls: dict[int, _Call] = {}  # by index
        self._reasons = False  # the last thing that came is thoughts in a field, which Pipecat drops

    def reasoning(self, events: Iterable[Event]) -> list[ReasoningDelta]:
        """The first of a run of thoughts in a field: the guard reads the text after them."""
        found = []
        for event in events:
            if isinstance(event, ReasoningDelta) and event.sent_as and not self._reasons:
                found.append(event)
            self._reasons = isinstance(event, ReasoningDelta)
        return found

    def begun(self, events: Iterable[Event]) -> list[ToolCallStart]:
        """The starts of structured calls, with the ids by which Pipecat tells of them later."""
        starts = []
        for event in events:
            if isinstance(event, ToolCallStart) and not event.from_text:
                call_id = event.tool_call_id or self._id_of(event.tool_name)
                if call_id:
                    self._told[call_id] = event.tool_name
                    starts.append(replace(event, tool_call_id=call_id))
        return starts

    def _id_of(self, name: str) -> str:
        """The id that the repair has given to a call of this name to which the server gave none."""
        ids = (call.call_id for call in self._calls.values() if call.name == name)
        return next((call_id for call_id in ids if call_id not in self._told), "")

    def note(self, chunk: Any) -> None:
        deltas = (choice.delta for choice in chunk.choices or () if choice.delta is not None)
        for piece in (piece for delta in deltas for piece in delta.tool_calls or ()):
            call = self._calls.setdefault(piece.index, _Call())
            call.call_id = call.call_id or piece.id or ""
            if piece.function is not None:
                call.name = call.name or piece.function.name or ""
                call.arguments += piece.function.arguments or ""

    def dropped(self) -> list[ToolCallEnd]:
        """The ends of the calls that Pipecat drops."""
        return [
            ToolCallEnd(self._told[call.call_id], call.call_id, index, call.arguments, "malformed")
            for index, call in self._calls.items()
            if call.call_id in self._told and not _is_json(call.arguments or "{}")
        ]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def watch(llm: Any) -> Callable[[], None]:
    """Parse and repair the chunks of an OpenAI-compatible service as they pass, until the returned function is called.

    Pipecat has no hook there; its services override this method.
    """
    ask = llm.get_chat_completions

    async def watched(*arguments: Any, **options: Any) -> _Chunks:
        return _Chunks(passed(await ask(*arguments, **options)))

    async def report(events: Iterable[Event]) -> None:
        # The service pushes it, so that it comes after the words before the call, and is dropped with its response.
        for event in events:
            await llm.push_frame(CueFrame(event))  # the router knows the call by its id when Pipecat tells of it

    async def passed(chunks: Any) -> AsyncGenerator[Any, None]:
        reader, repair, response = OpenAIReader(), ChatRepair(not_offered="pass"), _Response()
        try:
            async for chunk in chunks:
                events = reader.feed(chunk)
                await report(response.reasoning(events))  # before the text of the same chunk
                # Pipecat joins a call that a server repeats with the first, and runs neither. Text is the guard's; a
                # chunk without a delta is one that Pipecat does not read, such as the whole answer once more.
                deltas = [choice.delta for choice in chunk.choices or () if choice.delta is not None]
                if any(isinstance(event, TextDelta) and event.channel == "json" for event in events):
                    for delta in deltas:  # data for a program, which Pipecat would speak
                        delta.content = None
                is_text = any(delta.content and not delta.tool_calls for delta in deltas)
                for one in [chunk] if is_text or (chunk.choices and not deltas) else repair.feed(chunk):
                    response.note(one)
                    yield one
                await report(response.begun(events))  # after the text of the same chunk
            for one in repair.close():
                response.note(one)
                yield one
            await report(response.dropped())
        finally:
            await (chunks.aclose if hasattr(chunks, "aclose") else chunks.close)()

    def unwatch() -> None:
        if llm.__dict__.get("get_chat_completions") is watched:
            llm.get_chat_completions = ask

    llm.get_chat_completions = watched
    return unwatch
