"""Listeners: told what happens in a session, and never in its way."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["notify"]

logger = logging.getLogger(__name__)

_News = TypeVar("_News")


def notify(listeners: Iterable[Callable[[_News], None]], news: _News) -> None:
    """Tell all of `listeners`; what one of them raises is logged.

    A screen that has gone must neither end the speech nor keep a barge-in from ending it.
    """
    for listener in listeners:
        try:
            listener(news)
        except Exception:
            logger.exception("%r failed when it was told of %s", listener, type(news).__name__)
