"""When cues sound: for whoever listens to the same room and must not take a cue for speech."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stream.notifying import notify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Span", "Spans"]

_KEPT = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of output in which a cue sounds.

    Attributes
    ----------
    number : counts the spans of a session; a span that changes is published again under its number.
    cue : the cue's name.
    start_samples : its first output sample.
    end_samples : the sample after its last; `None` while it goes on until it is stopped.
    sample_rate : of the output, Hz.
    """

    number: int
    cue: str
    start_samples: int
    end_samples: int | None
    sample_rate: int

    @property
    def start_s(self) -> float:
        """Where it begins, seconds of output."""
        return self.start_samples / self.sample_rate

    @property
    def end_s(self) -> float | None:
        """Where it ends, seconds of output."""
        return None if self.end_samples is None else self.end_samples / self.sample_rate


class Spans:
    """The spans of a session, the latest 256 of them. They are known before they are heard.

    An echo canceller or a speech recognizer subscribes, or asks `overlaps` for the stretch that it heard. Times are
    output samples: add what lies between output and ear (network, device).
    """

    def __init__(self, sample_rate: int) -> None:
        self.sample_rate = sample_rate
        self._spans: deque[Span] = deque(maxlen=_KEPT)
        self._subscribers: list[Callable[[Span], None]] = []
        self._count = 0

    def __iter__(self) -> Iterator[Span]:
        return iter(tuple(self._spans))

    def __len__(self) -> int:
        return len(self._spans)

    def subscribe(self, callback: Callable[[Span], None]) -> Callable[[], None]:
        """Have `callback` called with every span that begins or changes; returns the way to end that.

        What it raises is logged, and keeps no cue from its place.
        """
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
            span.start_samples < last and (span.end_samples is None or span.end_samples > first) for span in self._spans
        )

    def begin(self, cue: str, start_samples: int, end_samples: int | None) -> Span:
        """Note and publish a span."""
        span = Span(
            number=self._count,
            cue=cue,
            start_samples=start_samples,
            end_samples=end_samples,
            sample_rate=self.sample_rate,
        )
        self._count += 1
        self._spans.append(span)
        self._publish(span)
        return span

    def end(self, number: int, end_samples: int) -> None:
        """Cut a span off, or drop it if it never began; publishes the change."""
        for place, span in enumerate(self._spans):
            if span.number == number and (span.end_samples is None or span.end_samples > end_samples):
                cut = replace(span, end_samples=max(end_samples, span.start_samples))
                self._spans[place] = cut
                self._publish(cut)
                if cut.start_samples == cut.end_samples:
                    del self._spans[place]
                return

    def _publish(self, span: Span) -> None:
        notify(tuple(self._subscribers), span)
