"""When cues sound, for an echo canceller or a speech recognizer that must not mistake a cue for speech."""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeVar

__all__ = ["Span", "Spans", "notify"]

_KEPT = 256
_News = TypeVar("_News")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of output in which a cue sounds; a changed one is published again under its `number`.

    It goes from the output sample `start_samples` to the one before `end_samples`; `None` is the end of a loop that
    sounds until it is stopped.
    """

    number: int
    cue: str
    start_samples: int
    end_samples: int | None
    sample_rate: int

    @property
    def start_s(self) -> float:
        """Start, seconds of output."""
        return self.start_samples / self.sample_rate

    @property
    def end_s(self) -> float | None:
        """End, seconds of output."""
        return None if self.end_samples is None else self.end_samples / self.sample_rate


class Spans:
    """The latest 256 spans of a session, known before they are heard.

    Subscribe to them, or call `overlaps` for a stretch of output. Any thread. A subscriber is called in the thread that
    starts or stops the cue, which may be the one that mixes. Times are output samples; the latency from the output to
    the ear (network, device) comes on top.
    """

    def __init__(self, sample_rate: int) -> None:
        self.sample_rate = sample_rate
        self._spans: dict[int, Span] = {}
        self._subscribers: list[Callable[[Span], None]] = []
        self._numbers = count()

    def __iter__(self) -> Iterator[Span]:
        return iter(tuple(self._spans.values()))

    def __len__(self) -> int:
        return len(self._spans)

    def subscribe(self, callback: Callable[[Span], None]) -> Callable[[], None]:
        """Call `callback` with every new or changed span; returns a function that unsubscribes. Errors are logged."""
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def overlaps(self, start_samples: int, end_samples: int, *, margin_samples: int = 0) -> bool:
        """Whether a cue sounds in `start_samples` … `end_samples`, widened by a margin for the room's echo.

        Examples
        --------
        >>> spans = Spans(24000)
        >>> span = spans.begin("tool_call", 1000, 4600)
        >>> spans.overlaps(0, 1000), spans.overlaps(0, 1001), spans.overlaps(0, 1000, margin_samples=1)
        (False, True, True)
        """
        first, last = start_samples - margin_samples, end_samples + margin_samples
        return any(
            span.start_samples < last and (span.end_samples is None or span.end_samples > first) for span in self
        )

    def begin(self, cue: str, start_samples: int, end_samples: int | None) -> Span:
        """Add and publish a span."""
        span = Span(
            number=next(self._numbers),
            cue=cue,
            start_samples=start_samples,
            end_samples=end_samples,
            sample_rate=self.sample_rate,
        )
        self._spans[span.number] = span
        self._spans.pop(span.number - _KEPT, None)
        notify(tuple(self._subscribers), span)
        return span

    def change(self, span: Span, start_samples: int, end_samples: int | None) -> Span:
        """Change and publish a span; one without length is dropped."""
        changed = replace(span, start_samples=start_samples, end_samples=end_samples)
        if changed.start_samples == changed.end_samples:
            self._spans.pop(span.number, None)
        elif span.number in self._spans:
            self._spans[span.number] = changed
        notify(tuple(self._subscribers), changed)
        return changed

    def fade(self, span: Span, now: int, fade_ms: float) -> None:
        """Shorten a span whose cue fades from sample `now` on, or drop it if it has not begun; publishes the change."""
        end = now + round(fade_ms * self.sample_rate / 1000.0) if span.start_samples <= now else now
        latest = self._spans.get(span.number)
        if latest is None or (latest.end_samples is not None and latest.end_samples <= end):
            return
        self.change(latest, latest.start_samples, max(end, latest.start_samples))


def notify(listeners: Iterable[Callable[[_News], None]], news: _News) -> None:
    """Call every listener and log its exceptions: a failed display must neither end speech nor block a barge-in."""
    for listener in listeners:
        try:
            listener(news)
        except Exception:
            logger.exception("%r raised on %s", listener, type(news).__name__)
