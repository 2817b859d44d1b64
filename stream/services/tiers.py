"""Selection of tools by kind of question: small models choose better among six tools than among thirty."""

from __future__ import annotations

import logging
import re
from contextlib import aclosing
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Protocol, Unpack

from stream.services.chat_request import content_of
from stream.services.phrases import Phrases, fits, name_words, phrases, sentences
from stream.services.source import Wrapper
from stream.services.tier_table import Tier, load_tiers
from stream.services.tool import as_tools, tool_choice_field

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Iterable, Sequence

    from stream.events import ServiceEvent
    from stream.services.chat_request import Message
    from stream.services.source import ChatFields, ChatSource
    from stream.services.tool import Tool, ToolLike

__all__ = ["GENERAL", "IntentClassifier", "KeywordClassifier", "ToolTiers"]

GENERAL = "general"
"""The tier of a question that belongs to no other."""

ARTICLE = " [(a|an|the|my|some)] "

logger = logging.getLogger(__name__)


class IntentClassifier(Protocol):
    """A classifier of questions."""

    def classify(self, question: str) -> str | Awaitable[str]:
        """The name of a tier; an unknown name counts as `GENERAL`."""
        ...


class KeywordClassifier:
    """A classifier by keywords.

    A sentence belongs to the first tier with a matching keyword, the question to the first of these tiers that is not
    `GENERAL`.

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
        for sentence in sentences(question):
            name = next((name for name, keywords in self._tiers if keywords.find(sentence)), GENERAL)
            if name != GENERAL:
                return name
        return GENERAL


class ToolTiers(Wrapper):
    """A source that offers only the tools of the question's tier.

    A tool that the question or `tool_choice` names is offered, too. A general question gets no tools. A tier whose
    patterns match no tool is a warning in the log.

    Parameters
    ----------
    source : ChatSource
        The source to ask.
    tools : Iterable or None
        All tools; `None` takes the tools of each `chat`.
    tiers : Sequence[Tier] or None
        Kinds of questions; `None` takes the built-in table (device, datetime, files, browser, general).
    classifier : IntentClassifier or None
        Finds a question's tier; `None` is a `KeywordClassifier`.
    """

    def __init__(
        self,
        source: ChatSource,
        tools: Iterable[ToolLike] | None = None,
        *,
        tiers: Sequence[Tier] | None = None,
        classifier: IntentClassifier | None = None,
    ) -> None:
        super().__init__(source)
        self._tools = as_tools(tools)
        chosen = load_tiers() if tiers is None else tiers
        self._tiers = {tier.name: tier for tier in chosen}
        self._groups = tuple(chain.from_iterable(tier.groups for tier in chosen))
        self._general = phrases(self._tiers[GENERAL].keywords if GENERAL in self._tiers else ())
        self._classifier = classifier or KeywordClassifier(chosen)

    async def choose(self, question: str, tools: Iterable[ToolLike] | None = None) -> tuple[Tool, ...]:
        """The tools to offer for a question, in the order given."""
        named = self._classifier.classify(question)
        name = named if isinstance(named, str) else await named
        tier = self._tiers.get(name) or Tier(name=GENERAL)
        every = self._tools if tools is None else as_tools(tools)
        kept = {tool.name for tool in every if self._belongs(tool, tier)}
        if every and not kept and (tier.groups or tier.tools):
            shown = [f"{tool.name} ({tool.group})" if tool.group else tool.name for tool in every]
            listed = ", ".join([*shown[:8], "…"] if len(shown) > 8 else shown)
            logger.warning("Tier %s has none of the %d tools: %s", tier.name, len(every), listed)
        asked = sentences(question)
        return tuple(tool for tool in every if tool.name in kept or self._asks_for(tool.name, question, asked))

    async def chat(
        self, messages: Sequence[Message], *, tools: Iterable[ToolLike] | None = None, **fields: Unpack[ChatFields]
    ) -> AsyncGenerator[ServiceEvent, None]:
        """The events of one answer; the tools to offer are chosen from `tools`."""
        every = self._tools if tools is None else as_tools(tools)
        chosen = await self.choose(_last_question(messages), every)
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
        """Whether the question contains the tool's name as written, or in words; one plain word does not count.

        A sentence of the general tier must begin with the words: "Why do people play music?" does not ask for
        `play_music`. At the beginning, an article between the words is allowed: "Set a timer" asks for `set_timer`.
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
        """Whether a tool belongs to the tier: by its group if a tier names it, else by its name."""
        if tool.group and fits(self._groups, tool.group):
            return fits(tier.groups, tool.group)
        return fits(tier.tools, tool.name)


def _last_question(messages: Sequence[Message]) -> str:
    """The text of the last user message, or `""`.

    Examples
    --------
    >>> _last_question([{"role": "user", "content": "What time is it?"}, {"role": "tool", "content": "10:00"}])
    'What time is it?'
    """
    last: Message = next((message for message in reversed(messages) if message.get("role") == "user"), {})
    return " ".join(value for kind, value in content_of(last) if kind == "text")


@lru_cache(maxsize=4096)
def _in_words(tool_name: str) -> tuple[Phrases, Phrases] | None:
    """Patterns for a name's words anywhere, and at the beginning with articles allowed; `None` for one plain word."""
    words = name_words(tool_name)
    return (Phrases([" ".join(words)]), Phrases(["^ " + ARTICLE.join(words)])) if len(words) > 1 else None
