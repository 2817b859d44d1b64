"""Folders of the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["user_cache_dir", "user_config_dir"]

_APPLICATION = "cue-engine"


def user_cache_dir() -> Path | None:
    """The user's cache folder for this package; None without a home."""
    return _users("user_cache_path")


def user_config_dir() -> Path | None:
    """The user's settings folder for this package; None without a home."""
    return _users("user_config_path")


def _users(kind: str) -> Path | None:
    import platformdirs

    try:
        folder: Path = getattr(platformdirs, kind)(_APPLICATION, appauthor=False)
    except (OSError, RuntimeError):
        return None
    # Older releases return "~/.cache", which would be relative to the working directory.
    return folder if folder.is_absolute() else None
