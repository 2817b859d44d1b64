"""Retries of a request that fails before its first event; a later failure is passed on as an event."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream.errors import StreamValueError
from stream.events import Event, StreamFailed
from stream.services.failures import is_transient

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

__all__ = ["Retries", "with_retries"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Number and spacing of attempts. The defaults are short, because a listener hears the silence.

    Attributes
    ----------
    attempts : int
        Requests in all, ≥ 1.
    wait_s : float
        First wait and its largest random addition, seconds, ≥ 0; it doubles with each retry.
    wait_max_s : float
        Longest wait, seconds, ≥ 0; if the server asks for a longer one, there is no retry.
    timeout_s : float
        Time after which there is no further retry, seconds, ≥ 0.
    """

    attempts: int = 3
    wait_s: float = 0.1
    wait_max_s: float = 2.0
    timeout_s: float = 10.0

    def __post_init__(self) -> None:
        if self.attempts != int(self.attempts) or self.attempts < 1:
            raise StreamValueError(f"attempts is {self.attempts!r}; it must be a whole number from 1")
        for name in ("wait_s", "wait_max_s", "timeout_s"):
            if not getattr(self, name) >= 0.0:
                raise StreamValueError(f"{name} is {getattr(self, name)!r}; it must be 0 or more")

    def wait_for(self, error: Exception) -> bool | float:
        """Whether to retry, or the wait that the server asked for, seconds."""
        if not isinstance(error, _FirstEventError):
            return False
        asked_ms = error.failure.retry_after_ms
        if asked_ms is None:
            return True
        return asked_ms / 1000.0 if asked_ms / 1000.0 <= self.wait_max_s else False


class _FirstEventError(Exception):
    """A failure as the first event. Logs show its text, so it quotes neither the server nor the user."""

    def __init__(self, failure: StreamFailed) -> None:
        # Without a status the failure, and its code, is our own.
        super().__init__(failure.code if failure.status is None else f"status {failure.status}")
        self.failure = failure


async def with_retries(ask: Callable[[], AsyncGenerator[Event, None]], retries: Retries) -> AsyncGenerator[Event, None]:
    """The events of `ask()`, which is repeated while its first event is a transient failure."""
    import stamina

    pace: dict[str, Any] = {
        "attempts": retries.attempts,
        "timeout": retries.timeout_s,
        "wait_initial": retries.wait_s,
        "wait_jitter": retries.wait_s,
        "wait_max": retries.wait_max_s,
    }
    events: AsyncGenerator[Event, None] | None = None
    why, failed_s = "", 0.0
    try:
        async for attempt in stamina.retry_context(on=retries.wait_for, **pace):
            if why:
                wait_s = time.monotonic() - failed_s
                logger.info(
                    "Attempt %d of %d, after %s and a wait of %.2f s", attempt.num, retries.attempts, why, wait_s
                )
            with attempt:
                events = ask()
                first = await anext(events, None)
                if isinstance(first, StreamFailed) and is_transient(first):
                    await events.aclose()
                    failed = _FirstEventError(first)
                    why, failed_s = str(failed), time.monotonic()
                    raise failed
    except _FirstEventError as error:
        first = error.failure
    assert events is not None
    try:
        if first is not None:
            yield first
        async for event in events:
            yield event
    finally:
        await events.aclose()
