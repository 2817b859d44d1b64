"""A test of a live model: one question that needs a tool, one that does not, and a report."""

import re
import time
from collections import Counter
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from itertools import groupby, takewhile
from typing import Any, Literal, TypeAlias

from stream.events import (
    EmptyToolCalls,
    Finish,
    InvalidToolCall,
    ServiceEvent,
    StreamFailed,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
    ToolsLeftOut,
)
from stream.readers.calls.values import text_of
from stream.readers.formats.framing import MessageDecoder
from stream.readers.text.dialect_table import ROWS
from stream.readers.text.patterns import normalize
from stream.services.connection import Connection
from stream.services.runner import ToolRunner
from stream.services.source import ChatSource
from stream.services.tool import Tool

__all__ = ["Observer", "ProbeReport", "probe"]

Timed: TypeAlias = "list[tuple[float, ServiceEvent]]"

CITIES = {"Oslo": "4 degrees and rain", "Lisbon": "22 degrees and sun"}
NEEDS_TOOL = (
    "What is the weather in Oslo and in Lisbon right now? Look both up with the tool, then tell me in one sentence."
)
NEEDS_NONE = "Say hello in one short sentence."


# Markers that several dialects share, or that no row of the readers' table has; the names are those of `models.toml`.
_TAGS = (
    ("<function=", "qwen3_coder_xml"),
    ("<arg_key>", "glm45"),
    ("<invoke ", "minimax_m2"),
    ("<tool_call>", "hermes"),
    ("[TOOL_CALLS]{", "mistral_old"),
    ("[TOOL_CALLS][{", "mistral_old"),
    ("[TOOL_CALLS] [{", "mistral_old"),
    ("[TOOL_CALLS]", "mistral_new"),
    ("<|tool_call_argument_begin|>", "kimi_k2"),
    ("<|tool_call_begin|>function<|tool_sep|>", "deepseek_v3"),
    ("<|tool_sep|>", "deepseek_v31"),
)
_TOKEN = re.compile(r"<[|｜][^<|｜>]{1,40}[|｜]>")


class Observer:
    """Recorder of a stream before it is parsed; pass its `tap` to `connect`."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Start a new answer."""
        self.has_ended = False
        self.texts: list[str] = []
        self.calls: list[tuple[str, ...]] = []  # id, name, and as much of the arguments as came with the name
        self._lines = MessageDecoder()

    def tap(self, data: bytes) -> None:
        """Record a read."""
        for message in [] if self.has_ended else self._lines.feed(data):
            choices = [choice.get("delta") or choice.get("message") for choice in _dicts(message.get("choices"))]
            for part in _dicts([message.get("message"), *choices]):
                self.texts.append(text_of(part.get("content")))
                for entry in _dicts(part.get("tool_calls")):
                    for call in _dicts([entry.get("function")]):
                        found = (entry.get("id"), call.get("name"), call.get("arguments"))
                        self.calls += [tuple(map(text_of, found))] if call.get("name") else []

    def dialect(self) -> str:
        """The dialect of calls in the text: by its tags, else by the first marker, else by the first characters."""
        text = _TOKEN.sub(lambda found: normalize(found[0]), "".join(self.texts))
        if (tagged := next((name for tag, name in _TAGS if tag in text), None)) is not None:
            return tagged
        places = {
            row.name: place
            for row in ROWS
            for marker in row.markers
            if row.name != "reasoning" and not row.weak and not row.fence and (place := text.find(marker)) >= 0
        }
        if places:
            return min(places, key=places.__getitem__)
        return "json" if text.lstrip().startswith(("{", "[{", "```")) else "pythonic"


def _dicts(values: Any) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReport:
    """Result of `probe`; the `plain_` attributes are of the question that needs no tool.

    `form` says whether the server parsed the calls, or they came as text in `dialect`; `duplicates` counts entries that
    repeated a call, `invalid` calls by reason. Times count from the request; `text_ms` is of the first text after the
    result. `tool_refused`: the server or the table withheld the tool. `suggestion` is an entry for an override file.
    """

    model: str
    api: str
    form: Literal["structured", "raw", "none"]
    dialect: str
    calls: int
    duplicates: int
    ids: Literal["present", "missing", "repeated", "none"]
    invalid: dict[str, int]
    order: list[str]
    name_ms: float | None
    call_ms: float | None
    text_ms: float | None
    answered: bool
    server_too_old: str | None
    tool_refused: bool
    plain_answered: bool
    plain_calls: int
    failure: str | None
    suggestion: str

    @property
    def passed(self) -> bool:
        """Whether there are no `faults`."""
        return not self.faults

    @property
    def faults(self) -> tuple[str, ...]:
        """Reasons why the model failed; empty if it passed."""
        if self.failure is not None:
            return (self.failure,)
        found = []
        if not self.calls:
            found.append("it was offered no tools" if self.tool_refused else "no call came")
        elif self.calls <= sum(self.invalid.values()):
            found.append(f"no call was valid ({', '.join(self.invalid)})")
        elif not self.answered:
            found.append("no answer followed the results")
        if self.plain_calls:
            found.append("it called a tool where none was offered")
        elif not self.plain_answered:
            found.append("the question that needs no tool got no answer")
        return tuple(found)

    @property
    def silent(self) -> bool:
        """Whether nothing came: no server, or one that refused both questions."""
        return self.failure is not None and self.order == [StreamFailed.__name__] and not self.plain_answered

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {"passed": self.passed, "faults": list(self.faults), **asdict(self)}


