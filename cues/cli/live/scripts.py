"""Scripted turns: recordings of model servers, and what their tools answer."""

from __future__ import annotations

import json
import tomllib
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import TYPE_CHECKING, Any

import stream
from cues.cli.live.turn import Target
from stream.clock import WallClock
from stream.replay.recording import Recording, load_recording, samples_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from stream.clock import Clock

__all__ = ["Script", "built_in_scripts", "demo_script", "script_of", "served"]

_ERROR = "error: "
"""A scripted result that begins so is raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A scripted turn: its subject, the question, and the answers to it, after the first tool results, and so on.

    `results` maps the name of a tool to its result, which takes `tool_s` seconds.
    """

    title: str
    prompt: str
    turns: Sequence[Recording]
    results: Mapping[str, str] = field(default_factory=dict)
    tool_s: float = 1.5
    tokens_per_s: float = 15.0

    def tools(self, clock: Clock | None = None) -> list[stream.Tool]:
        """The tools of the recorded request, with scripted results; none if no turn follows them."""
        offered = (self.turns[0].request or {}).get("tools", ()) if len(self.turns) > 1 else ()
        return [self._tool(stream.Tool.of(definition), clock or WallClock()) for definition in offered]

    def _tool(self, tool: stream.Tool, clock: Clock) -> stream.Tool:
        result = self.results.get(tool.name, '{"done": true}')

        async def run(**_: object) -> str:
            await clock.sleep(self.tool_s)
            if result.startswith(_ERROR):
                raise RuntimeError(result.removeprefix(_ERROR))
            return result

        return replace(tool, function=run)


def built_in_scripts() -> list[Script]:
    """The demo, and the scripts of `scripts.toml`."""
    table = tomllib.loads(resources.files(__package__).joinpath("scripts.toml").read_text(encoding="utf-8"))
    return [demo_script(), *(_script(entry, samples_folder()) for entry in table["script"])]


def demo_script() -> Script:
    """The turn of `cues demo`."""
    folder = samples_folder()
    demo = json.loads((folder / "demo.json").read_text(encoding="utf-8"))
    return Script(
        title="one call",
        prompt=demo["prompt"],
        turns=[_respelled(load_recording(folder / name), demo["respelled"]) for name in demo["turns"]],
        results=demo["tool_results"],
        tool_s=demo["tool_s"],
        tokens_per_s=demo["tokens_per_s"],
    )


def _respelled(recording: Recording, names: Mapping[str, str]) -> Recording:
    """The recording with other spellings of names; its reads no longer fit."""
    body = recording.body
    for name, spelling in names.items():
        body = body.replace(name.encode(), spelling.encode())
    return replace(recording, body=body, reads=())


def _script(entry: dict[str, Any], folder: Path) -> Script:
    turns = [load_recording(folder / entry.pop("recording"))]
    if "answer" in entry:
        turns.append(_answer(entry.pop("answer")))
    return Script(turns=turns, **entry)


def _answer(text: str) -> Recording:
    """An answer of plain text, a word in each delta, as an OpenAI-compatible server streams it."""
    deltas = [{"content": f"{word} "} for word in text.split()]
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    body = "".join(f"data: {json.dumps({'choices': [choice]})}\n\n" for choice in choices) + "data: [DONE]\n\n"
    return Recording(name="scripted", kind="sse", body=body.encode())


def script_of(files: Sequence[Path]) -> Script:
    """Recordings of one conversation, turn by turn, as a script."""
    turns = [load_recording(file) for file in files]
    messages = (turns[0].request or {}).get("messages", [])
    asked = [message.get("content") for message in messages if message.get("role") == "user"]
    prompt = asked[-1] if asked and isinstance(asked[-1], str) else "Play the recording."
    return Script(title=files[0].name, prompt=prompt, turns=turns)


@asynccontextmanager
async def served(scripts: Sequence[Script], clock: Clock | None = None) -> AsyncIterator[list[Target]]:
    """A replay server for each script, as targets in the same order."""
    from stream.replay.server import ReplayServer  # needs an extra, which `--help` does not

    async with AsyncExitStack() as stack:
        targets = []
        for script in scripts:
            server = ReplayServer(script.turns, tokens_per_s=script.tokens_per_s, clock=clock)
            await stack.enter_async_context(server)
            targets.append(
                Target(
                    base_url=server.base_url,
                    model="replay",
                    api=script.turns[0].api or "chat",  # type: ignore[arg-type]  # no session can be asked
                    tools=script.tools(clock),
                    rounds=max(len(script.turns) - 1, 1),
                )
            )
        yield targets
