"""The sample tools `list_directory` and `read_file`, for a server that runs them or to run here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from stream.errors import StreamValueError
from stream.services.tool import Tool

__all__ = ["FILESYSTEM_TOOLS", "filesystem_tools"]

LONGEST_LISTING = 200
LONGEST_FILE_BYTES = 64 * 1024


def _definition(name: str, description: str, path: str) -> dict[str, Any]:
    """A tool with one required argument, `path`, in OpenAI's form."""
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string", "description": path}},
        "required": ["path"],
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


FILESYSTEM_TOOLS: list[dict[str, Any]] = [
    _definition("list_directory", "List contents of a directory", "Directory path"),
    _definition("read_file", "Read contents of a file", "File path"),
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
        entries = sorted(_inside(base, path).iterdir(), key=lambda entry: entry.name)
        return [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries[:LONGEST_LISTING]]

    def read_file(path: Annotated[str, "file, relative to the root"]) -> str:
        """Read a text file."""
        with _inside(base, path).open("rb") as file:
            return file.read(LONGEST_FILE_BYTES).decode("utf-8", "replace")

    listing, reading = Tool.of_function(list_directory), Tool.of_function(read_file)
    return replace(listing, group="filesystem"), replace(reading, group="filesystem")


def _inside(base: Path, path: str) -> Path:
    """The path with links resolved. The error does not say whether a path outside exists."""
    target = (base / path).resolve()
    if not target.is_relative_to(base):
        raise PermissionError("the path leads out of the folder")
    return target
