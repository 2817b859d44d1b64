"""Addresses of servers, names of models; defaults and keys from the environment."""

import ipaddress
import os
import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from stream.checks import check_choice, header_value
from stream.errors import StreamValueError
from stream.urls import server_url, shown_url

__all__ = [
    "CLOUD_HOSTS",
    "Api",
    "api_and_address",
    "cloud_address",
    "default_model",
    "is_near",
    "key_for",
    "local_address",
    "normalize_model",
]

Api: TypeAlias = Literal["chat", "ollama"]
"""Chat Completions, and Ollama's own `/api/chat`."""

CLOUD_HOSTS = frozenset({"ollama.com", "www.ollama.com", "api.ollama.com"})
OLLAMA_PORT = 11434
KEYS = {
    **dict.fromkeys(CLOUD_HOSTS, ("OLLAMA_API_KEY",)),
    "api.openai.com": ("OPENAI_API_KEY",),
    "api.anthropic.com": ("ANTHROPIC_API_KEY",),
    "generativelanguage.googleapis.com": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
}
"""Variables with the keys of a host, which gets no other key."""
PATHS = ("/chat/completions", "/api/chat", "/api")


def key_for(host: str, *, asks_cloud: bool = False) -> str | None:
    """The key in the environment that belongs to a host; `StreamValueError` if no header can hold it."""
    names = ("OLLAMA_API_KEY",) if asks_cloud else KEYS.get(host, ())
    return next(filter(None, (header_value(name, os.environ.get(name, "")) for name in names)), None)


def api_and_address(base_url: str, api: Literal["auto", "chat", "ollama"] = "auto") -> tuple[Api, str, str]:
    """The API to use, the server's root URL, and the URL before the API's path; raises `StreamValueError`.

    >>> api_and_address("http://localhost:11434")
    ('chat', 'http://localhost:11434', 'http://localhost:11434/v1')
    >>> api_and_address("https://ollama.com")
    ('ollama', 'https://ollama.com', 'https://ollama.com')
    """
    parts = server_url("base_url", base_url)
    check_choice("api", api, ("auto", "chat", "ollama"))
    path = _before_api(parts.path)
    root = urlunsplit((parts.scheme, parts.netloc, path.removesuffix("/v1"), "", ""))
    if api == "ollama" or (api == "auto" and parts.hostname in CLOUD_HOSTS):
        return "ollama", root, root
    return "chat", root, urlunsplit((parts.scheme, parts.netloc, path or "/v1", "", ""))  # another path is kept


def _before_api(path: str) -> str:
    path = path.rstrip("/")
    return path.removesuffix(next((ending for ending in PATHS if path.endswith(ending)), ""))


def default_model() -> str:
    """`ACTOR_MODEL`, else `qwen3-coder:480b`."""
    return os.environ.get("ACTOR_MODEL", "").strip() or "qwen3-coder:480b"


def local_address() -> str:
    """`OLLAMA_LOCAL_BASE`, else `OLLAMA_HOST` (which Ollama reads, too), else port 11434 of this machine."""
    return _of_variable("OLLAMA_LOCAL_BASE") or _of_variable("OLLAMA_HOST") or f"http://127.0.0.1:{OLLAMA_PORT}"


def cloud_address() -> str:
    """`OLLAMA_CLOUD_HOST`, else Ollama's cloud."""
    return _of_variable("OLLAMA_CLOUD_HOST") or "https://ollama.com"


def _of_variable(name: str) -> str | None:
    """The address in a variable, in any form that Ollama's clients accept; `None` if the variable is empty."""
    text = os.environ.get(name, "").strip(" \t\"'")
    if not text:
        return None
    if text in CLOUD_HOSTS:
        return f"https://{text}"
    scheme, marked, rest = text.rpartition("://")
    try:
        parts = urlsplit(f"{scheme or 'http'}://{_reachable(rest)}")
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.scheme not in ("http", "https") or (not host and (marked or port is None)):
        raise StreamValueError(
            f"{name} is {shown_url(text)!r}; it must be an address, such as 'host', 'host:11434' or 'http://host'"
        )
    ending = f":{port}" if port is not None else "" if marked else f":{OLLAMA_PORT}"
    path = _before_api(parts.path)
    if path and not path.endswith("/v1"):
        path += "/v1"  # Ollama behind a proxy's path; another server's path would stand as it is
    return f"{parts.scheme}://{_reachable(host or '127.0.0.1')}{ending}{path}"


def _reachable(host: str) -> str:
    """A bare IPv6 address in brackets, loopback for the wildcard addresses `0.0.0.0` and `::`; any other unchanged."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return f"[{host}]" if address.version == 6 else host


def is_near(url: str) -> bool:
    """Whether a URL is of this machine or of a private network, where the user may have to start the server."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_private
    except ValueError:
        return False


def normalize_model(model: str, target: Literal["local", "cloud"]) -> str:
    """The name of a model as Ollama's cloud, or (`"local"`) any other server, expects it.

    `"local"` changes `…cloud` names only; `"cloud"` also writes a hyphen before a size at the end as a colon.

    Examples
    --------
    >>> normalize_model("qwen3-coder:480b-cloud", "cloud")
    'qwen3-coder:480b'
    >>> normalize_model("gpt-oss-120b-cloud", "local")
    'gpt-oss:120b-cloud'
    >>> normalize_model("gpt-oss-20b", "cloud")
    'gpt-oss:20b'
    """
    name = str(model or "").strip()
    if not name:
        raise StreamValueError(f"model is {model!r}; it must be the name of a model")
    for rule in _rules()[target]:
        name = re.sub(rule["pattern"], rule["replace"], name, count=1)
    return name


@cache
def _rules() -> dict[str, list[dict[str, str]]]:
    return tomllib.loads(files("stream.services").joinpath("model_names.toml").read_text(encoding="utf-8"))
