"""A log filter for the `openai` package: before version 3 it wrote request bodies into its debug log."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["bodies_unlogged"]


_in_request: ContextVar[bool] = ContextVar("in_request", default=False)


@contextmanager
def bodies_unlogged() -> Iterator[None]:
    """Keep the bodies of requests sent in this context out of the log; other requests are logged unchanged."""
    logging.getLogger("openai._base_client").addFilter(_without_bodies)  # logging adds the same filter only once
    token = _in_request.set(True)
    try:
        yield
    finally:
        _in_request.reset(token)


def _without_bodies(record: logging.LogRecord) -> bool:
    """True: the record stays, but a body of ours is redacted."""
    if _in_request.get() and isinstance(record.args, dict) and "json_data" in record.args:
        record.args = {**record.args, "json_data": "<redacted>", "extra_json": "<redacted>"}
    return True
