"""What happened in a turn, and when: the record that a timeline, a picture or a test is made from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from stream.events import TextDelta, ToolCallStart

if TYPE_CHECKING:
    from stream.events import Event
    from stream.routing.router import Played

__all__ = ["Heard", "Journal", "Seen", "Sounded"]


@dataclass(frozen=True, slots=True)
class Seen:
    """An event of the model's stream.

    Attributes
    ----------
    event : the event.
    bytes_s : when the bytes that made it were read from the network, stream seconds; `None` where that is not known.
    known_s : when it was handled, stream seconds.
    """

    event: Event
    bytes_s: float | None
    known_s: float


@dataclass(frozen=True, slots=True)
class Sounded:
    """A cue, what it sounded for and when.

    Attributes
    ----------
    cue : its name.
    seen : the event that it sounds for.
    onset_samples : the output sample at which it begins.
    onset_s : the same in stream seconds.
    placement : where the rules put it: `"now"`, `"after_words"` or `"in_pause"`.
    """

    cue: str
    seen: Seen
    onset_samples: int
    onset_s: float
    placement: str = "now"

    @property
    def delay_ms(self) -> float:
        """From the event's bytes (or, where they are not timed, from the event) to the cue's first sample."""
        arrival_s = self.seen.known_s if self.seen.bytes_s is None else self.seen.bytes_s
        return (self.onset_s - arrival_s) * 1000.0


@dataclass(frozen=True, slots=True)
class Heard:
    """A spoken word and the output sample at which it begins."""

    text: str
    onset_samples: int


@dataclass(slots=True)
class Journal:
    """A turn on record.

    Attributes
    ----------
    sample_rate : of the output, Hz.
    seen, sounded, heard : events, cues and words, each in order.
    spoken_text : the text that the speaker was given.
    heard_text : the beginning of it that was heard.
    interrupted : whether a barge-in or a cancellation ended the turn.
    underruns : how often speech came too late for its frame.
    speech_samples : how much speech passed, samples.
    output_samples : how much was put out in all, samples.
    failure : why the turn broke off, if it did.
    """

    sample_rate: int
    seen: list[Seen] = field(default_factory=list)
    sounded: list[Sounded] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    spoken_text: str = ""
    heard_text: str = ""
    interrupted: bool = False
    underruns: int = 0
    speech_samples: int = 0
    output_samples: int = 0
    failure: str | None = None

    def add(self, event: Event, bytes_s: float | None, known_s: float) -> Seen:
        """Note an event."""
        seen = Seen(event, bytes_s, known_s)
        self.seen.append(seen)
        return seen

    def add_cue(self, played: Played) -> None:
        """Note the cue that an event of the record started."""
        onset = played.onset_samples
        seen = next((seen for seen in reversed(self.seen) if seen.event is played.event), None)
        if seen is not None:
            self.sounded.append(Sounded(played.cue, seen, onset, onset / self.sample_rate, played.placement))

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON-ready values; neighbouring text keeps its pieces, because each has a time of its own."""
        return {
            "sample_rate": self.sample_rate,
            "spoken_text": self.spoken_text,
            "heard_text": self.heard_text,
            "interrupted": self.interrupted,
            "underruns": self.underruns,
            "speech_samples": self.speech_samples,
            "output_samples": self.output_samples,
            "failure": self.failure,
            "events": [
                {
                    "type": type(seen.event).__name__,
                    "arrival_s": _rounded(seen.known_s if seen.bytes_s is None else seen.bytes_s),
                    "known_s": _rounded(seen.known_s),
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
                    "onset_s": _rounded(sounded.onset_s),
                    "delay_ms": round(sounded.delay_ms, 2),
                    "placement": sounded.placement,
                }
                for sounded in self.sounded
            ],
            "words": [
                {
                    "text": heard.text,
                    "onset_sample": heard.onset_samples,
                    "onset_s": _rounded(heard.onset_samples / self.sample_rate),
                }
                for heard in self.heard
            ],
        }

    @property
    def call_delays_ms(self) -> list[float]:
        """The delays of the cues that announce a call."""
        return [sounded.delay_ms for sounded in self.sounded if isinstance(sounded.seen.event, ToolCallStart)]

    @property
    def text_seen(self) -> str:
        """All text that the model sent to be spoken."""
        return "".join(seen.event.text for seen in self.seen if isinstance(seen.event, TextDelta))


def _rounded(time_s: float) -> float:
    """Seconds to the tenth of a millisecond."""
    return round(time_s, 4)
