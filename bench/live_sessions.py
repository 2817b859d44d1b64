"""A thousand live sessions in one asyncio process: `python -m bench.live_sessions [--sessions 1000] [--seconds 10]`.

Every session mixes a frame each 20 ms, with cues at random: one a second in each, some stopped, some released. Reported
are the share of a core that mixing takes, the 99th percentile and the worst of one frame, with a `Mixer` for each
session, with one `MixerPool` for all, and with Pipecat's `SoundfileMixer` on the same bytes in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import cues
from bench.mixer import N, pipecat_mixer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

FRAME_S = 0.02
CUES_PER_S = 1.0


@dataclass
class Taken:
    """Durations of single calls, and their total processor time, ns."""

    calls: list[int] = field(default_factory=list)
    cpu: int = 0
    per_call: int = 1

    def add(self, calls: Iterable[Callable[[], object]]) -> None:
        """Time calls: each by the clock, the sum by the thread's processor time."""
        begin = time.thread_time_ns()
        for call in calls:
            start = time.perf_counter_ns()
            call()
            self.calls.append(time.perf_counter_ns() - start)
        self.cpu += time.thread_time_ns() - begin

    def share(self, a_second: float) -> float:
        """Share of a core at so many calls a second; others' work on a busy machine does not count."""
        return self.cpu / max(1, len(self.calls)) * a_second / 1e9

    def line(self, name: str, sessions: int) -> str:
        """One row of the table."""
        taken = np.array(self.calls) / self.per_call
        share = self.share(sessions / self.per_call / FRAME_S)
        quantiles = (np.percentile(taken, 50), np.percentile(taken, 99), taken.max())
        return f"| {name} | {100 * share:.1f} % | " + " | ".join(f"{1e-3 * ns:.2f}" for ns in quantiles) + " |"


def act(mixer: cues.Mixer, bank: list[cues.Cue], rng: np.random.Generator) -> None:
    """Rare work of a session."""
    voice = mixer.play(bank[rng.integers(len(bank))])
    kind = rng.random()
    if kind < 0.2:
        voice.stop()
    elif kind < 0.3:
        mixer.release()
        mixer.resume()


async def main(n_sessions: int, seconds: float) -> None:
    """Run all measurements and print the table."""
    bank = [cue for cue in cues.load_bank().values() if not cue.loop]
    rng = np.random.default_rng(0)
    mixers = [cues.Mixer() for _ in range(n_sessions)]
    pool = cues.MixerPool(sessions=n_sessions, frame_samples=N)
    peer = await asyncio.to_thread(pipecat_mixer, bank[0])
    speech = rng.uniform(-0.1, 0.1, (n_sessions, N)).astype(np.float32)
    raw = [(frame * 32767).astype("<i2").tobytes() for frame in speech]
    out = np.empty_like(speech)
    ours, pooled, pipecat, commands = Taken(), Taken(per_call=n_sessions), Taken(), Taken()
    late_s: list[float] = []
    loop = asyncio.get_running_loop()
    gc.collect()
    gc.freeze()
    begin = loop.time() + 0.1
    for tick in range(round(seconds / FRAME_S)):
        await asyncio.sleep(max(0.0, begin + FRAME_S * tick - loop.time()))
        late_s.append(loop.time() - begin - FRAME_S * tick)
        now = np.flatnonzero(rng.random(n_sessions) < CUES_PER_S * FRAME_S).tolist()
        commands.add([partial(act, mixers[number], bank, rng) for number in now])
        for number in now:
            act(pool[number], bank, rng)
        ours.add([partial(mixer.mix_pcm16, data) for mixer, data in zip(mixers, raw, strict=True)])
        pooled.add([partial(pool.mix, speech, out=out)])
        if peer is not None:  # its calls are alike, and a thousand of them take half of a core
            pipecat.add([partial(peer._mix_with_sound, data) for data in raw[:: max(1, n_sessions // 50)]])
    print(
        f"{n_sessions} sessions, {seconds:g} s, {len(commands.calls)} cues; "
        f"ticks late by at most {1e3 * max(late_s):.1f} ms\n"
    )
    print("| | share of a core | median, µs | 99 %, µs | worst, µs |\n| --- | --- | --- | --- | --- |")
    print(ours.line("`Mixer.mix_pcm16`, a frame", n_sessions))
    print(pooled.line("`MixerPool.mix`, a session-frame", n_sessions))
    if peer is not None:
        print(pipecat.line("Pipecat's `SoundfileMixer`, a frame", n_sessions))
    share = commands.share(n_sessions * CUES_PER_S)
    print(f"\nplay, stop and release themselves: {100 * share:.1f} % of a core")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    logging.disable(logging.INFO)
    cues.warm_up()
    asyncio.run(main(options.sessions, options.seconds))
    sys.exit(0)
