"""Tools by kind of question: a small model that is offered thirty tools chooses worse than one that is offered six."""

from __future__ import annotations

import logging
import re
from contextlib import aclosing
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Protocol, Unpack

from stream.services.phrases import Phrases, fits, name_words, phrases, sentences
from stream.services.source import capabilities_behind, last_question
from stream.services.tier_table import Tier, load_tiers
from stream.services.tool import as_tools, tool_choice_field

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Iterable, Sequence

    from stream.events import ServiceEvent
    from stream.services.chat_request import Message
    from stream.services.models import ModelCapabilities
    from stream.services.source import ChatFields, ChatSource
    from stream.services.tool import Tool, ToolLike

__all__ = ["GENERAL", "IntentClassifier", "KeywordClassifier", "ToolTiers"]

GENERAL = "general"
"""The tier of a question that belongs to no other."""

ARTICLE = " [(a|an|the|my|some)] "

logger = logging.getLogger(__name__)


class IntentClassifier(Protocol):
    """What kind of question is asked."""

    def classify(self, question: str) -> str | Awaitable[str]:
        """The name of a tier; an unknown name counts as `GENERAL`."""
        ...


class KeywordClassifier:
    """Looks for keywords, sentence by sentence: the first tier with one has the sentence.

    The question belongs to the first tier of its sentences that is not `GENERAL`.

    Examples
    --------
    >>> classifier = KeywordClassifier(load_tiers())
    >>> classifier.classify("Good evening! Could you please turn the lamp in the kitchen off?")
    'device'
    >>> classifier.classify("Who invented the lamp?")
    'general'
    """

    def __init__(self, tiers: Sequence[Tier]) -> None:
        self._tiers = [(tier.name, phrases(tier.keywords)) for tier in tiers if tier.keywords]

    def classify(self, question: str) -> str:
        """The name of the question's tier."""
        found = (self._tier(sentence) for sentence in sentences(question))
        return next((name for name in found if name != GENERAL), GENERAL)

    def _tier(self, sentence: Sequence[str]) -> str:
        return next((name for name, keywords in self._tiers if keywords.find(sentence)), GENERAL)


class ToolTiers:
    """Stands in front of a source and offers the tools of the question's tier alone.

    A tool that the question names is offered too, and so is the one that `tool_choice` names. A general question gets
    no tools. A tier that has no tool although it names some is logged as a warning.

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
        self._groups = tuple(chain.from_iterable(tier.groups for tier in chosen))
        self._general = phrases(self._tiers[GENERAL].keywords if GENERAL in self._tiers else ())
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
        every = self._tools if tools is None else as_tools(tools)
        kept = {tool.name for tool in every if self._belongs(tool, tier)}
        if every and not kept and (tier.groups or tier.tools):
            logger.warning("Tier %s has none of the %d tools: %s", tier.name, len(every), _listed(every))
        asked = sentences(question)
        return tuple(tool for tool in every if tool.name in kept or self._asks_for(tool.name, question, asked))

    async def chat(
        self, messages: Sequence[Message], *, tools: Iterable[ToolLike] | None = None, **fields: Unpack[ChatFields]
    ) -> AsyncGenerator[ServiceEvent, None]:
        """The events of one answer; the tiers choose from `tools`, and the tool that `tool_choice` names is offered."""
        every = self._tools if tools is None else as_tools(tools)
        chosen = await self.choose(last_question(messages), every)
        choice = tool_choice_field(fields.get("tool_choice"), tuple(tool.name for tool in every))
        if isinstance(choice, dict):
            forced = choice["function"]["name"]
            chosen = tuple(tool for tool in every if tool in chosen or tool.name == forced)
        elif not chosen:
            fields.pop("tool_choice", None)
        async with aclosing(self._source.chat(messages, tools=chosen, **fields)) as events:
            async for event in events:
                yield event

    def _asks_for(self, tool_name: str, question: str, asked: Sequence[Sequence[str]]) -> bool:
        """Whether the question has the tool's name as it is written, or in words; one plain word is no name.

        In words, a sentence that the general tier knows has to begin with it: "Why do people play music?" asks for no
        `play_music`. At the beginning an article may stand between: "Set a timer" asks for `set_timer`.
        """
        if not tool_name.isalpha() and re.search(rf"(?<!\w){re.escape(tool_name)}(?!\w)", question):
            return True
        in_words = _in_words(tool_name)
        if in_words is None:
            return False
        anywhere, first = in_words
        return any(
            first.find(sentence) or (anywhere.find(sentence) and not self._general.find(sentence)) for sentence in asked
        )

    def _belongs(self, tool: Tool, tier: Tier) -> bool:
        """Whether a tool is one of the tier's: by its group where some tier names that, else by its name."""
        if tool.group and fits(self._groups, tool.group):
            return fits(tier.groups, tool.group)
        return fits(tier.tools, tool.name)


@lru_cache(maxsize=4096)
def _in_words(tool_name: str) -> tuple[Phrases, Phrases] | None:
    """The words of a name anywhere, and at the beginning, perhaps with an article; `None` for one plain word."""
    words = name_words(tool_name)
    return (Phrases([" ".join(words)]), Phrases(["^ " + ARTICLE.join(words)])) if len(words) > 1 else None


def _listed(tools: Sequence[Tool], most: int = 8) -> str:
    """The names of the first tools, each with its group."""
    named = [f"{tool.name} ({tool.group})" if tool.group else tool.name for tool in tools[:most]]
    return ", ".join([*named, "…"] if len(tools) > most else named)
