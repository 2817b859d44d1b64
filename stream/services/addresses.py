"""Default addresses and the default model, from the environment."""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import urlsplit

from stream.errors import StreamValueError

__all__ = ["CLOUD_HOSTS", "cloud_address", "default_model", "local_address"]

LOCAL_DEFAULT = "http://127.0.0.1:11434"
CLOUD_DEFAULT = "https://ollama.com"
MODEL_DEFAULT = "qwen3-coder:480b"

CLOUD_HOSTS = frozenset({"ollama.com", "www.ollama.com", "api.ollama.com"})
OLLAMA_PORT = 11434


def default_model() -> str:
    """`ACTOR_MODEL`, else `qwen3-coder:480b`."""
    return os.environ.get("ACTOR_MODEL", "").strip() or MODEL_DEFAULT


def local_address() -> str:
    """`OLLAMA_LOCAL_BASE`, else `OLLAMA_HOST` (which Ollama reads, too), else port 11434 of this machine."""
    return _of_variable("OLLAMA_LOCAL_BASE") or _of_variable("OLLAMA_HOST") or LOCAL_DEFAULT


def cloud_address() -> str:
    """`OLLAMA_CLOUD_HOST`, else Ollama's cloud."""
    return _of_variable("OLLAMA_CLOUD_HOST") or CLOUD_DEFAULT


def _of_variable(name: str) -> str | None:
    """The address in a variable, in any form that Ollama's clients accept; `None` if the variable is empty.

    Scheme, host or port may be missing.
    """
    text = os.environ.get(name, "").strip(" \t\"'")
    if not text:
        return None
    if text in CLOUD_HOSTS:
        return f"https://{text}"
    scheme, marked, rest = text.rpartition("://")
    try:
        parts = urlsplit(f"{scheme or 'http'}://{_bracketed(rest)}")
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.scheme not in ("http", "https") or (not host and (marked or port is None)):
        raise StreamValueError(
            f"{name} is {text!r}; it must be an address, such as 'host', 'host:11434' or 'http://host'"
        )
    ending = f":{port}" if port is not None else "" if marked else f":{OLLAMA_PORT}"
    return f"{parts.scheme}://{_reachable(host or '127.0.0.1')}{ending}{parts.path.rstrip('/')}"


def _bracketed(host: str) -> str:
    """A bare IPv6 address in brackets, as in a URL; anything else unchanged."""
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host


def _reachable(host: str) -> str:
    """The address to connect to: loopback for the wildcard addresses `0.0.0.0` and `::`."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return _bracketed(host)
