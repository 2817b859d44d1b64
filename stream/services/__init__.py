"""Model services: thin parts above the readers, each of use on its own. Public names are in `stream`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stream.services.filesystem import FILESYSTEM_TOOLS as FILESYSTEM_TOOLS

__all__ = ["FILESYSTEM_TOOLS"]


def __getattr__(name: str) -> object:
    """Import the definitions of the sample tools at first use: `stream.routing` imports this package for its events."""
    if name != "FILESYSTEM_TOOLS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stream.services.filesystem import FILESYSTEM_TOOLS

    return FILESYSTEM_TOOLS
