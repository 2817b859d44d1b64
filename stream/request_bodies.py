"""The fence round the `openai` package: before version 3 it wrote the bodies of requests into its debug log."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["bodies_unlogged"]


@contextmanager
def bodies_unlogged() -> Iterator[None]:
    """While a request is sent here, its body stays out of the log; requests of others are logged as ever."""
    logging.getLogger("openai._base_client").addFilter(_NO_BODIES)  # the same filter is added once at most
    mark = _asking.set(True)
    try:
        yield
    finally:
        _asking.reset(mark)


class _NoBodies(logging.Filter):
    """Takes the bodies of our requests out of a line of the log."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true: the line stays, without the bodies."""
        if _asking.get() and isinstance(record.args, dict) and "json_data" in record.args:
            record.args = {**record.args, "json_data": "<redacted>", "extra_json": "<redacted>"}
        return True


_asking: ContextVar[bool] = ContextVar("asking", default=False)
_NO_BODIES = _NoBodies()
