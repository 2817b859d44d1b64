"""Modules of optional extras, imported where they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cues.errors import MissingFeatureError

__all__ = ["needed"]


def needed(module: str, extra: str, purpose: str) -> Any:
    """A module that an extra brings.

    Parameters
    ----------
    module : its name.
    extra : the extra of `cue-engine`.
    purpose : the beginning of the error, such as "pictures need matplotlib".

    Raises
    ------
    MissingFeatureError : it is not installed; the message is the command that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingFeatureError(f"{purpose}: pip install 'cue-engine[{extra}]'") from error
