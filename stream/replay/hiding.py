"""Asterisks for the secrets in a recording: what was sent as a key, and fields that hold one."""

import contextlib
import json
import re
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import unquote, unquote_plus, urlsplit

__all__ = ["Secrets"]

PUBLIC_HEADERS = frozenset(
    {"content-type", "accept", "user-agent", "anthropic-version", "anthropic-beta"}
    | {"host", "connection", "accept-encoding", "accept-language", "content-length", "transfer-encoding"}
)
"""Their values are words, such as `identity`, that an answer may say."""
SHORTEST = 8
"""Characters of a secret; shorter values, such as `alt=sse`, are words of the answer."""

# By the end of a field's name, in any case: `Authorization`, `x-api-key`, `X-Auth-Token`, a session's `client_secret`.
_ENDS = (
    "(?:api|private|access|account|encryption|ephemeral|secret|signing|subscription)[-_]?key"
    "|authorization(?:[-_]?token)?|secret|passw(?:or)?d|cookie|newhandle|connection[-_]?string|jwt"
    "|(?:access|api|auth|azure[-_]?ad|bearer|bot|client|deploy|git(?:hub|lab)|hf|id|oauth|personal|private|refresh"
    "|secret|security|service|session|slack|user|webhook)[-_]?token"
)
_NAMED = re.compile(rf"(?i).*(?:{_ENDS})")
# Objects of which every field may hold one, such as an MCP tool's `headers`; these fields count under `headers.NAME`.
_HOLDER = "auth(?:entication|orization|[-_]?config)?|credentials?"
_IN_HOLDER = re.compile(rf"(?i).*(?:headers|{_HOLDER})(?:\..*)?")
_FIELD = re.compile(rf"(?is).*(?:{_ENDS}|headers\..*|(?:{_HOLDER})(?:\..*)?)")
_HEADERS = re.compile(r"(?i).*headers")
_LINE = re.compile(r"(?m)^([ \t]*[\w!#$%&'*+.^`|~-]+)(\s*:\s*)(\S[^\r\n]*)")  # `NAME: VALUE` in a text of headers
_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
"""Their objects' names are of a tool's arguments and types, and hold no values."""

# In a URL, also one in a text: the login, and parameters named as secrets.
_PARAMETERS = (
    rf"[\w.%-]{{0,64}}(?:{_ENDS}|token|[-_]key|signature|credential)|key|sig|code|auth|pass(?:word|wd)?|pwd|config"
)
_LOGIN = re.compile(rb'(?<=://)[^\s/?#"\\<>]{1,512}(?=@)')
_PARAMETER = re.compile(
    rf"(?i)((?:[?&]|&amp;|\\u0026)({_PARAMETERS})=(?!=))([^\s&#\"'`)\\<>\x80-\xff]+)".encode("latin-1")
)


def _in_json(quote: str, char: str, space: str) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """A field for secrets with its text or list of texts, and a text in it, by patterns for the parts of JSON."""
    name, value = rf'{quote}[^"\\]{{0,64}}(?:{_ENDS}){quote}', rf"{quote}value{quote}{space}:{space}"
    field = rf"(?i)({name}{space}(?::{space}(?:\{{[^{{}}]*?{value})?|,{space}{value}))"
    text = rf"{quote}(?:{char})*"
    return (
        re.compile(rf"{field}({text}|\[(?:(?:{space},)?{space}{text}(?:{quote})?)*)".encode()),
        re.compile(rf"({quote})((?:{char})*)((?:{quote})?)".encode()),
    )


# JSON, and JSON that is a text in JSON, such as a call's arguments.
_JSON = (
    _in_json('"', r'[^"\\]|\\.', r"\s*"),
    _in_json(r'\\"', r'[^"\\]|\\u[0-9a-f]{4}|\\/|\\\\(?:\\\\|\\"|[^"\\])', r"(?:\s|\\[nrt])*"),
)


class Secrets:
    """The secrets of a request, in any spelling: passwords, values of query and body, headers and their words."""

    def __init__(self, url: str, headers: Mapping[str, str], request: Mapping[str, Any] | None = None) -> None:
        secrets = (*_in_url(url), *_in_headers(headers), *_in_fields(request))
        sent = {form for secret in secrets for form in _forms(secret)}
        longest_first = sorted((form for form in sent if len(form) >= SHORTEST), key=len, reverse=True)
        if not longest_first:
            self._sent = re.compile(rb"(?!)")
            return
        # The lookahead spares most positions the alternatives.
        starts = {re.escape(spelling[0]) for form in longest_first for spelling in _spellings(form[0])}
        codes = dict.fromkeys(re.escape(code) for form in longest_first for code in _codes(form))
        spelled = f"(?i:(?=[{''.join(starts)}])(?:{'|'.join(map(_spelled, longest_first))}))"
        self._sent = re.compile("|".join([spelled, *codes]).encode("utf-8", "replace"))

    def hide(self, body: bytes) -> bytes:
        """The body with asterisks for secrets; its length, and with it the size of each read, stays."""
        body = self._sent.sub(_asterisks, body)
        for field, text in _JSON:
            body = field.sub(lambda found, text=text: found[1] + text.sub(_starred, found[2]), body)  # type: ignore[misc]
        body = _LOGIN.sub(_asterisks, body)
        return _PARAMETER.sub(lambda found: found[1] + b"*" * len(found[3]), body)

    def hide_in(self, text: str) -> str:
        """The text with asterisks for what was sent."""
        return self._sent.sub(_asterisks, text.encode("utf-8", "replace")).decode("utf-8", "replace")

    def hide_in_request(self, value: Any, field: str = "") -> Any:
        """A JSON value with asterisks for its secrets."""
        if isinstance(value, dict):
            return {key: self.hide_in_request(one, inner) for key, inner, one in _members(value, field)}
        if isinstance(value, list):
            return [
                [one[0], self.hide_in_request(one[1], f"{field}.{one[0]}")]
                if _is_header(one, field)
                else self.hide_in_request(one, field)
                for one in value
            ]
        if _is_value(value) and _FIELD.fullmatch(field):
            return "*" * len(str(value))
        if isinstance(value, str):
            if _HEADERS.fullmatch(field):
                value = _LINE.sub(lambda found: found[1] + found[2] + "*" * len(found[3]), value)
            return self.hide(value.encode()).decode("utf-8", "replace")
        return value


