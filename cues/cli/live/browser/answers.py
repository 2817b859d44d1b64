"""Who answers a question: a model server, or recordings served as one."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stream.replay.server import ReplayServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    import stream
    from cues.cli.live.scripts import Script

__all__ = ["Target", "served"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A model to ask.

    Attributes
    ----------
    base_url, model, api, api_key
        As in `stream.connect`.
    tools : Sequence of Tool
        Offered to the model; those with a function are run.
    rounds : int or None
        Most rounds of tool calls.
    """

    base_url: str
    model: str
    api: Literal["auto", "chat", "responses", "ollama", "anthropic", "gemini"] = "auto"
    api_key: str | None = None
    tools: Sequence[stream.Tool] = ()
    rounds: int | None = None

    @property
    def runs_tools(self) -> bool:
        """Whether the tools run here."""
        return bool(self.tools) and all(tool.function is not None for tool in self.tools)


@asynccontextmanager
async def served(scripts: Sequence[Script]) -> AsyncIterator[list[Target]]:
    """A replay server for each script, as targets in the same order."""
    async with AsyncExitStack() as stack:
        targets = []
        for script in scripts:
            server = ReplayServer(script.turns, tokens_per_s=script.tokens_per_s)
            await stack.enter_async_context(server)
            targets.append(
                Target(
                    base_url=server.base_url,
                    model="replay",
                    api=script.turns[0].api or "chat",  # type: ignore[arg-type]  # no session can be asked
                    tools=script.tools(),
                    rounds=max(len(script.turns) - 1, 1),
                )
            )
        yield targets
