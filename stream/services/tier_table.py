"""The table of tiers (kinds of questions and their tools), and its file."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stream.checks import did_you_mean
from stream.errors import StreamTypeError, StreamValueError
from stream.services.phrases import check_pattern, name_phrases, phrases

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Tier", "load_tiers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """A kind of question and its tools. `phrases` documents the syntax of patterns.

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
        If an attribute has another type, or a pattern is invalid.
    """

    name: str
    groups: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        name: Any = self.name
        if not isinstance(name, str) or not name.strip():
            raise StreamTypeError(f"name is {name!r}; it must be text that is not empty")
        for key, compiled in (("groups", name_phrases), ("tools", name_phrases), ("keywords", phrases)):
            value = _strings(key, getattr(self, key))
            try:
                for pattern in value:
                    check_pattern(pattern)
                compiled(value)
            except StreamValueError as error:
                raise StreamValueError(f"{key}: {error}") from error
            object.__setattr__(self, key, value)


def load_tiers(path: Path | str | None = None) -> tuple[Tier, ...]:
    """The tiers of a file, or the built-in ones.

    Raises
    ------
    StreamValueError
        If the file cannot be read, or has another form than the built-in one.
    """
    source = files("stream.services").joinpath("tiers.toml") if path is None else Path(path)
    try:
        return _tiers(tomllib.loads(source.read_text(encoding="utf-8")))
    except (StreamValueError, StreamTypeError) as error:
        raise StreamValueError(f"{source}: {error}") from error
    except (OSError, ValueError) as error:
        raise StreamValueError(f"cannot read tiers from {source}: {error}") from error


def _tiers(table: Mapping[str, Any]) -> tuple[Tier, ...]:
    _check_keys(table, ("tier", "words"))
    words = _words(table.get("words", {}))
    entries = table.get("tier")
    if not isinstance(entries, list) or not entries:
        raise StreamValueError("it has no tier; it needs one [[tier]] or more")
    tiers: dict[str, Tier] = {}
    for number, entry in enumerate(entries, 1):
        try:
            tier = _tier(entry, words)
        except (StreamValueError, StreamTypeError) as error:
            raise StreamValueError(f"tier {number}: {error}") from error
        if tier.name in tiers:
            raise StreamValueError(f"tier {number}: name is {tier.name!r}, as of an earlier tier; names must differ")
        tiers[tier.name] = tier
    return tuple(tiers.values())


def _tier(entry: Any, words: Mapping[str, str]) -> Tier:
    if not isinstance(entry, dict):
        raise StreamTypeError(f"a tier is {entry!r}; it must be a table")
    _check_keys(entry, tuple(field.name for field in fields(Tier)))
    patterns = {key: _strings(key, value) for key, value in entry.items() if key != "name"}
    expanded = {key: tuple(_expanded(key, one, words) for one in value) for key, value in patterns.items()}
    return Tier(name=entry.get("name", ""), **expanded)


def _words(table: Any) -> dict[str, str]:
    """Each list as one group of alternatives, with the lists that it names filled in."""
    if not isinstance(table, dict):
        raise StreamTypeError(f"words is {table!r}; it must be a table of lists")
    words: dict[str, str] = {}
    for name, value in table.items():
        key = f"words.{name}"
        listed = [_expanded(key, phrase, words) for phrase in _strings(key, value)]
        if not listed:
            raise StreamValueError(f"{key} is []; it must have one phrase or more")
        words[name] = f"({'|'.join(listed)})"
    return words


def _expanded(key: str, pattern: str, words: Mapping[str, str]) -> str:
    """The pattern with the lists that it names filled in."""

    def listed(match: re.Match[str]) -> str:
        if match[1] not in words:
            near = did_you_mean(match[1], words)
            raise StreamValueError(f"{key} has <{match[1]}> in {pattern!r}; the lists above it are {[*words]}{near}")
        return words[match[1]]

    try:
        check_pattern(pattern)
    except StreamValueError as error:
        raise StreamValueError(f"{key}: {error}") from error
    return re.sub(r"<([^<>]*)>", listed, pattern)


def _check_keys(table: Mapping[str, object], allowed: tuple[str, ...]) -> None:
    for key in table:
        if key not in allowed:
            raise StreamValueError(f"key is {key!r}; it must be one of {allowed}{did_you_mean(key, allowed)}")


def _strings(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(one, str) for one in value):
        raise StreamTypeError(f"{key} is {value!r}; it must be a list of texts")
    return tuple(value)
