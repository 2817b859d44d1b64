"""Tool calls and errors for logs: names and types, limited in size; values of arguments are never logged."""

import json
import re
from collections.abc import Iterable
from itertools import groupby, islice
from typing import Any

__all__ = ["logged_arguments", "logged_error", "logged_list", "logged_name"]

# Names and keys come from a model: their number and length are unlimited.
LONGEST_NAME = 64
LONGEST_KEY = 24
LONGEST_LINE = 400
MOST = 16
MOST_NAMES = 8
DEEPEST = 4
# As h11 quotes bytes, as h11, h2, http.client and requests quote a header, which may be the key, and as servers quote a
# model's call: `raw='{"path": …`.
_QUOTES = re.compile(
    r": bytearray\(|(?:(?<=header name)|(?<=header value)).*?['\"]"
    r"|[,:]?\s*\braw=['\"]|[:=]\s*['\"`]?(?:\{|\[\s*[\[{\"])",
    re.DOTALL,
)
# As llama-server says what the model wrote: "Failed to parse input at pos 0: …".
_PARSED = re.compile(r"\bpars(?:e|ing)\b[^:\n]{0,64}(?=:)")
_NAME = re.compile(rf"[\w.\-/:]{{0,{LONGEST_NAME}}}")


def _types(value: Any, depth: int = 0) -> Any:
    """A JSON value with each text, number, boolean and null replaced by its type; equal types in a list once."""
    if isinstance(value, dict) and depth < DEEPEST:
        return {key[:LONGEST_KEY]: _types(one, depth + 1) for key, one in islice(value.items(), MOST)}
    if isinstance(value, list) and depth < DEEPEST:
        return [kind for kind, _ in groupby(_types(one, depth + 1) for one in value[:MOST])]
    return type(value).__name__


def logged_arguments(arguments_json: str) -> str:
    """Arguments for a log: keys and types; control characters in a key are escaped.

    >>> logged_arguments('{"path": "hunter2", "days": [1, 2]}'), logged_arguments("hunter2")
    ('{"path": "str", "days": ["int"]}', 'no JSON')
    """
    try:
        text = json.dumps(_types(json.loads(arguments_json)))
    except (ValueError, RecursionError):
        return "no JSON"
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}..."


def logged_error(error: object) -> str:
    """The text of an error without the bytes, the header or the call that it quotes, or its class.

    Bytes and calls may hold arguments, and a header the key.

    >>> logged_error(ValueError("illegal chunk header: bytearray(b'hunter2')"))
    'illegal chunk header'
    >>> logged_error(ValueError("Illegal header value b'Bearer hunter2'"))
    'Illegal header value'
    >>> logged_error("error parsing tool call: raw='hunter2', err=invalid character")
    'error parsing tool call'
    >>> logged_error("Failed to parse input at pos 7: <tool_call>hunter2")
    'Failed to parse input at pos 7'
    """
    text = str(error)
    parsed = _PARSED.search(text)
    return _QUOTES.split(text[: parsed.end()] if parsed else text, maxsplit=1)[0] or type(error).__name__


def logged_name(name: str) -> str:
    """A name in quotes, 64 characters at most, up to the first that no name can have: arguments may follow it.

    >>> logged_name("read_file"), logged_name('login{"password":"hunter2"}')
    ("'read_file'", "'login...'")
    """
    start = _NAME.match(name)[0]  # type: ignore[index]  # it matches everything
    return repr(start if start == name[:LONGEST_NAME] else f"{start}...")


def logged_list(items: Iterable[str]) -> str:
    """The distinct items in one line; past the eighth, only their number.

    >>> logged_list("abcdefghijk")
    'a, b, c, d, e, f, g, h and 3 more'
    """
    each = list(dict.fromkeys(items))
    more = len(each) - MOST_NAMES
    return ", ".join(each[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
