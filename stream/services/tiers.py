"""Selection of tools by kind of question: small models choose better among six tools than among thirty."""

import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, Unpack

from cues.errors import did_you_mean
from cues.files import toml_table
from stream.checks import are_texts
from stream.errors import StreamTypeError, StreamValueError
from stream.events import ServiceEvent
from stream.redaction import logged_list
from stream.services.chat_request import ChatFields, Message, check_known
from stream.services.follow_ups import depended_on
from stream.services.learned import GENERAL, learned_tier
from stream.services.source import ChatSource, Wrapper, with_known
from stream.services.tool import Tool, ToolLike, as_tools, tool_choice_field
from stream.services.wording import LONGEST, requests, sentences

__all__ = ["IntentClassifier", "KeywordClassifier", "Tier", "ToolTiers", "load_tiers"]

NAME_BREAK = re.compile(r"[_\-./:\s]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
JOINED = re.compile(r"[.?!;,\n][^\S\n]*\w|\b(and|then|but)\b", re.IGNORECASE)
"""Matches a question that may hold several requests; most questions do not match, and are not split."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """A kind of question and its tools. Patterns are regular expressions; the head of `tiers.toml` says of what.

    Attributes
    ----------
    name : str
        The classifier's result.
    groups : tuple[str, ...]
        Patterns of `Tool.group`; tools of these groups belong to this tier only.
    tools : tuple[str, ...]
        Patterns of tool names, for tools whose group is unknown or in no tier.
    keywords : tuple[str, ...]
        Patterns of questions.

    Raises
    ------
    StreamTypeError, StreamValueError
        If an attribute has another type, or a pattern is not a regular expression.
    """

    name: str
    groups: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        name: Any = self.name
        if not isinstance(name, str) or not name.strip():
            raise StreamTypeError(f"name is {name!r}; it must be text that is not empty")
        for key in ("groups", "tools", "keywords"):
            patterns = getattr(self, key)
            if not are_texts(patterns):
                raise StreamTypeError(f"{key} is {patterns!r}; it must be a list of texts")
            if not all(patterns):
                raise StreamValueError(f"{key} has an empty pattern")
            try:
                _compiled(tuple(patterns), whole=key != "keywords")
            except re.error as error:
                near = str(error.pattern)[max((error.pos or 0) - 20, 0) :][:40]
                raise StreamValueError(f"{key} is no regular expression at {near!r}: {error.msg}") from error
            object.__setattr__(self, key, tuple(patterns))


def load_tiers(path: Path | str | None = None) -> tuple[Tier, ...]:
    """The tiers of a file, or the built-in ones.

    Raises
    ------
    StreamValueError
        If the file cannot be read, or has another form than the built-in one.
    """
    source = files("stream.services").joinpath("tiers.toml") if path is None else Path(path)
    try:
        table = toml_table(source.read_bytes())
        words: dict[str, str] = {}
        for name, listed in table.get("words", {}).items():
            words[name] = f"(?:{'|'.join(_expanded(name, listed, words))})"
        entries: list[dict[str, Any]] = [
            {key: value if key == "name" else _expanded(key, value, words) for key, value in entry.items()}
            for entry in table.get("tier", ())
        ]
        tiers = tuple(Tier(**{"name": "", **entry}) for entry in entries)
        if len({tier.name for tier in tiers}) < max(len(tiers), 1):
            raise StreamValueError("it needs one [[tier]] or more, each with a name of its own")
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise StreamValueError(f"cannot read tiers from {source}: {error}") from error
    return tiers


def _expanded(key: str, patterns: Any, words: Mapping[str, str]) -> list[str]:
    """The patterns with the lists that they name filled in."""
    if not are_texts(patterns):
        raise StreamTypeError(f"{key} is {patterns!r}; it must be a list of texts")
    return [re.sub(r"(?<!\?P)<([a-z]+)>", lambda found: _listed(key, found, words), pattern) for pattern in patterns]


def _listed(key: str, found: re.Match[str], words: Mapping[str, str]) -> str:
    if found[1] not in words:
        near = did_you_mean(found[1], words)
        raise StreamValueError(f"{key} has <{found[1]}> in {found.string!r}; the lists above it are {[*words]}{near}")
    return words[found[1]]


@lru_cache(maxsize=256)
def _compiled(patterns: tuple[str, ...], *, whole: bool = False) -> re.Pattern[str]:
    """One regular expression of patterns that begin and end at words, or match a whole name."""
    either = "|".join(f"(?:{pattern})" for pattern in patterns) or "(?!)"
    return re.compile(f"^(?:{either}) ?$" if whole else rf"(?<!\S)(?:{either})(?:(?<= )|(?= )|$)")


@lru_cache(maxsize=4096)
def fits(patterns: tuple[str, ...], name: str) -> bool:
    r"""Whether a pattern matches a whole name, as it is written or in words.

    >>> fits((r".*\blight\b.*",), "desk_light_on"), fits((r".*\blight\b.*",), "browser_highlight")
    (True, False)
    """
    compiled = _compiled(patterns, whole=True)
    return any(compiled.search(one) for one in (name_words(name), name))


def name_words(name: str) -> str:
    """The words of a name, split at ``_ - . / :`` and at capitals, with a space after each.

    >>> name_words("getDeviceState"), name_words("zwave.set_value")
    ('get device state ', 'zwave set value ')
    """
    return "".join(f"{word.lower()} " for word in NAME_BREAK.split(name) if word)


class IntentClassifier(Protocol):
    """A classifier of questions."""

    def classify(self, question: str) -> str | Awaitable[str]:
        """The name of a tier; an unknown name counts as `GENERAL`."""
        ...


class KeywordClassifier:
    """A classifier by keywords, and for the tiers without keywords by learned weights.

    A sentence belongs to the first tier with a matching keyword, the question to the first of these tiers that is not
    `GENERAL`. If there is none, the weights choose among device, datetime and files, as far as these are among the
    tiers and have no keywords. If they choose none, each request of the question is classified by itself.

    Examples
    --------
    >>> classifier = KeywordClassifier(load_tiers())
    >>> classifier.classify("Good evening! Could you please turn the lamp in the kitchen off?")
    'device'
    >>> classifier.classify("Who invented the lamp?")
    'general'
    >>> classifier.classify("Tell me who invented the lamp and turn mine off")
    'device'
    """

    def __init__(self, tiers: Sequence[Tier]) -> None:
        self._tiers = [(tier.name, _compiled(tier.keywords)) for tier in tiers if tier.keywords]
        self._learned = {tier.name for tier in tiers if not tier.keywords}

    def classify(self, question: str) -> str:
        """The name of the question's tier, or of its first request that is not general if it is general as a whole."""
        return self.classify_requests(question)[0]

    def classify_requests(self, question: str) -> list[str]:
        """The tiers of the question as a whole and of each of its requests; general only if there is no other."""
        names = dict.fromkeys(map(self._tier_of, (question, *_several(question))))
        names |= dict.fromkeys(self._first(said) for _, said in sentences(question))  # polite phrases may be keywords
        return [name for name in names if name != GENERAL] or [GENERAL]

    def _tier_of(self, question: str) -> str:
        for asked, _ in sentences(question):
            if (name := self._first(asked)) != GENERAL:
                return name
        name = learned_tier(question)
        return name if name in self._learned else GENERAL

    def _first(self, sentence: str) -> str:
        """The first tier with a matching keyword."""
        return next((name for name, keywords in self._tiers if keywords.search(sentence)), GENERAL)


class ToolTiers(Wrapper):
    """A source that offers only the tools of the question's tier.

    "Turn on the light and tell me the time" is two requests and gets the tools of both tiers, but a classifier of yours
    is asked about the whole question. A tool that the question or `tool_choice` names is offered, too. A general
    question gets no tools, but "Yes, please" gets those of the question before it, and "And in the kitchen?" these and
    its own, as does a short answer to a question of the assistant's. A tier whose patterns match no tool is a warning
    in the log, and so are, once, the tools that belong to no tier.

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
        self._known: set[str] = set()  # tools that were asked for their tier, for the log
        self._groups = tuple(chain.from_iterable(tier.groups for tier in chosen))
        self._general = _compiled(self._tiers[GENERAL].keywords if GENERAL in self._tiers else ())
        self._classifier = classifier or KeywordClassifier(chosen)

    async def choose(self, question: str, tools: Iterable[ToolLike] | None = None) -> tuple[Tool, ...]:
        """The tools to offer for a question, in the order given."""
        every = self._tools if tools is None else as_tools(tools)
        self._log_those_of_no_tier(every)
        kept = set[str]()
        for tier in [self._tiers[name] for name in await self._classified(question) if name in self._tiers]:
            kept |= self._names_of(tier, every)
        clauses = [*sentences(question), *chain.from_iterable(map(sentences, _several(question)))]
        return tuple(tool for tool in every if tool.name in kept or self._asks_for(tool.name, question, clauses))

    async def chat(
        self, messages: Sequence[Message], *, tools: Iterable[ToolLike] | None = None, **fields: Unpack[ChatFields]
    ) -> AsyncGenerator[ServiceEvent, None]:
        """The events of one answer; the tools to offer are chosen from `tools`."""
        check_known(fields)
        every = self._tools if tools is None else as_tools(tools)
        wanted = set[str]()
        for text in depended_on(messages):
            wanted |= {tool.name for tool in await self.choose(text, every)}
        chosen = tuple(tool for tool in every if tool.name in wanted)
        choice = tool_choice_field(fields.get("tool_choice"), tuple(tool.name for tool in every))
        if isinstance(choice, dict):
            forced = choice["function"]["name"]
            chosen = tuple(tool for tool in every if tool in chosen or tool.name == forced)
        elif not chosen and choice != "none":  # which keeps a fallback out, too
            fields.pop("tool_choice", None)
        asked = fields if chosen == every else with_known(fields, every)
        if every and not chosen:
            asked["may_call"] = True
        async with aclosing(self._source.chat(messages, tools=chosen, **asked)) as events:
            async for event in events:
                yield event

    async def _classified(self, question: str) -> list[str]:
        """The tiers of the question; the built-in classifier tells those of its requests, too."""
        if type(self._classifier) is KeywordClassifier:  # a subclass may have a `classify` of its own
            return self._classifier.classify_requests(question)
        named = self._classifier.classify(question)
        return [named if isinstance(named, str) else await named]

    def _names_of(self, tier: Tier, every: Sequence[Tool]) -> set[str]:
        names = {tool.name for tool in every if self._has(tier, tool)}
        if every and not names and (tier.groups or tier.tools):
            logger.warning("Tier %s has none of the %d tools: %s", tier.name, len(every), logged_list(_shown(every)))
        return names

    def _has(self, tier: Tier, tool: Tool) -> bool:
        """Whether the tool belongs to the tier: by its group if any tier has that group, otherwise by its name."""
        return fits(tier.groups, tool.group) if fits(self._groups, tool.group) else fits(tier.tools, tool.name)

    def _log_those_of_no_tier(self, every: Iterable[Tool]) -> None:
        new = [tool for tool in every if tool.name not in self._known]
        self._known.update(tool.name for tool in new)
        strays = [tool for tool in new if not any(self._has(tier, tool) for tier in self._tiers.values())]
        if strays:
            message = "%d tools belong to no tier, and are offered only where a question or tool_choice names them: %s"
            logger.warning(message, len(strays), logged_list(_shown(strays)))

    def _asks_for(self, tool_name: str, question: str, clauses: Sequence[tuple[str, str]]) -> bool:
        """Whether the question contains the tool's name as written, or in words.

        One plain word counts at the beginning of a sentence and behind "use", "call", "run" or "try".

        A sentence of the general tier must begin with the words: "Why do people play music?" does not ask for
        `play_music`. At the beginning, an article between the words is allowed: "Set a timer" asks for `set_timer`. The
        words may be a polite phrase: "Remind me to call" asks for `remind_me`.
        """
        written, anywhere, first = _named(tool_name)
        return bool(written.search(question)) or any(
            first.search(sentence) or (anywhere.search(sentence) and not self._general.search(asked))
            for asked, said in clauses
            for sentence in (asked, said)
        )


def _several(question: str) -> Sequence[str]:
    """The requests of a question, if it has more than one."""
    found = requests(question) if JOINED.search(question, 0, LONGEST) else ()
    return found if len(found) > 1 else ()


def _shown(tools: Iterable[Tool]) -> list[str]:
    return [f"{tool.name} ({tool.group})" if tool.group else tool.name for tool in tools]


@lru_cache(maxsize=4096)
def _named(tool_name: str) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Patterns for a name as written, for its words anywhere, and at the beginning with articles allowed.

    One plain word may be no name: "Is there music?" and "Music is fun" ask for no tool.
    """
    words = [re.escape(word) for word in name_words(tool_name).split()]
    written = re.compile(rf"(?<!\w){re.escape(tool_name)}(?!\w)")
    if not words:
        return written, _compiled(()), _compiled(())
    anywhere, first = " ".join(words), "^" + " ((a|an|the|my|some) )?".join(words)
    if len(words) == 1:
        anywhere = f"(?:use|using|call|run|try) (?:the )?{anywhere}"
        first += r"(?! (?:is|are|was|were|has|have|do|does|can|will|of)\b)"
        written = _compiled(()) if tool_name.isalpha() else written
    return written, _compiled((anywhere,)), _compiled((first,))
