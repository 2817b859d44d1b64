"""Whether the package that an adapter adapts is there, in a version that it knows."""

from __future__ import annotations

import re
from importlib import metadata

from cues.errors import MissingFeatureError

__all__ = ["require"]


def require(distribution: str, *, at_least: str, below: str, extra: str) -> str:
    """The installed version of a distribution.

    Parameters
    ----------
    at_least, below : the versions between which the adapter is tested.
    extra : what brings it.

    Raises
    ------
    MissingFeatureError : it is not installed, too old or too new; the message says which and what to do.
    """
    wanted = f"{distribution}>={at_least},<{below}"
    install = f"pip install 'cue-engine[{extra}]'"
    try:
        version = metadata.version(distribution)
    except metadata.PackageNotFoundError as error:
        raise MissingFeatureError(f"cues.adapters.{extra} needs {wanted}, which is not installed: {install}") from error
    if not _release(at_least) <= _release(version) < _release(below):
        age = "too old" if _release(version) < _release(at_least) else "newer than this adapter knows"
        raise MissingFeatureError(f"cues.adapters.{extra} needs {wanted}; {version} is {age}: {install}")
    return version


def _release(version: str) -> tuple[int, ...]:
    """The release numbers of a version, for comparing; what follows them (`rc1`, `.dev0`) does not count.

    Examples
    --------
    >>> _release("1.14.0rc2") < _release("1.14.1"), _release("2") > _release("1.99")
    (True, True)
    """
    match = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(number) for number in match.group().split(".")] if match else [0]
    return tuple([*numbers, 0, 0, 0][:4])
