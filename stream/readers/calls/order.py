"""The order of events: calls where their first fragment came, text after the calls that it follows.

A server may send a call twice. Calls of one round with the same name and equal arguments are duplicates, and the first
one stays. They are different calls if their indexes differ, if both are raw text with ids that differ, or if they have
neither and stand in one array. An equal id makes them one.
"""

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import count
from typing import Any

from stream.checks import check_whole_number
from stream.events import CallStatus, Event, ReasoningDelta, TextDelta, ToolCallEnd, ToolCallStart
from stream.readers.calls.arguments import canonical, read_arguments
from stream.readers.options import MOST_KEPT
from stream.readers.text.dialect import Call, Token

__all__ = ["CallOrder"]

_MOST_WAITING = 1 << 20  # characters of arguments that wait for an earlier call to end
_WEIGHT_OF_TEXT = 16  # beside them: it comes in small pieces
_LONGEST_KEY = 256  # characters; of longer arguments a digest is remembered


@dataclass(slots=True)
class _Group:
    """Calls that only their tokens and arrays tell apart; counted, so that ten thousand stay cheap."""

    tokens: set[Token] = field(default_factory=set)
    kinds: Counter[str] = field(default_factory=Counter)
    in_array: Counter[tuple[str, int]] = field(default_factory=Counter)
    matched: Counter[tuple[str, int]] = field(default_factory=Counter)

    def repeats(self, call: Call, *, absorbs: bool) -> bool:
        """Take in a call; return whether it may be one of the others, which it then `absorbs`."""
        own, twin = call.token[0] if call.token else "", None
        if call.token and call.token in self.tokens:
            twin = own
        else:
            for kind, count_ in self.kinds.items():
                # Two calls that both have a token differ if their tokens do.
                place = (kind, call.array)
                if (kind != own or not own) and count_ > self.in_array[place] + self.matched[place]:
                    twin = kind
                    break
        self.tokens.add(call.token)
        self._count(call, 1)
        if twin is not None and absorbs:
            # A call absorbs one duplicate of each array: [a, a] beside one a is two calls.
            self.matched[twin, call.array] += 1
        return twin is not None

    def forget(self, call: Call) -> None:
        self.tokens.discard(call.token)
        self._count(call, -1)

    def _count(self, call: Call, change: int) -> None:
        own = call.token[0] if call.token else ""
        self.kinds[own] += change
        self.in_array[own, call.array] += change


@dataclass(slots=True, eq=False)
class _Round:
    """The calls since the last round began."""

    calls: int = 0
    by_name: defaultdict[str, _Group] = field(default_factory=lambda: defaultdict(_Group))
    by_arguments: defaultdict[tuple[str, str], _Group] = field(default_factory=lambda: defaultdict(_Group))


