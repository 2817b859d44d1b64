"""Capabilities of models with tools: from a table of families, an override file, and the server."""

import dataclasses
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from cues.files import toml_table
from stream.checks import are_texts, check_choice, check_whole_number
from stream.errors import StreamTypeError, StreamValueError
from stream.services.tool import Tool

__all__ = [
    "ModelCapabilities",
    "capabilities_of",
    "guidance",
    "load_families",
    "too_old",
    "translate_tools",
    "with_server_word",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCapabilities:
    """Capabilities of one model with tools; the head of `models.toml` documents the other attributes.

    Attributes
    ----------
    family : str
        Entry of the table; `"unknown"` for the safe default.
    source : {"table", "override", "default", "server"}
        Origin of the values; `"server"` if the server corrected them.
    """

    family: str = "unknown"
    tools: bool = True
    format: Literal["openai", "hermes", "custom"] = "openai"
    dialect: str = ""
    parallel: bool = True
    streaming: bool = True
    max_tools: int = 32
    prompt: Literal["standard", "agentic", "hermes"] = "standard"
    multi_turn: Literal["excellent", "good", "poor"] = "good"
    reasoning: bool = False
    min_ollama: str = "0.8.0"
    source: Literal["table", "override", "default", "server"] = "default"

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            check_choice(name, getattr(self, name), allowed)
        check_whole_number("max_tools", self.max_tools, 0)
        if _version_of(self.min_ollama) is None:
            raise StreamValueError(f"min_ollama is {self.min_ollama!r}; it must be a version, such as '0.8.0'")

    def toml(self, pattern: str) -> str:
        """The capabilities as an entry of an override file."""
        values = {"name": self.family, "patterns": [pattern]} | dataclasses.asdict(self)
        lines = [
            f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}\n"
            for key, value in values.items()
            if key not in ("family", "source")
        ]
        return "".join(["[[family]]\n", *lines])


CHOICES: dict[str, tuple[object, ...]] = {
    name: (True, False) if hint is bool else get_args(hint)
    for name, hint in get_type_hints(ModelCapabilities).items()
    if name != "source" and hint not in (str, int)
}
LISTS_THINKING = (0, 9, 0)
"""First Ollama whose `/api/show` can list "thinking"; it has listed "tools" since 0.6.4."""
KEYS = {field.name for field in dataclasses.fields(ModelCapabilities)} - {"family", "source"}


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files("stream.services").joinpath("models.toml").read_text(encoding="utf-8"))


def load_families(path: Path | str) -> list[dict[str, Any]]:
    """The `[[family]]` entries of an override file; raises `StreamValueError` for a file with any other form."""
    try:
        entries = toml_table(Path(path).read_bytes()).get("family", [])
    except (OSError, ValueError, RecursionError) as error:
        raise StreamValueError(f"cannot read model capabilities from {path}: {error}") from error
    return _checked(entries, str(path))


