"""The chunks of an OpenAI-compatible service of Pipecat, parsed and repaired as they pass."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from typing import Any, Self

from cues.adapters._pipecat_guard import CueFrame
from stream.events import Event, ToolCallEnd, ToolCallStart
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


class _Response:
    """The structured calls of a response as Pipecat gets them, of which it drops those that are not JSON, silently."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # of the calls that were told of, by id
        self._calls: dict[int, tuple[str, str]] = {}  # id and arguments, by index

    def begin(self, event: Event) -> bool:
        """Whether an event is the start of a call that has an id, by which Pipecat tells of it later."""
        if not isinstance(event, ToolCallStart) or event.from_text or not event.tool_call_id:
            return False
        self._names[event.tool_call_id] = event.tool_name
        return True

    def note(self, chunk: Any) -> None:
        deltas = (choice.delta for choice in chunk.choices or () if choice.delta is not None)
        for call in (call for delta in deltas for call in delta.tool_calls or ()):
            call_id, arguments = self._calls.get(call.index, ("", ""))
            more = call.function.arguments if call.function is not None else None
            self._calls[call.index] = call_id or call.id or "", arguments + (more or "")

    def dropped(self) -> list[ToolCallEnd]:
        """The ends of the calls that Pipecat drops."""
        return [
            ToolCallEnd(self._names[call_id], call_id, index, arguments, "malformed")
            for index, (call_id, arguments) in self._calls.items()
            if call_id in self._names and not _is_json(arguments or "{}")
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
                # Pipecat joins a call that a server repeats with the first, and runs neither. Text is the guard's; a
                # chunk without a delta is one that Pipecat does not read, such as the whole answer once more.
                deltas = [choice.delta for choice in chunk.choices or () if choice.delta is not None]
                is_text = any(delta.content and not delta.tool_calls for delta in deltas)
                for one in [chunk] if is_text or (chunk.choices and not deltas) else repair.feed(chunk):
                    response.note(one)
                    yield one
                await report(filter(response.begin, events))  # after the text of the same chunk
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
