"""A reader for the JSON lines of Ollama's `/api/chat`, as bytes, decoded or as objects."""

from collections.abc import Mapping
from typing import Any

from stream.events import Event, Usage
from stream.readers.calls.values import NOTHING, count, fields_of, number, plain, text_of
from stream.readers.formats.failures import failure
from stream.readers.formats.finish_reasons import ended_early
from stream.readers.formats.message_reader import MessageReader, channel_of

__all__ = ["OllamaReader"]

_NS_PER_MS = 1e6


class OllamaReader(MessageReader):
    r"""Reads what Ollama streams: network reads cut anywhere, its decoded lines, or its package's objects.

    Beside text, reasoning and calls it reports a task's status and the results of tools that the server runs.

    See `MessageReader` for the parameters.

    Examples
    --------
    >>> reader = OllamaReader()
    >>> reader.feed(b'{"message": {"content": "Good ni'), reader.feed(b'ght."}, "done": false}\n')
    ([], [TextDelta(text='Good night.', channel=None)])
    >>> reader.feed({"message": {"content": ""}, "done": True, "done_reason": "stop"}), reader.close()
    ([Finish(reason='stop')], [])
    """

    def feed(self, data: Any) -> list[Event]:
        """Return the events that this piece of the stream makes certain; see `MessageReader.feed`."""
        if data.__class__ is dict:
            # Nearly every line is a piece of plain text: this shortcut costs a tenth (bench/stream_readers.py).
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
                    known = self._known.get(text)
                    if known is not None:
                        self._machine.last = known  # type: ignore[union-attr]  # what is known is the machine's
                        return [known]
                    if text and (delta := self._lone(text)):
                        return [delta]
            except (KeyError, TypeError):
                pass  # not a plain delta: parse it fully
        return super().feed(data)

    def _read(self, line: Mapping[str, Any]) -> None:
        if line.get("task_status"):
            self._task_status(line)
        # A server may name the message `delta`, as Chat Completions names a piece of it.
        if (message := fields_of(line.get("message") or line.get("delta"))) is not NOTHING:
            self._message(message, line)
        else:
            if line.get("tool_results"):
                self._results(line["tool_results"])
            if isinstance(line.get("response"), str):
                self._content(line["response"], channel_of(line))
        if line.get("error") or line.get("error") == {}:  # an error that says nothing is one
            self._fail(failure(line["error"]))
            return
        reason = text_of(line.get("done_reason"))
        if line.get("done") is True:
            self._finish(reason or "stop", _usage_of(line))
        elif reason:  # of one round, in a server that runs the tools and goes on
            self._end_round(was_cut=ended_early(reason))
            if (usage := _usage_of(line)) is not None:
                self._order.emit(usage)

    def _message(self, message: Mapping[str, Any], line: Mapping[str, Any]) -> None:
        results = message.get("tool_results") or line.get("tool_results")
        if message.get("role") == "tool":
            self._results(results or [message])
            return
        calls = message.get("tool_calls")
        if results and not calls:
            self._results(results)
        self._reasoning(message)
        content = message.get("content")
        if content and isinstance(content, str):
            self._content(content, channel_of(message, line))
        if calls is not None:
            self._tool_calls(plain(calls))
            if results and calls:
                self._results(results)

    def _content(self, content: str, channel: str | None) -> None:
        self._last_finish = None
        self._change_channel(channel)
        if content:
            self._text(content)


def _usage_of(line: Mapping[str, Any]) -> Usage | None:
    prompt, completion = count(line.get("prompt_eval_count")), count(line.get("eval_count"))
    total = None if prompt is None or completion is None else prompt + completion
    times = {name: number(line.get(f"{name}_duration")) for name in ("load", "prompt_eval", "eval", "total")}
    times_ms = {f"{name}_ms": time / _NS_PER_MS for name, time in times.items() if time is not None}
    usage = Usage(prompt, completion, total, **times_ms)
    return None if usage == Usage() else usage
