"""Clients of model servers, with tools and retries: read `connection`, then `runner`, `recovery` and `tiers`.

All have the same `chat` (`source.ChatSource`), so they nest. A public name is imported at its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stream.services.attempts import Attempts as Attempts
    from stream.services.connection import Connection as Connection
    from stream.services.connection import connect as connect
    from stream.services.filesystem import FILESYSTEM_TOOLS as FILESYSTEM_TOOLS
    from stream.services.filesystem import filesystem_tools as filesystem_tools
    from stream.services.model_names import normalize_model as normalize_model
    from stream.services.models import ModelCapabilities as ModelCapabilities
    from stream.services.models import capabilities_of as capabilities_of
    from stream.services.recovery import Fallback as Fallback
    from stream.services.recovery import Recovery as Recovery
    from stream.services.retrying import Retries as Retries
    from stream.services.runner import ToolRunner as ToolRunner
    from stream.services.tier_table import Tier as Tier
    from stream.services.tier_table import load_tiers as load_tiers
    from stream.services.tiers import KeywordClassifier as KeywordClassifier
    from stream.services.tiers import ToolTiers as ToolTiers
    from stream.services.tool import Tool as Tool
    from stream.services.validation import Validator as Validator

_HOMES = {
    name: home
    for home, names in {
        "attempts": "Attempts",
        "connection": "Connection connect",
        "filesystem": "FILESYSTEM_TOOLS filesystem_tools",
        "model_names": "normalize_model",
        "models": "ModelCapabilities capabilities_of",
        "recovery": "Fallback Recovery",
        "retrying": "Retries",
        "runner": "ToolRunner",
        "tier_table": "Tier load_tiers",
        "tiers": "KeywordClassifier ToolTiers",
        "tool": "Tool",
        "validation": "Validator",
    }.items()
    for name in names.split()
}

__all__ = [*_HOMES]  # noqa: PLE0604  (the keys are strings)


def __getattr__(name: str) -> object:
    """Import a public name from its module at first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'stream.services' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"stream.services.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
