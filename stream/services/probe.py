"""A test of a live model: one question that needs a tool, one that does not, and a report."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from stream.events import (
    EmptyToolCalls,
    Finish,
    InvalidToolCall,
    StreamFailed,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
    ToolsLeftOut,
)
from stream.readers.dialects.rows import ROWS
from stream.readers.framing import MessageDecoder
from stream.readers.parse.markers import normalize
from stream.services.runner import ToolRunner
from stream.services.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream.events import ServiceEvent
    from stream.services.connection import Connection

__all__ = ["Observer", "ProbeReport", "probe"]

CITIES = {"Oslo": "4 degrees and rain", "Lisbon": "22 degrees and sun"}
NEEDS_TOOL = (
    "What is the weather in Oslo and in Lisbon right now? Look both up with the tool, then tell me in one sentence."
)
NEEDS_NONE = "Say hello in one short sentence."


class Observer:
    """Recorder of a stream before it is parsed; pass its `tap` to `connect`."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.clear()

    def clear(self) -> None:
        """Start a new answer."""
        self.start_s = self.now()
        self.content: list[str] = []
        self.entries: list[dict[str, Any]] = []
        self._lines = MessageDecoder()

    def tap(self, piece: Any) -> None:
        """Record a decoded chunk, or bytes from Ollama's own endpoint."""
        for message in self._messages(piece):
            self.content.append(message.get("content") or "")
            self.entries += message.get("tool_calls") or ()

    def _messages(self, piece: Any) -> list[dict[str, Any]]:
        if isinstance(piece, bytes):
            return [line.get("message") or {} for line in self._lines.feed(piece)]
        chunk = piece if isinstance(piece, dict) else piece.model_dump(by_alias=True, warnings=False)
        if "choices" in chunk:
            return [choice.get("delta") or choice.get("message") or {} for choice in chunk["choices"] or ()]
        return [_said(part) for part in _parts(chunk)]

    @property
    def heads(self) -> list[dict[str, Any]]:
        """The entries of structured calls that have a name."""
        return [entry for entry in self.entries if (entry.get("function") or {}).get("name")]

    def dialect(self) -> str:
        """The dialect of calls in the text: by the first marker, else by the first characters."""
        text = normalize("".join(self.content))
        places = {
            row.name: place
            for row in ROWS
            for marker in row.markers
            if not row.weak and not row.fence and (place := text.find(marker)) >= 0
        }
        if places:
            return min(places, key=places.__getitem__)
        return "json" if text.lstrip().startswith(("{", "[{", "```")) else "pythonic"


def _parts(chunk: dict[str, Any]) -> list[dict[str, Any]]:
    """Parts of a chunk of Responses, Anthropic or Gemini: a piece of text, or a call with its name."""
    kind = str(chunk.get("type"))
    if kind == "response.output_text.delta":
        return [{"text": chunk["delta"]}]
    if kind in ("response.output_item.added", "content_block_start", "content_block_delta"):
        return [chunk.get("item") or chunk.get("content_block") or chunk.get("delta") or {}]
    return [
        part
        for candidate in (chunk.get("candidates") or ())[:1]
        for part in (candidate.get("content") or {}).get("parts") or ()
        if not part.get("thought")
    ]


