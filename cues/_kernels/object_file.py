"""The kernels for this process, and the object file that keeps their machine code: its name, and who may write it.

A file holds the SHA-256 of its name and its machine code, then the machine code. The name has the processor's level,
a digest of the kernels' source and the compiler's versions. So a file for other code, for another processor, or with a
damaged byte is compiled again.

Machine code is run: a file counts only if it and its folder belong to this user or to root, and nobody else may write
to them.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import logging
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from cues.files import delete_oldest, replacing, user_cache_dir

if TYPE_CHECKING:
    from cues._kernels.machine_code import MachineCode

logger = logging.getLogger(__name__)

MOST_FILES = 32
"""Of one folder: several versions, on several kinds of processors. A file has about 40 kB."""
_DIGEST_BYTES = 32
_MOST_BYTES = 1 << 24


@cache
def load_kernels() -> MachineCode | None:
    """The compiled kernels, compiled once for a machine; None, and a warning, if they cannot be had."""
    try:
        from cues._kernels.machine_code import MachineCode, usable_levels

        best, *_ = levels = usable_levels()
        code = find(levels)
        if code is None:
            code = compiled_code(best)
            kept = keep(code, best)
            logger.info("the kernels are kept in %s", kept or "no folder: none can be written")
        return MachineCode(code)
    except Exception as error:  # noqa: BLE001  (whatever a compiler or a system refuses, numpy mixes)
        logger.warning("numpy mixes, at tens of microseconds a frame instead of less than one: %s", error)
        return None


def compiled_code(level: str) -> bytes:
    """Newly compiled machine code for a level; takes 10 s."""
    logger.info("compiling the kernels for %s, once for this machine", level)
    begin = time.perf_counter()
    from cues._kernels import building

    code = building.build(level)
    logger.info("compiled the kernels in %.1f s", time.perf_counter() - begin)
    return code


def find(levels: Sequence[str]) -> bytes | None:
    """Machine code for this source and one of these levels, best first; None if no folder has it."""
    for folder in _cache_folders():
        for level in levels:
            for path in sorted((folder / "mixing").glob(_name(level))):
                code = _read(path)
                if code is not None:
                    return code
    return None


def keep(code: bytes, level: str) -> Path | None:
    """Path of a new object file in the first folder that takes one; None if none does."""
    for folder in _cache_folders():
        with contextlib.suppress(OSError):
            return store(code, level, folder.parent)
    return None


def store(code: bytes, level: str, base: Path) -> Path:
    """Path of a new object file, which a process with `CUES_CACHE_DIR=base` finds; deletes old ones beyond a limit."""
    import numba

    folder = base / "kernels" / "mixing"
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    fault = _fault(folder.stat())
    if fault:
        raise PermissionError(f"{folder} {fault}")
    path = folder / _name(level, numba.__version__)
    with replacing(path) as part:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_digest(path.name, code) + code)
    delete_oldest(folder.iterdir(), MOST_FILES)
    return path


def _cache_folders() -> Iterator[Path]:
    """The folders for compiled code, in order of preference; a folder may not exist, or be read-only."""
    named = os.environ.get("CUES_CACHE_DIR")
    if named:
        with contextlib.suppress(RuntimeError):  # "~" of a user without a home
            yield Path(named).expanduser() / "kernels"
    for base in (user_cache_dir, _private_temporary_folder):
        folder = base()
        if folder is not None:
            yield folder / "kernels"


def _private_temporary_folder() -> Path | None:
    """A temporary folder that nobody else can read or write; compiled code is run."""
    if not hasattr(os, "getuid"):
        return None
    folder = Path(tempfile.gettempdir()) / f"cue-engine-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return folder if private else None


def _name(level: str, numba: str | None = None) -> str:
    """The file's name; without `numba` a pattern for the installed version, or for any if numba is not installed."""
    return f"{level}-{_digest_of_source()}-numba-{numba or next(_installed_numba(), '*')}.o"


@cache
def _digest_of_source() -> str:
    """Digest of every kernel's source and of the compiler's version, 20 hexadecimal digits."""
    import llvmlite  # type: ignore[import-untyped]  # it has no types

    digest = hashlib.sha256(f"llvmlite {llvmlite.__version__}".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(b"\0" + source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:20]


def _installed_numba() -> Iterator[str]:
    """Numba's version by the name of its metadata: `importlib.metadata` takes half as long as importing numpy."""
    spec = importlib.util.find_spec("numba")
    if spec is not None and spec.origin:
        for path in Path(spec.origin).parents[1].glob("numba-*.dist-info"):
            yield path.name.split("-")[1].removesuffix(".dist")


def _read(path: Path) -> bytes | None:
    """Machine code of a file that is safe to run; None, with a warning, if it is not."""
    try:
        fault, content = _fault(path.parent.stat()), b""
        if not fault and stat.S_ISREG(path.stat().st_mode):  # a named pipe would block
            with path.open("rb") as file:
                fault = _fault(os.fstat(file.fileno()))
                content = b"" if fault else file.read(_MOST_BYTES)
    except OSError:
        return None
    code = content[_DIGEST_BYTES:]
    if not fault and content[:_DIGEST_BYTES] != _digest(path.name, code):
        fault = "is damaged, or was made for another name"
    if fault:
        logger.warning("%s is not used: it or its folder %s", path, fault)
        return None
    return code


def _fault(status: os.stat_result) -> str:
    """Reason against a file or folder of code; Windows keeps rights elsewhere, and users' folders private."""
    if not hasattr(os, "geteuid"):
        return ""
    if status.st_uid not in {os.geteuid(), 0}:
        return f"belongs to user {status.st_uid}, neither to this user nor to root"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"may be written by others (mode {stat.S_IMODE(status.st_mode):o}); chmod go-w changes that"
    return ""


def _digest(name: str, code: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + code).digest()
