"""A reader for the raw text of a model."""

from stream.errors import StreamTypeError, StreamValueError
from stream.events import Event, Finish
from stream.readers.calls.order import CallOrder
from stream.readers.formats.finish_reasons import ended_early
from stream.readers.options import MAX_ARGUMENT_CHARS, Start, Tools, checked_start, declared_names
from stream.readers.text.dialect_table import table_for
from stream.readers.text.machine import TextMachine

__all__ = ["TextReader"]


class TextReader:
    """Reads raw model text; returns what can be spoken, reasoning and calls, as they become certain.

    Parameters
    ----------
    tools : the declared tools: names, OpenAI tool dicts, or objects with a `name`. None if they are not known. They
        sharpen the forms that have no marker.
    start : `"reasoning"` if the prompt template has already opened a block of reasoning. Text up to the block's end is
        reasoning; without an end, all of it is.
    max_argument_chars : longer arguments are dropped, and their call is malformed.
    reasoning : whether reasoning is passed on, as `ReasoningDelta`.

    Raises
    ------
    StreamValueError, StreamTypeError
        For parameters that cannot be meant. What a model writes never raises.

    Examples
    --------
    >>> reader = TextReader()
    >>> reader.feed("It is 12 degrees. <tool_")
    [TextDelta(text='It is 12 degrees. ', channel=None)]
    >>> reader.feed('call>{"name": "lock"')
    [ToolCallStart(tool_name='lock', tool_call_id='', index=0)]
    >>> reader.feed(', "arguments": {}}</tool_call>')
    [ToolCallEnd(tool_name='lock', tool_call_id='', index=0, arguments_json='{}', status='ok')]
    """

    def __init__(
        self,
        tools: Tools = None,
        start: Start = "text",
        *,
        max_argument_chars: int = MAX_ARGUMENT_CHARS,
        reasoning: bool = True,
    ) -> None:
        self._order = CallOrder(max_argument_chars=max_argument_chars, reasoning=reasoning)
        self._table, self._start = table_for(declared_names(tools)), checked_start(start)
        self._machine = TextMachine(self._order, self._table, start)
        self._closed = False

    def feed(self, text: str) -> list[Event]:
        """Return the events that this piece of text makes certain.

        Raises
        ------
        StreamTypeError
            If it is not text.
        StreamValueError
            If the reader was closed.
        """
        if not isinstance(text, str):
            raise StreamTypeError(f"text: {type(text).__name__} is not str")
        if self._closed:
            raise StreamValueError("the reader is closed")
        if self._order.idle and (delta := self._machine.delta(text)):
            return [delta]
        if text:
            self._machine.feed(text)
        return self._order.take()

    def note_reasoning(self) -> None:
        """Note that reasoning came beside the text, before what comes next: tags around the words to speak count there.

        The server parses thoughts, then, and from here on `start` is `"text"`.

        Raises
        ------
        StreamValueError
            If the reader was closed.
        """
        if self._closed:
            raise StreamValueError("the reader is closed")
        if self._start == "reasoning":
            self._start = "text"
            self._machine.close(was_cut=True)
            self._machine = TextMachine(self._order, self._table, "text")
            self._order.idle = False  # what was held comes with the next text
        self._machine.note_reasoning()

    def close(self, finish: str | None = "stop") -> list[Event]:
        """Return the last events: what was held comes out, and calls that were cut off are marked.

        Parameters
        ----------
        finish : the finish reason; None if the stream broke off without one.
        """
        if self._closed:
            return []
        self._closed = True
        self._machine.close(was_cut=ended_early(finish))
        self._order.end_round()
        if finish is not None:
            self._order.emit(Finish(finish))
        return self._order.take()
