"""One call of a tool's function: its result or exception as text, within a time limit."""

from __future__ import annotations

import asyncio
import inspect
import json
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from stream.request_bodies import sendable_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stream.services.tool import Tool

__all__ = ["run_tool", "words_of"]


async def run_tool(tool: Tool, arguments: Mapping[str, Any], timeout_s: float) -> tuple[bool, str]:
    """Whether the tool failed, and its result or exception as text."""
    # A task of its own: a tool that cancels its task does not cancel the turn.
    outcome: Future[Any] = Future()
    work = asyncio.create_task(_try_here(tool, arguments, outcome))
    try:
        await asyncio.wait({work}, timeout=timeout_s)
    finally:
        work.cancel()
    if not work.done():
        return True, f"The tool took longer than {timeout_s:g} s."
    try:
        value = (outcome if outcome.done() else work).result()
        return bool(getattr(value, "isError", False)), sendable_text(_as_text(value))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  (a tool may raise anything)
        return True, words_of(error)


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
        return value or ""
    parts = getattr(value, "content", None)
    if isinstance(parts, list):
        return "\n".join(part.text for part in parts if hasattr(part, "text"))
    return json.dumps(value, ensure_ascii=False, default=str)
