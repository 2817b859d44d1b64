"""Split a model's text, for LiveKit's agents, into words to speak and calls to run."""

import inspect
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Sequence
from dataclasses import replace
from typing import Any

from livekit.agents import DEFAULT_API_CONNECT_OPTIONS, FlushSentinel, llm, utils
from livekit.agents.types import APIConnectOptions

from cues.errors import CueTypeError
from stream.events import ToolCallEnd
from stream.readers.options import Start, checked_start
from stream.repairing.chat import ChatRepair

__all__ = ["guarded", "guarded_node"]

_MOST_UNREAD = 16  # of calls that nobody asks for


def guarded(model: llm.LLM, *, start: Start = "text") -> llm.LLM:
    """A language model whose text may be spoken: no call, no thought and no marker is left in it.

    Calls that the model writes as text become its tool calls. Closing it closes `model`.

    Parameters
    ----------
    model : llm.LLM
    start : {"text", "reasoning"}
        `"reasoning"` if the model's prompt opens a block of thoughts and its server does not parse them, so that only
        the block's end comes; see `stream.OpenAIReader`.

    Raises
    ------
    CueTypeError
        If `model` is no `LLM` of LiveKit Agents.
    StreamValueError
        If `start` is unknown.
    """
    if not isinstance(model, llm.LLM):
        raise CueTypeError(f"llm is {model!r}; it must be an llm.LLM, such as inference.LLM(…): a RealtimeModel speaks")
    return _GuardedLLM(model, checked_start(start))


async def guarded_node(
    chunks: AsyncIterable[llm.ChatChunk | str | FlushSentinel] | Awaitable[Any],
    tools: Sequence[Any] = (),
    *,
    start: Start = "text",
) -> AsyncIterator[llm.ChatChunk | str | FlushSentinel]:
    """Guard the chunks of an `Agent.llm_node` as `guarded` does, for agents with a node of their own.

    Parameters
    ----------
    chunks : async iterable, or awaitable of one
        What `Agent.default.llm_node(agent, chat_ctx, tools, model_settings)` returns, or your own stream.
    tools : sequence
        The `tools` of the node.
    start : {"text", "reasoning"}
        As for `guarded`.
    """
    async for clean in _guarded_by(_Guard(tools, checked_start(start)), chunks):
        yield clean


async def _guarded_by(guard: "_Guard", chunks: Any) -> AsyncIterator[Any]:
    given = await chunks if inspect.isawaitable(chunks) else chunks
    try:
        async for chunk in given:
            for clean in guard.feed(chunk):
                yield clean
        for clean in guard.close():
            yield clean
    except Exception as error:
        for clean in guard.close(error):
            yield clean
        raise
    finally:
        if hasattr(given, "aclose"):
            await given.aclose()


def awaits_voice(model: Any) -> bool:
    """Whether the latest answer of a guarded model has words whose voice has not begun."""
    return isinstance(model, _GuardedLLM) and model.awaits_voice


def voice_begins(model: Any) -> None:
    """Note that the voice of a guarded model's answer has begun."""
    if isinstance(model, _GuardedLLM):
        model.awaits_voice = False


def unread_calls(model: Any) -> list[ToolCallEnd]:
    """The calls in the text of a guarded model whose arguments cannot be read; each is returned once."""
    if not isinstance(model, _GuardedLLM):
        return []
    return [model.unread.popleft() for _ in range(len(model.unread))]


class _GuardedLLM(llm.LLM):  # type: ignore[misc]  # the package may be absent where types are checked
    def __init__(self, model: llm.LLM, start: Start) -> None:
        super().__init__()
        self._guarded, self._label, self._start = model, model.label, start
        self.awaits_voice = False
        self.unread = deque[ToolCallEnd](maxlen=_MOST_UNREAD)
        model.on("metrics_collected", self._pass_on_metrics)

    def _pass_on_metrics(self, *metrics: Any) -> None:
        self.emit("metrics_collected", *metrics)

    def __getattr__(self, name: str) -> Any:  # what only this kind of model has
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._guarded, name)

    @property
    def model(self) -> str:
        return str(self._guarded.model)

    @property
    def provider(self) -> str:
        return str(self._guarded.provider)

    @property
    def metrics_metadata(self) -> Any:
        return self._guarded.metrics_metadata

    def chat(
        self,
        *,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool] | None = None,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
        **options: Any,
    ) -> llm.LLMStream:
        own = {"chat_ctx": chat_ctx, "tools": tools or [], "conn_options": conn_options}
        return _GuardedStream(self, self._guarded, options, self._start, **own)

    def prewarm(self, **options: Any) -> None:
        self._guarded.prewarm(**options)

    async def aclose(self) -> None:
        self._guarded.off("metrics_collected", self._pass_on_metrics)
        await self._guarded.aclose()


