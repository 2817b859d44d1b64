"""A runner that executes the tools a model calls and returns the results until there is an answer."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterable, Collection, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Literal, Unpack

from stream.checks import check_choice, check_number, check_whole_number
from stream.errors import StreamValueError
from stream.events import InvalidToolCall, ServiceEvent, ToolCallEnd, ToolCallStart, ToolResult
from stream.known_tools import SERVER_TOOLS
from stream.redaction import logged_arguments, logged_name
from stream.services.answer import Answer, not_run, run_tool, words_of
from stream.services.attempts import Attempts
from stream.services.chat_request import ChatFields, Message, check_known
from stream.services.source import ChatSource, Wrapper, with_known
from stream.services.tool import ToolLike, as_tools
from stream.services.validation import Strictness, Validator

__all__ = ["ToolRunner"]

ROUNDS = {"excellent": 8, "good": 5, "poor": 2}
"""Most rounds of tool calls, by `multi_turn`."""

logger = logging.getLogger(__name__)


class ToolRunner(Wrapper):
    """A source that runs the tools that the model calls.

    The calls of one answer run at the same time, after it has ended; one after the other if the request
    (`parallel_tool_calls=False`) or the model's `parallel` allows one call at a time. Nothing runs here if the stream
    shows that the server runs the tools, as some forks of Ollama do. Each call gets a `ToolResult`, also if the tool
    raises or the call cannot run, but for one that was cut off (`incomplete`) or that the model only tells of: alone in
    an answer, it ends the turn, unless the source is a `Recovery`, which asks again. The last round offers no tools, to
    get an answer; calls in it get an error.

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
        Longest wait for one tool, seconds, > 0; a function that is not `async` goes on in its thread after it.
    rounds : int or None
        Most rounds of calls, ≥ 1; `None` decides by the model's `multi_turn`.
    parallel : bool
        Whether calls of one answer may run at the same time.
    longest_result : int
        Most characters of a result; longer ones are cut.
    attempts : Attempts or None
        Counters for invalid calls and results.
    told : {"hide", "run"}
        What becomes of a call that the model only tells of (`ToolCallStart.told`): it is left out and logged by name,
        or run as any other.

    Raises
    ------
    StreamValueError
        If a tool has no function, or a number is out of range.

    Examples
    --------
    >>> import asyncio, stream
    >>> from stream.replay.scenarios import scenario
    >>> from stream.replay.server import ReplayServer
    >>> def list_directory(path: str) -> str:
    ...     "List a folder."
    ...     return "a.txt, b.txt"
    >>> async def ask(url):
    ...     async with stream.connect(url, "qwen3:8b") as model:
    ...         runner = stream.ToolRunner(model, [list_directory])
    ...         events = [event async for event in runner.chat([{"role": "user", "content": "Which files are here?"}])]
    ...         return [event.content for event in events if isinstance(event, stream.ToolResult)]
    >>> async def with_a_scripted_server():
    ...     async with ReplayServer(scenario("vllm-fragments"), tokens_per_s=None) as server:
    ...         return await ask(server.base_url)
    >>> asyncio.run(with_a_scripted_server())
    ['a.txt, b.txt']
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
        told: Literal["hide", "run"] = "hide",
    ) -> None:
        check_choice("told", told, ("hide", "run"))
        check_choice("executes", executes, ("auto", "client", "server"))
        if rounds is not None:
            check_whole_number("rounds", rounds, 1)
        check_whole_number("longest_result", longest_result, 0)
        if not check_number("timeout_s", timeout_s) > 0.0:
            raise StreamValueError(f"timeout_s is {timeout_s!r}; it must be above 0")
        self.tools = as_tools(tools)
        idle = [tool.name for tool in self.tools if tool.function is None]
        if idle and executes != "server":
            raise StreamValueError(f"the tools {idle} have no function to run; give one, or executes='server'")
        super().__init__(source)
        self._executes, self._timeout_s, self._parallel, self._told = executes, timeout_s, parallel, told
        self._rounds, self._longest, self._attempts = rounds, longest_result, attempts or Attempts()
        self._by_name = {tool.name: tool for tool in self.tools}
        patterns: Collection[str] = {"server": ("*",), "client": ()}.get(executes, server_tools)
        self.validator = Validator(self.tools, strictness=validation, model=source.model, server_tools=patterns)

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
            As in `Connection.chat`; `tool_choice` applies to the first round only, so that a forced call can end,
            but `"none"` to all: a call that comes all the same is not run.
        """
        check_known(fields, "added")
        history, offered = list(messages), self.tools if tools is None else as_tools(tools)
        rounds, answer = self._rounds or ROUNDS[self.capabilities.multi_turn], Answer()
        wanted = fields.get("parallel_tool_calls")
        at_once = self._parallel and (self.capabilities.parallel if wanted is None else wanted)
        if self._told == "run":
            fields["told"] = "run"
        forbidden = "tool_choice is 'none'" if fields.get("tool_choice") == "none" else ""
        for number in range(rounds + 1):
            answer = Answer(first_index=answer.next_index)
            last = number == rounds
            asked = with_known(fields, self.tools) if last or offered is not self.tools else fields
            events = self._source.chat(history, tools=() if last else offered, **asked)
            meant = events if self._told == "hide" else _as_meant(events)
            async with aclosing(events), aclosing(self.validator.watch(meant)) as checked:
                async for event in checked:
                    self._count(event)
                    yield answer.take(event)
            by_client = self._executes == "client" or (
                self._executes == "auto" and not answer.server_ran(self._by_name)
            )
            if answer.failed or not (answer.calls and by_client):
                return
            not_run = f"{rounds} rounds of calls are used up" if last else forbidden
            async with aclosing(self._run(answer, at_once=at_once, not_run=not_run)) as running:
                async for result in running:
                    self._count(result)
                    yield result
            if last:
                return
            spoken = answer.messages()
            history += spoken
            if added is not None:
                added += spoken
            if not forbidden:
                fields.pop("tool_choice", None)

    def _count(self, event: ServiceEvent) -> None:
        if isinstance(event, InvalidToolCall):
            self._attempts.invalid(self.model, event)
        elif isinstance(event, ToolResult) and event.tool_name in self._by_name:
            self._attempts.result(self.model, event)

    async def _run(self, answer: Answer, *, at_once: bool, not_run: str) -> AsyncGenerator[ToolResult, None]:
        """Each result of the answer's calls, as soon as it is there."""
        gate = asyncio.Semaphore(len(answer.calls) if at_once else 1)

        async def run(place: int, call: ToolCallEnd) -> int:
            async with gate:
                # The result is not the task's: in debug mode, asyncio logs parts of that.
                problem = answer.problems.get(call.index)
                answer.results[place] = await self._outcome(call, not_run or (problem.message if problem else ""))
            return place

        tasks = [asyncio.create_task(run(place, call)) for place, call in enumerate(answer.calls)]
        try:
            for done in asyncio.as_completed(tasks):
                yield answer.results[await done]
        finally:
            for task in tasks:
                task.cancel()

    async def _outcome(self, call: ToolCallEnd, why: str) -> ToolResult:
        """The result of a call; `why` says why it must not run, if it must not."""
        tool = self._by_name.get(call.tool_name)
        if not why and tool is None:
            why = self.validator.unknown(call.tool_name)
        elif not why and call.status != "ok":
            why = "its arguments are not a JSON object"
        if why or tool is None:
            return not_run(call, why)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("running %s with %s", logged_name(tool.name), logged_arguments(call.arguments_json))
        try:
            is_error, content = await run_tool(tool, self.validator.arguments(call), self._timeout_s)
        except (ValueError, RecursionError) as error:  # of arguments that Python cannot read
            is_error, content = True, words_of(error)
        outcome = "failed" if is_error else "is done"
        logger.debug("%s %s, %d characters", logged_name(tool.name), outcome, len(content))
        if len(content) > self._longest:
            content = f"{content[: self._longest]}\n[cut: {len(content) - self._longest} more characters]"
        name, call_id, index = call.tool_name, call.tool_call_id, call.index
        return ToolResult(tool_name=name, tool_call_id=call_id, is_error=is_error, content=content, index=index)


async def _as_meant(events: AsyncIterable[ServiceEvent]) -> AsyncGenerator[ServiceEvent, None]:
    """The events, with each call that is only told of as one that is made."""
    async for event in events:
        yield replace(event, told=False) if isinstance(event, (ToolCallStart, ToolCallEnd)) and event.told else event
