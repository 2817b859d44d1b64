"""Voices as providers send them, as 16-bit PCM."""

from __future__ import annotations

import binascii
from base64 import b64decode
from functools import lru_cache
from typing import Any, Literal

from stream.events import AudioDelta

__all__ = ["audio_of"]

_LAWS: dict[str, Literal["mu", "a"]] = {
    "audio/pcmu": "mu", "g711_ulaw": "mu", "audio/pcma": "a", "g711_alaw": "a",
}  # fmt: skip
_TELEPHONE_HZ = 8000


def audio_of(data: Any, form: str, rate_hz: int) -> AudioDelta | None:
    r"""A piece of audio, from base64 or bytes that a client has decoded; `None` if it is empty or not base64.

    G.711 (`"audio/pcmu"`, `"audio/pcma"`) is decoded, another media type with a slash is kept, anything else is PCM.

    >>> audio_of("/38A", "audio/pcmu", 24_000)
    AudioDelta(pcm=b'\x00\x00\x00\x00\x84\x82', mime='audio/pcm;rate=8000')
    """
    try:
        pcm = bytes(data) if isinstance(data, bytes | bytearray) else b64decode(data) if isinstance(data, str) else b""
    except (binascii.Error, ValueError):
        return None
    if not pcm:
        return None
    if form in _LAWS:
        low, high = _tables(_LAWS[form])
        decoded = bytearray(2 * len(pcm))
        decoded[::2], decoded[1::2] = pcm.translate(low), pcm.translate(high)
        return AudioDelta(bytes(decoded), f"audio/pcm;rate={_TELEPHONE_HZ}")
    return AudioDelta(pcm, form if "/" in form and form != "audio/pcm" else f"audio/pcm;rate={rate_hz}")


# `cues.signal.g711` has these laws as numpy tables: a reader may not import the engine, nor the engine this package.
@lru_cache(maxsize=2)
def _tables(law: Literal["mu", "a"]) -> tuple[bytes, bytes]:
    """The low and the high bytes of all 256 values of G.711 (11/88), tables 2a, 2b and 1a, 1b."""
    values = [(_mu_law if law == "mu" else _a_law)(byte).to_bytes(2, "little", signed=True) for byte in range(256)]
    return bytes(value[0] for value in values), bytes(value[1] for value in values)


def _mu_law(byte: int) -> int:
    byte ^= 0xFF
    size = (((byte & 0x0F) << 3) + 0x84 << ((byte & 0x70) >> 4)) - 0x84
    return -size if byte & 0x80 else size


def _a_law(byte: int) -> int:
    byte ^= 0x55
    segment, size = (byte & 0x70) >> 4, ((byte & 0x0F) << 4) + 8
    if segment:
        size = size + 0x100 << segment - 1
    return size if byte & 0x80 else -size
