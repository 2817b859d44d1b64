"""Asterisks for the secrets in a recording: what was sent as a key, and fields that hold one."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Secrets"]

PUBLIC_HEADERS = frozenset({"content-type", "accept", "user-agent", "anthropic-version", "anthropic-beta"})
SHORTEST = 8
"""Characters of a secret; shorter values, such as `alt=sse`, are words of the answer."""

# By the end of a field's name, in any case: `Authorization`, `x-api-key`, `X-Auth-Token`, a session's `client_secret`.
_ENDS = (
    "api[-_]?key|authorization(?:[-_]?token)?|secret|password|cookie|newhandle|ephemeral[-_]?key"
    "|(?:access|auth|bearer|refresh|session)[-_]?token"
)
_FIELD = re.compile(rf"(?i).*(?:{_ENDS})")
_JSON = re.compile(
    rf'(?i)("[^"\\]{{0,64}}(?:{_ENDS})"\s*:\s*(?:\{{[^{{}}]*?"value"\s*:\s*)?")((?:[^"\\]|\\.)*)'.encode()
)


class Secrets:
    """The secrets of a request: passwords, values of the query, headers and their words, in any spelling."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        forms = {form for secret in {*_in_url(url), *_in_headers(headers)} for form in _forms(secret)}
        longest_first = sorted(forms, key=len, reverse=True)
        sent = b"|".join(re.escape(form.encode("utf-8", "replace")) for form in longest_first)
        self._sent = re.compile(sent or rb"(?!)", re.IGNORECASE)

    def hide(self, body: bytes) -> bytes:
        """The body with asterisks for secrets; its length, and with it the size of each read, stays."""
        return _JSON.sub(lambda found: found[1] + b"*" * len(found[2]), self._sent.sub(_asterisks, body))

    def hide_in(self, text: str) -> str:
        """The text with asterisks for what was sent."""
        return self._sent.sub(_asterisks, text.encode("utf-8", "replace")).decode("utf-8", "replace")

    def hide_in_request(self, value: Any, field: str = "") -> Any:
        """A JSON value with asterisks for its secrets."""
        if isinstance(value, dict):
            inner = {key: field if key == "value" else key for key in value}
            return {key: self.hide_in_request(one, inner[key]) for key, one in value.items()}
        if isinstance(value, list):
            return [self.hide_in_request(one, field) for one in value]
        if isinstance(value, str):
            return "*" * len(value) if _FIELD.fullmatch(field) else self.hide(value.encode()).decode("utf-8", "replace")
        return value


def _asterisks(found: re.Match[bytes]) -> bytes:
    return b"*" * len(found[0])


def _in_url(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    for field in parts.query.split("&"):
        yield field.partition("=")[2]
    login = parts.netloc.rpartition("@")[0]
    user, _, password = (unquote(part) for part in login.partition(":"))
    # Without a password the name is a token; a client sends both as one word of base64.
    yield password or user
    if login:
        yield b64encode(f"{user}:{password}".encode("utf-8", "replace")).decode()


def _in_headers(headers: Mapping[str, str]) -> Iterator[str]:
    for name, value in headers.items():
        if name.lower() not in PUBLIC_HEADERS:
            yield from (value, *value.split())


def _forms(secret: str) -> set[str]:
    """A secret as it was sent, and as URLs and JSON write it."""
    plain = {secret, unquote(secret), unquote_plus(secret)}
    forms = set(plain)
    for one in plain:
        forms |= {quote(one, safe=safe, errors="replace") for safe in ("", "/")} | {quote_plus(one, errors="replace")}
        written = {json.dumps(one, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
        forms |= written | {text.replace("/", r"\/") for text in written}
    return {form for form in forms if len(form) >= SHORTEST}
