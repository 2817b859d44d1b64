"""Import of modules from optional extras."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cues.errors import MissingFeatureError

__all__ = ["needed"]


def needed(module: str, extra: str, purpose: str) -> Any:
    """A module of an extra.

    Parameters
    ----------
    module : str
        Its name.
    extra : str
        The extra of `cue-engine`.
    purpose : str
        Start of the error message, such as "pictures need matplotlib".

    Raises
    ------
    MissingFeatureError
        If the module is not installed; the message has the command that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingFeatureError(f"{purpose}: pip install 'cue-engine[{extra}]'") from error
