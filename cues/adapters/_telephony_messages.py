"""The messages of telephone providers: JSON in, events out, and back."""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from cues.arrays import Samples
from cues.errors import CueValueError
from cues.signal.g711 import Law, samples_of_bytes
from cues.signal.pcm import float_of_pcm16

__all__ = ["PROVIDERS", "CallerAudio", "Digit", "LineEvent", "Marked", "Provider", "Started", "Stopped", "read_message"]

_MOST_DIGITS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The stream has started; `law` is None for 16-bit samples, `parameters` are those of your TwiML or command."""

    stream_id: str
    sample_rate: int = 8000
    law: Law | None = "mulaw"
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallerAudio:
    """Audio of the caller: float32, shape `(n_samples,)`; `chunk` is its number, for providers that may reorder."""

    samples: Samples
    chunk: int | None = None


@dataclass(frozen=True, slots=True)
class Digit:
    """A key that the caller pressed."""

    digit: str


@dataclass(frozen=True, slots=True)
class Marked:
    """All audio sent before the mark of this name has been played, or was dropped."""

    name: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The stream has ended."""


LineEvent: TypeAlias = Started | CallerAudio | Digit | Marked | Stopped


def read_message(message: str | bytes, started: Started | None) -> LineEvent | None:
    """The event of one message of any provider; None for unknown and malformed ones."""
    try:
        told = json.loads(message)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    match told.get("event"):
        case "start":
            return _started(told)
        case "media":
            return _heard(_part(told, "media"), started)
        case "dtmf":
            return Digit(str(_part(told, "dtmf").get("digit", "")))
        case "mark":
            return Marked(str(_part(told, "mark").get("name", "")))
        case "playedStream" | "played":
            return Marked(str(told.get("name", "")))
        case "stop":
            return Stopped()
    return None


def _part(told: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = told.get(name)
    return part if isinstance(part, dict) else {}


def _started(told: Mapping[str, Any]) -> Started:
    start = _part(told, "start")
    ids = (told.get("streamSid"), told.get("stream_id"), start.get("streamSid"), start.get("streamId"))
    layout = _part(start, "mediaFormat") or _part(start, "media_format")
    law, rate = _encoding(str(layout.get("encoding", "mulaw")), layout.get("sampleRate", layout.get("sample_rate")))
    parameters = _part(start, "customParameters") or _part(start, "custom_parameters")
    return Started(stream_id=next((str(i) for i in ids if i), ""), sample_rate=rate, law=law, parameters=parameters)


def _encoding(encoding: str, sample_rate: Any) -> tuple[Law | None, int]:
    """The law and the rate of a stream; Twilio and Plivo name MIME types, Telnyx RTP's names."""
    laws: dict[str, Law | None] = {"mulaw": "mulaw", "pcmu": "mulaw", "alaw": "alaw", "pcma": "alaw", "l16": None}
    name = encoding.lower().removeprefix("audio/").removeprefix("x-")
    rate = str(8000 if sample_rate is None else sample_rate)
    if name not in laws or rate not in ("8000", "16000"):
        given = f"{encoding[:40]!r} at {rate[:40]} Hz"
        raise CueValueError(f"the call's audio is {given}; it must be µ-law, A-law or L16 at 8000 or 16000 Hz")
    return laws[name], int(rate)


def _heard(media: Mapping[str, Any], started: Started | None) -> CallerAudio | None:
    if media.get("track", "inbound") not in ("inbound", "inbound_track"):
        return None  # Our own speech.
    try:
        data = base64.b64decode(str(media.get("payload", "")), validate=True)
    except (binascii.Error, ValueError):
        return None
    chunk = str(media.get("chunk", ""))
    law = "mulaw" if started is None else started.law
    samples = float_of_pcm16(data[: len(data) // 2 * 2]) if law is None else samples_of_bytes(data, law)
    return CallerAudio(samples, int(chunk) if chunk.isdecimal() and len(chunk) <= _MOST_DIGITS else None)


class Provider(NamedTuple):
    """The messages to a provider: audio, a mark, and the command to drop queued audio."""

    media: Callable[[Started, bytes], str]
    mark: Callable[[str, str], str]
    clear: Callable[[str], str]


def _text(**message: Any) -> str:
    return json.dumps(message, separators=(",", ":"))


def _payload(data: bytes) -> dict[str, str]:
    return {"payload": base64.b64encode(data).decode("ascii")}


def _plivo_media(started: Started, data: bytes) -> str:
    media = {"contentType": f"audio/x-{started.law or 'l16'}", "sampleRate": started.sample_rate, **_payload(data)}
    return _text(event="playAudio", media=media)


PROVIDERS = {
    "twilio": Provider(
        media=lambda started, data: _text(event="media", streamSid=started.stream_id, media=_payload(data)),
        mark=lambda stream_id, name: _text(event="mark", streamSid=stream_id, mark={"name": name}),
        clear=lambda stream_id: _text(event="clear", streamSid=stream_id),
    ),
    "telnyx": Provider(
        media=lambda _, data: _text(event="media", media=_payload(data)),
        mark=lambda _, name: _text(event="mark", mark={"name": name}),
        clear=lambda _: _text(event="clear"),
    ),
    "plivo": Provider(
        media=_plivo_media,
        mark=lambda stream_id, name: _text(event="checkpoint", streamId=stream_id, name=name),
        clear=lambda stream_id: _text(event="clearAudio", streamId=stream_id),
    ),
}
