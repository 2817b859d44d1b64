"""Which calls of a round are the same call sent twice.

Calls with one name and equal arguments are duplicates, and the first one stays. They are different calls if both have
an index, if both are raw text with ids of their own, or if they stand in one array; `CallOrder` compares ids.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stream.readers.text.dialect import Call, Token

__all__ = ["Round"]


@dataclass(slots=True)
class _Group:
    """Calls that only their tokens and arrays tell apart; counted, so that ten thousand stay cheap."""

    tokens: set[Token] = field(default_factory=set)
    kinds: Counter[str] = field(default_factory=Counter)
    in_array: Counter[tuple[str, int]] = field(default_factory=Counter)
    matched: Counter[tuple[str, int]] = field(default_factory=Counter)

    def twin(self, call: Call) -> str | None:
        """Return the kind of a call that this one may repeat, None if it stands for itself."""
        own = call.token[0] if call.token else ""
        if call.token in self.tokens and call.token:
            return own
        for kind, count in self.kinds.items():
            if kind == own and own:
                continue  # both have a token, and the tokens differ
            place = (kind, call.array)
            if count > self.in_array[place] + self.matched[place]:
                return kind
        return None

    def add(self, call: Call, twin: str | None = None) -> None:
        own = call.token[0] if call.token else ""
        self.tokens.add(call.token)
        self.kinds[own] += 1
        self.in_array[own, call.array] += 1
        if twin is not None:
            # A call absorbs one duplicate of each array: [a, a] beside one a is two calls.
            self.matched[twin, call.array] += 1

    def forget(self, call: Call) -> None:
        own = call.token[0] if call.token else ""
        self.tokens.discard(call.token)
        self.kinds[own] -= 1
        self.in_array[own, call.array] -= 1


class Round:
    """The calls since the last round began."""

    __slots__ = ("_by_arguments", "_by_name", "calls")

    def __init__(self) -> None:
        self.calls = 0
        self._by_name: defaultdict[str, _Group] = defaultdict(_Group)
        self._by_arguments: defaultdict[tuple[str, str], _Group] = defaultdict(_Group)

    def opens(self, call: Call) -> bool:
        """Take in a call whose name is known; return whether it may turn out to be a duplicate."""
        self.calls += 1
        group = self._by_name[call.name]
        twin = group.twin(call)
        group.add(call)
        return twin is not None

    def gave_up(self, call: Call) -> None:
        """Take note that a call that was open cannot be read or was cut off: no later one repeats it."""
        self._by_name[call.name].forget(call)

    def repeats(self, call: Call, arguments: str) -> bool:
        """Take in a call whose arguments are known; return whether it is a duplicate."""
        group = self._by_arguments[call.name, arguments]
        twin = group.twin(call)
        group.add(call, twin)
        return twin is not None
