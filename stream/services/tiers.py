"""Tools by kind of question: a small model that is offered thirty tools chooses worse than one that is offered six."""

from __future__ import annotations

import re
import tomllib
from contextlib import aclosing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Unpack

from stream.errors import StreamValueError
from stream.services.source import capabilities_behind, last_question
from stream.services.tool import as_tools

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Iterable, Sequence

    from stream.services.chat_request import Message
    from stream.services.models import ModelCapabilities
    from stream.services.notices import ServiceEvent
    from stream.services.source import ChatFields, ChatSource
    from stream.services.tool import Tool, ToolLike

__all__ = ["GENERAL", "IntentClassifier", "KeywordClassifier", "Tier", "ToolTiers", "load_tiers"]

GENERAL = "general"
"""The tier of a question that belongs to no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """A kind of question and its tools.

    Attributes
    ----------
    name : what a classifier returns.
    tools : shell-style patterns of tool names.
    keywords : words and phrases of such questions, without regard to case.
    """

    name: str
    tools: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()


class IntentClassifier(Protocol):
    """What kind of question is asked."""

    def classify(self, question: str) -> str | Awaitable[str]:
        """The name of a tier; an unknown name counts as `GENERAL`."""
        ...


class KeywordClassifier:
    """Counts each tier's keywords in the question, a phrase once a word; the first tier wins a tie.

    Examples
    --------
    >>> KeywordClassifier(load_tiers()).classify("Turn off the lamp in the kitchen")
    'device'
    """

    def __init__(self, tiers: Sequence[Tier]) -> None:
        self._tiers = [(tier.name, [(_finder(word), len(word.split())) for word in tier.keywords]) for tier in tiers]

    def classify(self, question: str) -> str:
        """The tier whose keywords weigh most in the question."""
        weights = {name: sum(n for finder, n in words if finder.search(question)) for name, words in self._tiers}
        best = max(weights, key=weights.__getitem__, default=GENERAL)
        return best if weights.get(best) else GENERAL


class ToolTiers:
    """Stands in front of a source and offers the tools of the question's tier alone.

    A tool that the question names is offered too. A general question gets no tools.

    Parameters
    ----------
    source : what to chat with.
    tools : all tools there are; `None` leaves it to each `chat`.
    tiers : kinds of questions; `None` takes the built-in table (device, datetime, files, general).
    classifier : what kind a question is; `None` goes by keywords.
    """

    def __init__(
        self,
        source: ChatSource,
        tools: Iterable[ToolLike] | None = None,
        *,
        tiers: Sequence[Tier] | None = None,
        classifier: IntentClassifier | None = None,
    ) -> None:
        self._source, self._tools = source, as_tools(tools)
        chosen = load_tiers() if tiers is None else tiers
        self._tiers = {tier.name: tier for tier in chosen}
        self._classifier = classifier or KeywordClassifier(chosen)

    @property
    def model(self) -> str:
        """The model's name."""
        return self._source.model

    @property
    def capabilities(self) -> ModelCapabilities:
        """What the model can do with tools."""
        return capabilities_behind(self._source)

    async def choose(self, question: str, tools: Iterable[ToolLike] | None = None) -> tuple[Tool, ...]:
        """The tools to offer for a question, in their own order."""
        named = self._classifier.classify(question)
        name = named if isinstance(named, str) else await named
        tier = self._tiers.get(name) or Tier(name=GENERAL)
        return tuple(
            tool
            for tool in (self._tools if tools is None else as_tools(tools))
            if any(fnmatchcase(tool.name, pattern) for pattern in tier.tools) or _names(question, tool.name)
        )

    async def chat(
        self, messages: Sequence[Message], *, tools: Iterable[ToolLike] | None = None, **fields: Unpack[ChatFields]
    ) -> AsyncGenerator[ServiceEvent, None]:
        """The events of one answer; `tools` is what the tiers choose from."""
        chosen = await self.choose(last_question(messages), tools)
        if not chosen or fields.get("tool_choice") not in (None, "auto", "none", "required", "any"):
            fields.pop("tool_choice", None)
        async with aclosing(self._source.chat(messages, tools=chosen, **fields)) as events:
            async for event in events:
                yield event


def load_tiers(path: Path | str | None = None) -> tuple[Tier, ...]:
    """The tiers of a file, or the built-in ones.

    Raises
    ------
    StreamValueError : the file cannot be read, or is not of the form of the built-in one.
    """
    source = files("stream.services").joinpath("tiers.toml") if path is None else Path(path)
    try:
        entries = tomllib.loads(source.read_text(encoding="utf-8"))["tier"]
        return tuple(
            Tier(name=entry["name"], tools=tuple(entry["tools"]), keywords=tuple(entry.get("keywords", ())))
            for entry in entries
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StreamValueError(f"cannot read tiers from {path}: {error!r}") from error


def _finder(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(words)}(?!\w)", re.IGNORECASE)


def _names(question: str, tool_name: str) -> bool:
    """Whether the question names the tool, as it is written or in words; one plain word is no name."""
    if tool_name in question and not tool_name.isalpha():
        return True
    words = re.sub(r"[_\-./:]+", " ", tool_name)
    return " " in words and _finder(words).search(question) is not None
