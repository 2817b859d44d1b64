"""The rules and the timeouts of a router, as data."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias, get_args

from stream.checks import are_texts, check_choice, check_number, check_patterns, check_whole_number
from stream.errors import StreamTypeError, StreamValueError
from stream.known_tools import SERVER_TOOLS

__all__ = ["AGENT_TOOLS", "DEFAULT_RULES", "MOTIF", "CueRules", "Limits", "Placement", "Profile"]

Placement: TypeAlias = Literal["now", "after_words", "in_pause"]

AGENT_TOOLS = ("spawn_agent", "delegate", "run_sub_agent")
"""Patterns for tools that delegate to another agent."""
MOTIF = "motif"
"""The cue made from a tool's name; `"motif:NAME"` is the cue of tool NAME."""
CUES = (
    "agent",
    "tool_call",
    "success",
    "error",
    "incomplete",
    "malformed",
    "invented",
    "failed",
    "working",
    "thinking",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How much may sound; the defaults are those of `"full"`.

    Attributes
    ----------
    silence_s : float
        A call sounds at once if so much silence is expected after the words to be heard; at 0.0, always.
    unknown : bool
        Whether it does so, too, if its tool's time is not known and no words are to be heard.
    after_s : float
        Another call sounds after so much silence, unless the waiting sound begins by then.
    working_after_s : float
        The longest patience of the waiting sound after a call, seconds; `CueRules.working_after_s` may be shorter.
    success : bool
        Whether a result sounds; an error always does.
    most_per_minute : float
        Most calls that sound in a minute.
    ducks : bool
        Whether the waiting sound ducks the word that ends it, and for a while what follows.
    fainter_db, faintest_db : float
        Decibels that the waiting sound loses for each minute that the session has heard it, and in all.

    Raises
    ------
    StreamTypeError, StreamValueError
        If `unknown`, `success` or `ducks` is no `bool`, or another value is not a number of at least 0. The decibels
        are finite.
    """

    silence_s: float = 0.0
    unknown: bool = True
    after_s: float = 0.0
    working_after_s: float = math.inf
    success: bool = True
    most_per_minute: float = math.inf
    ducks: bool = True
    fainter_db: float = 0.0
    faintest_db: float = 6.0

    def __post_init__(self) -> None:
        for name in ("unknown", "success", "ducks"):
            if not isinstance(getattr(self, name), bool):
                raise StreamTypeError(f"{name} is {getattr(self, name)!r}; it must be True or False")
        for name in ("silence_s", "after_s", "working_after_s", "most_per_minute"):
            if not check_number(name, getattr(self, name)) >= 0.0:
                raise StreamValueError(f"{name} is {getattr(self, name)!r}; it must be 0 or more")
        for name in ("fainter_db", "faintest_db"):
            if not 0.0 <= check_number(name, getattr(self, name)) < math.inf:
                raise StreamValueError(f"{name} is {getattr(self, name)!r}; it must be 0 or more, and finite")


# `python -m bench.silence` has the figures.
PROFILES = {
    "full": Profile(),
    "normal": Profile(
        silence_s=1.2,  # In a conversation it is heard as a gap, and others begin to fill at 1.5 s.
        after_s=1.2,
        working_after_s=3.0,  # No result sounds in between, so the waiting sound has to come sooner than in "full".
        success=False,  # The answer itself shows it.
        most_per_minute=6,  # One in ten seconds; users switch off what sounds more often.
        ducks=False,  # It ends with the first word, which a duck would cover for half a second.
        fainter_db=1.0,  # Who knows it need not be told again; 6 dB fainter it still shows life.
    ),
    "minimal": Profile(
        silence_s=math.inf,
        unknown=False,
        after_s=2.5,  # Nobody asks before whether the line is dead. The waiting sound alone covers the rest of a wait.
        working_after_s=2.5,
        success=False,
        most_per_minute=6,
        ducks=False,
        fainter_db=1.0,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CueRules:
    """Which cue sounds for which event. `None` or `""` as a cue's name means silence.

    A cue set here must be in the router's bank; a default that is not in the bank is silent.

    Attributes
    ----------
    tools : pairs of str
        A pattern for tool names (`"read_*"`) and a cue; the first match wins. The cue `"motif"`, here and in `agent`
        and `tool_call`, gives each tool its own sound.
    agent_tools : collection of str
        Patterns for tools that are agents; add yours to `AGENT_TOOLS`.
    server_tools : collection of str
        Patterns for undeclared tools that the server runs, which never count as invented; `("*",)` matches every tool.
    agent, tool_call, success, error : str or None
        The cues for a call of an agent, for any other call, and for a tool's result.
    incomplete, malformed, invented, failed : str or None
        The cues for a call that was cut off, is not valid, or names an undeclared tool, and for a stream that failed.
    working : str or None
        The waiting sound: a loop from a call to the first word of the answer, also through further calls.
    thinking : str or None
        The waiting sound from the question on; `None` begins it with the first call. `"thinking"` is the built-in cue.
        A sound that has begun goes on when a tool is called.
    working_after_s : float
        Patience: seconds since anything was heard, until the waiting sound begins.
    silence_s : float
        The patience without a call and without a sound for thinking, while more of the answer is expected; the sound
        is `working`. `math.inf` switches it off.
    profile : {"full", "normal", "minimal"} or Profile
        How much sounds: each call and each result; only where silence would hurt; only where it would be long.
    profiles : pairs of str
        A pattern for tool names and the profile of these tools; the first match wins.
    expected_s : pairs of str and float
        A pattern for tool names and what these tools usually take, seconds: a first guess, until it is learned.
    placement : {"now", "after_words", "in_pause"}
        Over the speech; after the words before the event; in the next pause of the speech (after one second at most).
    placements : pairs of str
        A cue and its own placement.
    coalesce_ms : float
        A cue sounds once within this time.
    burst, sustained_per_s : int, float
        How many cues may sound in a row, and how many per second after that. That of `StreamFailed` sounds always.

    Raises
    ------
    StreamTypeError, StreamValueError
        If a parameter has the wrong type, a number is below 0 (`burst`: below 1), or a placement is unknown.

    Examples
    --------
    >>> import stream
    >>> from stream.routing.rules import AGENT_TOOLS
    >>> rules = stream.CueRules(
    ...     tools=(("read_*", None), ("search_*", "motif")),  # silent; a sound of each tool's own
    ...     agent_tools=(*AGENT_TOOLS, "research_*"),
    ...     thinking="thinking",  # a waiting sound from the question on
    ... )
    >>> [rules.cue_for_tool(name) for name in ("read_file", "search_web", "research_topic", "get_time")]
    [None, 'motif', 'agent', 'tool_call']
    """

    tools: tuple[tuple[str, str | None], ...] = ()
    agent_tools: tuple[str, ...] = AGENT_TOOLS
    server_tools: tuple[str, ...] = SERVER_TOOLS
    agent: str | None = "agent"
    tool_call: str | None = "tool_call"
    success: str | None = "success"
    error: str | None = "error"
    incomplete: str | None = "error"
    malformed: str | None = "error"
    invented: str | None = "error"
    failed: str | None = "error"
    working: str | None = "working"
    thinking: str | None = None
    working_after_s: float = 3.5
    silence_s: float = 4.0
    profile: str | Profile = "full"
    profiles: tuple[tuple[str, str | Profile], ...] = ()
    expected_s: tuple[tuple[str, float], ...] = ()
    placement: Placement = "now"
    placements: tuple[tuple[str, Placement], ...] = ()
    coalesce_ms: float = 300.0
    burst: int = 3
    sustained_per_s: float = 1.0

    def __post_init__(self) -> None:
        for name in ("working_after_s", "coalesce_ms", "sustained_per_s"):
            if not 0.0 <= check_number(name, getattr(self, name)) < math.inf:
                raise StreamValueError(f"{name} is {getattr(self, name)!r}; it must be 0 or more, and finite")
        if not check_number("silence_s", self.silence_s) >= 0.0:
            raise StreamValueError(f"silence_s is {self.silence_s!r}; it must be 0 or more")
        check_whole_number("burst", self.burst, 1)
        for name in CUES:
            _check_cue(name, getattr(self, name))
        _check_pairs("tools", self.tools, "a pattern for tools' names and a cue", '(("read_*", "agent"),)')
        for pattern, cue in self.tools:
            _check_cue(f"tools: {pattern!r}", cue)
        _check_pairs("profiles", self.profiles, "a pattern for tools' names and a profile", '(("read_*", "minimal"),)')
        for profile in (self.profile, *(profile for _, profile in self.profiles)):
            if not isinstance(profile, Profile):
                check_choice("profile", profile, tuple(PROFILES))
        _check_pairs("expected_s", self.expected_s, "a pattern for tools' names and seconds", '(("read_*", 0.3),)')
        for pattern, expected_s in self.expected_s:
            if not 0.0 <= check_number(f"expected_s: {pattern!r}", expected_s) < math.inf:
                raise StreamValueError(f"expected_s: {pattern!r} is {expected_s!r}; it must be 0 or more, and finite")
        check_patterns("agent_tools", self.agent_tools, "research_*")
        check_patterns("server_tools", self.server_tools, SERVER_TOOLS[0])
        _check_pairs("placements", self.placements, "a cue and a placement", '(("agent", "after_words"),)')
        for placement in (self.placement, *(placement for _, placement in self.placements)):
            if placement not in get_args(Placement):
                raise StreamValueError(
                    f"placement is {placement!r}; it must be one of {', '.join(get_args(Placement))}"
                )

    def cues(self) -> list[tuple[str, str, bool]]:
        """The cues that these rules may play: where, name, whether it is a default. `"motif"` stands for many."""
        defaults = {field.name: field.default for field in fields(self)}
        of_tools = [(f"tools {pattern!r}", cue) for pattern, cue in self.tools]
        of_tools += [("agent", self.agent), ("tool_call", self.tool_call)]
        others = [(where, getattr(self, where)) for where in CUES[2:]] + [
            ("placements", cue) for cue, _ in self.placements
        ]
        named = [*((where, cue) for where, cue in of_tools if cue != MOTIF), *others]
        return [(where, cue, defaults.get(where) == cue) for where, cue in named if cue]

    def cue_for_tool(self, tool_name: str) -> str | None:
        """The cue for a call of `tool_name`."""
        every = (*self.tools, *((pattern, self.agent) for pattern in self.agent_tools), ("*", self.tool_call))
        return next(cue for pattern, cue in every if fnmatchcase(tool_name, pattern))

    def profile_of(self, tool_name: str = "", of_pack: Iterable[tuple[str, str]] = ()) -> Profile:
        """The profile of `tool_name`, by a pack's rules before these; without a name, of the session."""
        every = (*of_pack, *self.profiles) if tool_name else ()
        profile = next((profile for pattern, profile in every if fnmatchcase(tool_name, pattern)), self.profile)
        return profile if isinstance(profile, Profile) else PROFILES[profile]

    def usual_s(self, tool_name: str) -> float | None:
        """The first guess of what `tool_name` takes, seconds."""
        return next((usual_s for pattern, usual_s in self.expected_s if fnmatchcase(tool_name, pattern)), None)

    def placement_of(self, cue: str) -> Placement:
        """The placement of `cue`."""
        return dict(self.placements).get(cue, self.placement)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Timeouts of a turn, seconds of output, above 0; other values raise a `StreamError`.

    Attributes
    ----------
    model_s, tool_s : float
        For the model's next event while no call is open, and while one is: from its start to its outcome, so also
        while its arguments come. Some servers hold these back, and not every caller reports their end.
    speech_s : float
        For the next piece of speech while there is text to speak, and for a speaker that drops its text.
    """

    model_s: float = 60.0
    tool_s: float = 600.0
    speech_s: float = 20.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if not check_number(field.name, getattr(self, field.name)) > 0.0:
                raise StreamValueError(f"{field.name} is {getattr(self, field.name)!r}; it must be above 0")


def _check_cue(where: str, cue: object) -> None:
    if cue is not None and not isinstance(cue, str):
        raise StreamTypeError(f"{where} is {cue!r}; it must be the name of a cue, or None for silence")


def _check_pairs(where: str, pairs: object, what: str, example: str) -> None:
    if isinstance(pairs, tuple | list) and all(
        isinstance(pair, tuple | list) and len(pair) == 2 and are_texts(pair[:1]) for pair in pairs
    ):
        return
    raise StreamTypeError(f"{where} is {pairs!r}; it must be pairs of {what}, as {example}")


DEFAULT_RULES = CueRules()
