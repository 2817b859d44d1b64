"""The built-in cues: eight in C major, distinguished by rhythm and number of notes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType

from cues.synthesis.spec import Envelope, Note, Spec, Timbre

__all__ = ["CATALOG", "DEFAULT_CUE", "RULES", "BuiltIn", "cue_by_rules", "usual_lu", "usually_loops"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """A built-in cue: its sound, loudness (`m100_max`) relative to speech, and meaning for a listener."""

    spec: Spec
    target_lu: float
    meaning: str


# Pitches, Hz, equal temperament at A4 = 440; `tool_call` has its E5 at 660.
_G4, _C5, _E5, _G5, _A5, _C6 = 392.0, 523.25, 659.26, 783.99, 880.0, 1046.5

_MALLET = Timbre(partials=(1.0, 0.3, 0.12, 0.04), damping=0.8)
# High notes have fewer harmonics, to stay within the telephone band.
_SOFT_MALLET = Timbre(partials=(1.0, 0.25, 0.08), damping=0.8)

_TOOL_CALL = Spec(
    notes=(Note(hz=660.0, length_ms=180.0), Note(hz=_A5, start_ms=90.0, length_ms=90.0)),
    timbre=_SOFT_MALLET,
    envelope=Envelope(attack_ms=10.0, decay_per_s=15.0, release_ms=50.0),
)
_AGENT = Spec(
    notes=(
        Note(hz=_C5, length_ms=140.0),
        Note(hz=_E5, start_ms=83.0, length_ms=140.0),
        Note(hz=_G5, start_ms=166.0, length_ms=94.0),
    ),
    timbre=_MALLET,
    envelope=Envelope(attack_ms=10.0, decay_per_s=10.0, release_ms=55.0),
)
_ERROR = Spec(
    # Odd harmonics and a slow attack: with even ones, a detector of speech takes the falling tone for a voice.
    notes=(Note(hz=440.0, length_ms=220.0, sweep_per_s=-3.0),),
    timbre=Timbre(partials=(1.0, 0.0, 0.7, 0.0, 0.4), damping=0.3),
    envelope=Envelope(attack_ms=40.0, decay_per_s=12.0, release_ms=130.0),
    peak=0.35,
)
_SUCCESS = Spec(
    # A sixth, short and long, unlike the even fourth of `tool_call`.
    notes=(Note(hz=_E5, length_ms=90.0, level_db=-2.0), Note(hz=_C6, start_ms=50.0, length_ms=170.0)),
    timbre=_SOFT_MALLET,
    envelope=Envelope(attack_ms=8.0, decay_per_s=14.0, release_ms=55.0),
)
_WORKING = Spec(
    notes=(Note(hz=_C5, length_ms=40.0),),
    timbre=_SOFT_MALLET,
    envelope=Envelope(attack_ms=10.0, decay_per_s=40.0, release_ms=25.0),
    peak=0.1,  # low, so that the gain to its target stays within its clamp
    tail_ms=2360.0,
    loop=True,
)
_THINKING = Spec(
    notes=(Note(hz=_G4, length_ms=600.0),),
    timbre=_SOFT_MALLET,
    envelope=Envelope(attack_ms=200.0, decay_per_s=1.0, release_ms=300.0),  # it swells, as no other cue does
    peak=0.1,
    tail_ms=1800.0,
    loop=True,
)
_LISTENING = Spec(
    notes=(Note(hz=_G5, length_ms=120.0),),
    timbre=_SOFT_MALLET,
    envelope=Envelope(attack_ms=15.0, decay_per_s=14.0, release_ms=60.0),
)
_ATTENTION = Spec(
    notes=(Note(hz=_A5, length_ms=110.0), Note(hz=_A5, start_ms=140.0, length_ms=110.0)),
    timbre=_SOFT_MALLET,
    envelope=Envelope(attack_ms=10.0, decay_per_s=18.0, release_ms=45.0),
)

CATALOG: Mapping[str, BuiltIn] = MappingProxyType(
    {
        "tool_call": BuiltIn(spec=_TOOL_CALL, target_lu=-6.0, meaning="a tool was called"),
        "agent": BuiltIn(spec=_AGENT, target_lu=-6.0, meaning="the work was handed to another agent"),
        "error": BuiltIn(spec=_ERROR, target_lu=-3.0, meaning="something went wrong"),
        "success": BuiltIn(spec=_SUCCESS, target_lu=-6.0, meaning="the work is done"),
        "working": BuiltIn(spec=_WORKING, target_lu=-14.0, meaning="the work goes on (plays in a loop)"),
        "thinking": BuiltIn(
            spec=_THINKING, target_lu=-14.0, meaning="the question was heard (plays in a loop, if switched on)"
        ),
        "listening": BuiltIn(spec=_LISTENING, target_lu=-6.0, meaning="the assistant listens"),
        "attention": BuiltIn(spec=_ATTENTION, target_lu=-6.0, meaning="the assistant needs an answer"),
    }
)
"""Every built-in cue by name."""

_NEW_CUE_LU = -6.0
"""Default loudness of a cue that is not built in, relative to speech (LU)."""
DEFAULT_CUE = "tool_call"
"""The cue of a tool that no rule matches."""

RULES: tuple[tuple[str, str], ...] = (("spawn_agent", "agent"), ("delegate", "agent"), ("run_sub_agent", "agent"))
"""Tool-name pattern → cue; the first match wins, and a pack's rules come first."""


def usual_lu(name: str) -> float:
    """Default loudness of a cue relative to speech, LU."""
    return CATALOG[name].target_lu if name in CATALOG else _NEW_CUE_LU


def usually_loops(name: str) -> bool:
    """Whether a cue loops by default."""
    return name in CATALOG and CATALOG[name].spec.loop


def cue_by_rules(tool_name: str, rules: Iterable[tuple[str, str]] = RULES) -> str | None:
    """The cue of the first rule whose pattern matches the name (`fnmatch.fnmatchcase`), or None."""
    return next((cue for pattern, cue in rules if fnmatchcase(tool_name, pattern)), None)
