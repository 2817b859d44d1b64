"""A reader for the chunks of `/v1/chat/completions`, as dicts or as the `openai` package's objects."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from stream.checks import check_choice
from stream.events import Event, Finish, Usage
from stream.readers.calls.values import NOTHING, fields_of, listed, number, plain
from stream.readers.formats.choices import Choices
from stream.readers.formats.failures import failure
from stream.readers.formats.message_reader import REASONING_FIELDS, MessageReader, channel_of, usage_of
from stream.readers.formats.reasoning_details import ReasoningDetails
from stream.readers.options import Tools

__all__ = ["OpenAIReader", "reason_of"]

_RARE_FIELDS = frozenset({"error", "timings", "task_status", "tool_results"})
_BESIDE_CHOICES = _RARE_FIELDS | {"usage"}
_FIELDS_BESIDE_TEXT = _RARE_FIELDS | {"channel", "kind"}
_SPEAKING_FIELDS = _FIELDS_BESIDE_TEXT.union(REASONING_FIELDS)


class OpenAIReader(MessageReader):
    """Reads chunks as an OpenAI-compatible server streams them.

    Text that holds calls is read as `TextReader` reads it. A chunk's reasoning comes before its text, then calls, then
    the finish reason, after which the stream may go on.

    See `MessageReader` for the other parameters.

    Parameters
    ----------
    repeats : {"by_index", "by_arguments"}
        When two equal calls of one round are one call that was sent twice: without indexes of their own, or always. An
        equal id makes them one in either case.

    Examples
    --------
    >>> reader = OpenAIReader()
    >>> reader.feed({"choices": [{"delta": {"content": "Good night."}, "finish_reason": None}]})
    [TextDelta(text='Good night.', channel=None)]
    >>> reader.feed({"choices": [{"delta": {}, "finish_reason": "stop"}]}), reader.close()
    ([Finish(reason='stop')], [])
    """

    def __init__(self, tools: Tools = None, *, repeats: str = "by_index", **options: Any) -> None:
        super().__init__(tools, **options)
        check_choice("repeats", repeats, ("by_index", "by_arguments"))
        self._order.by_arguments = repeats == "by_arguments"
        self._in_messages = False
        self._details = ReasoningDetails(self._order.max_argument_chars)
        self._choices = Choices(self._order.max_argument_chars)
        self.waiting_ends = self._order.waiting_ends  # of calls that are complete, while an earlier one is open
        self.reads_one = False  # the first choice alone, as each one of several has a reader

    def feed(self, chunk: Any) -> list[Event]:
        """Return the events that this piece of the stream makes certain; see `MessageReader.feed`."""
        if type(chunk) is dict:
            if self._calls.held_at is not None and self._held(chunk):
                return []
        elif type(chunk) is not bytes:
            # Nearly every object is a piece of text or of arguments: this way it costs a third (bench.stream_formats).
            try:
                fields = chunk.__dict__
                (choice,) = fields["choices"]
                beside = choice.__dict__
                delta = beside["delta"]
                said = delta.__dict__
                if not (
                    fields["usage"]
                    or beside["finish_reason"]
                    or (beside["index"] or 0) != self._choices.at
                    or said["function_call"]
                    or said["role"] == "tool"
                    or delta.__pydantic_extra__
                    or chunk.__pydantic_extra__
                    or _says_more(delta.__class__)
                    or _says_more(chunk.__class__)
                ):
                    calls = said["tool_calls"]
                    if calls is None:
                        known = self._known.get(said["content"])
                        if known is not None:
                            self._machine.last = known  # type: ignore[union-attr]  # what is known is the machine's
                            return [known]
                        if said["content"] and (text := self._lone(said["content"])):
                            return [text]
                    elif self._calls.held_at is not None and not said["content"]:
                        (call,) = calls
                        piece = call.__dict__
                        function = piece["function"].__dict__
                        is_more = not (piece["id"] or function["name"])
                        if is_more and self._calls.hold(piece["index"], function["arguments"]):
                            return []
            except (AttributeError, KeyError, TypeError, ValueError):
                pass  # not a plain delta: parse it fully
        return super().feed(chunk)

    def _read(self, fields: Mapping[str, Any]) -> None:
        if self._order.channel is None and (text := _lone_text(fields, self._choices.at)):
            self._choices.has_spoken = self._choices.has_spoken or not text.isspace()
            self._last_finish = None
            self._text(text)
            return
        if fields.get("type") == "chunk":  # of the package's `client.chat.completions.stream()`, beside what repeats it
            fields = fields_of(fields.get("chunk"))
        choices = fields.get("choices")
        # Within one chunk the first of several answers is the first to speak.
        for choice in sorted(map(fields_of, listed(choices)), key=lambda choice: bool(choice.get("index"))):
            self._choice(choice, fields)
        if fields.get("usage") or not _RARE_FIELDS.isdisjoint(fields) or not choices:
            self._around(fields)

    def _choice(self, choice: Mapping[str, Any], chunk: Mapping[str, Any]) -> None:
        if self.reads_one:
            if choice.get("index"):
                return
        elif not self._choices.reads(choice):
            if (reason := reason_of(choice)) and self._choices.finishes_beside(reason):
                self._finish(self._choices.reason)
            return
        if (delta := self.delta_of(choice)) is not None:
            self._delta(fields_of(delta), chunk)
        if choice.get("error"):  # OpenRouter's
            self._fail(failure(plain(choice["error"])))
        elif (reason := reason_of(choice)) and self._choices.finishes(reason):
            self._finish(reason)

    def close(self) -> list[Event]:
        """Return the last events; see `MessageReader.close`."""
        if not self._closed and not self._failed:
            for delta in self._choices.rest():
                self._delta(delta, NOTHING)
            if self._choices.reason and not self._finished:
                self._finish(self._choices.reason)
        return super().close()

    def delta_of(self, choice: Mapping[str, Any]) -> Any:
        """The delta of a choice, or its message unless that repeats the deltas before it (MiniMax)."""
        delta, message = choice.get("delta"), choice.get("message")
        if delta or not message:
            return delta
        self._in_messages = self._in_messages or self._order.silent
        return message if self._in_messages else None

    def _delta(self, delta: Mapping[str, Any], chunk: Mapping[str, Any]) -> None:
        calls = delta.get("tool_calls")
        if delta.get("role") == "tool":
            self._results([plain(delta)])
            return
        content, refusal = delta.get("content"), delta.get("refusal")
        if len(delta) > 1 or not content:
            self._reasoning(delta)
            if delta.get("reasoning_details"):
                self._details.add(delta["reasoning_details"])
        if content:
            self._change_channel(channel_of(delta, chunk))
            self._content(content)
        elif refusal and isinstance(refusal, str):  # it is the answer, and no call
            self._last_finish = None
            self._order.text(refusal)
        if calls is not None:
            if not self._calls.go_on(calls):
                self._tool_calls(plain(calls))
        elif delta.get("function_call") is not None:
            self._tool_calls([plain(delta["function_call"])], index="function_call")

    def _finish_event(self, reason: str) -> Finish:
        return Finish(reason, reasoning_details=self._details.take())

    def _held(self, chunk: dict[str, Any]) -> bool:
        """Hold a decoded chunk that is one piece of a call's arguments and nothing else; return False for others."""
        try:
            (choice,) = chunk["choices"]
            delta = choice["delta"]
            (call,) = delta["tool_calls"]
            function = call["function"]
            return (
                len(delta) == len(function) == 1
                and len(call) == 2
                and not choice["finish_reason"]
                and (choice["index"] or 0) == self._choices.at
                and _BESIDE_CHOICES.isdisjoint(chunk)
                and self._calls.hold(call["index"], function["arguments"])
            )
        except (LookupError, TypeError, ValueError):
            return False

    def _content(self, content: Any) -> None:
        for part in [{"text": content}] if isinstance(content, str) else map(fields_of, listed(content)):
            for thought in _texts(part.get("thinking")):  # Mistral's
                self._thought(thought)
            for text in _texts(part.get("text")):
                self._last_finish = None
                self._text(text)

    def _around(self, fields: Mapping[str, Any]) -> None:
        if fields.get("usage") or fields.get("timings"):
            usage = usage_of(fields.get("usage"), "prompt_tokens", "completion_tokens", "total_tokens") or Usage()
            timings = fields_of(fields.get("timings"))
            prompt_ms, eval_ms = number(timings.get("prompt_ms")), number(timings.get("predicted_ms"))
            self._usage = replace(usage, prompt_eval_ms=prompt_ms, eval_ms=eval_ms)
        if fields.get("task_status"):
            self._task_status(fields)
        if fields.get("tool_results"):
            self._results(plain(fields["tool_results"]))
        if fields.get("error") or fields.get("object") == "error":
            self._fail(failure(plain(fields.get("error") or fields)))


