"""A raw call while it is read, and how it goes to the turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream.readers.parse.passing import Speech
from stream.readers.parse.tape import NotACall, Reading, Unreadable
from stream.readers.rounds import Call

if TYPE_CHECKING:
    from stream.readers.dialects import Table
    from stream.readers.dialects.reasoning import Rehearsals
    from stream.readers.turn import Turn

__all__ = ["Draft", "Drafting", "clean_name"]


class Draft:
    """What is known of a raw call while it is read.

    Attributes
    ----------
    call : what is or will be announced; its name is empty as long as it is not certain.
    name : the name as far as it is known.
    strong : whether a marker has already said that this is a call.
    named : whether a name is enough to make it one.
    begun : whether the end of the stream would leave an incomplete call here.
    arguments : their text, once they are complete.
    arguments_begun : whether they have begun.
    """

    __slots__ = ("arguments", "arguments_begun", "begun", "call", "name", "named", "strong")

    def __init__(self, array: int, *, strong: bool) -> None:
        self.call = Call(array=array)
        self.name = ""
        self.strong = self.named = self.begun = strong
        self.arguments: str | None = None
        self.arguments_begun = False

    @property
    def announced(self) -> bool:
        """Whether the call was announced."""
        return self.call.name != ""

    @property
    def complete(self) -> bool:
        """Whether nothing that matters is missing, so that anything may close the call."""
        return self.announced and self.arguments is not None


def clean_name(name: str) -> str:
    """Return a tool's name without control tokens behind it and without its `functions.` prefix."""
    return name.split("<|", 1)[0].strip().removeprefix("functions.")


class Drafting(Speech):
    """A tape whose text and calls are passed on to a turn: what the readers of bodies use.

    Parameters
    ----------
    turn : where text and calls go.
    table : the dialects and the pattern that finds their markers.

    Attributes
    ----------
    draft : the call that is being read.
    fenced : whether this reads the inside of a code fence that may hold calls.
    ended_call : whether the last thing read was the end of a call.
    attempt_at : where in the text the last candidate for a call began, characters.
    """

    def __init__(self, turn: Turn | Rehearsals, table: Table) -> None:
        super().__init__(turn, table)
        self.draft: Draft | None = None
        self.fenced = False
        self.ended_call = False
        self.attempt_at = 0

    def new_draft(self, array: int = 0, *, strong: bool = True) -> Draft:
        """Return a draft of the call that comes next."""
        self.draft = Draft(array or self.turn.new_array(), strong=strong)
        self.draft.call.offset = self.attempt_at
        return self.draft

    def call(self, name: str, array: int = 0) -> Draft:
        """Announce a call whose name is certain; return its draft. Raises as `announce` does."""
        draft = self.new_draft(array)
        draft.name = name
        self.announce(draft)
        return draft

    def announce(self, draft: Draft) -> None:
        """Take the draft for a call with a certain name.

        Raises
        ------
        NotACall
            In a code fence, if the tools are declared and this is another name: the fence is documentation.
        Unreadable
            If the name is empty.
        """
        name = clean_name(draft.name)
        if not name:
            raise Unreadable
        if self.fenced and self.recording and self.table.excludes(name):
            raise NotACall
        draft.call.name = draft.name = name
        self._identify(draft)
        self.commit()
        self.turn.begin(draft.call)

    def _identify(self, draft: Draft) -> None:
        if draft.call.id:
            draft.call.token = ("id", draft.call.id)

    def json_arguments(self, draft: Draft) -> Reading[None]:
        """Read the arguments of an announced call as JSON, which ends it.

        Raises
        ------
        Unreadable
            If they are not JSON, or neither an object, nor a string, nor null.
        """
        if (yield from self.skip_space()) not in '{"n':
            raise Unreadable
        draft.arguments = yield from self.json_value()
        self.settle(draft, draft.arguments)

    def settle(self, draft: Draft, arguments: str) -> None:
        """End a call whose arguments are complete."""
        self.draft = None
        self._identify(draft)
        self.ended_call = True
        self.turn.finish(draft.call, "ok", arguments)
