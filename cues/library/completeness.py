"""Whether an audio file has the samples that its header promises: libsndfile reads what is there without an error."""

import io
from collections.abc import Iterator
from typing import IO, Literal

__all__ = ["missing_bytes"]

_UNKNOWN_BYTES = (0xFFFFFFFF, 0x7FFFF000, 0x7FFFFF00, 0x7FFF0000, 0x7FFFFFDB, 0x7F000000)
"""Lengths that ffmpeg, SoX, ALSA, GStreamer, opusdec and SoX (AIFF) write to a pipe, rounded down to whole frames."""
_CHUNKED: dict[bytes, Literal["little", "big"]] = {b"RIFF": "little", b"RF64": "little", b"RIFX": "big", b"FORM": "big"}
_SUN: dict[bytes, Literal["little", "big"]] = {b".snd": "big", b"dns.": "little"}
_LONGEST_PAGE = 27 + 255 + 255 * 255
_W64_HEADER = 24  # of a chunk of Sony Wave64, which its length includes: 16 bytes of name and 8 of length


def missing_bytes(file: IO[bytes]) -> tuple[int, int]:
    """Bytes of samples that a header promises, and that the file has; zeros if it is complete, or does not tell.

    Of OGG it is the last page. FLAC fails when it is decoded, and MP3 has no length.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    head = file.read(12)
    if head.startswith(b"OggS"):
        return _of_last_page(file, size)
    if (order := _SUN.get(head[:4])) is not None:
        start, length, frame_bytes = int.from_bytes(head[4:8], order), int.from_bytes(head[8:12], order), 1
    else:
        start, length, frame_bytes = _of_chunks(file, head, size)
    is_known = all(not 0 <= unknown - length < frame_bytes for unknown in _UNKNOWN_BYTES)
    return (length, size - start) if is_known and length - (size - start) >= frame_bytes else (0, 0)


def _of_chunks(file: IO[bytes], head: bytes, size: int) -> tuple[int, int, int]:
    """Start and length of the samples, and the length of a frame, bytes; zeros if no samples are found."""
    order = _CHUNKED.get(head[:4], "little")
    frame_bytes, long = 1, 0
    for name, start, length in _chunks(file, head, size):
        file.seek(start)
        if name == b"fmt ":
            frame_bytes = max(1, int.from_bytes(file.read(16)[12:14], order))
        elif name == b"COMM":
            fields = file.read(8)
            frame_bytes = max(1, int.from_bytes(fields[:2], order) * -(-int.from_bytes(fields[6:8], order) // 8))
        elif name == b"ds64":  # of RF64, whose other lengths are 2³² − 1
            long = int.from_bytes(file.read(16)[8:16], order)
        elif name in (b"data", b"SSND"):
            return start, long or length, frame_bytes
    return 0, 0, 1


def _chunks(file: IO[bytes], head: bytes, size: int) -> Iterator[tuple[bytes, int, int]]:
    """Name, start and length of each chunk."""
    order, is_w64 = _CHUNKED.get(head[:4], "little"), head.startswith(b"riff")
    at, header, step = (40, _W64_HEADER, 8) if is_w64 else (12, 8, 2)
    while (is_w64 or head[:4] in _CHUNKED) and at + header <= size:
        file.seek(at)
        fields = file.read(header)
        length = int.from_bytes(fields[16:] if is_w64 else fields[4:], order)
        length = max(length - header, 0) if is_w64 else length
        yield fields[:4], at + header, length
        at += header + length + -length % step


def _of_last_page(file: IO[bytes], size: int) -> tuple[int, int]:
    """Bytes of the last page of an OGG file, as its header has them, and as the file has them."""
    file.seek(max(size - _LONGEST_PAGE, 0))
    page = file.read()
    page = page[page.rfind(b"OggS") :]
    segments = page[27 : 27 + page[26]] if len(page) > 26 else b""
    is_whole_header = len(page) > 26 and len(segments) == page[26]
    length = 27 + page[26] + sum(segments) if is_whole_header else len(page) + 1
    return (length, len(page)) if len(page) < length else (0, 0)
