"""The phase of a turn, from the question to the first word of the answer."""

from __future__ import annotations

from typing import Literal, TypeAlias

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

    Attributes
    ----------
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

    __slots__ = ("_answer_from", "had_calls", "has_text", "is_open", "phase", "reads_text")

    def __init__(self) -> None:
        self.phase: Phase = "done"
        self.had_calls = self.has_text = self.reads_text = self.is_open = False
        self._answer_from = NEVER

    @property
    def answer_begins(self) -> int:
        """The output sample from which audible speech is the answer; `NEVER` while none is expected."""
        if self.has_text or self.phase == "thinking":
            return self._answer_from
        return self._answer_from if self.phase == "answering" and not self.reads_text else NEVER

    # What has happened. `next_word` is the first output sample at which speech of now can be heard; `awaited` says
    # whether the outcome of a call is awaited.

    def question(self, next_word: int, *, awaited: bool) -> None:
        """The user has finished."""
        self.phase, self._answer_from = "working" if awaited else "thinking", next_word
        self.had_calls, self.has_text, self.reads_text, self.is_open = awaited, False, False, True

    def text(self, next_word: int) -> None:
        """Text for speech has come, or the model's own voice."""
        if not self.has_text:
            self._answer_from = next_word
        self.has_text = self.reads_text = True
        if self.phase == "thinking":
            self.phase = "answering"

    def call(self, next_word: int, *, awaited: bool) -> None:
        """A call has begun, or cannot run."""
        self.had_calls = self.is_open = True
        self.outcome(next_word, awaited=awaited)

    def outcome(self, next_word: int, *, awaited: bool) -> None:
        """A call has ended, and more is to come."""
        self.phase, self.has_text, self._answer_from = "working" if awaited else "answering", False, next_word

    def calls_follow(self, next_word: int, *, awaited: bool) -> None:
        """The answer has ended with calls, which run now."""
        if awaited:
            self.outcome(next_word, awaited=True)

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
