"""The record of a turn, for a timeline, a picture or a test."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from stream.events import Event, ToolCallStart
from stream.routing.router import Played

__all__ = ["HeardWord", "Seen", "Sounded", "TurnRecord"]


@dataclass(frozen=True, slots=True)
class Seen:
    """An event, the stream time at which its bytes were read (`None` if not known), and when it was handled."""

    event: Event
    bytes_s: float | None
    known_s: float

    @property
    def arrival_s(self) -> float:
        """When its bytes were read, or when it was handled if that is not known."""
        return self.known_s if self.bytes_s is None else self.bytes_s


@dataclass(frozen=True, slots=True)
class Sounded:
    """A cue that sounded for the event `seen`, its onset (output samples, stream seconds) and its placement."""

    cue: str
    seen: Seen
    onset_samples: int
    onset_s: float
    placement: str = "now"

    @property
    def delay_ms(self) -> float:
        """Time from the event's bytes (or from the event, if they are not timed) to the cue's first sample."""
        return (self.onset_s - self.seen.arrival_s) * 1000.0


@dataclass(frozen=True, slots=True)
class HeardWord:
    """A spoken word and its first output sample, in samples and stream seconds."""

    text: str
    onset_samples: int
    onset_s: float


@dataclass(slots=True)
class TurnRecord:
    """The record of a turn: events, cues and words, each in order, and what came of it."""

    sample_rate: int  # of the output, Hz
    seen: list[Seen] = field(default_factory=list)
    sounded: list[Sounded] = field(default_factory=list)
    heard: list[HeardWord] = field(default_factory=list)
    spoken_text: str = ""  # sent to the speaker
    heard_text: str = ""  # the beginning of it that was heard
    interrupted: bool = False  # by a barge-in or a cancellation
    underruns: int = 0  # how often speech came too late for its frame
    output_samples: int = 0  # of the whole output
    failure: str | None = None  # why the turn failed

    def add_cue(self, played: Played) -> None:
        """Record a cue that a recorded event started."""
        onset = played.onset_samples
        seen = next((seen for seen in reversed(self.seen) if seen.event is played.event), None)
        if seen is not None:
            self.sounded.append(Sounded(played.cue, seen, onset, onset / self.sample_rate, played.placement))

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON-ready values; text deltas are not joined, because each has its own time."""
        lists = ("seen", "sounded", "heard")
        return {
            **{field.name: getattr(self, field.name) for field in fields(self) if field.name not in lists},
            "events": [
                {
                    "type": type(seen.event).__name__,
                    "arrival_s": round(seen.arrival_s, 4),
                    "known_s": round(seen.known_s, 4),
                    **asdict(seen.event),
                }
                for seen in self.seen
            ],
            "cues": [
                {
                    "cue": sounded.cue,
                    "for": type(sounded.seen.event).__name__,
                    "tool_name": getattr(sounded.seen.event, "tool_name", ""),
                    "onset_sample": sounded.onset_samples,
                    "onset_s": round(sounded.onset_s, 4),
                    "delay_ms": round(sounded.delay_ms, 2),
                    "placement": sounded.placement,
                }
                for sounded in self.sounded
            ],
            "words": [
                {"text": word.text, "onset_sample": word.onset_samples, "onset_s": round(word.onset_s, 4)}
                for word in self.heard
            ],
        }

    @property
    def call_delays_ms(self) -> list[float]:
        """Delays of the cues that announce a call."""
        return [sounded.delay_ms for sounded in self.sounded if isinstance(sounded.seen.event, ToolCallStart)]
