"""Shared by the readers of formats with typed events: calls as items, repeated text, audio, a server's own tools."""

import binascii
from base64 import b64decode
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, NamedTuple

from stream.events import AudioDelta, TaskStatus, TranscriptDelta
from stream.readers.calls.item_calls import ItemCalls
from stream.readers.formats.failures import unwrap
from stream.readers.formats.message_reader import MessageReader
from stream.readers.options import LONGEST_NAME, MOST_KEPT, Tools
from stream.readers.text.scanner import Pieces

__all__ = ["BlockReader", "Part"]

_MOST_SAID = 1 << 20  # characters of all parts; beyond them, whole texts that repeat these parts say nothing
_PART_COSTS = 64  # characters: each part is an object in memory
_TELEPHONE_HZ = 8000


class Part(NamedTuple):
    """Where a text stands: the place of its item, the item's id (empty if it has none), and its number in the item."""

    place: tuple[Hashable, ...]
    identity: tuple[Hashable, ...]
    number: int
    kind: str


@dataclass(slots=True)
class _Said:
    """What the pieces of one item have said."""

    parts: dict[int, Pieces] = field(default_factory=dict)
    size: int = 0

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts.values())


class BlockReader(MessageReader):
    """Reads events by the table of a subclass; see `MessageReader` for the parameters."""

    EVENTS: ClassVar[Mapping[str, str]]
    """Which method reads an event, by its `type`; any other event says nothing."""

    def __init__(self, tools: Tools = None, **options: Any) -> None:
        super().__init__(tools, **options)
        self._items = ItemCalls(self._order, self._note_call)
        # By the place and by the id of an item, what its deltas said; None if it was too much.
        self._said: dict[tuple[Hashable, ...], _Said | None] = {}
        self._n_said = 0  # characters that were noted in it
        self._tasks: dict[str, str] = {}  # names of the tools that the server is running, by id

    def _read(self, fields: Mapping[str, Any]) -> None:
        kind = fields.get("type")
        method = self.EVENTS.get(kind) if isinstance(kind, str) else None
        if method is not None:
            getattr(self, method)(fields)

    def _note_call(self) -> None:
        self._last_finish = None
        self._note_structured_call()

    def _end_calls(self, *, was_cut: bool) -> None:
        self._items.end_all(cut=was_cut)

    def _pass_on(self, kind: str, text: Any) -> None:
        """Pass on text of a kind: `"text"`, `"reasoning"` or `"transcript"`; nothing else, and no empty text."""
        if not text or not isinstance(text, str):
            return
        self._last_finish = None
        if kind == "text":
            self._text(text)
        elif kind == "reasoning":
            self._thought(text)
        else:
            self._order.emit(TranscriptDelta(text, "assistant"))

    def _pass_on_audio(self, data: Any, form: str, rate_hz: int = 24_000) -> None:
        if audio := _audio_of(data, form, rate_hz):
            self._last_finish = None
            self._order.emit(audio)

    def _delta(self, part: Part, text: Any) -> None:
        """Pass on a piece of a part's text, and keep it; if there is too much, forget what all parts said."""
        if not text or not isinstance(text, str):
            return
        place = self._place_of(part)
        if place is None:
            if len(self._said) >= MOST_KEPT:
                for old in list(self._said)[: MOST_KEPT // 2]:
                    del self._said[old]
            place = part.place
            self._said[place] = said = _Said()
            if part.identity:
                self._said[part.identity] = said
        if (known := self._said[place]) is not None:
            if part.number not in known.parts:
                known.parts[part.number] = Pieces(_MOST_SAID)
                self._n_said += _PART_COSTS
            known.parts[part.number].add(text)
            known.size += len(text)
            self._n_said += len(text)
            if self._n_said > _MOST_SAID:
                self._n_said = 0
                self._said = dict.fromkeys(self._said)
        self._pass_on(part.kind, text)

    def _repeat(self, part: Part, text: Any) -> None:
        """Pass on what the whole text of a part has beyond its pieces.

        A server may number the whole text otherwise than its pieces (vLLM), or put it elsewhere (SGLang): a text that
        the item has said altogether is no other part.
        """
        place = self._place_of(part)
        if place is None:
            self._delta(part, text)
        elif isinstance(text, str) and (said := self._said[place]) is not None:
            whole = said.text if said.size <= len(text) else ""
            own = said.parts.get(part.number)
            if text == whole:
                return
            if own is None:
                self._delta(part, text)
            elif place != part.place and not text.startswith(own.text):  # another item, whose id is taken
                self._delta(part._replace(identity=()), text)
            elif text.startswith(own.text):
                self._delta(part, text[len(whole) if whole and text.startswith(whole) else own.size :])

    def _place_of(self, part: Part) -> tuple[Hashable, ...] | None:
        """Where the part's item is known: at its place, else by its id."""
        return part.place if part.place in self._said else part.identity if part.identity in self._said else None

    def _task_begins(self, identity: Any, name: Any) -> None:
        known = identity[:LONGEST_NAME] if isinstance(identity, str) else ""
        if len(self._tasks) < MOST_KEPT:
            self._tasks[known] = name[:LONGEST_NAME] if isinstance(name, str) else ""
        self._order.emit(TaskStatus(known, "working", self._tasks.get(known, "")))

    def _task_ends(self, identity: Any, *, failed: bool) -> None:
        known = identity[:LONGEST_NAME] if isinstance(identity, str) else ""
        self._order.emit(TaskStatus(known, "failed" if failed else "completed", self._tasks.pop(known, "")))

    def _fail_with(self, error: Any) -> None:
        self._fail(unwrap(error))


def _audio_of(data: Any, form: str, rate_hz: int) -> AudioDelta | None:
    r"""A piece of audio, from base64 or bytes that a client has decoded; `None` if it is empty or not base64.

    G.711 (`"audio/pcmu"`, `"audio/pcma"`) is decoded, another media type with a slash is kept, anything else is PCM.

    >>> _audio_of("/38A", "audio/pcmu", 24_000)
    AudioDelta(pcm=b'\x00\x00\x00\x00\x84\x82', mime='audio/pcm;rate=8000')
    """
    try:
        pcm = bytes(data) if isinstance(data, bytes | bytearray) else b64decode(data) if isinstance(data, str) else b""
    except (binascii.Error, ValueError):
        return None
    if not pcm:
        return None
    if form in _LAWS:
        low, high = _tables(_LAWS[form])
        decoded = bytearray(2 * len(pcm))
        decoded[::2], decoded[1::2] = pcm.translate(low), pcm.translate(high)
        return AudioDelta(bytes(decoded), f"audio/pcm;rate={_TELEPHONE_HZ}")
    return AudioDelta(pcm, form if "/" in form and form != "audio/pcm" else f"audio/pcm;rate={rate_hz}")


# `cues.signal.g711` has these laws as numpy tables: a reader may not import the engine, nor the engine this package.
@cache
def _tables(law: Callable[[int], int]) -> tuple[bytes, bytes]:
    """The low and the high bytes of all 256 values of G.711 (11/88), tables 2a, 2b and 1a, 1b."""
    values = [law(byte).to_bytes(2, "little", signed=True) for byte in range(256)]
    return bytes(value[0] for value in values), bytes(value[1] for value in values)


def _mu_law(byte: int) -> int:
    byte ^= 0xFF
    size = (((byte & 0x0F) << 3) + 0x84 << ((byte & 0x70) >> 4)) - 0x84
    return -size if byte & 0x80 else size


def _a_law(byte: int) -> int:
    byte ^= 0x55
    segment, size = (byte & 0x70) >> 4, ((byte & 0x0F) << 4) + 8
    if segment:
        size = size + 0x100 << segment - 1
    return size if byte & 0x80 else -size


_LAWS = {"audio/pcmu": _mu_law, "g711_ulaw": _mu_law, "audio/pcma": _a_law, "g711_alaw": _a_law}
