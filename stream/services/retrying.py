"""Requests that are sent again: after a failure before the first event, or without a part that was refused."""

import asyncio
import logging
import random
import re
import time
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal, TypeAlias

from stream.checks import check_number, check_whole_number
from stream.errors import StreamValueError
from stream.events import ServiceEvent, StreamFailed
from stream.readers.formats.failures import LONGEST_MESSAGE

__all__ = ["Part", "Retries", "refused_part", "with_retries"]

TRANSIENT_STATUS = frozenset({408, 409, 425, 429, 500, *range(502, 600)})  # 52x are Cloudflare's and Anthropic's
# In a stream that began with HTTP 200, a provider's code stands for the status: Anthropic's error types, then OpenAI's.
TRANSIENT_CODES = frozenset({
    *("connection", "unfinished"),
    *("overloaded_error", "rate_limit_error", "api_error", "rate_limit_exceeded", "server_error"),
})  # fmt: skip

REFUSAL_STATUS = frozenset({400, 404, 405, 422, 500, 501})  # 405 is DeepInfra's
Part: TypeAlias = Literal["tool_choice", "tools", "thinking", "think_value", "parallel_tool_calls", "stream_options"]
# What a server quotes: `input` has a value of JSON or of Python, whose end must be looked for; `input_value` is
# pydantic's text of one, with a gap in it; `raw` is Ollama's of a call, without escapes.
_INPUT = re.compile(r"(['\"])input\1:\s*")
_OTHER_QUOTES = re.compile(r"\binput_value=.*?(?=, input_type=|\Z)|\braw='(.*(?=', err=)|.*)", re.DOTALL)
_STRING_OR_MARK = re.compile(r"'(\\.|[^'\\])*('|\\?\Z)|\"(\\.|[^\"\\])*(\"|\\?\Z)|[][{}(),]", re.DOTALL)
# A refused field, up to its name, which may stand in a list of names.
_FIELD = (
    r"\b((unsupported|unrecognized|unknown|extra|unexpected) (\w+ ){0,2}|does(n't| not) support (the )?"
    r"|(?=\w+ not supported))"
    r"(param(eter)?|arg(ument)?|field|input|key|name|propert(y|ie))(s|\(s\))?"
    r"(,? (supplied|provided|field|(are )?not permitted|not supported( (on|by|for|with|in) this model)?"
    r"|in (the )?(body|object|request)))*"
    r"\W{1,4}([\w'\"`]+, ?){0,9}['\"`]?"
)
# After a refused field's name, also where it ends the `loc` of FastAPI.
_NOT_TAKEN = (
    r"\b\W{0,6}(msg\W{1,5})?(extra (input|field)s|(is|are|was) (not (permitted|allowed)|unexpected|unsupported)\b)"
)
# A path that goes on after `tools`, as in `tools.0.function.strict`, is a fault in one tool's definition.
_ENDS = r"\b(?!['\"]?(\.\w|\[|, ?\d))"
_AMOUNT = r"['\"`]?\b(none|minimal|low|medium|high|xhigh|max|true|false)\b['\"`]?"
# A path into a tool, a message or a schema, where a property may be named as a field of ours is.
_ELSEWHERE = (
    r"['\"]properties['\"]|\bschema for\b|\b(tools|functions|messages)\b['\"]?(\.\d|\.\w+\.\w|\[| ?->|, ?['\"]?\d)"
)
# The server names the field: whatever it says of its value, without it the request may be taken. A model's name may
# hold the word, too, as `kimi-k2-thinking` does.
_CHOICE = r"\btool[_ ]?choice(param)?\b"
_THINK = (
    r"(?<![-/:])\b(reasoning|thinking)([_ ]?(effort|level|value))?\b(?!-)"
    r"|\benable_thinking\b|\.think\b|\bthink\b(?=['\"`:\n]| value\b| must be\b)"
)
# A refusal of some calls (`streaming tool calls`), or under a condition (`tools with streaming`, but not `with this
# model`), is none of tools.
_SOME = "".join(
    rf"(?<!{kind} )"
    for kind in (
        *("parallel", "multiple", "concurrent", "streaming", "assistant", "forced", "empty", "side", "with", "one"),
        r"\d",
    )
)
_SOMETIMES = (
    r"\b(?! (with|in|when|while|if|and|of|named|ids?)\b"
    r"(?! (this|your)\b| (\S+ ){0,2}(models?|tools?|functions?)(\b|_)))"
)
_NOT_SUPPORTED = r"[`'\"]? ((is|are|has|have) )?(not (yet |currently |been )?(supported|enabled)|unsupported)"


def _of_field(names: str) -> str:
    """A pattern for the refusal of a field, whatever its value."""
    return rf"{_FIELD}({names}){_ENDS}|(?<!\d )\b({names}){_ENDS}{_NOT_TAKEN}"


