"""A runner that executes the tools a model calls and returns the results until there is an answer."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

from stream.errors import StreamValueError
from stream.events import (
    AnswerParts,
    Finish,
    InvalidToolCall,
    ReasoningDelta,
    StreamFailed,
    TaskStatus,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
)
from stream.known_tools import SERVER_TOOLS
from stream.readers.finish_reasons import calls_are_the_clients, calls_follow
from stream.sendable import sendable_text
from stream.services.redaction import logged_arguments, logged_list, logged_name
from stream.services.source import capabilities_behind
from stream.services.tool import as_tools
from stream.services.validation import Strictness, Validator

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence

    from stream.events import ServiceEvent
    from stream.services.attempts import Attempts
    from stream.services.chat_request import Message
    from stream.services.models import ModelCapabilities
    from stream.services.source import ChatFields, ChatSource
    from stream.services.tool import Tool, ToolLike

__all__ = ["ToolRunner"]

ROUNDS = {"excellent": 8, "good": 5, "poor": 2}
"""Most rounds of tool calls, by `multi_turn`."""

logger = logging.getLogger(__name__)


class ToolRunner:
    """A source that runs the tools that the model calls.

    The calls of one answer run at the same time, after it has ended; one after the other if the request
    (`parallel_tool_calls=False`) or the model's `parallel` allows one call at a time. Nothing runs here if the stream
    shows that the server runs the tools, as some forks of Ollama do; with Responses, Anthropic and Gemini every call is
    the client's. An answer that Anthropic has paused goes back, and is continued. Each call gets a `ToolResult`, also
    if the tool raises or the call cannot run. The last round offers no tools, to get an answer; calls in it get an
    error.

    Parameters
    ----------
    source : ChatSource
        The source to ask.
    tools : Iterable
        The tools that may run; each needs a function unless the server runs them.
    validation : {"off", "on", "strict"}
        How calls are checked before they run; see `Validator`.
    executes : {"auto", "client", "server"}
        Who runs the tools; `"auto"` decides by the stream. With `"server"` no call counts as invented.
    server_tools : Collection[str]
        With `"auto"`: patterns for tools that the server offers and runs by itself; see `Validator`.
    timeout_s : float
        Longest run of one tool, seconds, > 0.
    rounds : int or None
        Most rounds of calls, ≥ 1; `None` decides by the model's `multi_turn`.
    parallel : bool
        Whether calls of one answer may run at the same time.
    longest_result : int
        Most characters of a result; longer ones are cut.
    attempts : Attempts or None
        Counters for invalid calls and results.

    Raises
    ------
    StreamValueError
        If a tool has no function, or a number is out of range.
    """

    def __init__(
        self,
        source: ChatSource,
        tools: Iterable[ToolLike],
        *,
        validation: Strictness = "on",
        executes: Literal["auto", "client", "server"] = "auto",
        server_tools: Collection[str] = SERVER_TOOLS,
        timeout_s: float = 30.0,
        rounds: int | None = None,
        parallel: bool = True,
        longest_result: int = 20_000,
        attempts: Attempts | None = None,
    ) -> None:
        if executes not in ("auto", "client", "server"):
            raise StreamValueError(f"executes is {executes!r}; it must be 'auto', 'client' or 'server'")
        if rounds is not None and rounds < 1:
            raise StreamValueError(f"rounds is {rounds!r}; it must be 1 or more, or None")
        if not timeout_s > 0.0:
            raise StreamValueError(f"timeout_s is {timeout_s!r}; it must be above 0")
        self.tools = as_tools(tools)
        idle = [tool.name for tool in self.tools if tool.function is None]
        if idle and executes != "server":
            raise StreamValueError(f"the tools {idle} have no function to run; give one, or executes='server'")
        self._source, self._executes, self._timeout_s, self._parallel = source, executes, timeout_s, parallel
        self._rounds, self._longest, self._attempts = rounds, longest_result, attempts
        self._by_name = {tool.name: tool for tool in self.tools}
        patterns: Collection[str] = {"server": ("*",), "client": ()}.get(executes, server_tools)
        self.validator = Validator(self.tools, strictness=validation, model=source.model, server_tools=patterns)

    @property
    def model(self) -> str:
        """The model's name."""
        return self._source.model

    @property
    def capabilities(self) -> ModelCapabilities:
        """The model's capabilities with tools."""
        return capabilities_behind(self._source)

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Iterable[ToolLike] | None = None,
        added: list[Message] | None = None,
        **fields: Unpack[ChatFields],
    ) -> AsyncGenerator[ServiceEvent, None]:
        """The events of all rounds up to the answer.

        Parameters
        ----------
        messages : Sequence[Mapping]
            In OpenAI's form.
        tools : Iterable or None
            Tools to offer; `None` offers all of the runner's.
        added : list or None
            The messages of the rounds (calls and results) are appended to it, for the caller's history.
        **fields
            As in `Connection.chat`; `tool_choice` applies to the first round only, so that a forced call can end.
        """
        history, offered = list(messages), self.tools if tools is None else as_tools(tools)
        rounds, calls_so_far = self._rounds or ROUNDS[self.capabilities.multi_turn], 0
        wanted = fields.get("parallel_tool_calls")
        at_once = self._parallel and (self.capabilities.parallel if wanted is None else wanted)
        for number in range(rounds + 1):
            turn = _Turn(first_index=calls_so_far)
            last = number == rounds
            answer = self._source.chat(history, tools=() if last else offered, **fields)
            async with aclosing(answer), aclosing(self.validator.watch(answer)) as checked:
                async for event in checked:
                    self._count(event)
                    yield turn.take(event)
            goes_on = turn.reason == "pause_turn" and not turn.calls and not turn.failed
            if not goes_on and not self._is_ours(turn):
                return
            if last:
                why = f"The tool was not run: {rounds} rounds of calls are used up."
                for call in turn.calls:
                    unrun = ToolResult(call.tool_call_id, call.tool_name, is_error=True, content=why)
                    self._count(unrun)
                    yield unrun
                return
            self._log_unknown(turn)
            results: dict[int, ToolResult] = {}
            async with aclosing(self._run(turn, at_once=at_once)) as running:
                async for place, result in running:
                    results[place] = result
                    self._count(result)
                    yield result
            spoken = turn.messages([results[place] for place in range(len(turn.calls))])
            history += spoken
            if added is not None:
                added += spoken
            calls_so_far = turn.next_index
            fields.pop("tool_choice", None)

    def _count(self, event: ServiceEvent) -> None:
        if self._attempts is None:
            return
        if isinstance(event, InvalidToolCall):
            self._attempts.invalid(self.model, event)
        elif isinstance(event, ToolResult) and event.tool_name in self._by_name:
            self._attempts.result(self.model, event)

    def _is_ours(self, turn: _Turn) -> bool:
        """Whether calls are left to run here."""
        if self._executes == "server" or turn.failed or not turn.calls:
            return False
        return self._executes == "client" or not turn.server_ran

    async def _run(self, turn: _Turn, *, at_once: bool) -> AsyncGenerator[tuple[int, ToolResult], None]:
        """Each result with the place of its call, as soon as it is there."""
        if not at_once:
            for place, call in enumerate(turn.calls):
                yield place, await self._outcome(call, turn.problems.get(call.index))
            return
        results: dict[int, ToolResult] = {}

        async def run(place: int, call: ToolCallEnd) -> None:
            # Not returned by the task: in debug mode, asyncio logs parts of a task's result.
            results[place] = await self._outcome(call, turn.problems.get(call.index))

        tasks = {asyncio.create_task(run(place, call)): place for place, call in enumerate(turn.calls)}
        try:
            waiting = set(tasks)
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in sorted(done, key=tasks.__getitem__):
                    task.result()  # raises the exception of a failed task
                    yield tasks[task], results[tasks[task]]
        finally:
            for task in tasks:
                task.cancel()

    async def _outcome(self, call: ToolCallEnd, problem: InvalidToolCall | None) -> ToolResult:
        tool = self._by_name.get(call.tool_name)
        if problem is not None or tool is None or call.status != "ok":
            if problem is not None:
                why = problem.message
            else:
                why = self.validator.unknown(call.tool_name) if tool is None else "its arguments are not a JSON object"
            return ToolResult(call.tool_call_id, call.tool_name, is_error=True, content=f"The tool was not run: {why}.")
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("running %s with %s", logged_name(tool.name), logged_arguments(call.arguments_json))
        is_error, content = await self._called(tool, call)
        logger.debug("%s %s, %d characters", logged_name(tool.name), "failed" if is_error else "is done", len(content))
        if len(content) > self._longest:
            content = f"{content[: self._longest]}\n[cut: {len(content) - self._longest} more characters]"
        return ToolResult(call.tool_call_id, call.tool_name, is_error=is_error, content=content)

    def _log_unknown(self, turn: _Turn) -> None:
        """Log valid calls of tools that are not registered: they cannot run."""
        unknown = [call.tool_name for call in turn.calls if call.status == "ok" and call.tool_name not in self._by_name]
        if unknown:
            names = logged_list(logged_name(name) for name in unknown)
            logger.warning("%d calls from %s not run, there are no such tools: %s", len(unknown), self.model, names)

    async def _called(self, tool: Tool, call: ToolCallEnd) -> tuple[bool, str]:
        """Whether the tool failed, and its result or exception as text."""
        try:
            arguments = self.validator.arguments(call)
        except (ValueError, RecursionError) as error:
            return True, _words(error)
        # A task of its own: a tool that cancels its task does not cancel the turn.
        outcome: Future[Any] = Future()
        work = asyncio.create_task(_try_here(tool, arguments, outcome))
        try:
            await asyncio.wait({work}, timeout=self._timeout_s)
        finally:
            work.cancel()
        if not work.done():
            return True, f"The tool took longer than {self._timeout_s:g} s."
        try:
            value = (outcome if outcome.done() else work).result()
            return bool(getattr(value, "isError", False)), sendable_text(_as_text(value))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  (a tool may raise anything)
            return True, _words(error)


