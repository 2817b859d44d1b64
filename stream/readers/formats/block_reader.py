"""Shared by the readers of formats with typed events: calls with an identity, repeated text, a server's own tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stream.events import TaskStatus, TranscriptDelta
from stream.readers.calls.item_calls import ItemCalls
from stream.readers.formats.audio import audio_of
from stream.readers.formats.failures import unwrap
from stream.readers.formats.message_reader import MessageReader
from stream.readers.text.scanner import MOST_PIECES

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from stream.readers.options import Tools

__all__ = ["BlockReader"]

_MOST_SAID = 1 << 20  # characters of all parts; beyond them, whole texts that repeat these parts say nothing
_MOST_PARTS = 1 << 14
_MOST_TASKS = 1 << 14


class BlockReader(MessageReader):
    """Reads events by the table of a subclass; see `MessageReader` for the parameters."""

    EVENTS: ClassVar[Mapping[str, str]]
    """Which method reads an event, by its `type`; any other event says nothing."""

    def __init__(self, tools: Tools = None, **options: Any) -> None:
        super().__init__(tools, **options)
        self._items = ItemCalls(self._order, self._note_call)
        # By part, what its deltas said; empty if it was too much.
        self._said: dict[tuple[Hashable, ...], list[str]] = {}
        self._n_said = 0  # characters that were noted in it
        self._tasks: dict[str, str] = {}  # names of the tools that the server is running, by id

    def _read(self, fields: Mapping[str, Any]) -> None:
        kind = fields.get("type")
        method = self.EVENTS.get(kind) if isinstance(kind, str) else None
        if method is not None:
            getattr(self, method)(fields)

    def _note_call(self) -> None:
        self._last_finish = None
        if self._machine is not None:
            self._machine.note_structured_call()

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
            self._order.reasoning(text)
        else:
            self._order.emit(TranscriptDelta(text, "assistant"))

    def _pass_on_audio(self, data: Any, form: str, rate_hz: int = 24_000) -> None:
        audio = audio_of(data, form, rate_hz)
        if audio is not None:
            self._last_finish = None
            self._order.emit(audio)

    def _delta(self, kind: str, part: tuple[Hashable, ...], text: Any) -> None:
        if text and isinstance(text, str):
            said = self._said.get(part, [""])
            if len(said) >= MOST_PIECES:
                whole = "".join((*said, text))
                self._note_said(part, [whole], len(whole) - len(said[0]))
            elif said:
                said.append(text)
                self._note_said(part, said, len(text))
            self._pass_on(kind, text)

    def _note_said(self, part: tuple[Hashable, ...], said: list[str], n_more: int) -> None:
        """Keep what a part said; if there is too much, forget what all parts said."""
        if len(self._said) >= _MOST_PARTS and part not in self._said:
            for old in list(self._said)[: _MOST_PARTS // 2]:
                del self._said[old]
        self._said[part] = said
        self._n_said += n_more
        if self._n_said > _MOST_SAID:
            self._n_said = 0
            self._said = {each: [] for each in self._said}

    def _repeat(self, kind: str, part: tuple[Hashable, ...], text: Any) -> None:
        """Pass on what the whole text of a part has beyond its pieces."""
        if not text or not isinstance(text, str):
            return
        pieces = self._said.get(part, [""])
        said = "".join(pieces)
        if pieces and text.startswith(said) and len(text) > len(said):
            self._note_said(part, [text], len(text) - len(said))
            self._pass_on(kind, text[len(said) :])

    def _task_begins(self, identity: Any, name: Any) -> None:
        known = identity if isinstance(identity, str) else ""
        if len(self._tasks) < _MOST_TASKS:
            self._tasks[known] = name if isinstance(name, str) else ""
        self._order.emit(TaskStatus(known, "working", self._tasks.get(known, "")))

    def _task_ends(self, identity: Any, *, failed: bool) -> None:
        known = identity if isinstance(identity, str) else ""
        self._order.emit(TaskStatus(known, "failed" if failed else "completed", self._tasks.pop(known, "")))

    def _fail_with(self, error: Any) -> None:
        self._fail(unwrap(error))
