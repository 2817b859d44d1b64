"""A call while its text is read."""

from __future__ import annotations

from stream.readers.rounds import Call

__all__ = ["Draft", "clean_name"]


class Draft:
    """The known parts of a call whose text is still read.

    Attributes
    ----------
    call : what is or will be announced; its name is empty until it is certain.
    name : the name as far as it is known.
    strong : whether a marker has already said that this is a call.
    named : whether a name is enough to make it one.
    begun : whether the end of the stream would leave an incomplete call here.
    arguments : their text, once they are complete.
    arguments_begun : whether they have begun.
    """

    __slots__ = ("arguments", "arguments_begun", "begun", "call", "name", "named", "strong")

    def __init__(self, array: int, *, strong: bool, offset: int) -> None:
        self.call = Call(array=array, offset=offset)
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
        """Whether all that matters has come, so that anything may close the call."""
        return self.announced and self.arguments is not None

    def identify(self) -> None:
        """Let the id, if there is one, tell the call apart from its like."""
        if self.call.id:
            self.call.token = ("id", self.call.id)


def clean_name(name: str) -> str:
    """Return a tool's name without control tokens after it and without its `functions.` prefix."""
    return name.split("<|", 1)[0].strip().removeprefix("functions.")
