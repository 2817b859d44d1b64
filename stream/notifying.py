"""Calls to listeners that cannot disturb a session."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["notify"]

logger = logging.getLogger(__name__)

_News = TypeVar("_News")


def notify(listeners: Iterable[Callable[[_News], None]], news: _News) -> None:
    """Call every listener with `news`; an exception of a listener is logged.

    A display that has failed must neither end the speech nor block a barge-in.
    """
    for listener in listeners:
        try:
            listener(news)
        except Exception:
            logger.exception("%r raised on %s", listener, type(news).__name__)
