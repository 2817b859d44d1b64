"""URLs: their parts, and a form without secrets for messages."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from stream.errors import StreamValueError

if TYPE_CHECKING:
    from urllib.parse import SplitResult

__all__ = ["server_url", "shown_url"]


def server_url(name: str, url: object, schemes: tuple[str, ...] = ("http", "https")) -> SplitResult:
    """The parts of a server's URL, with a valid host and port; any other raises `StreamValueError`.

    >>> server_url("base_url", "http://localhost:99999")
    Traceback (most recent call last):
    stream.errors.StreamValueError: base_url is 'http://localhost:99999'; it must be an http:// or https:// address
    """
    try:
        parts = urlsplit(str(url).strip())
        usable = parts.scheme in schemes and bool(parts.hostname) and (parts.port or 0) >= 0
    except ValueError:
        usable = False
    if not usable:
        allowed = " or ".join(f"{scheme}://" for scheme in schemes)
        raise StreamValueError(f"{name} is {shown_url(str(url))!r}; it must be an {allowed} address")
    return parts


def shown_url(url: str) -> str:
    """The URL without user, password, query and fragment.

    >>> shown_url("https://me:word@host:99999/v1?key=secret")
    'https://host:99999/v1'
    """
    scheme, marked, rest = url.partition("://")
    rest = rest if marked else scheme
    address = rest.split("?", 1)[0].split("#", 1)[0]
    host, slash, path = address.partition("/")
    return f"{scheme if marked else ''}{marked}{host.rpartition('@')[2]}{slash}{path}"
