"""One round of a runner: an answer, its messages for the history, and one run of a tool."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Container, Mapping
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from threading import Thread
from typing import Any

from stream.events import (
    Finish,
    InvalidToolCall,
    ReasoningDelta,
    ServiceEvent,
    StreamFailed,
    TaskStatus,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
)
from stream.readers.formats.finish_reasons import calls_are_the_clients, calls_follow
from stream.redaction import logged_name
from stream.request_bodies import json_of, new_call_id, sendable_text
from stream.services.chat_request import Message, present
from stream.services.mcp_forms import is_mcp_result, mcp_field, mcp_text
from stream.services.tool import Tool

__all__ = ["Answer", "run_tool", "words_of"]

logger = logging.getLogger(__name__)

_UNREADABLE = "unreadable_call"  # servers refuse an empty name


@dataclass(slots=True)
class Answer:
    """State of one answer: its text and calls, and whether the server ran them."""

    first_index: int = 0
    text: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    thinking_field: str = "thinking"  # of a message
    reasoning_details: list[Mapping[str, Any]] = field(default_factory=list)
    calls: list[ToolCallEnd] = field(default_factory=list)
    problems: dict[int, InvalidToolCall] = field(default_factory=dict)
    results: dict[int, ToolResult] = field(default_factory=dict)  # by the place of the call
    failed: bool = False
    next_index: int = 0
    said_after: bool = False
    reported: bool = False
    reason: str = ""

    def take(self, event: ServiceEvent) -> ServiceEvent:
        """Record an event; return it with an index that counts through all rounds."""
        if isinstance(event, (ToolCallStart, ToolCallEnd, InvalidToolCall)):
            event = replace(event, index=event.index + self.first_index)
            self.next_index = max(self.next_index, event.index + 1)
        elif isinstance(event, ToolResult) and event.index is not None:  # of a runner beneath
            event = replace(event, index=event.index + self.first_index)
        if isinstance(event, ToolCallEnd) and event.told:
            logger.info("told, and not run: %s", logged_name(event.tool_name))
        elif isinstance(event, ToolCallEnd) and event.status != "incomplete":
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
            self.reported = self.reported or bool(self.calls and self.reason and event.text.strip())
        elif isinstance(event, ReasoningDelta):
            self.thinking.append(event.text)
            if event.sent_as == "reasoning_content":  # DeepSeek wants it back under this name; strict servers refuse it
                self.thinking_field = event.sent_as
        elif isinstance(event, ToolResult) or (isinstance(event, TaskStatus) and not event.tool_name):
            self.reported = True  # a task with a name is a tool of the server's own, beside the client's
            if isinstance(event, ToolResult) and not event.by_server:
                self._has_run(event)
        elif isinstance(event, Finish):
            self.reason = event.reason
            self.reasoning_details += event.reasoning_details
        elif isinstance(event, StreamFailed):
            self.failed = True
        return event

    def _has_run(self, result: ToolResult) -> None:
        """Forget the call that a runner beneath has run, such as that of a fallback."""
        named = (call for call in self.calls if call.tool_name == result.tool_name)
        ran = next((call for call in named if call.tool_call_id == result.tool_call_id), None)
        if ran is not None:
            self.calls.remove(ran)

    def server_ran(self, offered: Container[str]) -> bool:
        """Whether the server ran the calls: it reported on them, or wrote text after them and announces no calls.

        Never where the API says which calls are the client's. If the model wrote all of them as text, and one of them
        for a tool that is `offered` or without a name that can be read, the server does not know of them, and text
        after them is the model's.
        """
        if calls_are_the_clients(self.reason):
            return False
        is_ours = any(call.tool_name in offered or not call.tool_name for call in self.calls)
        is_written = is_ours and all(call.from_text for call in self.calls)
        return self.reported or (self.said_after and not (is_written or calls_follow(self.reason)))

    def messages(self) -> list[Message]:
        """The answer and its results as messages in OpenAI's form; a call without an id or a name gets one."""
        calls = [
            (replace(call, tool_name=call.tool_name or _UNREADABLE), call.tool_call_id or new_call_id())
            for call in self.calls
        ]
        assistant = {
            "role": "assistant",
            "content": "".join(self.text),
            "tool_calls": [_written(call, own_id) for call, own_id in calls] or None,
            self.thinking_field: "".join(self.thinking) or None,
            "reasoning_details": self.reasoning_details or None,
        }
        answers = (
            {"role": "tool", "tool_call_id": own_id, "name": call.tool_name, "content": self.results[place].content}
            for place, (call, own_id) in enumerate(calls)
        )
        return [present(assistant), *answers]


