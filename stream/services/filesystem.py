"""The sample tools `list_directory` and `read_file`, for a server that runs them or to run here."""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from stream.errors import StreamValueError
from stream.services.tool import Tool

__all__ = ["FILESYSTEM_TOOLS", "filesystem_tools"]

LONGEST_LISTING = 200
LONGEST_FILE_BYTES = 64 * 1024


FILESYSTEM_TOOLS: list[dict[str, Any]] = [
    Tool(
        name=name,
        description=description,
        parameters={"properties": {"path": {"type": "string", "description": path}}, "required": ["path"]},
    ).openai()
    for name, description, path in (
        ("list_directory", "List contents of a directory", "Directory path"),
        ("read_file", "Read contents of a file", "File path"),
    )
]
"""Definitions for a server that runs the tools itself, with absolute paths."""


def filesystem_tools(root: Path | str) -> tuple[Tool, Tool]:
    """The same tools with functions that run here and see nothing outside the folder `root`.

    Paths are relative to `root`, or absolute; a path outside it is refused.

    Raises
    ------
    StreamValueError
        If `root` is not a folder.
    """
    base = Path(root).expanduser().resolve()
    if not base.is_dir():
        raise StreamValueError(f"root is {str(root)!r}; it must be a folder")

    def list_directory(path: Annotated[str, "folder, relative to the root; '.' is the root itself"] = ".") -> list[str]:
        """List the files and folders in a folder; folders end with a slash."""
        with _inside(base, path) as folder:
            entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
            shown = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries[:LONGEST_LISTING]]
            more = len(entries) - len(shown)
            return [*shown, f"... and {more} more"] if more else shown

    def read_file(path: Annotated[str, "file, relative to the root"]) -> str:
        """Read a text file."""
        with _inside(base, path) as target:
            if not stat.S_ISREG(target.stat().st_mode):  # a pipe would block the thread, and a device may
                raise PermissionError("this is not a regular file")
            with target.open("rb") as file:
                return file.read(LONGEST_FILE_BYTES).decode("utf-8", "replace")

    listing, reading = Tool.of_function(list_directory), Tool.of_function(read_file)
    return replace(listing, group="filesystem"), replace(reading, group="filesystem")


@contextmanager
def _inside(base: Path, path: str) -> Iterator[Path]:
    """The path with links resolved. Errors do not say whether a path outside exists, and name no path of the host."""
    try:
        target = (base / path).resolve()
        if not target.is_relative_to(base):
            raise PermissionError("the path leads out of the folder")
        yield target
    except OSError as error:
        raise type(error)(f"{error.strerror or error}: {path!r}") from None
    except RuntimeError:  # of `resolve`, below Python 3.13
        raise OSError(f"the links form a circle: {path!r}") from None