def _tried(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Future[Any]:
    """The result or exception of a function, in a future: asyncio cannot pass a StopIteration between threads."""
    outcome: Future[Any] = Future()
    try:
        outcome.set_result(function(**arguments))
    except BaseException as error:  # noqa: BLE001  (`result` raises it again)
        outcome.set_exception(error)
    return outcome


async def _try_here(tool: Tool, arguments: Mapping[str, Any], outcome: Future[Any]) -> None:
    """Put a tool's result or exception into a future: a task passes a SystemExit to the event loop."""
    assert tool.function is not None
    try:
        if inspect.iscoroutinefunction(tool.function):
            value = await tool.function(**arguments)
        else:
            value = (await asyncio.to_thread(_tried, tool.function, arguments)).result()
            value = await value if inspect.isawaitable(value) else value
        outcome.set_result(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  (`result` raises it again)
        outcome.set_exception(error)


def _words(error: BaseException) -> str:
    name = type(error).__name__
    try:
        said = str(error)
    except BaseException:  # noqa: BLE001  (the tool's own class)
        said = ""
    return sendable_text(f"{name}: {said}" if said else name)


@dataclass(slots=True)
class _Turn:
    """State of one answer: its text and calls, and whether the server ran them."""

    first_index: int
    text: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    calls: list[ToolCallEnd] = field(default_factory=list)
    problems: dict[int, InvalidToolCall] = field(default_factory=dict)
    failed: bool = False
    next_index: int = 0
    said_after: bool = False
    reported: bool = False
    reason: str = ""
    parts: dict[str, tuple[dict[str, Any], ...]] = field(default_factory=dict)

    def take(self, event: ServiceEvent) -> ServiceEvent:
        """Record an event; return it with an index that counts through all rounds."""
        if isinstance(event, (ToolCallStart, ToolCallEnd, InvalidToolCall)):
            event = replace(event, index=event.index + self.first_index)
            self.next_index = max(self.next_index, event.index + 1)
        if isinstance(event, ToolCallEnd) and event.status != "incomplete":
            self.calls.append(event)
            self.said_after = False
        elif isinstance(event, InvalidToolCall):
            self.problems[event.index] = event
        elif isinstance(event, TextDelta):
            follows_call = self.text and self.calls and not self.said_after
            if follows_call and not (self.text[-1][-1:].isspace() or event.text[:1].isspace()):
                self.text.append(" ")  # otherwise the words before and after the call would join
            self.text.append(event.text)
            self.said_after = self.said_after or bool(event.text.strip())
        elif isinstance(event, ReasoningDelta):
            self.thinking.append(event.text)
        elif isinstance(event, ToolResult) or (isinstance(event, TaskStatus) and not event.tool_name):
            self.reported = True  # a task with a name is a tool of the server's own, beside the client's
        elif isinstance(event, AnswerParts):
            self.parts[event.api] = event.parts
        elif isinstance(event, Finish):
            self.reason = event.reason
        elif isinstance(event, StreamFailed):
            self.failed = True
        return event

    @property
    def server_ran(self) -> bool:
        """Whether the server ran the calls: it reported on them, or wrote text after them and announces no calls.

        Never where the API says which calls are the client's.
        """
        if self.parts or calls_are_the_clients(self.reason):
            return False
        return self.reported or (self.said_after and not calls_follow(self.reason))

    def messages(self, results: Sequence[ToolResult]) -> list[Message]:
        """The answer and its results as messages in OpenAI's form; a call without an id gets one.

        A call without a name cannot be sent back; if there is no other one, the same question is asked again.
        """
        named = [
            (call, call.tool_call_id or f"call_{call.index}", result)
            for call, result in zip(self.calls, results, strict=True)
            if call.tool_name
        ]
        if self.calls and not named:
            return []
        assistant: dict[str, Any] = {
            "role": "assistant",
            "content": "".join(self.text),
        }
        if named:
            assistant["tool_calls"] = [_written(call, own_id) for call, own_id, _ in named]
        if self.parts:
            assistant["provider_parts"] = {api: [*parts] for api, parts in self.parts.items()}
        if self.thinking:
            assistant["thinking"] = "".join(self.thinking)
        answers = [
            {
                "role": "tool",
                "tool_call_id": own_id,
                "name": result.tool_name,
                "content": result.content,
                **({"is_error": True} if result.is_error else {}),
            }
            for _, own_id, result in named
        ]
        return [assistant, *answers]


def _written(call: ToolCallEnd, own_id: str) -> dict[str, Any]:
    """A call for the history; arguments that are no JSON object become `{}`, because servers refuse them."""
    arguments = call.arguments_json
    try:
        if not isinstance(json.loads(arguments), dict):
            arguments = "{}"
    except (ValueError, RecursionError):
        arguments = "{}"
    return {"id": own_id, "type": "function", "function": {"name": call.tool_name, "arguments": arguments}}


def _as_text(value: Any) -> str:
    """A tool's result as text for the model: text unchanged, the texts of an MCP result, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    parts = getattr(value, "content", None)
    if isinstance(parts, list):
        return "\n".join(part.text for part in parts if hasattr(part, "text"))
    return json.dumps(value, ensure_ascii=False, default=str)
