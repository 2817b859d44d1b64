"""A loop as a user's own code has it. `.ci/check_package.py` type-checks it against the installed wheel."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_type

import cues
import stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator

    import numpy as np
    from numpy.typing import NDArray


def engine(frame: NDArray[np.float32]) -> NDArray[np.float32]:
    """One frame with a cue in it."""
    bank = cues.load_bank()
    cue = bank["tool_call"]
    assert_type(cue, cues.Cue)
    assert_type(cue.samples, "NDArray[np.float32]")
    mixer = cues.Mixer(sample_rate=24000, voices=8)
    voice = mixer.play(cue, gain_db=-3.0, placement="overlay")
    voice.stop(fade_ms=10)
    level: float | None = cues.measure(cue.samples).integrated_lufs
    if level is not None and level > -10.0:
        mixer.release(fade_ms=30)
    return mixer.mix(frame)


async def spoken(source: AsyncIterable[bytes]) -> AsyncIterator[str]:
    """Words for a speaker; the calls' cues go to the mixer."""
    router = stream.CueRouter(cues.load_bank(), cues.Mixer())
    async for event in stream.words(stream.read(source, tools=["get_weather"])):
        router.handle(event)
        match event:
            case stream.TextDelta(text=text):
                assert_type(text, str)
                yield text
            case stream.ToolCallEnd(tool_name=name, status="ok", arguments_json=arguments):
                router.handle(
                    stream.ToolResult(
                        tool_call_id=event.tool_call_id, tool_name=name, is_error=False, content=arguments
                    )
                )
            case stream.StreamFailed(message=message, code=code):
                raise RuntimeError(f"{code}: {message}")
            case _:
                pass


def chunked(reader: stream.OllamaReader, lines: list[bytes]) -> list[stream.Event]:
    """All events of a recorded stream."""
    return [event for line in lines for event in reader.feed(line)] + reader.close()
