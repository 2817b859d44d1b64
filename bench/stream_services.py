"""Cost of the model services per question: time to the first word, and to the end of the answer.

    python -m bench.stream_services

Ratios inside this run: a connection alone and one with all services in front of it take turns on a server on loopback,
and the least time of many questions counts. 31 tools are offered, of which the tiers choose 6; the guidance is on.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import stream
from stream.replay.scenarios import Scenario
from stream.replay.server import ReplayServer

ROUNDS = 60
WORDS = 200
MOST = 1.25  # of the connection alone: on loopback a question takes 2 ms, from a model hundreds.
QUESTION = [{"role": "user", "content": "Could you switch the light in the kitchen off?"}]
GROUPS = {"zwave": 6, "playwright": 22, "custom": 3}
SCHEMA = {"type": "object", "properties": {"target": {"type": "string"}}, "required": ["target"]}
TOOLS = [
    stream.Tool(name=f"{group}_{number}", description=f"Does {number}.", parameters=SCHEMA, group=group)
    for group, count in GROUPS.items()
    for number in range(count)
]
ANSWER = Scenario(name="own", about="words", turns=([["say", "word " * WORDS]],))


async def timed(source: Any) -> tuple[float, float]:
    """Seconds to the first text, and to the end."""
    start, first = time.perf_counter(), 0.0
    async for event in source.chat(QUESTION, tools=TOOLS):
        if not first and isinstance(event, stream.TextDelta):
            first = time.perf_counter() - start
    return first, time.perf_counter() - start


async def main() -> int:
    """Ask, and print the least times."""
    over = 0
    async with ReplayServer(ANSWER, tokens_per_s=None) as server:
        for endpoint in ("chat", "ollama"):
            async with (
                stream.connect(server.base_url, "mistral", api=endpoint) as alone,
                stream.connect(server.base_url, "mistral", api=endpoint, guide=True) as model,
            ):
                tiers = stream.services.ToolTiers(stream.services.Recovery(model))
                sources = (alone, stream.ToolRunner(tiers, TOOLS, executes="server"))
                times: list[list[tuple[float, float]]] = [[], []]
                for _ in range(ROUNDS):
                    for source, kept in zip(sources, times, strict=True):
                        kept.append(await timed(source))
                for name, place in (("first word", 0), ("whole answer", 1)):
                    bare, stacked = (1000.0 * min(kept[place] for kept in of_source) for of_source in times)
                    over += stacked / bare > MOST
                    took = f"{bare:6.2f} ms alone, {stacked:6.2f} ms with services"
                    print(f"{endpoint:7} {name:13} {took}: {stacked / bare:.2f}")
    print(f"goal: at most {MOST} of the connection alone")
    return bool(over)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
