"""What sounds for what: the router's rules, as data."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias, get_args

from stream.checks import are_texts, check_number, check_patterns, check_whole_number
from stream.errors import StreamTypeError, StreamValueError
from stream.known_tools import SERVER_TOOLS

__all__ = ["AGENT_TOOLS", "DEFAULT_RULES", "MOTIF", "CueRules", "Placement"]

Placement: TypeAlias = Literal["now", "after_words", "in_pause"]

AGENT_TOOLS = ("spawn_agent", "delegate", "run_sub_agent")
"""Patterns for the tools that hand work to another agent."""
MOTIF = "motif"
"""Stands for a cue made from the tool's own name; `"motif:NAME"` is that cue."""
_CUES_OF_TOOLS = ("agent", "tool_call")
_CUES = (*_CUES_OF_TOOLS, "success", "error", "incomplete", "malformed", "invented", "failed", "working")


@dataclass(frozen=True, slots=True, kw_only=True)
class CueRules:
    """What sounds for what. `None` or `""` for a cue's name means silence.

    A cue that is written here must be in the router's bank; one that is named by default may be missing, and is silent.

    Attributes
    ----------
    tools : pairs of a pattern for the tool's name (`"read_*"`) and a cue; the first that fits is taken. `"motif"`, here
        and for `agent` and `tool_call`, gives a tool a sound of its own.
    agent_tools : patterns for tools that are agents; add yours to `AGENT_TOOLS`.
    server_tools : patterns for tools that the server offers and runs by itself. They are never declared and never sound
        as invented; `("*",)` where the server runs all tools.
    agent : the cue of such a tool.
    tool_call : the cue of a tool that no pattern names.
    success, error : the cues of a tool's result.
    incomplete, malformed : the cue of a call that was cut off, or cannot be read.
    invented : the cue of a call of a tool that was never declared, unless the server runs the tools.
    failed : the cue of a stream that broke off.
    working : the loop that sounds while a tool runs.
    working_after_s : how long a call is known before the loop begins, seconds.
    working_pause_s : how long nobody has spoken before the loop begins, seconds.
    placement : `"now"` over the speech, `"after_words"` once the words before the event have been spoken, `"in_pause"`
        in the next pause of the speech (after a second at most).
    placements : pairs of a cue and a placement of its own.
    coalesce_ms : the same cue within this time sounds once.
    burst : so many cues may come at once; beyond that, `sustained_per_s` a second.
    sustained_per_s : cues a second in the long run.

    Raises
    ------
    StreamTypeError : for a parameter of another type: pairs that are none, a number that is a text.
    StreamValueError : for a number below 0, a burst below 1, or a placement that is none of the three.
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
    working_after_s: float = 3.5
    working_pause_s: float = 1.0
    placement: Placement = "now"
    placements: tuple[tuple[str, Placement], ...] = ()
    coalesce_ms: float = 300.0
    burst: int = 3
    sustained_per_s: float = 1.0

    def __post_init__(self) -> None:
        for name in ("working_after_s", "working_pause_s", "coalesce_ms", "sustained_per_s"):
            if not 0.0 <= check_number(name, getattr(self, name)) < math.inf:
                raise StreamValueError(f"{name} is {getattr(self, name)!r}; it must be 0 or more, and finite")
        check_whole_number("burst", self.burst, 1)
        for name in _CUES:
            _check_cue(name, getattr(self, name))
        _check_pairs("tools", self.tools, "a pattern for tools' names and a cue", '(("read_*", "agent"),)')
        for pattern, cue in self.tools:
            _check_cue(f"tools: {pattern!r}", cue)
        check_patterns("agent_tools", self.agent_tools, "research_*")
        check_patterns("server_tools", self.server_tools, SERVER_TOOLS[0])
        _check_pairs("placements", self.placements, "a cue and a placement", '(("agent", "after_words"),)')
        for placement in (self.placement, *(placement for _, placement in self.placements)):
            if placement not in get_args(Placement):
                raise StreamValueError(
                    f"placement is {placement!r}; it must be one of {', '.join(get_args(Placement))}"
                )

    def cue_names(self) -> list[str]:
        """The names of the cues that may sound by these rules; `"motif"`, which stands for many, is none."""
        return [name for _, name in self._cues()]

    def cues_written(self) -> list[tuple[str, str]]:
        """The cues that are not named by default: (where, name)."""
        defaults = {field.name: field.default for field in fields(self)}
        return [(where, name) for where, name in self._cues() if defaults.get(where) != name]

    def _cues(self) -> list[tuple[str, str]]:
        """(where, name) of each cue that is named."""
        of_tools = [(f"tools {pattern!r}", cue) for pattern, cue in self.tools]
        of_tools += [(where, getattr(self, where)) for where in _CUES_OF_TOOLS]
        others = [(where, getattr(self, where)) for where in _CUES if where not in _CUES_OF_TOOLS]
        others += [("placements", cue) for cue, _ in self.placements]
        return [(where, cue) for where, cue in of_tools if cue and cue != MOTIF] + [pair for pair in others if pair[1]]

    def cue_for_tool(self, tool_name: str) -> str | None:
        """The cue that announces a call of `tool_name`.

        Examples
        --------
        >>> DEFAULT_RULES.cue_for_tool("delegate"), DEFAULT_RULES.cue_for_tool("read_file")
        ('agent', 'tool_call')
        """
        for pattern, cue in self.tools:
            if fnmatchcase(tool_name, pattern):
                return cue
        if any(fnmatchcase(tool_name, pattern) for pattern in self.agent_tools):
            return self.agent
        return self.tool_call

    def placement_of(self, cue: str) -> Placement:
        """Where `cue` goes."""
        return dict(self.placements).get(cue, self.placement)


def _check_cue(where: str, cue: object) -> None:
    if cue is not None and not isinstance(cue, str):
        raise StreamTypeError(f"{where} is {cue!r}; it must be the name of a cue, or None for silence")


def _check_pairs(where: str, pairs: object, what: str, example: str) -> None:
    """Take a collection of pairs, each of which begins with a text."""
    if isinstance(pairs, tuple | list) and all(
        isinstance(pair, tuple | list) and len(pair) == 2 and are_texts(pair[:1]) for pair in pairs
    ):
        return
    raise StreamTypeError(f"{where} is {pairs!r}; it must be pairs of {what}, as {example}")


DEFAULT_RULES = CueRules()
