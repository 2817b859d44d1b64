"""The phase of a turn, from the question to the first word of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from stream.routing.calls import CallsUnderWay

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NEVER", "Phase", "Turn"]

NEVER = 1 << 62
"""An output sample that is never reached."""

Phase: TypeAlias = Literal["thinking", "working", "answering", "done"]


class Turn:
    """The state of a turn, named after what the user waits for. Each router has one.

    | phase | the user waits for | begins with |
    | --- | --- | --- |
    | `thinking` | the first token | the question |
    | `working` | an outcome | a call; a finish reason that announces calls |
    | `answering` | the first word | the first text after the question; the last outcome |
    | `done` | nothing | the first audible sample of the answer; the end of the turn, whatever ends it |

    `next_word` returns the first output sample at which speech of now can be heard.

    Attributes
    ----------
    calls : CallsUnderWay
    phase : Phase
    had_calls : bool
        Whether the turn has had a call.
    has_text : bool
        Whether text has come since the last call and the last outcome.
    reads_text : bool
        Whether the turn has had text: then only speech that follows new text is the answer.
    is_open : bool
        Whether more events of the stream are expected.
    """

    def __init__(self, next_word: Callable[[], int]) -> None:
        self._next_word = next_word
        self.calls = CallsUnderWay()
        self.phase: Phase = "done"
        self.had_calls = self.has_text = self.reads_text = self.is_open = False
        self._answer_from = NEVER

    @property
    def answer_begins(self) -> int:
        """The output sample from which audible speech is the answer; `NEVER` while none is expected."""
        if self.has_text or self.phase == "thinking" or (self.phase == "answering" and not self.reads_text):
            return self._answer_from
        return NEVER

    def question(self) -> None:
        """The user has finished."""
        self.outcome()
        self.had_calls, self.reads_text, self.is_open = self.phase == "working", False, True
        if not self.had_calls:
            self.phase = "thinking"

    def text(self) -> None:
        """Text for speech has come, or the model's own voice."""
        if not self.has_text:
            self._answer_from = self._next_word()
        self.has_text = self.reads_text = True
        if self.phase == "thinking":
            self.phase = "answering"

    def call(self) -> None:
        """A call has begun, or cannot run."""
        self.had_calls = self.is_open = True
        self.outcome()

    def outcome(self) -> None:
        """A call has ended, and more is to come."""
        self.phase = "working" if self.calls.awaited else "answering"
        self.has_text, self._answer_from = False, self._next_word()

    def finish(self, *, speech_follows: bool) -> None:
        """The stream has ended; `speech_follows` says whether its text will be spoken."""
        self.is_open = False
        if not (speech_follows and self.has_text):
            self.phase = "done"

    def heard(self) -> None:
        """The first sample of the answer is heard. Who reports no text may not report the stream's end, either."""
        self.phase, self.is_open = "done", self.is_open and self.reads_text

    def over(self, *, is_open: bool = False) -> None:
        """The turn has ended."""
        self.phase, self.is_open = "done", is_open
