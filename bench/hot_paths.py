"""Our own hot paths, one after the other, by pytest-benchmark: to compare two commits, not with peers.

python -m pytest bench/hot_paths.py -n 0 --benchmark-autosave
python -m pytest bench/hot_paths.py -n 0 --benchmark-compare   # on the other commit
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

import cues
import stream
from stream.readers.formats.any_format import AnyReader

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pytest_benchmark.fixture import BenchmarkFixture

N = 480
FRAME: NDArray[np.float32] = np.random.default_rng(0).uniform(-0.1, 0.1, N).astype(np.float32)
TONE = cues.Cue(name="tone", samples=0.05 * np.sin(np.arange(24_000) * 0.2))


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    cues.warm_up()


def sounding(n_voices: int) -> cues.Mixer:
    """A mixer in which cues sound for as long as the bench runs."""
    mixer = cues.Mixer()
    for _ in range(n_voices):
        mixer.play(TONE, loop=True)
    for _ in range(20):
        mixer.mix(FRAME)
    return mixer


@pytest.mark.parametrize("n_voices", [0, 1, 8])
def test_mix(benchmark: BenchmarkFixture, n_voices: int) -> None:
    benchmark(sounding(n_voices).mix, FRAME)


def test_mix_pcm16(benchmark: BenchmarkFixture) -> None:
    benchmark(sounding(1).mix_pcm16, (FRAME * 32767).astype("<i2").tobytes())


def test_a_frame_in_which_a_cue_starts(benchmark: BenchmarkFixture) -> None:
    def ready() -> tuple[tuple[NDArray[np.float32]], dict[str, object]]:
        mixer.release()
        mixer.resume()
        for _ in range(10):
            mixer.mix(FRAME)
        mixer.play(TONE)
        return (FRAME,), {}

    mixer = cues.Mixer()
    benchmark.pedantic(mixer.mix, setup=ready, rounds=2000)


def test_an_event_routed(benchmark: BenchmarkFixture) -> None:
    mixer = cues.Mixer()
    router = stream.CueRouter(cues.load_bank(), mixer)
    router.handle(stream.ToolCallStart("search", "call_1"))
    benchmark(router.handle, stream.TextDelta("word "))


def piece(delta: dict[str, object]) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"


TEXT = piece({"content": "word "})
CALL = piece({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "note", "arguments": '{"text": "'}}]})
ARGUMENTS = piece({"tool_calls": [{"index": 0, "function": {"arguments": "word "}}]})


@pytest.mark.parametrize(("opening", "data"), [(TEXT, TEXT), (CALL, ARGUMENTS)], ids=["text", "arguments"])
def test_a_hundred_chunks_read(benchmark: BenchmarkFixture, opening: bytes, data: bytes) -> None:
    def read() -> None:
        reader = AnyReader()
        reader.feed(opening)
        for _ in range(100):
            reader.feed(data)

    benchmark(read)


def test_loudness_of_a_second(benchmark: BenchmarkFixture) -> None:
    benchmark(cues.measure, TONE.samples, 24_000)
