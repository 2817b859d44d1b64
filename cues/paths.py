"""The user's own folders, where there are any."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["user_cache_dir", "user_config_dir"]

_APPLICATION = "cue-engine"


def user_cache_dir() -> Path | None:
    """Our folder among the user's caches; None for a user without a home."""
    return _users("user_cache_path")


def user_config_dir() -> Path | None:
    """Our folder among the user's settings; None for a user without a home."""
    return _users("user_config_path")


def _users(kind: str) -> Path | None:
    import platformdirs

    try:
        folder: Path = getattr(platformdirs, kind)(_APPLICATION, appauthor=False)
    except (OSError, RuntimeError):
        return None
    # Older releases of it give "~/.cache", which would be made right here.
    return folder if folder.is_absolute() else None