def _starred(found: re.Match[bytes]) -> bytes:
    return found[1] + b"*" * len(found[2]) + found[3]


def _asterisks(found: re.Match[bytes]) -> bytes:
    return b"*" * len(found[0])


def _in_url(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    for field in parts.query.split("&"):
        yield field.partition("=")[2]
    login = unquote(parts.netloc.rpartition("@")[0])
    # Without a password the name is a token; a client sends both as one word of base64.
    yield from _in_login(login if ":" in login else f"{login}:")


def _in_headers(headers: Mapping[str, str]) -> Iterator[str]:
    for name, value in headers.items():
        if name.lower() not in PUBLIC_HEADERS:
            yield value
            if "auth" in name.lower():
                yield from value.split()  # `Bearer KEY`; words of other headers, such as a title, are the answer's, too
            if name.lower() == "cookie":
                yield from (pair.partition("=")[2].strip() for pair in value.split(";"))
            scheme, _, code = value.strip().partition(" ")
            if scheme.lower() == "basic":
                with contextlib.suppress(ValueError):
                    yield from _in_login(b64decode(code).decode("utf-8", "replace"))


def _in_fields(value: Any, field: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for _, inner, one in _members(value, field):
            yield from _in_fields(one, inner)
    elif isinstance(value, list):
        for one in value:
            is_header = _is_header(one, field)
            yield from _in_fields(one[1], f"{field}.{one[0]}") if is_header else _in_fields(one, field)
    elif _is_value(value) and _FIELD.fullmatch(field):
        yield from _searched(field, _in_headers({field.rpartition(".")[2]: str(value)}))
    elif isinstance(value, str):
        for name, _, secret in _LINE.findall(value) if _HEADERS.fullmatch(field) else ():
            yield from _in_fields(secret, f"{field}.{name.strip()}")
        text = value.encode("utf-8", "replace")
        for login in _LOGIN.findall(text):
            yield from _in_login(unquote(login.decode())) if b":" in login else ()
        for _, name, secret in _PARAMETER.findall(text):
            yield from _searched(name.decode(), (secret.decode().rstrip(".,;:!?"),))


def _is_value(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _is_header(item: Any, field: str) -> bool:
    """Whether an item of a list of headers is a pair of name and value."""
    is_pair = isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) and _is_value(item[1])
    return is_pair and _HEADERS.fullmatch(field) is not None


def _searched(name: str, values: Iterable[str]) -> Iterator[str]:
    """The values that are searched for elsewhere; without a digit they may be words, such as a title's."""
    return (value for value in values if _NAMED.fullmatch(name) or any(map(str.isdigit, value)))


def _members(value: dict[str, Any], field: str) -> Iterator[tuple[str, str, Any]]:
    """Each key of an object, the field's name that its value counts under, and its value."""
    name = value.get("name", value.get("key"))
    pair = name if isinstance(name, str) and _NAMED.fullmatch(name) else field
    for key, one in value.items():
        if field in _SCHEMAS and isinstance(one, dict):
            yield key, "", one
        elif _IN_HOLDER.fullmatch(field) and key not in ("name", "type"):
            yield key, f"{field}.{name if key == 'value' and isinstance(name, str) else key}", one
        else:
            yield key, pair if key == "value" else key, one


def _in_login(login: str) -> tuple[str, ...]:
    user, _, password = login.partition(":")
    return login, password or user


def _forms(secret: str) -> set[str]:
    """A secret as it was sent, and as it was meant."""
    return {secret, unquote(secret), unquote_plus(secret)}


def _spelled(secret: str) -> str:
    """A pattern for a secret whose characters are escaped, or not, in the ways of URLs and JSON."""
    return "".join(f"(?:{'|'.join(map(re.escape, _spellings(char)))})" for char in secret)


@cache
def _spellings(char: str) -> list[str]:
    data = char.encode("utf-8", "replace")
    units = char.encode("utf-16-be", "replace")
    in_url = "".join(f"%{byte:02x}" for byte in data)
    in_json = "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
    short = {"/": "\\/", " ": "+"}.get(char, json.dumps(char, ensure_ascii=False)[1:-1])
    return [in_json, in_url, *dict.fromkeys((short, char))]


def _codes(secret: str) -> Iterator[str]:
    """A secret in base64, alone and inside of other text: its place there gives it three forms."""
    data = secret.encode("utf-8", "replace")
    for code in (b64encode, urlsafe_b64encode):
        yield code(data).decode()
        for before in range(3):
            first, last = -(-8 * before // 6), 8 * (before + len(data)) // 6
            yield code(bytes(before) + data).decode()[first:last]