class CallOrder:
    """Collects what the parts of a reader find, and gives it out as events in the order of the stream.

    A start is announced at once unless the call may be a duplicate or text before it still waits. Text waits while a
    call before it is open; past 65,536 characters it no longer waits, and that call ends after it.
    """

    def __init__(self, *, max_argument_chars: int, reasoning: bool) -> None:
        check_whole_number("max_argument_chars", max_argument_chars, 1)
        self._events: list[Event] = []
        self._waiting: deque[Call | TextDelta] = deque()
        self._texts_waiting = 0
        self._waited = 0  # how much has come since something waits
        # The arguments of announced calls whose end waits, by their ordinal; None if they cannot be read.
        self.waiting_ends: dict[int, str | None] = {}
        self._round = _Round()
        self._ids: dict[str, set[tuple[str, str]]] = {}  # id → the names and arguments that it stood for
        self._ids_kept = 0
        self.by_arguments = False  # equal name and arguments are one call, whatever their indexes and ids
        self.new_array = count(1).__next__  # numbers an array of calls
        self._ordinals = count()
        # Ids and names of complete calls without a result.
        self.unanswered: deque[tuple[str, str]] = deque(maxlen=MOST_KEPT)
        self.max_argument_chars = max_argument_chars
        self._speculative: tuple[str, list[Call]] | None = None
        self.reasons = reasoning
        self.channel: str | None = None  # of the text that comes next, if the server names one
        self.idle = False  # text can be passed on without a change of state, and has no channel
        self.silent = True  # neither spoken text nor a call so far

    @property
    def has_calls(self) -> bool:
        return self._round.calls > 0

    def take(self) -> list[Event]:
        """Return the events since the last time."""
        events, self._events = self._events, []
        return events

    def emit(self, event: Event) -> None:
        """Pass on an event that does not wait for text or calls."""
        self._events.append(event)

    def text(self, text: str) -> None:
        """Take in text to be spoken."""
        if not self.idle and not text.isspace():
            self.silent = False
            self._drop_speculative()
            if self._round.calls:
                self._round = _Round()
            self.idle = not self._waiting and self.channel is None
        if self._waiting and self._waited <= _MOST_WAITING:
            self._waiting.append(TextDelta(text, self.channel))
            self._texts_waiting += 1
            self._wait(_WEIGHT_OF_TEXT * len(text))
        else:
            self._events.append(TextDelta(text, self.channel))

    def _wait(self, size: int) -> None:
        self._waited += size
        if self._waited > _MOST_WAITING:
            self._flush(past_open=True)

    def reasoning(self, text: str, sent_as: str = "") -> None:
        """Take in reasoning, which starts a new round after a call but never waits."""
        if self._round.calls and not text.isspace():
            self._round = _Round()
        if self.reasons and text:
            self._events.append(ReasoningDelta(text, sent_as=sent_as))

    def begin(self, call: Call) -> None:
        """Take in a call whose name is certain."""
        self.silent = self.idle = False
        self._drop_speculative()
        if self._round.calls >= MOST_KEPT:
            self._round = _Round()
        if self.by_arguments:
            call.token, call.array = None, self.new_array()
        call.home = self._round
        self._round.calls += 1
        if not call.told:  # the model may tell of a call and then make it
            call.duplicate = self._round.by_name[call.name].repeats(call, absorbs=False)
        if call.id and not call.told:
            known = self._stood_for(call.id)
            call.duplicate |= any(key or name == call.name for name, key in known)
            known.add((call.name, ""))  # as long as it is open
        self._waiting.append(call)
        if not call.duplicate and not self._texts_waiting:
            self._announce(call)

    def finish(self, call: Call, status: CallStatus, arguments: str = "") -> None:
        """Take in the end of a call; `arguments` is what the model wrote for them."""
        if status == "ok":
            readable = None if len(arguments) > self.max_argument_chars else read_arguments(arguments)
            if readable is None:
                status = "malformed"
            else:
                arguments = readable
        if len(arguments) > self.max_argument_chars:
            arguments = ""
        call.arguments_json, call.status = arguments, status
        if call.home is None:  # cut off before its name was certain: an end without a start
            self.silent = self.idle = False
            self._drop_speculative()
            call.home = self._round
            self._waiting.append(call)
        elif call.told:
            pass
        elif status == "ok":
            repeated, is_announced = self._repeats(call), call.ordinal >= 0
            call.duplicate = repeated and not is_announced
            if repeated and is_announced:
                self._drop_twin(call)
        else:
            call.duplicate = False
            call.home.by_name[call.name].forget(call)  # no later call repeats it
        if call.ordinal >= 0:
            self.waiting_ends[call.ordinal] = arguments if status == "ok" else None
        self._flush()
        if self._waiting:
            self._wait(len(arguments))

    def _drop_twin(self, call: Call) -> None:
        """Drop the equal call that ended earlier and waits behind this one."""
        for item in self._waiting:
            if isinstance(item, TextDelta) or item.ordinal >= 0 or item.duplicate:
                continue
            if (item.status, item.name, item.key) == ("ok", call.name, call.key):
                item.duplicate = True
                return

    def _repeats(self, call: Call) -> bool:
        key = canonical(call.arguments_json, typed=False)
        if len(key) > _LONGEST_KEY:
            key = blake2b(key.encode("utf-8", "surrogatepass")).hexdigest()
        call.key = key
        repeated: bool = call.home.by_arguments[call.name, key].repeats(call, absorbs=True)
        if call.id:
            seen = self._stood_for(call.id)
            repeated |= (call.name, key) in seen
            seen.add((call.name, key))
        return repeated

    def _stood_for(self, identity: str) -> set[tuple[str, str]]:
        """Return the names and arguments of the calls with an id; too many ids are forgotten."""
        self._ids_kept += 1
        if self._ids_kept > 2 * MOST_KEPT:  # each call is counted at its start and at its end
            self._ids_kept = 1
            self._ids.clear()
        return self._ids.setdefault(identity, set())

    def _announce(self, call: Call) -> None:
        call.ordinal = next(self._ordinals)
        if call.name:
            self._events.append(
                ToolCallStart(call.name, call.id, call.ordinal, told=call.told, from_text=call.from_text)
            )

    def _flush(self, *, past_open: bool = False) -> None:
        """Pass on what stands before the first open call; or, as too much waits, all but the calls that are open."""
        texts = self._texts_waiting
        still_open: list[Call] = []
        while self._waiting and (past_open or not still_open):
            item = self._waiting.popleft()
            if isinstance(item, TextDelta):
                self._events.append(item)
                self._texts_waiting -= 1
            elif item.status:
                self._end(item)
            else:
                still_open.append(item)
        self._waiting.extendleft(reversed(still_open))
        if not self._waiting:
            self._waited = 0
        if self._texts_waiting == texts:
            return
        for item in self._waiting:  # announce the calls that only text before them has kept waiting
            if not isinstance(item, Call):
                break
            if item.ordinal < 0 and not item.duplicate and item.name and not item.status:
                self._announce(item)

    def _end(self, call: Call) -> None:
        arguments, call.arguments_json = call.arguments_json, ""  # others may keep the call
        extra, call.extra_content = call.extra_content, None
        self.waiting_ends.pop(call.ordinal, None)
        if call.duplicate:
            return
        if call.ordinal < 0:
            self._announce(call)
        status: CallStatus = call.status  # type: ignore[assignment]  # set by finish alone
        if status == "ok":
            self.unanswered.append((call.id, call.name))
        marks: Any = {"told": call.told, "from_text": call.from_text, "extra_content": extra}
        self._events.append(ToolCallEnd(call.name, call.id, call.ordinal, arguments, status, **marks))

    def speculate(self, raw: str, calls: list[Call]) -> None:
        """Keep calls that end a block of reasoning: real only if the round brings nothing after them."""
        self._drop_speculative()
        self._speculative = (raw, calls)
        self.idle = False

    def _drop_speculative(self) -> None:
        if self._speculative:
            raw, _ = self._speculative
            self._speculative = None
            if self.reasons:
                self._events.append(ReasoningDelta(raw))

    def end_round(self) -> None:
        """Close the round: a finish reason, a native `done`, results, or the end of the stream."""
        self.idle = False
        if self._speculative:
            _, calls = self._speculative
            self._speculative = None
            for call in calls:
                self.replay(call)
        self._round = _Round()

    def replay(self, call: Call) -> None:
        """Take in a call that was read in reasoning and has become real."""
        status: CallStatus = call.status  # type: ignore[assignment]  # a speculative call has ended
        if call.name:
            self.begin(call)
        self.finish(call, status, call.arguments_json)