def reason_of(choice: Mapping[str, Any]) -> str:
    """The finish reason of a choice, `""` if it has none; some servers write "null" for none."""
    reason = choice.get("finish_reason")
    return reason if isinstance(reason, str) and reason != "null" else ""


def _texts(value: Any) -> list[str]:
    """The texts in a text, or in a list of parts."""
    found = [value] if isinstance(value, str) else [fields_of(part).get("text") for part in listed(value)]
    return [text for text in found if text and isinstance(text, str)]


def _lone_text(chunk: Mapping[str, Any], at: Any) -> str:
    """The text of a decoded chunk that holds only text; `""` for others, which cost three times as much."""
    try:
        (choice,) = chunk["choices"]
        delta = choice["delta"]
        text = delta["content"]
        if (
            (len(delta) == 1 or (len(delta) == 2 and delta["role"] == "assistant"))
            and not choice["finish_reason"]
            and (choice["index"] or 0) == at
            and not chunk.get("usage")
            and _FIELDS_BESIDE_TEXT.isdisjoint(chunk)
            and type(text) is str
        ):
            return text
    except (LookupError, TypeError, ValueError):
        pass
    return ""


@cache
def _says_more(kind: type) -> bool:
    """Whether objects of a class have fields that speak, beside those of the `openai` package."""
    return not _SPEAKING_FIELDS.isdisjoint(getattr(kind, "model_fields", ()))