def _said(part: dict[str, Any]) -> dict[str, Any]:
    """A part as a message in OpenAI's form."""
    is_call = part.get("type") in ("function_call", "tool_use")
    call = part if is_call else part.get("functionCall") or {}
    arguments = call.get("arguments") or call.get("args") or ""
    function = {
        "name": call.get("name"),
        "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
    }
    entry = {"id": call.get("call_id") or call.get("id"), "function": function}
    return {"content": part.get("text"), "tool_calls": [entry] if call.get("name") else []}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReport:
    """Result of `probe`; the `plain_` attributes are of the question that needs no tool.

    Attributes
    ----------
    form : {"structured", "raw", "none"}
        Whether the server parsed the calls, they came as text (in `dialect`), or there were none.
    calls, duplicates : int
        Number of calls, and of further entries that repeated one.
    ids : {"present", "missing", "repeated", "none"}
        `"repeated"`: two calls had the same id.
    invalid : dict[str, int]
        Number of invalid calls by reason.
    order : list[str]
        Types of the first answer's events, in order.
    name_ms, call_ms, text_ms : float or None
        From the request to a call's name, to its complete arguments, and to the first text after the result.
    tool_refused : bool
        Whether the server or the table withheld the tool.
    suggestion : str
        An entry for an override file.
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
        """Whether a valid call came, its result was used, and the plain question got a plain answer."""
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


@dataclass(slots=True)
class _Seen:
    """Events with their times since the request, milliseconds."""

    events: list[tuple[float, ServiceEvent]] = field(default_factory=list)

    def of(self, *kinds: type) -> list[Any]:
        return [event for _, event in self.events if isinstance(event, kinds)]

    def first_ms(self, kind: type, after: type | None = None) -> float | None:
        since = -1.0 if after is None else self.first_ms(after)
        return next(
            (at for at, e in self.events if isinstance(e, kind) and since is not None and at >= since and _counts(e)),
            None,
        )


async def probe(connection: Connection, observer: Observer) -> ProbeReport:
    """Ask a live model two questions; the connection is made with `tap=observer.tap`."""
    tool = Tool(
        name="get_weather",
        description="Get the weather in a city right now.",
        parameters={
            "type": "object",
            "properties": {"city": {"type": "string", "description": "name of the city"}},
            "required": ["city"],
        },
        function=lambda city: CITIES.get(city, "12 degrees and clouds"),
    )
    with_tool, first = await _ask(connection, observer, NEEDS_TOOL, tool)
    heads, dialect = first
    plain, _ = await _ask(connection, observer, NEEDS_NONE, None)
    ends = [end for end in with_tool.of(ToolCallEnd) if end.status != "incomplete"]
    form: Literal["structured", "raw", "none"] = "none" if not ends else "structured" if heads else "raw"
    failures = [*with_tool.of(StreamFailed), *plain.of(StreamFailed)]
    text_ms = with_tool.first_ms(TextDelta, after=ToolResult)
    known = connection.capabilities
    found = replace(
        known,
        tools=bool(ends),
        format="openai" if form == "structured" and known.source == "default" else known.format,
        dialect=dialect if form == "raw" else known.dialect,
        parallel=_parallel(with_tool),
    )
    return ProbeReport(
        model=connection.model,
        api=connection.api,
        form=form,
        dialect=dialect if form == "raw" else "",
        calls=len(ends),
        duplicates=_duplicates(heads),
        ids=_ids(ends),
        invalid=dict(Counter(problem.reason for problem in with_tool.of(InvalidToolCall))),
        order=_order(with_tool),
        name_ms=with_tool.first_ms(ToolCallStart),
        call_ms=with_tool.first_ms(ToolCallEnd),
        text_ms=text_ms,
        answered=text_ms is not None,
        server_too_old=connection.server_too_old or None,
        tool_refused=bool(with_tool.of(ToolsLeftOut)),
        plain_answered=plain.first_ms(TextDelta) is not None,
        plain_calls=len(plain.of(ToolCallEnd)),
        failure=failures[0].message if failures else None,
        suggestion=found.toml(connection.model),
    )


async def _ask(
    connection: Connection, observer: Observer, question: str, tool: Tool | None
) -> tuple[_Seen, tuple[list[dict[str, Any]], str]]:
    """The events of a question; the structured entries and the text's dialect of its first answer."""
    seen = _Seen()
    observer.clear()
    source = connection if tool is None else ToolRunner(connection, [tool], rounds=2)
    came: tuple[list[dict[str, Any]], str] | None = None
    async with aclosing(source.chat([{"role": "user", "content": question}])) as events:
        async for event in events:
            seen.events.append(((observer.now() - observer.start_s) * 1000.0, event))
            if isinstance(event, ToolResult) and came is None:
                came = observer.heads, observer.dialect()
    return seen, came or (observer.heads, observer.dialect())


def _counts(event: object) -> bool:
    return bool(event.text.strip()) if isinstance(event, TextDelta) else True


def _order(seen: _Seen) -> list[str]:
    """The types of events up to the first result, without immediate repeats."""
    kinds: list[str] = []
    for _, event in seen.events:
        if isinstance(event, ToolResult):
            break
        if not kinds or kinds[-1] != type(event).__name__:
            kinds.append(type(event).__name__)
    return kinds


def _ids(ends: list[ToolCallEnd]) -> Literal["present", "missing", "repeated", "none"]:
    ids = [end.tool_call_id for end in ends]
    if not ids:
        return "none"
    if not all(ids):
        return "missing"
    return "present" if len(set(ids)) == len(ids) else "repeated"


def _duplicates(heads: list[dict[str, Any]]) -> int:
    """Number of entries that repeat a whole call: same name, arguments and id."""
    whole = Counter(
        (entry.get("id") or "", entry["function"]["name"], str(entry["function"].get("arguments")))
        for entry in heads
        if str(entry["function"].get("arguments") or "").rstrip().endswith("}")
    )
    return sum(count - 1 for count in whole.values())


def _parallel(seen: _Seen) -> bool:
    """Whether the first answer held several calls."""
    before_results = 0
    for _, event in seen.events:
        if isinstance(event, (ToolResult, Finish, EmptyToolCalls)):
            break
        before_results += isinstance(event, ToolCallEnd)
    return before_results > 1
