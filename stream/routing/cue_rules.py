"""What sounds for what: the router's rules, as data."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias, get_args

from stream.errors import StreamValueError

__all__ = ["AGENT_TOOLS", "DEFAULT_RULES", "CueRules", "Placement"]

Placement: TypeAlias = Literal["now", "after_words", "in_pause"]

AGENT_TOOLS = ("spawn_agent", "delegate", "run_sub_agent")
"""Patterns for the tools that hand work to another agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CueRules:
    """What sounds for what. `None` for a cue's name means silence.

    Attributes
    ----------
    tools : pairs of a pattern for the tool's name (`"read_*"`) and a cue; the first that fits is taken. `"motif"` gives
        a tool a sound of its own.
    agent_tools : patterns for tools that are agents; add yours to `AGENT_TOOLS`.
    agent : the cue of such a tool.
    tool_call : the cue of a tool that no pattern names.
    success, error : the cues of a tool's result.
    incomplete, malformed : the cue of a call that was cut off, or cannot be read.
    invented : the cue of a call of a tool that was never declared.
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
    StreamValueError : for a number below 0, a burst below 1, or a placement that is none of the three.
    """

    tools: tuple[tuple[str, str | None], ...] = ()
    agent_tools: tuple[str, ...] = AGENT_TOOLS
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
            if not getattr(self, name) >= 0.0:
                raise StreamValueError(f"{name} is {getattr(self, name)!r}; it must be 0 or more")
        if self.burst < 1:
            raise StreamValueError(f"burst is {self.burst!r}; it must be 1 or more (mute the router for silence)")
        for placement in (self.placement, *(placement for _, placement in self.placements)):
            if placement not in get_args(Placement):
                raise StreamValueError(
                    f"placement is {placement!r}; it must be one of {', '.join(get_args(Placement))}"
                )

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


DEFAULT_RULES = CueRules()