# As servers word it: tests/stream/services/test_refusals.py has the whole sentences. A field that is refused is looked
# for before its value, because it is remembered.
_PATTERNS: dict[Part, str] = {
    "tool_choice": rf"\A(?!.*({_ELSEWHERE})).*?({_CHOICE})",
    "tools": rf"does(n't| not) support (tools|tool use|tool calling|tool calls?|functions?){_SOMETIMES}"
    rf"|{_SOME}\b(tools|functions|tool_choice|(tool|function)[ _](use|calling|calls?)){_NOT_SUPPORTED}{_SOMETIMES}"
    r"|function calling not support|unsupported tool_call_parser"
    rf"|--enable-auto-tool-choice|--tool-call-parser|support tool use{_SOMETIMES}|requires --jinja"
    r"|support the provided ['\"]?tool_choice"
    rf"|{_of_field('tools|tool_choice|functions')}",
    "thinking": rf"does not support (thinking|reasoning)(?!.?(effort|level)\W+{_AMOUNT})"
    rf"|(?<!with )\b(thinking|reasoning)([_ ]?(effort|level))?{_NOT_SUPPORTED}"
    rf"|{_of_field('think|reasoning_?effort')}",
    "think_value": rf"\A(?!.*({_ELSEWHERE})).*?({_THINK}|(value|level)\W{{1,4}}{_AMOUNT} (is )?not supported)",
    # The package sent these by itself: little is lost without them. A key with a value is of a request that is quoted.
    "parallel_tool_calls": r"\bparallel_tool_calls\b(?!['\"]: ?(true|false|null|none)\b)",
    "stream_options": r"\b(stream_options|include_usage)\b(?!['\"]: ?(\{|true\b))",
}
REFUSAL_WORDS = {part: re.compile(pattern, re.IGNORECASE | re.DOTALL) for part, pattern in _PATTERNS.items()}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Number and spacing of attempts. The defaults are short, because a listener hears the silence.

    Attributes
    ----------
    attempts : int
        Requests in all, ≥ 1.
    wait_s : float
        First wait and its largest random addition, seconds, ≥ 0; it doubles with each retry.
    wait_max_s : float
        Longest wait, seconds, ≥ 0; if the server asks for a longer one, there is no retry.
    timeout_s : float
        Time after which there is no further retry, seconds, ≥ 0.
    """

    attempts: int = 3
    wait_s: float = 0.1
    wait_max_s: float = 2.0
    timeout_s: float = 10.0

    def __post_init__(self) -> None:
        check_whole_number("attempts", self.attempts, 1)
        for name in ("wait_s", "wait_max_s", "timeout_s"):
            if not check_number(name, getattr(self, name)) >= 0.0:
                raise StreamValueError(f"{name} is {getattr(self, name)!r}; it must be 0 or more")

    def wait_before(self, attempt: int, failure: StreamFailed) -> float | None:
        """The wait before an attempt (the second is 2), seconds; `None` for no further attempt.

        A timeout is not repeated: the user has waited already.
        """
        has_code = failure.status is None and failure.code in TRANSIENT_CODES
        if attempt > self.attempts or not (has_code or failure.status in TRANSIENT_STATUS):
            return None
        if failure.retry_after_ms is not None:
            asked_s = failure.retry_after_ms / 1000.0
            return asked_s if asked_s <= self.wait_max_s else None
        doubled_s = self.wait_s * 2.0 ** min(attempt - 2, 64)
        return min(doubled_s + random.uniform(0.0, self.wait_s), self.wait_max_s)  # noqa: S311  (no secret)


async def with_retries(
    ask: Callable[[], AsyncGenerator[ServiceEvent, None]], retries: Retries, parts: Collection[Part] = ()
) -> AsyncGenerator[ServiceEvent, None]:
    """The events of `ask()`, which is repeated while its first event is a transient failure.

    A refusal of one of the `parts` of the request is not transient, whatever its status.
    """
    start_s, attempt = time.monotonic(), 1
    while True:
        async with aclosing(ask()) as events:
            first = await anext(events, None)
            failed = first if isinstance(first, StreamFailed) else None
            wait_s = None
            if failed is not None and refused_part(failed, parts) is None:
                wait_s = retries.wait_before(attempt + 1, failed)
            if failed is None or wait_s is None or time.monotonic() + wait_s - start_s > retries.timeout_s:
                if first is not None:
                    yield first
                async for event in events:
                    yield event
                return
        await asyncio.sleep(wait_s)
        attempt += 1
        # Without a status the failure, and its code, is our own: the log quotes neither the server nor the user.
        why = failed.code if failed.status is None else f"status {failed.status}"
        logger.info("Attempt %d of %d, after %s and a wait of %.2f s", attempt, retries.attempts, why, wait_s)


def refused_part(failed: StreamFailed, parts: Collection[Part]) -> Part | None:
    """The part of a request because of which it was refused, of those that it had.

    For `tool_choice`, and for a value of `think`, a server's word that names the field is enough: without it, the
    request may be taken. Tools, and thinking at all, must be refused in so many words, because that is remembered. An
    unknown model, a full context or a wrong schema is no such refusal.

    >>> refused_part(StreamFailed("llama2 does not support tools", status=400), ["tools"])
    'tools'
    """
    if failed.status not in REFUSAL_STATUS:
        return None
    said = _own_words(failed.message[:LONGEST_MESSAGE])  # an error in a stream is as long as its server likes
    return next((part for part in REFUSAL_WORDS if part in parts and REFUSAL_WORDS[part].search(said)), None)


def _own_words(message: str) -> str:
    """A server's message without what it quotes of a request, or of a model's call, in JSON or as Python shows it.

    >>> _own_words("{'msg': 'Value error', 'input': {'tools': ['f']}, 'ctx': {}}")
    "{'msg': 'Value error', , 'ctx': {}}"
    """
    kept, at = "", 0
    while found := _INPUT.search(message, at):
        kept += message[at : found.start()]
        at = _end_of_value(message, found.end())
    return _OTHER_QUOTES.sub("", kept + message[at:])


def _end_of_value(text: str, at: int) -> int:
    """The index of the comma or the bracket after a value that begins at `at`; the text's length if it is cut off."""
    depth = 0
    for mark in _STRING_OR_MARK.finditer(text, at):
        depth += (mark[0] in "([{") - (mark[0] in ")]}")
        if depth < 0 or (depth == 0 and mark[0] == ","):
            return mark.start()
    return len(text)