def _checked(entries: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(entries, list | tuple) or not all(isinstance(entry, Mapping) for entry in entries):
        raise StreamValueError(f"{where}: the families must be a list of tables")
    for entry in entries:
        unknown = [name for name in entry if name not in KEYS | {"name", "patterns"}]
        if unknown or not entry.get("patterns") or not are_texts(entry["patterns"]):
            needs = "a family needs `patterns`, a list of texts,"
            raise StreamValueError(f"{where}: {needs} and allows {sorted(KEYS)}, not {unknown}")
        _made(entry, "override")
    return list(entries)


def capabilities_of(model: str, overrides: Path | str | Sequence[Mapping[str, Any]] | None = None) -> ModelCapabilities:
    """The table's capabilities of a model; the first matching override replaces them key by key.

    Raises
    ------
    StreamTypeError
        If `model` is not text.
    StreamValueError
        If `overrides` is an unusable file or has unknown values.

    Examples
    --------
    >>> capabilities_of("ministral-3:14b").dialect
    'mistral_new'
    >>> capabilities_of("somebody/their-own-model").family
    'unknown'
    """
    if not isinstance(model, str):
        raise StreamTypeError(f'model is {model!r}; it must be a model\'s name, such as "qwen3:8b"')
    entries = load_families(overrides) if isinstance(overrides, (str, Path)) else _checked(overrides or (), "overrides")
    whole = model.strip().lower()
    name = whole.rsplit("/", 1)[-1]  # without a registry's path
    for suffix in (":cloud", "-cloud", ":latest"):
        name = name.removesuffix(suffix)
    found, over = _first((name,), _table()["family"]), _first((name, whole), entries)
    return _made({**_table()["default"], **found, **over}, "override" if over else "table" if found else "default")


def with_server_word(known: ModelCapabilities, shown: Mapping[str, Any], version: object = None) -> ModelCapabilities:
    """The capabilities, with `tools` and `reasoning` corrected by an answer of Ollama's `/api/show`.

    A model that the table does not know is looked up by the family in the answer, unless a capability was given. An
    Ollama whose `version` cannot list "thinking" does not deny it.
    """
    words, details = shown.get("capabilities"), shown.get("details")
    if known == capabilities_of("") and isinstance(details, dict):
        family = details.get("family")
        known = capabilities_of(family if isinstance(family, str) else "")
    if not isinstance(words, list) or known.source == "override":
        return known
    running = _version_of(version)
    cannot_tell = running is not None and any(running) and running < LISTS_THINKING  # 0.0.0: built from source
    reasoning = "thinking" in words or (known.reasoning and cannot_tell)
    return dataclasses.replace(known, tools="tools" in words, reasoning=reasoning, source="server")


def _version_of(text: object) -> tuple[int, ...] | None:
    """The three numbers of a version, without a suffix such as `-rc0`; `None` for anything else."""
    found = re.match(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", text) if isinstance(text, str) else None
    return None if found is None else tuple(int(number) for number in found.groups())


def too_old(version: object, model: str, capabilities: ModelCapabilities) -> str:
    """Why an Ollama of this version is too old for the model's calls; `""` if it is not, or the version is unknown."""
    running, needed = _version_of(version), _version_of(capabilities.min_ollama)
    if running is None or needed is None or running >= needed or not any(running):  # 0.0.0: built from source
        return ""
    form = capabilities.dialect or "plain JSON"
    return (
        f"Ollama {'.'.join(map(str, running))} is older than {capabilities.min_ollama}, the first that parses the calls"
        f" of {model} while it streams; they may come as text ({form}), which is read here"
    )


def translate_tools(
    tools: Iterable[Tool], capabilities: ModelCapabilities
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The definitions to offer, and the names of the tools left out: those past the model's maximum, or all."""
    wanted, most = tuple(tools), capabilities.max_tools if capabilities.tools else 0
    offered = [tool.openai() for tool in wanted[:most]]
    for function in (entry["function"] for entry in offered):
        if capabilities.format == "hermes" and function["description"]:
            function["description"] = _table()["hermes"]["description"].format(description=function["description"])
    return offered, tuple(tool.name for tool in wanted[most:])


def guidance(tools: Iterable[Tool], capabilities: ModelCapabilities) -> str:
    """Text about the tools for a system prompt, in the model's style; `""` without tools."""
    named = [f"- {tool.name}: {tool.description}".rstrip(": ") for tool in tools]
    if not named or not capabilities.tools:
        return ""
    wording: str = _table()["prompts"][capabilities.prompt]
    return wording.strip().replace("{tools}", "\n".join(named))


def _first(names: Sequence[str], entries: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    pairs = ((entry, pattern.lower()) for entry in entries for pattern in entry["patterns"])
    return next((entry for entry, pattern in pairs if any(fnmatchcase(name, pattern) for name in names)), {})


def _made(entry: Mapping[str, Any], source: Literal["table", "override", "default"]) -> ModelCapabilities:
    values = {key: value for key, value in entry.items() if key in KEYS}
    return ModelCapabilities(family=entry.get("name", "unknown"), source=source, **values)