async def probe(connection: Connection, observer: Observer) -> ProbeReport:
    """Ask a live model two questions; the connection is made with `tap=observer.tap`."""
    city = {"type": "string", "description": "name of the city"}
    tool = Tool(
        name="get_weather",
        description="Get the weather in a city right now.",
        parameters={"type": "object", "properties": {"city": city}, "required": ["city"]},
        function=lambda city: CITIES.get(city, "12 degrees and clouds"),
    )
    with_tool = await _ask(ToolRunner(connection, [tool], rounds=2), observer, NEEDS_TOOL)
    calls, dialect = observer.calls, observer.dialect()
    plain_answer = await _ask(connection, observer, NEEDS_NONE)
    first = [event for _, event in takewhile(lambda timed: not isinstance(timed[1], ToolResult), with_tool)]
    at_once = [*takewhile(lambda event: not isinstance(event, (Finish, EmptyToolCalls)), first)]
    ends = [end for end in _of(with_tool, ToolCallEnd) if end.status != "incomplete"]
    ids = [end.tool_call_id for end in ends]
    form: Literal["structured", "raw", "none"] = "none" if not ends else "structured" if calls else "raw"
    failures = [*_of(with_tool, StreamFailed), *_of(plain_answer, StreamFailed)]
    # A server that runs the tools itself need not report their results: its text after the calls is the answer.
    since_ms = _first_ms(with_tool, ToolResult) or max((at for at, event in with_tool if event in ends), default=None)
    text_ms = None if since_ms is None else _first_ms(with_tool, TextDelta, since_ms)
    known = connection.capabilities
    found = replace(
        known,
        tools=bool(ends),
        format="openai" if form == "structured" and known.source == "default" else known.format,
        dialect=dialect if form == "raw" else known.dialect,
        parallel=sum(isinstance(event, ToolCallEnd) for event in at_once) > 1,
    )
    whole = [call for call in calls if call[-1].rstrip().endswith("}")]
    return ProbeReport(
        model=connection.model,
        api=connection.api,
        form=form,
        dialect=dialect if form == "raw" else "",
        calls=len(ends),
        duplicates=len(whole) - len(set(whole)),
        ids="none" if not ids else "missing" if not all(ids) else "present" if len({*ids}) == len(ids) else "repeated",
        invalid=dict(Counter(problem.reason for problem in _of(with_tool, InvalidToolCall))),
        order=[kind for kind, _ in groupby(type(event).__name__ for event in first)],
        name_ms=_first_ms(with_tool, ToolCallStart),
        call_ms=_first_ms(with_tool, ToolCallEnd),
        text_ms=text_ms,
        answered=text_ms is not None,
        server_too_old=connection.server_too_old or None,
        tool_refused=bool(_of(with_tool, ToolsLeftOut)),
        plain_answered=_first_ms(plain_answer, TextDelta) is not None,
        plain_calls=len(_of(plain_answer, ToolCallEnd)),
        failure=failures[0].message if failures else None,
        suggestion=found.toml(connection.model),
    )


async def _ask(source: ChatSource, observer: Observer, question: str) -> Timed:
    """The events of a question, each after its time since the request; the observer records the first answer."""
    seen: Timed = []
    observer.clear()
    start_s = time.monotonic()
    async with aclosing(source.chat([{"role": "user", "content": question}])) as events:
        async for event in events:
            seen.append(((time.monotonic() - start_s) * 1000.0, event))
            observer.has_ended = observer.has_ended or isinstance(event, ToolResult)
    return seen


def _of(seen: Timed, kind: type) -> list[Any]:
    return [event for _, event in seen if isinstance(event, kind)]


def _first_ms(seen: Timed, kind: type, since_ms: float = 0.0) -> float | None:
    """The time of the first event of a kind; white space is no text."""
    return next((at for at, event in seen if at >= since_ms and isinstance(event, kind) and not _is_blank(event)), None)


def _is_blank(event: ServiceEvent) -> bool:
    return isinstance(event, TextDelta) and not event.text.strip()
