"""A recording: the bytes that a model server streamed, and how they arrived.

On disk: `NAME.sse` (server-sent events), `NAME.ndjson` (JSON lines) or `NAME.json` (an array, as from Gemini) with the
body, and two optional files, `NAME.http.json` (status, some headers, size and time of each read) and
`NAME.request.json`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from stream.errors import RecordingError
from stream.readers.formats.any_format import format_of
from stream.readers.formats.framing import MessageDecoder

__all__ = [
    "DEFAULT_TOKENS_PER_S",
    "ENDINGS",
    "MAX_RECORDING_BYTES",
    "SERVED_HEADERS",
    "SIDE_ENDINGS",
    "Kind",
    "Recording",
    "load_recording",
    "samples_folder",
    "save_recording",
]

Kind: TypeAlias = Literal["sse", "ndjson", "json"]

CONTENT_TYPES: dict[Kind, str] = {
    "sse": "text/event-stream",
    "ndjson": "application/x-ndjson",
    "json": "application/json",
}

ENDINGS = tuple(f".{kind}" for kind in CONTENT_TYPES)
"""Suffixes of the body's file."""

SIDE_ENDINGS = (".http.json", ".request.json")
"""Suffixes of the optional files."""

SERVED_HEADERS = frozenset({"retry-after", "retry-after-ms", "x-request-id"})
"""Headers of a recording that a replay sends."""

DEFAULT_TOKENS_PER_S = 40.0
"""Pace of a replay: a mid-sized model on one graphics card. The recorded, tiny models were far faster."""

MAX_RECORDING_BYTES = 64 * 1024 * 1024
"""Largest file that is read as a recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The answer to one request."""

    name: str  # of its file, without folder and suffix
    kind: Kind
    body: bytes  # without HTTP's transfer coding
    status: int = 200
    reads: tuple[tuple[int, float], ...] = ()  # size (bytes) and time (ms since the request) of each, if known
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case
    request: Mapping[str, Any] | None = None  # its JSON; `None` if not known
    complete: bool = True  # whether the answer came to its end; if not, a replay breaks the connection there

    @property
    def content_type(self) -> str:
        """The content type of the body."""
        return self.headers.get("content-type") or CONTENT_TYPES[self.kind]

    def pieces(self) -> list[bytes]:
        """The body in whole events or lines, as a server writes it; a cut end is a piece, too."""
        end = rb"(?<=\n\n)|(?<=\r\n\r\n)" if self.kind == "sse" else rb"(?<=\n)"
        return [piece for piece in re.split(end, self.body) if piece]

    def messages(self) -> list[dict[str, Any]]:
        """The decoded objects of the body; those that cannot be read are left out."""
        return list(MessageDecoder(MAX_RECORDING_BYTES).feed(self.body + b"\n\n"))

    @property
    def api(self) -> str | None:
        """The format of the body, as in `stream.readers`; `None` in the answer to a refused request, for example."""
        said = (message for message in self.messages() if not message.get("error") and message.get("type") != "error")
        return next((api for message in said if (api := format_of(message))), None)


def load_recording(path: Path | str) -> Recording:
    """Read a recording from disk; `RecordingError` if it is not one, or does not match its `.http.json`."""
    file = Path(path)
    body, about = _read(file), file.with_suffix(".http.json")
    side, kind = _read_json(about), _kind(file, body)
    try:
        reads = tuple((int(size), float(at_ms)) for size, at_ms in side.get("bytes_and_ms_of_each_read", ()))
        status = int(side.get("status", 200))
        headers = {str(name).lower(): str(value) for name, value in side.get("headers", {}).items()}
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise RecordingError(f"{about} does not describe a recording: {error}") from error
    n_read = sum(size for size, _ in reads)
    if reads and n_read != len(body):
        raise RecordingError(f"{about}: its reads add up to {n_read} bytes, but {file.name} has {len(body)}")
    return Recording(
        name=file.stem,
        kind=kind,
        body=body,
        status=status,
        reads=reads,
        headers=headers,
        request=_read_json(file.with_suffix(".request.json")) or None,
        complete=bool(side.get("complete", True)),
    )


def save_recording(recording: Recording, path: Path | str) -> None:
    """Write a recording's files, the body last, so that an existing body is complete; may raise `RecordingError`."""
    file = Path(path)
    side = {
        "status": recording.status,
        "headers": dict(recording.headers),
        "bytes_and_ms_of_each_read": [list(read) for read in recording.reads],
    }
    if not recording.complete:
        side["complete"] = False
    try:
        file.with_suffix(".http.json").write_text(json.dumps(side) + "\n", encoding="utf-8")
        if recording.request is not None:
            text = json.dumps(recording.request, indent=1, ensure_ascii=False)
            file.with_suffix(".request.json").write_text(text + "\n", encoding="utf-8")
        file.write_bytes(recording.body)
    except OSError as error:
        raise RecordingError(f"cannot write the recording {file}: {error.strerror or error}") from error


def samples_folder() -> Path:
    """The folder with the package's own recordings."""
    installed = Path(__file__).resolve().parent.parent / "samples"
    checkout = installed.parent.parent / "samples" / "streams"
    for folder in (installed, checkout):
        if folder.is_dir():
            return folder
    raise RecordingError(f"the package's own recordings are missing: neither {installed} nor {checkout} is there")


def _read(file: Path) -> bytes:
    try:
        if file.stat().st_size > MAX_RECORDING_BYTES:
            most = f"{MAX_RECORDING_BYTES // 2**20} MiB"
            raise RecordingError(f"{file} is larger than {most}: not a recording of one answer")
        return file.read_bytes()
    except OSError as error:
        raise RecordingError(f"cannot read the recording {file}: {error.strerror or error}") from error


def _read_json(file: Path) -> dict[str, Any]:
    """The JSON object in a side file; empty if the file does not exist."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise RecordingError(f"cannot read {file}: {error}") from error
    if not isinstance(value, dict):
        raise RecordingError(f"{file} holds a JSON {type(value).__name__}; it must be an object")
    return value


def _kind(file: Path, body: bytes) -> Kind:
    """The kind of a body by its first bytes; of an empty one, by its suffix."""
    head = body.lstrip()[:64]
    if head.startswith((b"data:", b"event:", b"id:", b"retry:", b":")):
        return "sse"
    if head.startswith(b"{"):
        return "ndjson"
    if head.startswith(b"["):
        return "json"
    if not head and file.suffix in ENDINGS:
        return [*CONTENT_TYPES][ENDINGS.index(file.suffix)]
    raise RecordingError(
        f"{file} is not a recording: it begins with {head[:8]!r}; "
        "a recording begins with `data:` (server-sent events), `{` (JSON lines) or `[` (an array)"
    )
