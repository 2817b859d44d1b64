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
    `is_over` if its turn is, `has_ended` with its `ToolCallEnd`, `is_complete` if that was "ok", and `is_task` if the
    server runs it by itself. The model wrote it as text if it is `from_text`: the server does not know of it.
    """

    tool_name: str
    tool_call_id: str
    index: int | None = None
    began_s: float = 0.0
    is_settled: bool = False
    is_over: bool = False
    has_ended: bool = False
    is_complete: bool = False
    is_task: bool = False
    from_text: bool = False


class CallsUnderWay:
    """Calls in the order of their starts, known by id; by name and index, or by name, if they have no id.

    `in_answer` says whether the answer that is read has one of the client's. `answered` are its calls whose results
    came before its end. `refused` are its calls that cannot run; the runner that refused them tells the model why.
    """

    def __init__(self) -> None:
        self.in_answer = False
        self.answered: list[CallUnderWay] = []
        self.refused: list[CallUnderWay] = []
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

    def begin(self, tool_call_id: str, tool_name: str, index: int | None = None) -> CallUnderWay | None:
        """Add a call; `None` if a call with that id is under way.

        One that was cut off or malformed makes way: a model that is asked again may write its call with the same id.
        """
        earlier = next((call for call in self._calls if tool_call_id and call.tool_call_id == tool_call_id), None)
        if earlier is not None:
            if earlier.is_complete or not (earlier.is_settled and earlier.has_ended):
                return None
            self._calls.remove(earlier)
        call = CallUnderWay(tool_name, tool_call_id, index)
        self._calls.append(call)
        return call

    def find_open(self, tool_call_id: str, tool_name: str, index: int) -> CallUnderWay | None:
        """The call with this id; else the oldest of this name whose end has not come, with this index if one has it.

        A name that was cut off is that of no call: such a call was never begun.
        """
        still_open = (call for call in self._fitting(tool_call_id, tool_name) if not call.has_ended)
        return self._with_id(tool_call_id) or min(still_open, key=lambda call: call.index != index, default=None)

    def find_invalid(self, tool_call_id: str, tool_name: str, index: int) -> CallUnderWay | None:
        """As `find_open`; else one of this name whose end has come, as some servers refuse a call only after it."""
        ended = (call for call in self._fitting(tool_call_id, tool_name) if not call.is_task)
        return self.find_open(tool_call_id, tool_name, index) or min(
            ended, key=lambda call: call.is_settled, default=None
        )

    def end(
        self, tool_call_id: str, tool_name: str, index: int | None = None, *, is_task: bool = False
    ) -> CallUnderWay | None:
        """Remove the call with this id; else one of this name; else, without a name, any. Returns it.

        Of several the oldest, but first those with this index, of the present turn, and those that can run: most
        callers report no result for the others. With `is_task`, only the server's tasks count, and an empty name
        stands for no other.
        """
        fitting = self._fitting(tool_call_id, tool_name, any_name=not (tool_name or is_task))
        call = self._with_id(tool_call_id, is_task=is_task) or min(
            (call for call in fitting if call.is_task or not is_task),
            key=lambda call: (index not in (None, call.index), call.is_over, call.is_task, call.is_settled),
            default=None,
        )
        if call is not None:
            (self._calls if call in self._calls else self._given_up).remove(call)
        return call

    def _with_id(self, tool_call_id: str, *, is_task: bool = False) -> CallUnderWay | None:
        known = (call for call in (*self._calls, *self._given_up) if call.is_task or not is_task)
        return next((call for call in known if tool_call_id and call.tool_call_id == tool_call_id), None)

    def _fitting(self, tool_call_id: str, tool_name: str, *, any_name: bool = False) -> list[CallUnderWay]:
        """The calls of this name, those that were given up last. Without an id on both sides, the name decides."""
        known = (call for call in (*self._calls, *self._given_up) if any_name or call.tool_name == tool_name)
        return [call for call in known if not (tool_call_id and call.tool_call_id)]

    def clear(self, *, tasks: bool = True) -> None:
        """Await no outcomes, of `tasks` too. Settled calls are kept, so that their late results make no sound."""
        self.end_answer()
        kept = [call for call in self._calls if call.is_task and not tasks]
        for call in self._calls:
            call.is_over = call not in kept
        self._given_up.extend(call for call in self._calls if call.is_settled and call not in kept)
        self._calls[:] = kept

    def end_answer(self) -> None:
        """Forget which calls are those of the answer that is read."""
        self.in_answer = False
        self.answered.clear()
        self.refused.clear()

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
