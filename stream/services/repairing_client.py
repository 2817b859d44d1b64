"""HTTP clients for the `openai` package whose answers of Chat Completions are repaired; see `stream.repair`."""

import json
import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from cues.extras import needed
from stream.errors import MissingFeatureError
from stream.readers.options import Start
from stream.redaction import logged_list
from stream.repairing.chat import ChatRepair
from stream.repairing.streams import repaired, repaired_sync

__all__ = ["PATH", "repair_of", "repairing_client", "repairing_client_sync", "repairing_hooks"]

PATH = "/chat/completions"
"""End of the paths whose answers are repaired."""
DECODED = {"", "identity", "gzip", "deflate"}
"""Encodings that every version of the HTTP client decodes."""

_Hooks: TypeAlias = dict[str, list["Callable[[Any], Any]"]]

logger = logging.getLogger(__name__)


def repairing_client(
    *,
    told: Literal["hide", "run"] = "hide",
    without_tools: Literal["drop", "pass"] = "drop",
    start: Start = "text",
    **options: Any,
) -> Any:
    """An HTTP client for `openai.AsyncOpenAI(http_client=…)`: streams and whole answers come repaired.

    The tools that count are those of each request. Errors, and all other endpoints, pass as they are.

    Parameters
    ----------
    told, without_tools, start : {"hide", "run"}, {"drop", "pass"}, {"text", "reasoning"}
        See `stream.repair`.
    **options
        Those of `openai.DefaultAsyncHttpxClient`, such as `proxy`, `limits`, `timeout` or `event_hooks`.

    Returns
    -------
    httpx2.AsyncClient
        Or of `httpx`, with a version of the `openai` package that uses it.

    Raises
    ------
    StreamValueError
        If `told`, `without_tools` or `start` is unknown.
    MissingFeatureError
        If the `openai` package is not installed.

    Examples
    --------
    >>> import openai
    >>> http = repairing_client(timeout=20.0)
    >>> client = openai.AsyncOpenAI(base_url="http://localhost:8000/v1", api_key="none", http_client=http)
    """
    return _client("DefaultAsyncHttpxClient", options, told=told, without_tools=without_tools, start=start)


def repairing_client_sync(
    *,
    told: Literal["hide", "run"] = "hide",
    without_tools: Literal["drop", "pass"] = "drop",
    start: Start = "text",
    **options: Any,
) -> Any:
    """The same for `openai.OpenAI(http_client=…)`: made from `openai.DefaultHttpxClient`; see `repairing_client`."""
    return _client("DefaultHttpxClient", options, told=told, without_tools=without_tools, start=start)


def _client(name: str, options: Mapping[str, Any], **repairs: Any) -> Any:
    kind = getattr(needed("openai", "openai", "a repairing client needs the openai package", MissingFeatureError), name)
    given: Mapping[str, Any] = options.get("event_hooks") or {}
    ours = repairing_hooks(is_async="Async" in name, **repairs)
    hooks = {  # a user's hook sees the repaired answer
        "request": [*given.get("request", ()), *ours["request"]],
        "response": [*ours["response"], *given.get("response", ())],
    }
    return kind(**{**options, "event_hooks": hooks})


def repairing_hooks(*, is_async: bool, **repairs: Any) -> _Hooks:
    """Hooks for an `httpx2` or `httpx` client; `repairs` are the options of `ChatRepair`."""
    ChatRepair(**repairs)  # a mistake raises now

    def ask(request: Any) -> None:
        if _is_question(request):
            request.read()
            request.headers["accept-encoding"] = "identity"  # an encoder may hold what came

    def answer(response: Any) -> None:
        if _is_question(response.request) and response.is_success:
            _repair(response, repairs)

    async def ask_async(request: Any) -> None:
        if _is_question(request):
            await request.aread()
        ask(request)

    async def answer_async(response: Any) -> None:
        answer(response)

    return (
        {"request": [ask_async], "response": [answer_async]} if is_async else {"request": [ask], "response": [answer]}
    )


def _is_question(request: Any) -> bool:
    return bool(request.method == "POST" and request.url.path.endswith(PATH))


def repair_of(question: bytes, encoding: str, **repairs: Any) -> ChatRepair | None:
    """A repair for the answer to a question; None if the question is no request, or the answer cannot be decoded."""
    try:
        body = json.loads(question)
    except (ValueError, RecursionError):
        return None
    encodings = {name.strip().lower() for name in encoding.split(",")} - DECODED
    if encodings:
        logger.warning("an answer encoded as %s passes without repair", logged_list(sorted(encodings)))
    return ChatRepair.of_request(body, **repairs) if isinstance(body, dict) and not encodings else None


def _repair(response: Any, repairs: Mapping[str, Any]) -> None:
    """Put a repairing stream in place of a response's own."""
    repair = repair_of(response.request.content, response.headers.get("content-encoding", ""), **repairs)
    if repair is None:
        return
    # Hooks may change a response by the client's documentation, which names no fields; `stream` is public in both
    # packages. A transport of our own would lose the proxies and limits that the client gives to its transports.
    package = sys.modules[type(response).__module__.partition(".")[0]]
    kind = type("Repaired", (_Repaired, package.AsyncByteStream, package.SyncByteStream), {})
    response.stream = kind(response, repair)
    for name in ("content-length", "content-encoding"):
        response.headers.pop(name, None)


class _Repaired:
    """The stream of a response: decoded by a second response, then repaired."""

    def __init__(self, response: Any, repair: ChatRepair) -> None:
        self._source, self._repair = response.stream, repair
        self._answer = type(response)(
            response.status_code, headers=response.headers, stream=response.stream, request=response.request
        )

    def __iter__(self) -> Iterator[bytes]:
        return repaired_sync(self._answer.iter_bytes(), self._repair)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return repaired(self._answer.aiter_bytes(), self._repair)

    def close(self) -> None:
        self._answer.close()

    async def aclose(self) -> None:
        await self._answer.aclose()

    @property
    def elapsed(self) -> timedelta | None:
        """For `response.elapsed` of httpx2; httpx sets that itself."""
        return getattr(self._source, "elapsed", None)
