"""espeak-ng as a speaker, in a child process: a real voice without a model to download.

espeak-ng is GPL-3.0 and keeps one engine with global state per process. In a process of its own it is not linked into
the user's program, and two speakers do not interfere.
"""

import asyncio
import contextlib
import importlib.util
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import numpy as np

from cues.extras import pip_install
from stream.errors import SpeakerError
from stream.speech.speaker import SAMPLE_RATE, PhraseSpeaker, Speech, Word

__all__ = ["EspeakSpeaker"]


class EspeakSpeaker(PhraseSpeaker):
    """Speaks through espeak-ng, with one of its voices (`"en-us"`, `"de"`, …)."""

    def __init__(self, voice: str = "en-us") -> None:
        super().__init__()
        self.name = f"espeak-ng ({voice})"
        self._voice = voice
        self._process: asyncio.subprocess.Process | None = None
        self._is_speaking = False

    async def start(self) -> None:
        """Start the child process and wait until its engine is ready."""
        if importlib.util.find_spec("espeakng_loader") is None:
            raise SpeakerError(f"espeak-ng is not installed: {pip_install('espeak')}")
        self._is_speaking = False
        command = (sys.executable, "-m", "stream.speech.espeak_process", self._voice)
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
        import soxr  # noqa: F401  (now, not at the first phrase: it takes 50 ms)

        try:
            await self._header()
        except BaseException:
            await self.aclose()
            raise

    async def speak(self, phrase: str) -> AsyncIterator[Speech]:
        """The speech of one phrase, resampled to 24 kHz as the child delivers it."""
        import soxr

        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(phrase).encode() + b"\n")
        self._is_speaking = True
        resampler: Any = None
        is_last = False
        n_read = n_made = 0  # the resampler's output lags behind its input
        while not is_last:
            header = await self._header()
            rate, is_last = header["sample_rate"], header["last"]
            data = await process.stdout.readexactly(header["n_bytes"])
            resampler = resampler or soxr.ResampleStream(rate, SAMPLE_RATE, 1, dtype="float32", quality="HQ")
            samples = np.frombuffer(data, dtype="<i2").astype(np.float32) / np.float32(32768.0)
            words = tuple(
                Word(text, (n_read + start) * SAMPLE_RATE // rate - n_made) for text, start in header["words"]
            )
            self._is_speaking = not is_last
            speech = np.asarray(resampler.resample_chunk(samples, last=is_last), dtype=np.float32)
            yield Speech(speech, words)
            n_read, n_made = n_read + len(samples), n_made + len(speech)

    async def cancel(self) -> None:
        """Drop the text sent; a child in mid-phrase is replaced, because its audio would precede the next answer."""
        await super().cancel()
        if self._is_speaking:
            await self.aclose()
            await self.start()

    async def aclose(self) -> None:
        """End the child process."""
        if self._process is None:
            return
        process, self._process = self._process, None
        assert process.stdin is not None
        process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        with contextlib.suppress(ConnectionError):
            await process.stdin.wait_closed()
        await process.communicate()

    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise SpeakerError("the espeak-ng speaker has not been started, or was closed")
        return self._process

    async def _header(self) -> dict[str, Any]:
        """The child's next header line; raises `SpeakerError` with the child's message if it has ended."""
        process = self._running()
        assert process.stdout is not None
        assert process.stderr is not None
        line = await process.stdout.readline()
        if line:
            header: dict[str, Any] = json.loads(line)
            return header
        message = (await process.stderr.read()).decode(errors="replace").strip().splitlines()
        raise SpeakerError(f"espeak-ng ended: {message[-1] if message else f'exit code {await process.wait()}'}")
