"""A call's arguments: from what the model wrote to JSON text that holds an object; and Gemini's, which stream."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, NoReturn

from stream.readers.calls.values import dumps, fields_of, listed, plain
from stream.readers.text.scanner import JsonScanner

__all__ = [
    "PYTHONS",
    "PartialArguments",
    "canonical",
    "fits_types",
    "properties_of",
    "read_arguments",
    "refuse_constant",
    "spelled_out",
]

_EXACT = 2.0**53  # below it a float that is whole and the same integer are one number
_ENCODINGS = 3  # an object, a string that holds one, and such a string encoded once more


def read_arguments(raw: str) -> str | None:
    """Return the arguments as JSON text of an object; None if they cannot be read.

    Empty text and `null` mean no arguments. An object may be encoded into a string once or twice. Raw control
    characters in strings are accepted and come out escaped; nothing else is repaired.
    """
    text = raw.strip()
    for _ in range(_ENCODINGS):
        if text in ("", "null"):
            return "{}"
        if text[0] == "{":
            return _object(text)
        if text[0] != '"':
            return None
        try:
            text = json.loads(text, strict=False).strip()
        except ValueError:
            return None
    return None


def _object(text: str) -> str | None:
    try:
        json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        scanner = JsonScanner()
        if scanner.scan(text, 0) != len(text) or not scanner.done:
            return None
        with suppress(ValueError, RecursionError):  # deeper, or with longer numbers, than Python's reader goes
            return json.dumps(json.loads(text, strict=False), ensure_ascii=False)
    return text


# Words of Python that stand for JSON's.
PYTHONS = {"True": "true", "False": "false", "None": "null"}


def refuse_constant(constant: str) -> NoReturn:
    """Python's reader takes `NaN` and `Infinity`, which are no JSON and pass any minimum or maximum."""
    raise ValueError(constant)


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
}


def spelled_out(arguments: Mapping[str, Any], fits: Callable[[str, Any], bool]) -> dict[str, Any]:
    """Return the arguments; text that does not fit its key is replaced by the value that it spells, if that fits.

    Tags hold every value as text: `false` as text would be true in most languages.

    Examples
    --------
    >>> spelled_out({"on": "False", "name": "1"}, fits_types({"on": {"type": "boolean"}, "name": {"type": "string"}}))
    {'on': False, 'name': '1'}
    """
    found = dict(arguments)
    for key, value in arguments.items():
        if isinstance(value, str) and not fits(key, value):
            with suppress(ValueError, RecursionError):
                read = json.loads(PYTHONS.get(value.strip(), value), parse_constant=refuse_constant)
                if fits(key, read):
                    found[key] = read
    return found


def fits_types(properties: Mapping[str, Any]) -> Callable[[str, Any], bool]:
    """Return a judge for `spelled_out`: whether a value is of a type that the schema of its key names, if any."""

    def fits(key: str, value: Any) -> bool:
        types = _types_of(properties.get(key))
        return not types or any(type(value) in _TYPES.get(one, ()) for one in types)

    return fits


def properties_of(tool: Any) -> Mapping[str, Any]:
    """Return the arguments that the JSON Schema of a tool names: of a dict in any API's form, or an object."""
    fields = fields_of(tool)
    inner = fields_of(fields.get("function")) or fields
    schema = inner.get("parameters") or inner.get("input_schema") or getattr(tool, "parameters", None)
    return fields_of(fields_of(schema).get("properties"))


def _types_of(schema: object) -> set[str]:
    fields = fields_of(schema)
    named = fields.get("type")
    types = {named} if isinstance(named, str) else {one for one in listed(named) if isinstance(one, str)}
    ways = [*listed(fields.get("anyOf")), *listed(fields.get("oneOf"))]
    return types.union(*map(_types_of, ways[:16]))


def _number(text: str) -> float:
    number = float(text)
    return int(number) if abs(number) < _EXACT and number.is_integer() else number


