"""Live sessions for half an hour of real time: `python -m bench.soak_live [--minutes 30] [--sessions 200]`.

Each session has a mixer, a router and a `VoiceSession` of its own and takes turn after turn: text, a call with a tool
that takes 0.2 to 6 s and may fail, an answer; one turn in four is interrupted. It exits with 1 if speech was missing
although the event loop was in time, if memory grew by more than 5 % in the second half (each session keeps its latest
256 cues, which the first half fills), or if tasks, threads or files were left.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import threading
import time
from array import array
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import cues
import stream
from cues.synthesis.voicelike import speak_voice_like
from stream.session import VoiceSession
from stream.speech.speaker import PhraseSpeaker, Speech

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from numpy.typing import NDArray

FRAME_SAMPLES = 480
LEAD_MS = 60.0
LATE = ((0.5, "median"), (0.999, "99.9 %"), (1.0, "worst"))
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Recorded(PhraseSpeaker):
    """Speaks every phrase with the same recording, a piece of 80 ms at a time, as fast as it is taken."""

    name = "recorded"

    def __init__(self, recording: NDArray[np.float32]) -> None:
        super().__init__()
        self._recording = recording

    async def speak(self, phrase: str) -> AsyncIterator[Speech]:
        """A piece for each 80 ms, 60 ms a character."""
        length = min(len(phrase) * 1440, len(self._recording))
        for start in range(0, length, 1920):
            yield Speech(self._recording[start : start + 1920])


class Counted:
    """A sink that counts frames and remembers whether any was not finite or beyond full scale."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts

    def write(self, mixed: NDArray[np.float32], speech: NDArray[np.float32]) -> None:  # noqa: ARG002
        """Take a frame."""
        self._counts["frames"] += 1
        peak = np.abs(mixed).max(initial=0.0)
        self._counts["bad frames"] += not peak <= 4.0


async def turn(chance: random.Random) -> AsyncIterator[stream.Event]:
    """Text, a call, its result, an answer."""
    for _ in range(chance.randint(3, 12)):
        yield stream.TextDelta("let me see ")
        await asyncio.sleep(0.05)
    call_id = f"call_{chance.random()}"
    yield stream.ToolCallStart("get_weather", call_id)
    yield stream.ToolCallEnd("get_weather", call_id, arguments_json="{}")
    yield stream.Finish("tool_calls")
    await asyncio.sleep(chance.uniform(0.2, 6.0))
    yield stream.ToolResult(
        tool_name="get_weather", tool_call_id=call_id, is_error=chance.random() < 0.2, content="sunny"
    )
    await asyncio.sleep(chance.uniform(0.0, 1.0))
    for _ in range(chance.randint(3, 12)):
        yield stream.TextDelta("it is sunny. ")
        await asyncio.sleep(0.05)
    yield stream.Finish("stop")


async def live(
    number: int, until_s: float, bank: cues.Bank, recording: NDArray[np.float32], counts: Counter[str]
) -> None:
    """Turn after turn of one session, until the time is up."""
    chance = random.Random(number)
    await asyncio.sleep(chance.uniform(0.0, 5.0))
    mixer = cues.Mixer()
    session = VoiceSession(
        mixer=mixer, router=stream.CueRouter(bank, mixer), speaker=Recorded(recording), sink=Counted(counts),
        frame_samples=FRAME_SAMPLES, lead_ms=LEAD_MS,
    )  # fmt: skip
    while time.monotonic() < until_s:
        interrupting = None
        if chance.random() < 0.25:
            interrupting = asyncio.get_running_loop().call_later(chance.uniform(0.2, 6.0), session.barge_in)
            counts["barge-ins"] += 1
        session.history.messages.clear()
        journal = await session.run(turn(chance))
        if interrupting is not None:
            interrupting.cancel()
        counts["turns"] += 1
        counts["cues"] += len(journal.sounded)
        counts["underruns"] += journal.underruns
        counts["failures"] += journal.failure is not None
    mixer.close()


async def watch_lag(lags: array[float], until_s: float) -> None:
    """Note how late the event loop is, every 10 ms."""
    while time.monotonic() < until_s:
        due = time.monotonic() + 0.01
        await asyncio.sleep(0.01)
        lags.append(time.monotonic() - due)


def resident_bytes() -> int:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE


def held() -> dict[str, int]:
    """Threads and open files."""
    return {"threads": threading.active_count(), "files": len(os.listdir("/proc/self/fd"))}  # noqa: PTH208


async def watch_memory(samples: list[int], minutes: float) -> None:
    """Note the memory a hundred times."""
    while True:
        await asyncio.sleep(minutes * 0.6)
        samples.append(resident_bytes())


async def soak(minutes: float, n_sessions: int) -> bool:
    """Run it all, print what was seen, and say whether nothing is wrong."""
    counts: Counter[str] = Counter()
    lags = array("f")  # a list would be a part of the memory that grows
    memory = [resident_bytes()]
    bank, recording = cues.load_bank(), speak_voice_like("the quick brown fox jumps over the lazy dog " * 4)
    before, until_s = held(), time.monotonic() + 60 * minutes
    watching = asyncio.create_task(watch_memory(memory, minutes))
    cpu_s = time.process_time()
    sessions = [live(number, until_s, bank, recording, counts) for number in range(n_sessions)]
    await asyncio.gather(watch_lag(lags, until_s), *sessions)
    cpu_s = time.process_time() - cpu_s
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    late = np.array(lags)
    half = memory[len(memory) // 2]
    growth = memory[-1] / half - 1.0
    left = {"tasks": len(asyncio.all_tasks()) - 1} | {key: held()[key] - before[key] for key in before}
    in_time = float(late.max()) < (LEAD_MS - 20.0) / 1000.0
    print(f"{minutes:g} min, {n_sessions} sessions: {dict(counts)}; {cpu_s / (60 * minutes):.2f} of a core")
    late_ms = ", ".join(f"{1e3 * np.quantile(late, q):.1f} ms ({name})" for q, name in LATE)
    print(f"event loop late by {late_ms}")
    print(f"memory {half / 2**20:.0f} MiB after a half, {growth:+.1%} from there to the end")
    print(f"left over: {left}")
    unexplained = counts["underruns"] > 0 and in_time
    return not (unexplained or counts["failures"] or counts["bad frames"] or growth > 0.05 or any(left.values()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--sessions", type=int, default=200)
    options = parser.parse_args()
    cues.warm_up()
    sys.exit(0 if asyncio.run(soak(options.minutes, options.sessions)) else 1)
