"""Model names as Ollama's local daemon and its cloud expect them."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

from stream.errors import StreamValueError

__all__ = ["normalize_model"]


def normalize_model(model: str, target: Literal["local", "cloud"]) -> str:
    """The name to send to the cloud's own API, or (`"local"`) to any server: only names that end in `cloud` change.

    Examples
    --------
    >>> normalize_model("qwen3-coder:480b-cloud", "cloud")
    'qwen3-coder:480b'
    >>> normalize_model("gpt-oss-120b-cloud", "local")
    'gpt-oss:120b-cloud'
    """
    name = str(model or "").strip()
    if not name:
        raise StreamValueError(f"model is {model!r}; it must be the name of a model")
    for pattern, replacement in _rules()[target]:
        name = pattern.sub(replacement, name, count=1)
    return name


@cache
def _rules() -> dict[str, list[tuple[re.Pattern[str], str]]]:
    table = tomllib.loads(files("stream.services").joinpath("model_names.toml").read_text(encoding="utf-8"))
    return {side: [(re.compile(rule["pattern"]), rule["replace"]) for rule in rules] for side, rules in table.items()}