def canonical(arguments_json: str, *, typed: bool = True) -> str:
    """Return a text that is the same for equal arguments, whatever their spacing, key order and `1` or `1.0`.

    Unless `typed`, `"1"` equals `1`: tags hold every value as text.
    """
    try:
        value: Any = json.loads(arguments_json, parse_float=_number)
        if not typed:
            value = _without_types(value)
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return arguments_json


def _without_types(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_types(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_types(one) for one in value]
    if not isinstance(value, str):
        return value
    try:
        return _without_types(json.loads(PYTHONS.get(value.strip(), value), parse_float=_number))
    except ValueError:
        return value


# --- Gemini's: values at paths ---------------------------------------------------------------------------------------

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")
_DEEPEST = 100
_PIECE_COSTS = 16  # characters: each piece is an object in memory
_VALUES = ("string_value", "number_value", "bool_value")


class PartialArguments:
    """Values at paths, put together to an object of at most so many characters; `given` came with the call's name."""

    def __init__(self, given: Any, most: int) -> None:
        self._root: dict[str, Any] = plain(given) if isinstance(given, dict) else {}
        self.goes_on = False  # the string of the last piece; JSON is written in order, so earlier ones have ended
        self._open: set[tuple[str | int, ...]] = set()  # strings that a later piece may continue
        self._strings: dict[tuple[str | int, ...], list[str]] = {}
        self._left = most
        self._unreadable = False

    @property
    def json(self) -> str:
        """The arguments as JSON; an array if they cannot be put together."""
        if self._unreadable:
            return "[]"
        for steps, pieces in self._strings.items():
            self._put(steps, "".join(pieces))
        return dumps(self._root)

    def add(self, pieces: Iterable[Mapping[str, Any]]) -> None:
        for piece in pieces:
            path = piece.get("json_path")
            steps = _steps(path)
            value = next((piece[name] for name in _VALUES if piece.get(name) is not None), None)
            self._left -= _PIECE_COSTS + (len(value) if isinstance(value, str) else 0)
            if steps not in self._strings and isinstance(path, str):  # the object keeps the names in it
                self._left -= len(path)
            if steps is None or self._left < 0:
                self._unreadable = True
            elif not self._unreadable:
                self._take(steps, value, goes_on=bool(piece.get("will_continue")))

    def _take(self, steps: tuple[str | int, ...], value: Any, *, goes_on: bool) -> None:
        if value is None and goes_on:
            value = ""
        if isinstance(value, str) and steps in self._open:
            self._strings[steps].append(value)
        elif isinstance(value, str):
            self._strings[steps] = [value]
            self._put(steps, "")
        else:
            goes_on = False  # only strings come in parts
            self._strings.pop(steps, None)
            self._put(steps, int(value) if isinstance(value, float) and value.is_integer() else value)
        (self._open.add if goes_on else self._open.discard)(steps)
        self.goes_on = goes_on

    def _put(self, steps: tuple[str | int, ...], value: Any) -> None:
        place: Any = self._root
        for step, after in zip(steps, (*steps[1:], None), strict=True):
            is_list = isinstance(step, int)
            fits = type(place) is (list if is_list else dict)
            if not fits or (isinstance(step, int) and step > len(place)):
                self._unreadable = True
                return
            if is_list and step == len(place):
                place.append(None)
            if after is None:
                place[step] = value
                return
            inner = place[step] if is_list else place.get(step)
            if inner is None:
                inner = place[step] = [] if isinstance(after, int) else {}
            place = inner


def _steps(path: Any) -> tuple[str | int, ...] | None:
    """The steps of a JSON path (`$.a[0].b`); `None` if it cannot be read."""
    if not isinstance(path, str) or not path.startswith("$") or path == "$":
        return None
    matches = list(islice(_STEP.finditer(path, 1), _DEEPEST))
    if "".join(match[0] for match in matches) != path[1:]:
        return None
    return tuple(int(match[2]) if match[2] else match[1] or match[3] or match[4] or "" for match in matches)
