"""A reader for the chunks of `/v1/chat/completions`, as dicts or as the `openai` package's objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stream.errors import StreamTypeError
from stream.events import Usage
from stream.message_reader import MessageReader, failure

if TYPE_CHECKING:
    from stream.events import Event

__all__ = ["OpenAIReader"]

_NOTHING: dict[str, Any] = {}


class OpenAIReader(MessageReader):
    """Reads chunks as an OpenAI-compatible server streams them.

    Text that holds calls is read as `TextReader` reads it. A chunk's reasoning comes before its text, then calls, then
    the finish reason, behind which the stream may go on.

    See `MessageReader` for the parameters.

    Examples
    --------
    >>> reader = OpenAIReader()
    >>> reader.feed({"choices": [{"delta": {"content": "Good night."}, "finish_reason": None}]})
    [TextDelta(text='Good night.', channel=None)]
    >>> reader.feed({"choices": [{"delta": {}, "finish_reason": "stop"}]}), reader.close()
    ([Finish(reason='stop')], [])
    """

    def feed(self, chunk: Any) -> list[Event]:
        """Return the events that this chunk makes certain.

        Parameters
        ----------
        chunk : a decoded chunk: a dict, or any object that has its fields as attributes.

        Raises
        ------
        StreamTypeError
            If it is neither.
        StreamValueError
            If the reader was closed.
        """
        self._check_open()
        fields = _fields(chunk)
        if fields is None:
            raise StreamTypeError(f"chunk: {type(chunk).__name__} is neither a dict nor an object with fields")
        if self._failed:
            return []
        choices = fields.get("choices")
        if choices and isinstance(choices, list | tuple):
            for choice in choices:
                self._choice(_fields(choice) or _NOTHING)
        if len(fields) > 1 or not choices:
            self._around(fields)
        return self._take()

    def _choice(self, choice: Mapping[str, Any]) -> None:
        if choice.get("index"):
            return  # one of several answers to one question: the first one is spoken
        delta = choice.get("delta") or choice.get("message")
        if delta is not None:
            self._delta(_fields(delta) or _NOTHING)
        reason = choice.get("finish_reason")
        if reason and isinstance(reason, str):
            self._finish(reason)

    def _delta(self, delta: Mapping[str, Any]) -> None:
        content = delta.get("content")
        calls = delta.get("tool_calls")
        legacy = delta.get("function_call")
        if delta.get("role") == "tool":
            self._results([delta])
            return
        self._reasoning(delta)
        if content:
            self._content(content)
        if calls is not None:
            self._tool_calls(_plain(calls))
        elif legacy is not None:
            self._tool_calls([_plain(legacy)], index="function_call")

    def _content(self, content: Any) -> None:
        if isinstance(content, str):
            self._last_finish = None
            self._text(content)
        elif isinstance(content, list | tuple):
            for part in content:
                text = (_fields(part) or _NOTHING).get("text")
                if isinstance(text, str) and text:
                    self._last_finish = None
                    self._text(text)

    def _around(self, fields: Mapping[str, Any]) -> None:
        """Read what stands beside the choices."""
        if fields.get("usage") or fields.get("timings"):
            self._note_usage(fields)
        if fields.get("task_status"):
            self._task_status(fields)
        if fields.get("tool_results"):
            self._results(_plain(fields["tool_results"]))
        error = fields.get("error")
        if error:
            self._fail(failure(_plain(error)))
        elif fields.get("object") == "error":
            self._fail(failure(fields))

    def _note_usage(self, fields: Mapping[str, Any]) -> None:
        usage = _fields(fields.get("usage")) or _NOTHING
        timings = _fields(fields.get("timings")) or _NOTHING
        self._usage = Usage(
            prompt_tokens=_count(usage.get("prompt_tokens")),
            completion_tokens=_count(usage.get("completion_tokens")),
            total_tokens=_count(usage.get("total_tokens")),
            prompt_eval_ms=_number(timings.get("prompt_ms")),
            eval_ms=_number(timings.get("predicted_ms")),
        )


def _fields(value: Any) -> Mapping[str, Any] | None:
    """Return a message's fields by name, without copying what need not be copied."""
    if isinstance(value, dict):
        return value
    fields = getattr(value, "__dict__", None)
    if fields is None:
        return value if isinstance(value, Mapping) else None
    extra = getattr(value, "__pydantic_extra__", None)
    return {**fields, **extra} if extra else fields


def _plain(value: Any) -> Any:
    """Return objects as dicts, as deep as calls and errors go."""
    if value is None or isinstance(value, str | int | float | dict):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    fields = _fields(value)
    return None if fields is None else {key: _plain(item) for key, item in fields.items()}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
