"""A speaker for any OpenAI-compatible `audio.speech` server (OpenAI, Kokoro-FastAPI, openedai-speech, …)."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from cues.extras import needed
from stream.errors import SpeakerError
from stream.speech.speaker import PhraseSpeaker, Speech

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

__all__ = ["OpenAISpeaker"]

_in_request: ContextVar[bool] = ContextVar("in_request", default=False)


class OpenAISpeaker(PhraseSpeaker):
    """Speaks through `POST {base_url}/audio/speech` with `response_format="pcm"`: 24 kHz int16 mono without a header.

    Parameters
    ----------
    base_url : str or None
        The server's address with `/v1`; `None` is OpenAI's own.
    model, voice : str
        Names that the server knows.
    api_key : str or None
        `None` takes `OPENAI_API_KEY`; local servers accept any.
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
        self.name = f"{model} ({voice}) at {base_url or 'OpenAI'}"
        self._base_url, self._api_key = base_url, api_key
        self._model, self._voice = model, voice
        self._client: Any = None

    async def start(self) -> None:
        """Make the client; no request is sent before the first phrase."""
        openai = needed("openai", "openai", "the speech server needs a client", SpeakerError)
        try:
            self._client = openai.AsyncOpenAI(base_url=self._base_url, api_key=self._api_key)
        except openai.OpenAIError as error:
            words = f"{self.name} needs a key in OPENAI_API_KEY; CUES_SPEECH_URL names another speech server"
            raise SpeakerError(words) from error

    async def speak(self, phrase: str) -> AsyncIterator[Speech]:
        """The speech of one phrase as it arrives; network reads of odd size are joined to whole samples."""
        from openai import OpenAIError

        if self._client is None:
            raise SpeakerError("the speech server's speaker has not been started, or was closed")
        request = {"model": self._model, "voice": self._voice, "input": phrase, "response_format": "pcm"}
        try:
            async with AsyncExitStack() as stack:
                answer = self._client.audio.speech.with_streaming_response.create(**request)
                with _bodies_unlogged():
                    response = await stack.enter_async_context(answer)
                held = b""
                async for data in response.iter_bytes(4096):
                    held += data
                    n_whole = len(held) & ~1
                    samples = np.frombuffer(held[:n_whole], dtype="<i2").astype(np.float32) / np.float32(32768.0)
                    held = held[n_whole:]
                    if len(samples):
                        yield Speech(samples)
        except OpenAIError as error:
            raise SpeakerError(f"{self.name} failed: {error}") from error

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()


@contextmanager
def _bodies_unlogged() -> Iterator[None]:
    """Keep the bodies of requests sent in this context out of the log, where `openai` before version 3 writes them."""
    logging.getLogger("openai._base_client").addFilter(_without_bodies)  # logging adds the same filter only once
    token = _in_request.set(True)
    try:
        yield
    finally:
        _in_request.reset(token)


def _without_bodies(record: logging.LogRecord) -> bool:
    """True: the record stays, but a body of ours is redacted."""
    if _in_request.get() and isinstance(record.args, dict) and "json_data" in record.args:
        record.args = {**record.args, "json_data": "<redacted>", "extra_json": "<redacted>"}
    return True
