"""A speaker for any OpenAI-compatible `audio.speech` server (OpenAI, Kokoro-FastAPI, openedai-speech, …)."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from cues.extras import needed
from stream.checks import header_value
from stream.errors import SpeakerError
from stream.redaction import logged_error
from stream.speech.speaker import PhraseSpeaker, Speech
from stream.urls import server_url, shown_url

__all__ = ["OpenAISpeaker"]

logger = logging.getLogger(__name__)

OPENAI, OPENAI_KEY = "https://api.openai.com/v1", "OPENAI_API_KEY"
LONGEST_ERROR = 1 << 16
"""Bytes of an error that are read."""
LONGEST_MESSAGE = 500
WAITS_S = {"timeout": 600.0, "connect": 5.0}
RETRIES_S = (0.5, 1.0)
"""Waits after a request that failed before any sound came."""
PASSING = frozenset({408, 409, 429, *range(500, 600)})
"""Statuses after which another request may succeed."""
FILES = (b"RIFF", b"OggS", b"fLaC", b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")
"""Beginnings of audio files, from servers that ignore the format: read as samples, an MP3 is loud noise."""


class OpenAISpeaker(PhraseSpeaker):
    """Speaks through `POST {base_url}/audio/speech` with `response_format="pcm"`: 24 kHz int16 mono without a header.

    Parameters
    ----------
    base_url : str or None
        The server's address with `/v1`; `None` is OpenAI's own. An impossible one raises a `StreamValueError`.
    model, voice : str
        Names that the server knows.
    api_key : str or None
        `None` takes `OPENAI_API_KEY` for OpenAI, and sends no key to any other server. White space around a key is
        not part of it; a `StreamValueError` is raised for one that no HTTP header can hold.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        model: str = "gpt-4o-mini-tts",
        voice: str = "alloy",
        api_key: str | None = None,
    ) -> None:
        super().__init__()
        self._url = f"{base_url or OPENAI}".rstrip("/") + "/audio/speech"
        server_url("base_url", self._url)
        self.name = f"{model} ({voice}) at {shown_url(base_url) if base_url else 'OpenAI'}"
        self._api_key, self._model, self._voice = header_value("api_key", api_key or ""), model, voice
        self._client: Any = None
        self._has_spoken = False

    async def start(self) -> None:
        """Make the client; no request is sent before the first phrase."""
        httpx2 = needed("httpx2", "services", "the speech server needs a client", SpeakerError)
        url, openai = urlsplit(self._url), urlsplit(OPENAI)
        is_openai = (url.scheme, url.hostname) == (openai.scheme, openai.hostname)
        key = self._api_key or (header_value(OPENAI_KEY, os.environ.get(OPENAI_KEY, "")) if is_openai else "")
        if is_openai and not key:
            raise SpeakerError(f"{self.name} needs a key in {OPENAI_KEY}; CUES_SPEECH_URL names another speech server")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._client = httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(**WAITS_S))

    async def speak(self, phrase: str) -> AsyncIterator[Speech]:
        """The speech of one phrase as it arrives; network reads of odd size are joined to whole samples."""
        import httpx2

        request = {"model": self._model, "voice": self._voice, "input": phrase, "response_format": "pcm"}
        for wait_s in (*RETRIES_S, None):
            if self._client is None:
                raise SpeakerError("the speech server's speaker has not been started, or was closed")
            held, has_spoken = b"", False
            try:
                async with self._client.stream("POST", self._url, json=request) as response:
                    kind = response.headers.get("content-type", "").lower()
                    if response.status_code == 200 and not kind.startswith(("application/json", "text/")):
                        async for data in response.aiter_bytes(4096):
                            if not has_spoken and data.startswith(FILES):
                                raise SpeakerError(f"{self.name} failed: it sends a file ({kind}), and no raw PCM")
                            held, has_spoken = held + data, True
                            n_whole = len(held) & ~1
                            yield Speech(
                                np.frombuffer(held[:n_whole], dtype="<i2").astype(np.float32) / np.float32(32768.0)
                            )
                            held = held[n_whole:]
                        self._has_spoken = self._has_spoken or has_spoken
                        if has_spoken or not any(map(str.isalnum, phrase)):
                            return
                        why, passes = "it has sent no sound", True  # as Kokoro-FastAPI does under load
                        if wait_s is None and self._has_spoken:  # it cannot say this phrase
                            logger.warning("%s has no sound for a phrase, which is left out", self.name)
                            return
                    else:
                        why = f"HTTP {response.status_code}: {await _message(response)}"
                        passes = response.status_code in PASSING
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                why, passes = logged_error(error), not has_spoken
            if wait_s is None or not passes:
                raise SpeakerError(f"{self.name} failed: {why}")
            await asyncio.sleep(wait_s)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()


async def _message(response: Any) -> str:
    """The beginning of an error's text."""
    body = b""
    async for data in response.aiter_bytes(4096):
        body += data
        if len(body) > LONGEST_ERROR:
            break
    return " ".join(body[:LONGEST_ERROR].decode("utf-8", "replace").split())[:LONGEST_MESSAGE]
