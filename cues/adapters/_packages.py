"""The check that an adapter's package is installed in a supported version."""

from __future__ import annotations

import re
from importlib import metadata

from cues.errors import MissingFeatureError
from cues.extras import pip_install

__all__ = ["require"]


def require(distribution: str, *, at_least: str, below: str, extra: str) -> str:
    """The installed version of a distribution, which `extra` installs.

    Raises
    ------
    MissingFeatureError
        If the distribution is missing, too old or too new; the message says which, and how to install it.
    """
    wanted = f"{distribution}>={at_least},<{below}"
    install = pip_install(extra)
    try:
        version = metadata.version(distribution)
    except metadata.PackageNotFoundError as error:
        raise MissingFeatureError(f"cues.adapters.{extra} needs {wanted}, which is not installed: {install}") from error
    if not _release(at_least) <= _release(version) < _release(below):
        age = "too old" if _release(version) < _release(at_least) else "newer than this adapter knows"
        raise MissingFeatureError(f"cues.adapters.{extra} needs {wanted}; {version} is {age}: {install}")
    return version


def _release(version: str) -> tuple[int, ...]:
    """The release numbers of a version, for comparison; suffixes (`rc1`, `.dev0`) are ignored.

    Examples
    --------
    >>> _release("1.14.0rc2") < _release("1.14.1"), _release("2") > _release("1.99")
    (True, True)
    """
    match = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(number) for number in match.group().split(".")] if match else [0]
    return tuple([*numbers, 0, 0, 0][:4])
