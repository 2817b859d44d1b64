"""Disk cache of finished cues: a machine renders and measures each cue once, not once per process.

An entry is one file: a digest of the rest, a line of JSON, the samples. It is written to a temporary name and renamed,
so two processes may write it at once. Damaged entries are ignored. Disk errors never raise: the cue is rendered again.
"""

import contextlib
import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cues.files import delete_oldest, replacing, unfinished_name, user_cache_dir
from cues.meters.levels import Measurement

__all__ = ["cache_dir", "key_of", "load", "store"]

_DIGEST_BYTES = 32
_MAX_ENTRY_BYTES = 16 * 2**20  # 10 s at 192 kHz are 7.7 MB
_MAX_ENTRIES = 512
# A finished cue depends on its recipe and on the code in these folders ("." is the package's top level). A change to
# that code invalidates all older entries.
_ROOMS_OF_SOUND = (".", "signal", "synthesis", "meters", "library")


def cache_dir() -> Path | None:
    """Folder of the entries: `$CUES_CACHE_DIR` (None if empty), or the platform's cache folder."""
    named = os.environ.get("CUES_CACHE_DIR")
    if named is None:
        return user_cache_dir()
    try:
        return Path(named).expanduser() if named else None
    except RuntimeError:  # "~" of a user without a home
        return None


def key_of(recipe: Mapping[str, Any]) -> str:
    """Key of an entry, 64 hexadecimal digits; `recipe` is JSON-serializable and describes the cue completely."""
    text = json.dumps({"engine": _engine(), **recipe}, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=1)
def _engine() -> str:
    """Version and digest of the code that makes a cue; in a checkout, code changes without a new version."""
    from cues import __version__

    package, digest = Path(__file__).parent.parent, hashlib.sha256()
    for room in _ROOMS_OF_SOUND:
        with contextlib.suppress(OSError):  # in a zip archive only the version counts
            for source in sorted(path for path in (package / room).iterdir() if path.suffix == ".py"):
                digest.update(f"{room}/{source.name}\0".encode() + source.read_bytes())
    return f"{__version__} {digest.hexdigest()}"


def load(key: str) -> tuple[NDArray[np.float32], Measurement] | None:
    """Read-only float32 samples and levels of the entry `key`; None if it is missing or damaged."""
    folder = cache_dir()
    if folder is None:
        return None
    try:
        path = folder / f"{key}.cue"
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_ENTRY_BYTES:
            return None
        return _unpacked(path.read_bytes(), key)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        return None


def store(key: str, samples: NDArray[np.float32], measured: Measurement) -> None:
    """Write the entry `key`; a disk error is ignored."""
    folder = cache_dir()
    if folder is None:
        return
    with contextlib.suppress(OSError, RuntimeError, ValueError):  # a path with a NUL in it is a ValueError
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / f"{key}.cue") as part:
            part.write_bytes(_packed(key, samples, measured))
        entries = (path for path in folder.iterdir() if path.suffix == ".cue" or unfinished_name(path))
        delete_oldest(entries, _MAX_ENTRIES)


def _packed(key: str, samples: NDArray[np.float32], measured: Measurement) -> bytes:
    header = json.dumps({"key": key, "measured": asdict(measured)}).encode()
    body = header + b"\n" + samples.astype("<f4").tobytes()
    return hashlib.sha256(body).digest() + body


def _unpacked(entry: bytes, key: str) -> tuple[NDArray[np.float32], Measurement] | None:
    digest, body = entry[:_DIGEST_BYTES], entry[_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        return None
    line, _, data = body.partition(b"\n")
    header = json.loads(line)
    if header["key"] != key:
        return None
    samples = np.frombuffer(data, dtype="<f4").astype(np.float32)
    samples.flags.writeable = False
    measured = header["measured"]
    is_finite = np.isfinite(samples).all() and all(map(math.isfinite, filter(None, measured.values())))
    return (samples, Measurement(**measured)) if is_finite else None
