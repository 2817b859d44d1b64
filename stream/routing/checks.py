"""What a router can be made of: mistakes are told when it is made, not in a live call, and not by silence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cues.cue import Cue
from stream.checks import did_you_mean
from stream.errors import StreamTypeError, StreamValueError
from stream.routing.rules import MOTIF, CueRules

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["check_bank", "check_cue_names", "check_mixer", "check_rules"]

_OF_A_MIXER = ("play", "position", "sample_rate")


def check_rules(rules: object) -> None:
    """Raise `StreamTypeError` for what are no rules."""
    if not isinstance(rules, CueRules):
        raise StreamTypeError(f"rules is {rules!r}; it must be stream.CueRules(…)")


def check_mixer(mixer: object) -> None:
    """Raise `StreamTypeError` for what cannot play a cue or has no count of samples."""
    # By what it can do: adapters have a mixer for each channel, and one over all of them.
    if not all(hasattr(mixer, name) for name in _OF_A_MIXER):
        raise StreamTypeError(f"mixer is {mixer!r}; it must be a cues.Mixer (the bank comes first, then the mixer)")


def check_bank(bank: object, rules: CueRules) -> None:
    """Take a mapping of cues that holds what was written into the rules.

    Raises
    ------
    StreamTypeError : it is no mapping, or holds something else than a cue under a name that the rules use.
    StreamValueError : it lacks a cue that was written into the rules. What the rules' defaults name may be missing.
    """
    if not isinstance(bank, Mapping):
        made = f"cues.load_bank({bank!r})" if isinstance(bank, str) else "cues.load_bank()"
        raise StreamTypeError(f"bank is {bank!r}; it must be a mapping of cues by name, as {made} makes")
    for where, name in rules.cues_written():
        if name not in bank and not _is_motif(name):
            raise StreamValueError(
                f"rules: {where} is {name!r}, and no cue has that name; the bank holds {_listed(bank)}"
                f"{did_you_mean(name, bank)}"
            )
    for name in rules.cue_names():
        if name in bank and not _is_motif(name) and not isinstance(bank[name], Cue):
            raise StreamTypeError(f"bank[{name!r}] is {type(bank[name]).__name__}; it must be a cues.Cue")


def check_cue_names(names: Iterable[object], bank: Mapping[str, Cue], rules: CueRules) -> None:
    """Take names that the bank or the rules know.

    Raises
    ------
    StreamTypeError, StreamValueError : for anything else.
    """
    for name in names:
        if not isinstance(name, str):
            raise StreamTypeError(f"{name!r} is no name of a cue; names are given one by one")
        known = {**dict.fromkeys(bank), **dict.fromkeys(rules.cue_names())}
        if name not in known and name not in bank and not _is_motif(name):
            raise StreamValueError(f"no cue is named {name!r}; there are {_listed(known)}{did_you_mean(name, known)}")


def _is_motif(name: str) -> bool:
    return name.startswith(f"{MOTIF}:")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