def _written(call: ToolCallEnd, own_id: str) -> dict[str, Any]:
    """A call for the history; arguments that are not a JSON object become `{}`, because servers refuse them."""
    written = call.arguments_json if replace(call, status="ok").arguments is not None else "{}"
    function = {"name": call.tool_name, "arguments": written}
    return present({"id": own_id, "type": "function", "function": function, "extra_content": call.extra_content})


def not_run(call: ToolCallEnd, why: str) -> ToolResult:
    """The result of a call that is not run."""
    content = f"The tool was not run: {why}."
    return ToolResult(
        tool_name=call.tool_name, tool_call_id=call.tool_call_id, is_error=True, content=content, index=call.index
    )


async def run_tool(tool: Tool, arguments: Mapping[str, Any], timeout_s: float) -> tuple[bool, str]:
    """Whether the tool failed, and its result or exception as text."""
    # A task of its own: a tool that cancels its task does not cancel the turn.
    outcome: list[tuple[Any, BaseException | None]] = []
    assert tool.function is not None
    work = asyncio.create_task(_run(tool.function, arguments, outcome))
    try:
        await asyncio.wait({work}, timeout=timeout_s)
    finally:
        work.cancel()
    if not work.done():
        return True, f"The tool took longer than {timeout_s:g} s."
    value, error = outcome[0] if outcome else (None, asyncio.CancelledError())
    try:
        if error:
            return True, words_of(error)
        return is_mcp_result(value) and bool(mcp_field(value, "isError")), _as_text(value)
    except Exception as failure:  # noqa: BLE001  (the tool's own class)
        return True, words_of(failure)


async def _run(function: Callable[..., Any], arguments: Mapping[str, Any], outcome: list[Any]) -> None:
    """Append the function's result and exception: asyncio passes neither SystemExit nor StopIteration on.

    A sync function has a daemon thread: one that hangs takes no place in asyncio's pool, and does not keep the program
    alive.
    """
    done: Future[None] = Future()
    done.set_running_or_notify_cancel()
    context = copy_context()

    def call() -> None:
        try:
            outcome.append((context.run(function, **arguments), None))
        except BaseException as error:  # noqa: BLE001  (raised again below)
            outcome.append((None, error))
        done.set_result(None)

    try:
        if inspect.iscoroutinefunction(function):
            value = await function(**arguments)
        else:
            Thread(target=call, name="stream tool", daemon=True).start()
            await asyncio.wrap_future(done)
            value, failure = outcome.pop()
            if failure is not None:
                raise failure  # noqa: TRY301  (one place that keeps what was raised)
            value = await value if inspect.isawaitable(value) else value
        outcome.append((value, None))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  (a tool may raise anything)
        outcome.append((None, error))


def words_of(error: BaseException) -> str:
    """The class and the message of an exception."""
    name = type(error).__name__
    try:
        said = str(error)
    except BaseException:  # noqa: BLE001  (the tool's own class)
        said = ""
    return sendable_text(f"{name}: {said}" if said else name)


def _as_text(value: Any) -> str:
    """A tool's result as text for the model: text unchanged, the texts of an MCP result, anything else as JSON."""
    if value is None or isinstance(value, str):
        return sendable_text(value or "")
    if is_mcp_result(value):
        return sendable_text(mcp_text(value))
    return sendable_text(json_of(value))
