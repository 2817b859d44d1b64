"""URLs: their parts, and a form without secrets for messages."""

import re
from urllib.parse import SplitResult, urlsplit

from stream.errors import StreamValueError

__all__ = ["server_url", "shown_url"]

# An `@` behind a host is of the path or the query, not of a password, which may hold `/`, `?` and `#`.
_HOST = re.compile(r"[a-z][a-z0-9+.-]*://(\[[^\]/@]*\]|[^/@:?#\[]+)(:\d*)?(?=[/?#]|$)", re.IGNORECASE)
_USER = re.compile(r"^((?:[a-z][a-z0-9+.-]*:(?=[/\\]))?[/\\]*).*@", re.IGNORECASE | re.DOTALL)


def server_url(name: str, url: object) -> SplitResult:
    """The parts of a server's URL, with a valid host and port; any other raises `StreamValueError`.

    >>> server_url("base_url", "http://localhost:99999")
    Traceback (most recent call last):
    stream.errors.StreamValueError: base_url is 'http://localhost:99999'; it must be an http:// or https:// address
    """
    try:
        parts = urlsplit(str(url).strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 0) >= 0
    except ValueError:
        usable = False
    if not usable:
        raise StreamValueError(f"{name} is {shown_url(str(url))!r}; it must be an http:// or https:// address")
    return parts


def shown_url(url: str) -> str:
    """The URL without user, password, query and fragment, or what looks like one.

    >>> shown_url("https://me:word@host:99999/v1?key=secret")
    'https://host:99999/v1'
    >>> shown_url("//me:word@host/v1")
    '//host/v1'
    """
    address = _before_query(url)
    if _HOST.match(url):
        return address
    return _USER.sub(r"\1", address) if "@" in address else _before_query(_USER.sub(r"\1", url))


def _before_query(url: str) -> str:
    return re.split("[?#]", url, maxsplit=1)[0]
