"""Checks of a router's arguments: mistakes raise at construction, not in a live call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cues.cue import Cue
from cues.errors import did_you_mean
from stream.errors import StreamTypeError, StreamValueError
from stream.routing.rules import MOTIF, CueRules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream.readers.options import Tools

__all__ = ["check_arguments", "check_cue_names", "guesses_s"]


def check_arguments(bank: object, mixer: object, rules: object) -> None:
    """Raise a `StreamError` unless the bank has the cues that are set in the rules; their defaults may be missing."""
    if not isinstance(rules, CueRules):
        raise StreamTypeError(f"rules is {rules!r}; it must be stream.CueRules(…)")
    if not isinstance(bank, Mapping):
        call = f"cues.load_bank({bank!r})" if isinstance(bank, str) else "cues.load_bank()"
        raise StreamTypeError(f"bank is {bank!r}; it must be a mapping of cues by name, as {call} returns")
    for where, name, is_default in rules.cues():
        if name not in bank and not is_default and not _is_motif(name):
            raise StreamValueError(
                f"rules: {where} is {name!r}, and no cue has that name; the bank holds {_listed(bank)}"
                f"{did_you_mean(name, bank)}"
            )
        if name in bank and not _is_motif(name) and not isinstance(bank[name], Cue):
            raise StreamTypeError(f"bank[{name!r}] is {type(bank[name]).__name__}; it must be a cues.Cue")
    if not all(hasattr(mixer, name) for name in ("play", "heard", "position", "sample_rate")):
        raise StreamTypeError(f"mixer is {mixer!r}; it must be a cues.Mixer (the bank comes first, then the mixer)")


def check_cue_names(names: Iterable[object], bank: Mapping[str, Cue], rules: CueRules) -> None:
    """Raise a `StreamError` for a name that is not a string, or that neither the bank nor the rules know."""
    for name in names:
        if not isinstance(name, str):
            raise StreamTypeError(f"{name!r} is not the name of a cue; names are given one by one")
        known = {**dict.fromkeys(bank), **dict.fromkeys(cue for _, cue, _ in rules.cues())}
        if name not in known and name not in bank and not _is_motif(name):
            raise StreamValueError(f"no cue is named {name!r}; there are {_listed(known)}{did_you_mean(name, known)}")


def guesses_s(tools: Tools) -> dict[str, float]:
    """The usual durations of the declared tools that tell them (`Tool.expected_s`)."""
    each: Iterable[Any] = tools.values() if isinstance(tools, Mapping) else tools or ()
    return {tool.name: tool.expected_s for tool in each if getattr(tool, "expected_s", None) is not None}


def _is_motif(name: str) -> bool:
    return name.startswith(f"{MOTIF}:")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
