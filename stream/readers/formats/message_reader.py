"""Shared by the readers of servers' messages: text, reasoning, calls, rounds, errors, and how a stream ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Self

from stream.checks import check_whole_number
from stream.errors import StreamTypeError, StreamValueError
from stream.events import EmptyToolCalls, Event, Finish, StreamFailed, TaskStatus, TextDelta, ToolResult, Usage
from stream.readers.calls.fragments import CallAssembler
from stream.readers.calls.order import CallOrder
from stream.readers.calls.values import NOTHING, count, dumps, fields_of, text_of
from stream.readers.formats.data_text import DataText
from stream.readers.formats.finish_reasons import ended_early
from stream.readers.formats.framing import MessageDecoder
from stream.readers.options import MAX_ARGUMENT_CHARS, MAX_LINE_CHARS, Start, Tools, checked_start, declared_names
from stream.readers.text.dialect_table import table_for
from stream.readers.text.machine import NOTHING_KNOWN, TextMachine

__all__ = ["REASONING_FIELDS", "MessageReader", "channel_of", "usage_of"]

REASONING_FIELDS = ("reasoning", "reasoning_content", "thinking")
_CONTENT = ("content", "result", "output")  # fields of a result
_DATA = "json"  # the channel of text for a program
_KINDS = (_DATA, "text")  # values of `kind` that name a channel
_KEPT_OF_A_MISFIT = 200


class MessageReader(ABC):
    """Reads decoded messages; each format's reader finds text, reasoning and calls in them.

    Parameters
    ----------
    tools : the declared tools: names, OpenAI tool dicts, or objects with a `name`. None if they are not known. Code
        fences and Python lists with other names are then text, except for a server's own tools (`mcp_*`).
    max_argument_chars : longer arguments are dropped, and their call is malformed.
    max_line_chars : a longer message ends a stream of bytes as failed, with code `"line_too_long"`; what came before is
        kept.
    reasoning : whether reasoning is passed on, as `ReasoningDelta`.
    calls_in_text : whether text is searched for calls and markers; not if the request asked for JSON: of its text, only
        blocks of thought at the beginning are told from the data. Text of the channel `json` is never searched.
    start : `"reasoning"` for a model whose prompt opens a block of thoughts, on a server that does not parse them: its
        text begins with thoughts, and only the block's end (such as `</think>`) comes. Without an end, all of the text
        is reasoning. With `calls_in_text=False`, an answer that begins with `{` or `[` has no thoughts, and without an
        end a complete object or array that ends the answer is its data. From the first field of reasoning on, the
        server does parse thoughts, and this is `"text"`.

    Raises
    ------
    StreamTypeError
        If `tools` are not tools. A server's messages never raise.
    """

    def __init__(
        self,
        tools: Tools = None,
        *,
        max_argument_chars: int = MAX_ARGUMENT_CHARS,
        max_line_chars: int = MAX_LINE_CHARS,
        reasoning: bool = True,
        calls_in_text: bool = True,
        start: Start = "text",
    ) -> None:
        check_whole_number("max_line_chars", max_line_chars, 1)
        self._max_line_chars = max_line_chars
        self._decoder: MessageDecoder | None = None  # of bytes, if any come
        self._table = table_for(declared_names(tools))
        self._order = CallOrder(max_argument_chars=max_argument_chars, reasoning=reasoning)
        self._calls = CallAssembler(self._order)
        self._machine: TextMachine | None = None
        self._known = NOTHING_KNOWN  # texts that may pass by a lookup alone; then there is a machine
        self._reasons_first = False  # reasoning has come in a field, and no machine has read text after it
        self._finished = False
        self._failed = False
        self._closed = False
        self._empty_array = False
        self._last_finish: str | None = None  # since which nothing came
        self._task = ("", "")  # the last one: id and status
        self._usage: Usage | None = None
        self._misfit: str | None = None
        self._rounds_start_as = self._text_starts_as = checked_start(start)  # each of them; the text that comes next
        self._data = None if calls_in_text else DataText(start)

    def feed(self, data: Any, /) -> list[Event]:
        """Return the events that this piece of the stream makes certain.

        Parameters
        ----------
        data : a network read or a WebSocket's message (`bytes` or text, cut anywhere), a decoded message, or an object
            of the provider's package, which has the message's fields as attributes.

        Raises
        ------
        StreamTypeError
            If it is of another type.
        StreamValueError
            If the reader was closed.
        """
        if self._closed:
            raise StreamValueError("the reader is closed")
        if type(data) is dict:  # asked first: a piece of arguments costs a third less
            if not self._failed:
                self._read(data)
            return self._take()
        for message in self.messages(data):
            if not self._failed:
                self._read(message)
        return self.check_line()

    def messages(self, data: Any, /) -> Iterable[Mapping[str, Any]]:
        """Return the decoded messages in what `feed` takes; see there."""
        if isinstance(data, bytes | str | bytearray | memoryview):
            if self._decoder is None:
                self._decoder = MessageDecoder(self._max_line_chars)
            return self._decoder.feed(data if isinstance(data, bytes | str) else bytes(data))
        fields = fields_of(data)
        if fields is NOTHING:
            raise StreamTypeError(f"data: {type(data).__name__} is neither a dict nor an object with fields, nor bytes")
        return (fields,)

    def check_line(self) -> list[Event]:
        """Return the events so far, and a failure if a line is too long."""
        if self._decoder is not None and self._decoder.overflowed and not self._failed:
            message = f"a line is longer than {self._max_line_chars} characters"
            self._fail(StreamFailed(message, code="line_too_long"))
        return self._take()

    def take_over(self, other: MessageReader) -> Self:
        """Go on with what another reader has of bytes without a message in them; return this reader."""
        self._decoder, self._misfit = other._decoder, other._misfit
        return self

    def _lone(self, text: str) -> TextDelta | None:
        """Event for plain text when nothing is buffered; `None` if it must be parsed."""
        return self._machine.delta(text) if self._order.idle and self._machine is not None else None

    @abstractmethod
    def _read(self, fields: Mapping[str, Any]) -> None:
        """Take in one message."""

    def pass_over(self, value: object) -> None:
        """Note a decoded value that came in place of a message; the stream goes on."""
        if self._misfit is None:
            self._misfit = _shown(dumps(value) if not isinstance(value, str) else value)

    def _text(self, text: str) -> None:
        if delta := self._lone(text):
            self._order.emit(delta)
            return
        if self._order.channel == _DATA:
            self._calls.text_follows(text)
            self._order.text(text)
            return
        if self._data is not None:
            self._pass_data(self._data.feed(text))
            return
        if self._machine is None:
            self._machine = TextMachine(self._order, self._table, self._text_starts_as)
            self._text_starts_as = "text"
            if self._reasons_first:
                self._machine.note_reasoning()
                self._reasons_first = False
        self._calls.text_follows(text)
        self._machine.feed(text)

    def _pass_data(self, pieces: Iterable[tuple[bool, str]]) -> None:
        for is_thought, text in pieces:
            if text and is_thought:
                self._order.reasoning(text)
            elif text:
                self._calls.text_follows(text)
                self._order.text(text)

    def _change_channel(self, channel: str | None) -> None:
        if channel != self._order.channel:
            if self._data is not None:
                self._pass_data(self._data.close(was_cut=True))
            if self._machine is not None and channel == _DATA:
                self._machine.close(was_cut=False)
                self._machine = None
            elif self._machine is not None:
                self._machine.put_down_words()
            self._order.channel, self._order.idle = channel, False

    def _reasoning(self, fields: Mapping[str, Any]) -> None:
        """Pass on the first of the fields that hold reasoning; servers may send it under two names."""
        for name in REASONING_FIELDS:
            text = fields.get(name)
            if text and isinstance(text, str):
                self._thought(text, name)
                return

    def _thought(self, text: str, sent_as: str = "") -> None:
        """Pass on reasoning from a field; a server that sends one leaves no thoughts in the text."""
        if self._rounds_start_as == "reasoning":
            self._rounds_start_as = "text"
            self._end_text(was_cut=False)
        self._calls.settle()
        self._order.reasoning(text, sent_as)
        if self._machine is None:
            self._reasons_first = True
        else:
            self._machine.note_reasoning()

    def _tool_calls(self, entries: Any, index: object = None) -> None:
        if isinstance(entries, Mapping):
            entries = [entries]
        if not isinstance(entries, list | tuple):
            return
        if not entries:
            self._empty_array = True
        else:
            self._note_structured_call()
            self._calls.take(entries, index)

    def _note_structured_call(self) -> None:
        """Note a structured call beside the text that has come."""
        if self._data is not None:
            self._pass_data(self._data.go_on())
        if self._machine is not None:
            self._machine.note_structured_call()

    def _results(self, results: Any) -> None:
        """Pass on the results of tools that the server has run; they end the round."""
        self._end_round(was_cut=False)
        for result in results if isinstance(results, list | tuple) else [results]:
            self._order.emit(self._result(result if isinstance(result, Mapping) else {"content": result}))

    def _result(self, result: Mapping[str, Any]) -> ToolResult:
        identity = text_of(result.get("tool_call_id") or result.get("id"))
        name = text_of(result.get("tool_name") or result.get("name"))
        # The call that it answers: by id, else by name, else the oldest one.
        calls = self._order.unanswered
        fits = (call for call in calls if (identity == call[0] if identity else name in ("", call[1])))
        if known := next(fits, None):
            calls.remove(known)
            identity, name = identity or known[0], name or known[1]
        failed = bool(result.get("error")) or result.get("is_error") is True
        content = result.get("error") or next((result[key] for key in _CONTENT if key in result), result)
        text = content if isinstance(content, str) else dumps(content)
        return ToolResult(tool_name=name, tool_call_id=identity, is_error=failed, content=text, by_server=True)

    def _task_status(self, fields: Mapping[str, Any]) -> None:
        status = fields.get("task_status")
        task = text_of(fields.get("task_id")) or self._task[0], text_of(status)
        if task[1] and task != self._task:  # Ollama's fork says it on each line.
            self._task = task
            self._order.emit(TaskStatus(*task))

    def _end_text(self, *, was_cut: bool) -> None:
        """End the text; what comes next begins as a round does."""
        if self._data is not None:
            self._pass_data(self._data.close(was_cut=was_cut or self._order.has_calls))
            self._data = DataText(self._rounds_start_as)
        if self._machine is not None:
            self._machine.close(was_cut=was_cut)
            self._machine = None
        self._text_starts_as, self._reasons_first = self._rounds_start_as, False

    def _end_round(self, *, was_cut: bool) -> None:
        self._end_text(was_cut=was_cut)
        self._order.idle = False
        self._end_calls(was_cut=was_cut)
        self._order.end_round()

    def _end_calls(self, *, was_cut: bool) -> None:
        self._calls.end_round(was_cut=was_cut)

    def _finish(self, reason: str, usage: Usage | None = None) -> None:
        self._end_round(was_cut=ended_early(reason))
        if usage is not None:
            self._order.emit(usage)
        if self._last_finish != reason:
            self._order.emit(self._finish_event(reason))
        self._finished, self._last_finish = True, reason

    def _finish_event(self, reason: str) -> Finish:
        return Finish(reason)

    def _fail(self, failed: StreamFailed) -> None:
        if self._failed:
            return  # said twice in one message
        self._end_round(was_cut=True)
        self._failed = True
        self._order.emit(failed)

    def _take(self) -> list[Event]:
        """Return the events so far, and note whether the next text may pass by a lookup alone."""
        machine = self._machine
        self._known = machine.known if machine is not None and machine.clean and self._order.idle else NOTHING_KNOWN
        return self._order.take()

    def fail(self, failed: StreamFailed) -> list[Event]:
        """Return the last events of a stream that its client says has failed."""
        if not self._closed and not self._failed:
            self._fail(failed)
        self._closed = True
        return self._take()

    def close(self) -> list[Event]:
        """Return the last events. A stream without a finish reason and without an error ends as unfinished."""
        if self._closed:
            return []
        self._closed = True
        if self._decoder is not None:
            self._decoder.close()
        if not self._failed:
            self._end_round(was_cut=not self._finished)
            if self._usage is not None:
                self._order.emit(self._usage)
            if not self._finished:
                message = "the stream ended without a finish reason"
                if self._misfit is not None:
                    message = f"{message}; a message is not an object: {self._misfit}"
                if self._decoder is not None and self._decoder.bad_line is not None:
                    message = f"{message}; a line is not JSON: {_shown(self._decoder.bad_line)}"
                self._order.emit(StreamFailed(message, code="unfinished"))
            elif self._empty_array and self._order.silent:
                self._order.emit(EmptyToolCalls())
        return self._take()


def _shown(text: str) -> str:
    """A server's words for a message, but nothing of JSON: it may be a call's arguments, which are secrets."""
    return f"it begins with {text[0]}" if text[:1] in {"{", "["} or '"' in text else repr(text[:_KEPT_OF_A_MISFIT])


def channel_of(*places: Mapping[str, Any]) -> str | None:
    """Return the channel of a text, in lower case: any that a `channel` names, or a `kind` of "json" or "text"."""
    for fields in places:
        channel = fields.get("channel") or fields.get("kind")
        if channel and isinstance(channel, str) and (fields.get("channel") or channel.lower() in _KINDS):
            return channel.lower()
    return None


def usage_of(usage: Any, prompt: str, completion: str, total: str) -> Usage | None:
    """Token counts, by a format's names for them; `None` if there are none."""
    fields = fields_of(usage)
    found = Usage(*(count(fields.get(name)) for name in (prompt, completion, total)))
    return None if found == Usage() else found