class _GuardedStream(llm.LLMStream):  # type: ignore[misc]
    """Retries as its options say; the guarded model does not, so each attempt is read from its beginning."""

    _llm_request_span_name = "llm_guard"  # the guarded model's spans and metrics are those of the request
    _llm_attempt_span_name = None
    _genai_operation_name = None

    def __init__(self, owner: _GuardedLLM, model: llm.LLM, options: Any, start: Start, **own: Any) -> None:
        self._owner, self._model, self._options, self._start = owner, model, options, start
        super().__init__(owner, **own)

    async def _run(self) -> None:
        self._owner.awaits_voice = has_words = False
        guard = _Guard(self._tools, self._start)
        once = replace(self._conn_options, max_retry=0)
        options = {"chat_ctx": self._chat_ctx, "tools": self._tools, "conn_options": once, **self._options}
        async with self._model.chat(**options) as chunks:
            async for chunk in _guarded_by(guard, chunks):
                if not has_words and isinstance(chunk, llm.ChatChunk) and chunk.delta:
                    self._owner.awaits_voice = has_words = bool((chunk.delta.content or "").strip())
                self._event_ch.send_nowait(chunk)
        self._owner.unread.extend(guard.unread)

    async def _metrics_monitor_task(self, event_aiter: AsyncIterable[llm.ChatChunk]) -> None:
        async for _ in event_aiter:
            pass


class _Guard:
    """Repairs the chunks of one stream."""

    def __init__(self, tools: Sequence[Any], start: Start) -> None:
        self._start = start
        self._names = list(llm.ToolContext(list(tools)).function_tools)
        self._id, self._is_id_of_stream = "", False
        self._begin()

    @property
    def unread(self) -> list[ToolCallEnd]:
        """The calls in the text that were dropped because their arguments cannot be read."""
        return [call for call in self._repair.dropped if call.status == "malformed"]

    def _begin(self) -> None:
        self._repair, self._n_calls = ChatRepair(self._names, not_offered="pass", start=self._start), 0
        self._calls: dict[str, llm.FunctionToolCall] = {}

    def feed(self, chunk: Any) -> list[Any]:
        """Return what takes the place of a chunk, of its type."""
        if isinstance(chunk, str):
            return self._fed(chunk, llm.ChoiceDelta(content=chunk))
        if not isinstance(chunk, llm.ChatChunk):
            return [chunk]
        ended: list[Any] = []
        if chunk.id == self._id:
            self._is_id_of_stream = True  # not one of the chunk alone
        elif self._is_id_of_stream:  # another attempt, or another model's
            ended, self._is_id_of_stream = self.close(), False
            self._begin()
        self._id = chunk.id
        delta = chunk.delta
        return [*ended, *([chunk] if delta is None else self._fed(chunk, delta))]

    def _fed(self, chunk: Any, delta: llm.ChoiceDelta) -> list[Any]:
        calls = []
        for call in delta.tool_calls:
            function = {"name": call.name, "arguments": call.arguments}
            calls.append({"index": self._n_calls, "id": call.call_id, "type": "function", "function": function})
            self._calls[call.call_id] = call
            self._n_calls += 1
        piece = _chunk({"content": delta.content, "tool_calls": calls or None})
        found = self._repair.feed(piece)
        if len(found) == 1 and found[0] is piece:
            return [chunk]
        chunks = self._chunks(found)
        if isinstance(chunk, llm.ChatChunk) and (chunk.usage or delta.extra):
            rest = delta.model_copy(update={"content": None, "tool_calls": []})
            chunks.append(chunk.model_copy(update={"delta": rest}))
        return chunks

    def close(self, error: Exception | None = None) -> list[Any]:
        """Return what was still held."""
        if error is not None:
            return self._chunks(self._repair.fail(error))
        return self._chunks([*self._repair.feed(_chunk({}, "stop")), *self._repair.close()])

    def _chunks(self, found: list[dict[str, Any]]) -> list[llm.ChatChunk]:
        deltas = [choice["delta"] for one in found for choice in one["choices"]]
        made = [
            llm.ChoiceDelta(
                role="assistant",
                content=delta.get("content"),
                tool_calls=[self._call(call) for call in delta.get("tool_calls") or ()],
            )
            for delta in deltas
            if delta.get("content") or delta.get("tool_calls")
        ]
        return [llm.ChatChunk(id=self._id or utils.shortuuid("guard_"), delta=delta) for delta in made]

    def _call(self, call: dict[str, Any]) -> llm.FunctionToolCall:
        """A call with what the model's own chunk says of it."""
        own, function = self._calls.get(call["id"]), call["function"]
        made = {"name": function["name"], "arguments": function["arguments"]}
        return own.model_copy(update=made) if own else llm.FunctionToolCall(call_id=call["id"], **made)


def _chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
