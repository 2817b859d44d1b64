"""Retries after an empty answer, so that no question ends in silence."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Unpack

from stream.errors import StreamTypeError
from stream.events import (
    AskedAgain,
    EmptyToolCalls,
    Finish,
    ServiceEvent,
    StreamFailed,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
    Usage,
)
from stream.services.answer import Answer, not_run
from stream.services.attempts import Attempts, Position
from stream.services.chat_request import ChatFields, Message, check_known, with_guidance
from stream.services.runner import ToolRunner
from stream.services.source import ChatSource, Wrapper, with_known
from stream.services.tiers import ToolTiers
from stream.services.tool import ToolLike, as_tools

__all__ = ["DIRECT_ANSWER", "Fallback", "Recovery"]

DIRECT_ANSWER = "Answer the question directly without calling any tools."

_ENDS = (Usage, Finish, EmptyToolCalls)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """A last attempt with other tools, such as a web search, which are offered for that question only.

    Attributes
    ----------
    load_tools : Callable
        Returns the tools, sync or async; called when they are needed. Each tool must have a function. If it fails, or
        the tools are faulty, the log has a warning and the empty answer stands.
    guidance : str
        Added to the system prompt of that question.
    first : tuple[str, ...]
        Patterns of names, the most needed first: small models are offered few tools, and cannot browse without these.
    """

    load_tools: Callable[[], Iterable[ToolLike] | Awaitable[Iterable[ToolLike]]]
    guidance: str = "Use these tools to find the answer, then answer the question."
    first: tuple[str, ...] = ("*search*", "*navigate", "*snapshot", "*click", "*type", "*press_key", "*wait*", "*back")


class Recovery(Wrapper):
    """A source that asks again after an answer without text and calls.

    An empty `tool_calls` array, announced calls that never come and an answer without content all count as empty, and
    so does a call that the model only tells of, if no `ToolRunner(told="run")` runs it, and one in a runner's last
    round, which offers no tools. The question is repeated once without tools; then, or at once if it had neither tools
    nor results of them, the fallback is tried. One that ends with its tools' results and no word is asked once more,
    without tools. An answer with any content is never repeated.

    Parameters
    ----------
    source : ChatSource
        The source to ask. A `ToolTiers` would withhold the fallback's tools, and a `ToolRunner` is asked whole turns:
        both stand in front, `ToolRunner(ToolTiers(Recovery(model)), tools)`.
    retry : bool
        Whether to repeat a question without tools.
    fallback : Fallback or None
        The last attempt; `None` ends with the empty answer.
    attempts : Attempts or None
        Counters to share; `None` makes new ones.
    now : Callable
        A clock, seconds.

    Raises
    ------
    StreamTypeError
        If `source` is a `ToolTiers` or a `ToolRunner`.
    """

    def __init__(
        self,
        source: ChatSource,
        *,
        retry: bool = True,
        fallback: Fallback | None = None,
        attempts: Attempts | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        if isinstance(source, (ToolTiers, ToolRunner)):
            kind = type(source).__name__
            raise StreamTypeError(f"source is a {kind}; it must wrap Recovery: {kind}(Recovery(model), …)")
        super().__init__(source)
        self._retry, self._fallback, self._now = retry, fallback, now
        self.attempts = attempts or Attempts()

    async def chat(
        self, messages: Sequence[Message], *, tools: Iterable[ToolLike] | None = None, **fields: Unpack[ChatFields]
    ) -> AsyncGenerator[ServiceEvent, None]:
        """The events of one answer, retries included."""
        check_known(fields)
        first_s, end, offered = 0.0, list[ServiceEvent](), None if tools is None else tuple(tools)
        calls_count = bool(offered) or fields.get("may_call", False) or not _has_results(messages)
        for number, (how, ask) in enumerate(self._ways(messages, offered, fields), 1):
            if how:
                yield AskedAgain(number, how)
            attempt = _Attempt(self._now, runs_told=fields.get("told") == "run", calls_count=calls_count)
            async with aclosing(attempt.watch(ask())) as events:
                async for event in events:
                    yield event
            if how:
                self.attempts.record(self.model, "retry", ok=attempt.ok, seconds=attempt.seconds, retry=number - 1)
                outcome = "a valid answer" if attempt.ok else "no valid answer"
                words = "Asked again (%s, attempt %d, %s): %s, %.2f s after the first attempt's %.2f s"
                logger.info(words, how, number, self.model, outcome, attempt.seconds, first_s)
            else:
                first_s = attempt.seconds
                self._record_first(messages, attempt)
            if not attempt.empty:
                return
            end = attempt.held or end  # a fallback without tools has none
        for held in end:
            yield held

    def _record_first(self, messages: Sequence[Message], attempt: _Attempt) -> None:
        # A round that returns results is no question, but one that brings no answer fails the question.
        if messages and (not attempt.ok or not _has_results(messages)):
            asked = sum(message.get("role") == "user" for message in messages)  # a greeting is no answer
            position: Position = "later_query" if asked > 1 else "first_query"
            self.attempts.record(self.model, position, ok=attempt.ok, seconds=attempt.seconds)
        if attempt.empty:
            self.attempts.empty(self.model)
            logger.warning("Empty tool call pattern detected (%s, after %.2f s)", self.model, attempt.seconds)

    def _ways(self, messages: Sequence[Message], tools: Sequence[ToolLike] | None, fields: ChatFields) -> list[Any]:
        """The first attempt, without a name, and the retries in order."""
        plain = with_known(fields, as_tools(tools)).copy()
        plain.pop("tool_choice", None)
        ways: list[Any] = [(None, lambda: self._source.chat(messages, tools=tools, **fields))]
        fallback = None if fields.get("tool_choice") == "none" else self._fallback
        if self._retry and (tools or _has_results(messages) or fallback is None):
            direct = with_guidance(messages, DIRECT_ANSWER)
            ways.append(("without_tools", lambda: self._source.chat(direct, **plain)))
        if fallback is not None:
            ways.append(("fallback", partial(self._fall_back, fallback, messages, plain)))
        return ways

    async def _fall_back(
        self, fallback: Fallback, messages: Sequence[Message], fields: ChatFields
    ) -> AsyncGenerator[ServiceEvent, None]:
        try:
            loaded = fallback.load_tools()
            tools = as_tools(await loaded if inspect.isawaitable(loaded) else loaded)
            # False sorts first: the tools of the first pattern, then those of the second, and so on.
            ordered = sorted(tools, key=lambda tool: [not fnmatchcase(tool.name, one) for one in fallback.first])
            runner = ToolRunner(self._source, ordered, told=fields.pop("told", "hide"))
        except Exception as error:  # noqa: BLE001  (tools that are faulty or not there must not end the turn)
            kind = type(error).__name__  # Its words may hold an address with a password.
            logger.warning("The fallback's tools could not be loaded (%s): %s", self.model, kind)
            return
        names = {tool.name for tool in runner.tools}
        answer, n_calls, added = _Answer(), 0, list[Message]()
        held, calls = list[ServiceEvent](), False  # the end of a round without calls, as the question may be repeated
        async with aclosing(runner.chat(with_guidance(messages, fallback.guidance), added=added, **fields)) as events:
            async for event in events:
                if isinstance(event, ToolResult) and event.tool_name in names:
                    self.attempts.result(self.model, event)
                answer.note(event)
                n_calls = max(n_calls, event.index + 1) if isinstance(event, ToolCallEnd) else n_calls
                if answer.is_missing and not calls and isinstance(event, _ENDS):
                    held.append(event)
                    continue
                calls = isinstance(event, (ToolCallStart, ToolCallEnd)) or (calls and not isinstance(event, Finish))
                for earlier in held:
                    yield earlier
                held.clear()
                yield event
        if answer.is_missing and self._retry:
            direct, said = with_guidance([*messages, *added], DIRECT_ANSWER), Answer(first_index=n_calls)
            async with aclosing(self._source.chat(direct, **with_known(fields, runner.tools))) as events:
                async for event in events:
                    yield said.take(event)
            for call in said.calls:  # the model tells of them in place of an answer
                yield not_run(call, "it was asked for an answer without tools")
        else:
            for earlier in held:
                yield earlier


def _has_results(messages: Sequence[Message]) -> bool:
    return bool(messages) and messages[-1].get("role") == "tool"


class _Answer:
    """Whether words follow the results of tools."""

    is_missing = False

    def note(self, event: ServiceEvent) -> None:
        if isinstance(event, ToolResult) and not event.by_server:
            self.is_missing = True
        elif isinstance(event, StreamFailed) or (isinstance(event, TextDelta) and event.text.strip()):
            self.is_missing = False


class _Attempt:
    """One answer; its end is held back while it is empty, because a retry may follow."""

    def __init__(self, now: Callable[[], float], *, runs_told: bool, calls_count: bool) -> None:
        self._now, self._start_s, self._runs_told, self._calls_count = now, now(), runs_told, calls_count
        self.seconds = 0.0
        self.held: list[ServiceEvent] = []
        self.ok, self.empty = False, True
        self._answer = _Answer()

    async def watch(self, events: AsyncGenerator[ServiceEvent, None]) -> AsyncGenerator[ServiceEvent, None]:
        has_failed = False
        async with aclosing(events):
            async for event in events:
                has_failed = has_failed or isinstance(event, StreamFailed)
                self._answer.note(event)
                self.empty = self.empty and not has_failed and not self._has_content(event)
                if self.empty and (self.held or isinstance(event, _ENDS)):
                    self.held.append(event)
                    continue
                for earlier in self.held:
                    yield earlier
                self.held.clear()
                yield event
        self.ok = not (self.empty or has_failed or self._answer.is_missing)
        self.seconds = self._now() - self._start_s

    def _has_content(self, event: ServiceEvent) -> bool:
        if isinstance(event, TextDelta):
            return bool(event.text.strip())
        if not isinstance(event, ToolCallEnd) or not self._calls_count:
            return False
        return event.status != "incomplete" and (self._runs_told or not event.told)
