"""Scripted turns: recordings of model servers, and what their tools answer."""

import json
import tomllib
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, Unpack

import stream
from cues.cli.live.turn import Target
from stream.clock import Clock, WallClock
from stream.events import ServiceEvent
from stream.readers.formats.failures import unwrap
from stream.replay.endpoints import turn_index
from stream.replay.recording import Recording, load_recording, samples_folder
from stream.services.chat_request import ChatFields, Message
from stream.services.tool import ToolLike, as_tools

__all__ = ["Script", "built_in_scripts", "demo_script", "script_of"]

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

    def target(self, clock: Clock | None = None) -> Target:
        """The target that answers with the recordings."""
        own_clock = clock or WallClock()
        return Target(
            base_url=", ".join(turn.name for turn in self.turns),
            model=Recorded.model,
            tools=self.tools(own_clock),
            rounds=max(len(self.turns) - 1, 1),
            source=lambda tap: Recorded(self, own_clock, tap),
        )


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
    if not names:
        return recording
    body = recording.body
    for name, spelling in names.items():
        body = body.replace(name.encode(), spelling.encode())
    return replace(recording, body=body, reads=())


def _script(entry: dict[str, Any], folder: Path) -> Script:
    turns = [_respelled(load_recording(folder / entry.pop("recording")), entry.pop("respelled", {}))]
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


class Recorded:
    """A source whose answers are a script's turns, read by `stream.read`; the last one repeats."""

    model = "replay"

    def __init__(self, script: Script, clock: Clock, tap: Callable[[bytes], None]) -> None:
        self._script, self._clock, self._tap = script, clock, tap

    async def chat(
        self, messages: Sequence[Message], *, tools: Iterable[ToolLike] | None = None, **_: Unpack[ChatFields]
    ) -> AsyncGenerator[ServiceEvent, None]:
        """The events of the turn that the conversation has reached, at the script's pace."""
        turns = self._script.turns
        turn = turns[min(turn_index({"messages": messages}), len(turns) - 1)]
        if turn.status >= 400:
            yield replace(unwrap(turn.body), status=turn.status)
            return
        async for event in stream.read(self._reads(turn), tools=as_tools(tools)):
            yield event

    async def _reads(self, turn: Recording) -> AsyncGenerator[bytes, None]:
        for piece in turn.pieces():
            await self._clock.sleep(1.0 / self._script.tokens_per_s)
            self._tap(piece)
            yield piece
        if not turn.complete:
            raise ConnectionError("the recorded connection broke here")
