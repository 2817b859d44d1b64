"""Cost of `stream.repair` beside `stream.read` on the same objects (goal R1).

    python -m bench.stream_repair [--json]

Ratios inside this run: the contenders take turns, and the least CPU time of many counts.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from openai.types.chat import ChatCompletionChunk

import stream
from bench.goals import at_most, run
from bench.stream_readers import LINES, chunk, least, opening, piece

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from bench.goals import Figure

ROUNDS = 60
CHUNKS = {
    "text": [chunk({"content": "hello "})] * LINES,
    "thoughts": [chunk({"reasoning_content": "hello "})] * LINES,
    "six-character argument pieces": [opening(), *[piece("abcdef")] * LINES],
}


def drained(shell: Callable[..., AsyncIterator[Any]], chunks: list[Any]) -> Callable[[], None]:
    """Go once through a stream."""

    async def source() -> AsyncIterator[Any]:
        for one in chunks:
            yield one

    async def go() -> None:
        async for _ in shell(source(), tools=["note"]):
            pass

    return lambda: asyncio.run(go())


def figures() -> Iterator[Figure]:
    """All rows."""
    for what, dicts in CHUNKS.items():
        for kind, chunks in (("dicts", dicts), ("objects", [ChatCompletionChunk.model_validate(one) for one in dicts])):
            read, repair = least(drained(stream.read, chunks), drained(stream.repair, chunks), rounds=ROUNDS)
            note = f"{(repair - read) / LINES * 1e6:.2f} µs more a chunk"
            yield at_most("R1", f"stream.repair / stream.read, {what}, {kind}", repair / read, 1.5, note=note)


if __name__ == "__main__":
    sys.exit(run(__doc__, figures))
