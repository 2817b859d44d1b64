"""JSON that arrives in pieces: where it ends, and its text within a limit. No character is read twice."""

import re

__all__ = ["KEY", "MOST_PIECES", "VALUE", "JsonScanner", "Pieces"]

MOST_PIECES = 4096
"""Then they are joined: a piece of one character takes 80 bytes."""
# The states, by the token that comes next; a caller may start in the first two.
VALUE, KEY, COLON, NEXT, FIRST_KEY, FIRST_VALUE, STRING, ESCAPE, ATOM, DONE, ERROR = range(11)

_SPACE = re.compile(r"[ \t\n\r]*")
_LENIENT_STRING = re.compile(r'[^"\\]*')
_STRICT_STRING = re.compile(r'[^"\\\x00-\x1f]*')
_ATOM_RUN = re.compile(r"[-+.0-9A-Za-z_]*")
_ATOM_START = re.compile(r"[-0-9]|t|f|n")
_ATOM = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
# Whole strings and whole members that fit into the piece at hand: the common case, matched in C.
_PLAIN_KEY = re.compile(r'"[^"\\\x00-\x1f]*"[ \t\n\r]*:[ \t\n\r]*')
_CONSTANTS = ("NaN", "Infinity", "-Infinity")
_WORDS = frozenset(word[:size] for word in ("true", "false", "null") for size in range(1, len(word) + 1))
_LONGEST_ATOM = 4000  # Python reads no integer of more than 4300 digits
_DEEPEST = 1 << 16  # more brackets than these are no JSON: each of them has to be remembered
_CLOSED_BY = {"}": "{", "]": "["}
_SIMPLE_ESCAPES = frozenset('"\\/bfnrt')
_ESCAPE = re.compile(r"u[0-9a-fA-F]{4}")
_HALF_ESCAPE = re.compile(r"u[0-9a-fA-F]{0,3}")


class Pieces:
    """Text that comes in pieces; past a limit it is dropped, except for enough to show that there was more."""

    __slots__ = ("_limit", "_pieces", "size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[str] = []
        self.size = 0  # how much has come, characters

    def add(self, piece: str) -> None:
        if self.size <= self._limit:
            self._pieces.append(piece)
            if len(self._pieces) > MOST_PIECES:
                self._pieces = ["".join(self._pieces)]
        self.size += len(piece)

    @property
    def text(self) -> str:
        """The text that was kept."""
        return "".join(self._pieces)

    def take(self) -> str:
        """The text that was kept, which is forgotten."""
        text, self._pieces = self.text, []
        return text


class JsonScanner:
    """Scans one JSON value, strictly; past 65,536 open brackets it fails.

    `state` is what comes first, and `stack` has the brackets that are open already, outermost first, as in `"[{"`;
    `lenient` accepts raw control characters inside strings, `constants` Python's `NaN` and `Infinity`.
    """

    __slots__ = ("_after_string", "_atom", "_constants", "_stack", "_state", "_string")

    def __init__(self, state: int = VALUE, stack: str = "", *, lenient: bool = True, constants: bool = False) -> None:
        self._state = state
        self._stack = list(stack)  # open brackets: no depth of nesting can exhaust Python's own stack
        self._string = _LENIENT_STRING if lenient else _STRICT_STRING
        self._after_string = NEXT
        self._constants = _CONSTANTS if constants else ()
        self._atom = ""  # a number, a word or an escape, as far as it has come

    @property
    def done(self) -> bool:
        return self._state == DONE

    @property
    def failed(self) -> bool:
        """Whether the text cannot be JSON."""
        return self._state == ERROR

    @property
    def in_object(self) -> bool:
        """Whether the value is an object that is not complete: a `}` will end it, if it is JSON."""
        return self._state < DONE and self._stack[:1] == ["{"]

    def scan(self, text: str, start: int) -> int:
        """Return the position after the scan: the end of the text, of the value, or of what can be JSON."""
        in_string = self._state == STRING and self._string is _LENIENT_STRING
        if in_string and text.find('"', start) < 0 and text.find("\\", start) < 0:
            return len(text)  # the common case of a piece inside a string
        position, end = start, len(text)
        while position < end and self._state < DONE:
            if self._state < STRING and text[position] in " \t\n\r":
                position = _SPACE.match(text, position).end()  # type: ignore[union-attr]  # it begins with one
            else:
                position = self._STEPS[self._state](self, text, position)
        return position

    def finish(self) -> bool:
        """Return whether the text so far is a complete value, now that nothing follows (a bare number is)."""
        if self._state == ATOM and not self._stack:
            self._state = DONE if _ATOM.fullmatch(self._atom) else ERROR
        return self.done

    def _value(self, text: str, position: int) -> int:
        char = text[position]
        if char == '"':
            self._state, self._after_string = STRING, NEXT
        elif char in "{[":
            if len(self._stack) >= _DEEPEST:
                return self._fail(position)
            self._stack.append(char)
            self._state = FIRST_KEY if char == "{" else FIRST_VALUE
        elif char == "]" and self._state == FIRST_VALUE:
            return self._close(char, position)
        elif _ATOM_START.match(char) or (self._constants and char in "NI"):
            self._state, self._atom = ATOM, ""
            return position
        else:
            return self._fail(position)
        return position + 1

    def _key(self, text: str, position: int) -> int:
        match = _PLAIN_KEY.match(text, position)
        if match:
            self._state = VALUE
            return match.end()
        char = text[position]
        if char == '"':
            self._state, self._after_string = STRING, COLON
            return position + 1
        return self._close(char, position) if self._state == FIRST_KEY else self._fail(position)

    def _colon(self, text: str, position: int) -> int:
        if text[position] != ":":
            return self._fail(position)
        self._state = VALUE
        return position + 1

    def _next(self, text: str, position: int) -> int:
        char = text[position]
        if char == ",":
            self._state = KEY if self._stack[-1] == "{" else VALUE
            return position + 1
        return self._close(char, position)

    def _close(self, char: str, position: int) -> int:
        if _CLOSED_BY.get(char) != self._stack[-1]:
            return self._fail(position)
        self._stack.pop()
        self._state = NEXT if self._stack else DONE
        return position + 1

    def _fail(self, position: int) -> int:
        self._state = ERROR
        return position

    def _in_string(self, text: str, position: int) -> int:
        position = self._string.match(text, position).end()  # type: ignore[union-attr]  # matches "" too
        if position == len(text):
            return position
        if text[position] == "\\":
            self._state, self._atom = ESCAPE, ""
        elif text[position] == '"':
            self._state = self._after_string if self._stack else DONE
        else:
            return self._fail(position)
        return position + 1

    def _in_escape(self, text: str, position: int) -> int:
        self._atom += text[position]
        if self._atom in _SIMPLE_ESCAPES or _ESCAPE.fullmatch(self._atom):
            self._state = STRING
        elif not _HALF_ESCAPE.fullmatch(self._atom):
            return self._fail(position)
        return position + 1

    def _in_atom(self, text: str, position: int) -> int:
        end = _ATOM_RUN.match(text, position).end()  # type: ignore[union-attr]  # as above
        self._atom += text[position:end]
        if len(self._atom) > _LONGEST_ATOM or (self._atom[0] in "tfn" and self._atom not in _WORDS):
            self._state = ERROR
        elif end < len(text):
            fits = _ATOM.fullmatch(self._atom) or self._atom in self._constants
            self._state = (NEXT if self._stack else DONE) if fits else ERROR
        return end

    _STEPS = (_value, _key, _colon, _next, _key, _value, _in_string, _in_escape, _in_atom)
