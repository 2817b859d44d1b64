"""A reader for the JSON lines of Ollama's `/api/chat`, as bytes or decoded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stream.checks import check_whole_number
from stream.errors import StreamTypeError
from stream.events import StreamFailed, Usage
from stream.readers.failures import failure
from stream.readers.message_reader import MessageReader, channel_of
from stream.readers.ndjson import NdjsonDecoder
from stream.readers.options import MAX_LINE_CHARS
from stream.readers.values import count, number

if TYPE_CHECKING:
    from stream.events import Event
    from stream.readers.options import Tools

__all__ = ["OllamaReader"]

_NS_PER_MS = 1e6


class OllamaReader(MessageReader):
    r"""Reads what Ollama streams: network reads cut anywhere, or its decoded lines.

    Beside text, reasoning and calls it reports a task's status and the results of tools that the server runs.

    See `MessageReader` for the other parameters.

    Parameters
    ----------
    max_line_chars : a longer line ends the stream as failed, with code `"line_too_long"`; what came before is kept.

    Examples
    --------
    >>> reader = OllamaReader()
    >>> reader.feed(b'{"message": {"content": "Good ni'), reader.feed(b'ght."}, "done": false}\n')
    ([], [TextDelta(text='Good night.', channel=None)])
    >>> reader.feed({"message": {"content": ""}, "done": True, "done_reason": "stop"}), reader.close()
    ([Finish(reason='stop')], [])
    """

    def __init__(self, tools: Tools = None, *, max_line_chars: int = MAX_LINE_CHARS, **options: Any) -> None:
        super().__init__(tools, **options)
        check_whole_number("max_line_chars", max_line_chars, 1)
        self._max_line_chars = max_line_chars
        self._decoder = NdjsonDecoder(max_line_chars)

    def feed(self, data: Any) -> list[Event]:
        """Return the events that this makes certain.

        Parameters
        ----------
        data : bytes of a network read (or the text of one), or one decoded line.

        Raises
        ------
        StreamTypeError
            If it is neither.
        StreamValueError
            If the reader was closed.
        """
        if data.__class__ is dict:
            # Nearly every line is a piece of plain text: this way it costs a tenth (bench/stream_readers.py).
            try:
                message = data["message"]
                if (
                    data["done"] is False
                    and message["role"] == "assistant"
                    and "model" in data
                    and "created_at" in data
                    and len(data) == 4  # and nothing else
                    and len(message) == 2
                ):
                    text = message["content"]
                    delta = self._simple.get(text)
                    if delta is not None:
                        self._path.last = delta
                        return [delta]
                    if self._turn.idle and (delta := self._path.delta(text)):
                        return [delta]
            except (KeyError, TypeError):
                pass  # the long way tells what else it is
        self._check_open()
        if isinstance(data, Mapping):
            self._line(data)
        elif isinstance(data, bytes | bytearray | memoryview | str):
            for line in self._decoder.feed(data.encode(errors="replace") if isinstance(data, str) else bytes(data)):
                self._line(line)
            if self._decoder.overflowed and not self._failed:
                message = f"a line is longer than {self._max_line_chars} characters"
                self._fail(StreamFailed(message, code="line_too_long"))
        else:
            raise StreamTypeError(f"data: {type(data).__name__} is neither bytes nor a dict")
        return self._take()

    def close(self) -> list[Event]:
        """Return the last events. A stream that was not done ends as unfinished."""
        if not self._closed:
            self._decoder.close()
        return super().close()

    def _line(self, line: Mapping[str, Any]) -> None:
        if self._failed:
            return
        if line.get("task_status"):
            self._task_status(line)
        message = line.get("message")
        if isinstance(message, Mapping):
            self._message(message, line)
        else:
            self._between(line)
            if isinstance(line.get("response"), str):
                self._content(line["response"], channel_of(line))
        if line.get("error") or line.get("error") == {}:  # an error that says nothing is one
            self._fail(failure(line["error"]))
        elif line.get("done") is True:
            reason = line.get("done_reason")
            self._finish(reason if isinstance(reason, str) and reason else "stop", _usage_of(line))

    def _message(self, message: Mapping[str, Any], line: Mapping[str, Any]) -> None:
        if message.get("role") == "tool":
            self._results([message])
            return
        calls = message.get("tool_calls")
        if not calls:
            self._between(line)
        self._reasoning(message)
        content = message.get("content")
        if content and isinstance(content, str):
            self._content(content, channel_of(message, line))
        if calls is not None:
            self._tool_calls(calls)
            if calls:
                self._between(line)

    def _between(self, line: Mapping[str, Any]) -> None:
        if line.get("tool_results"):
            self._results(line["tool_results"])

    def _content(self, content: str, channel: str | None) -> None:
        self._last_finish = None
        self._change_channel(channel)
        if content:
            self._text(content)

    def _unfinished_message(self) -> str:
        message = super()._unfinished_message()
        bad = self._decoder.bad_line
        return message if bad is None else f"{message}; a line is not JSON: {bad!r}"


def _usage_of(line: Mapping[str, Any]) -> Usage | None:
    prompt, completion = count(line.get("prompt_eval_count")), count(line.get("eval_count"))
    usage = Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=None if prompt is None or completion is None else prompt + completion,
        load_ms=_milliseconds(line.get("load_duration")),
        prompt_eval_ms=_milliseconds(line.get("prompt_eval_duration")),
        eval_ms=_milliseconds(line.get("eval_duration")),
        total_ms=_milliseconds(line.get("total_duration")),
    )
    return None if usage == Usage() else usage


def _milliseconds(nanoseconds: Any) -> float | None:
    found = number(nanoseconds)
    return None if found is None else found / _NS_PER_MS
