"""The state of a turn, from the question to the first word of the answer, and its calls under way."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["NEVER", "CallUnderWay", "CallsUnderWay", "Phase", "TurnState"]

NEVER = 1 << 62
"""An output sample that is never reached."""

Phase: TypeAlias = Literal["thinking", "working", "answering", "done"]
"""Named after what the user waits for: the first token, an outcome, the first word, nothing."""


@dataclass(slots=True, eq=False)
class CallUnderWay:
    """A call whose outcome is not known yet; it began at `began_s` on the router's clock.

    A call `is_settled` if its outcome makes no sound: its failure has sounded already, or its turn was given up. It
    `is_over` if its turn is, `is_complete` when its arguments are, and `is_task` if the server runs it by itself.
    The model wrote it as text if it is `from_text`: the server does not know of it.
    """

    tool_name: str
    tool_call_id: str
    began_s: float = 0.0
    is_settled: bool = False
    is_over: bool = False
    is_complete: bool = False
    is_task: bool = False
    from_text: bool = False


class CallsUnderWay:
    """Calls in the order of their starts, known by id, or by name if they have no id.

    `in_answer` says whether the answer that is read has one of the client's.
    """

    def __init__(self) -> None:
        self.in_answer = False
        self._calls: list[CallUnderWay] = []
        self._given_up: deque[CallUnderWay] = deque(maxlen=64)

    @property
    def awaited(self) -> list[CallUnderWay]:
        """The calls whose outcome will sound."""
        return [call for call in self._calls if not call.is_settled]

    @property
    def has_tasks(self) -> bool:
        """Whether the server runs a tool by itself."""
        return any(call.is_task for call in self._calls)

    def begin(self, tool_call_id: str, tool_name: str) -> CallUnderWay | None:
        """Add a call; `None` if a call with that id is under way."""
        if tool_call_id and any(call.tool_call_id == tool_call_id for call in self._calls):
            return None
        call = CallUnderWay(tool_name, tool_call_id)
        self._calls.append(call)
        return call

    def find(self, tool_call_id: str, tool_name: str, *, is_task: bool = False) -> CallUnderWay | None:
        """The call with this id; else the oldest of this name; else, without a name, the oldest.

        With `is_task`, only the server's tasks count, and an empty name stands for no other.
        """
        known = [call for call in (*self._calls, *self._given_up) if call.is_task or not is_task]
        for call in known:
            if tool_call_id and call.tool_call_id == tool_call_id:
                return call
        for call in known:
            # Without an id on both sides, the name decides.
            is_named = tool_name == call.tool_name or not (tool_name or is_task)
            if is_named and not (tool_call_id and call.tool_call_id):
                return call
        return None

    def end(self, tool_call_id: str, tool_name: str, *, is_task: bool = False) -> CallUnderWay | None:
        """Remove the call that `find` finds, and return it."""
        call = self.find(tool_call_id, tool_name, is_task=is_task)
        if call is not None:
            (self._calls if call in self._calls else self._given_up).remove(call)
        return call

    def clear(self, *, tasks: bool = True) -> None:
        """Await no outcomes, of `tasks` too. Settled calls are kept, so that their late results make no sound."""
        self.in_answer = False
        kept = [call for call in self._calls if call.is_task and not tasks]
        for call in self._calls:
            call.is_over = call not in kept
        self._given_up.extend(call for call in self._calls if call.is_settled and call not in kept)
        self._calls[:] = kept

    def give_up(self) -> None:
        """Settle all calls under way: their late results make no sound."""
        for call in self._calls:
            call.is_settled = True
        self.clear()


class TurnState:
    """The state of a turn. Each router has one; stream/session/README.md has a table of the phases.

    `next_word` returns the first output sample at which speech of now can be heard. `had_calls` and `reads_text` say
    whether the turn has had a call, and text (then only speech that follows new text is the answer); `has_text`,
    whether text has come since the last call and the last outcome; `is_open`, whether more events are expected;
    `is_heard`, whether the answer was heard to begin.
    """

    def __init__(self, next_word: Callable[[], int]) -> None:
        self._next_word = next_word
        self.calls = CallsUnderWay()
        self.phase: Phase = "done"
        self.had_calls = self.has_text = self.reads_text = self.is_open = self.is_heard = False
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
        self.has_text = self.is_heard = False
        self._answer_from = self._next_word()

    def finish(self, *, speech_follows: bool) -> None:
        """The stream has ended; `speech_follows` says whether its text will be spoken."""
        self.is_open = False
        if not (speech_follows and self.has_text):
            self.phase = "done"
        elif self.phase == "working" and not self.calls.awaited:
            self.phase = "answering"

    def heard(self) -> None:
        """The first sample of the answer is heard. Who reports no text may not report the stream's end, either."""
        self.phase, self.is_open, self.is_heard = "done", self.is_open and self.reads_text, True

    def over(self, *, is_open: bool = False) -> None:
        """The turn has ended."""
        self.phase, self.is_open, self.is_heard = "done", is_open, False
