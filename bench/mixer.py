"""The mixer against its goals and its peers (M1 to M9, E1): `python -m bench.mixer [--json]`.

Everything is measured in one process, taking turns, and judged by ratios. `pip install pipecat-ai` for the comparison
with its mixer; without it those lines say so. LiveKit's mixer is stood in for by its numpy calls (livekit 1.2
`rtc/audio_mixer.py`, two streams, one chunk).
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import soundfile

import cues
from bench import mixer_events
from bench.goals import at_least, at_most, run
from cues._kernels import layout
from cues.mixing.backends import selection
from stream.events import ToolCallEnd, ToolCallStart
from stream.routing.router import CueRouter, CueRules
from stream.routing.rules import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bench.goals import Figure

N = 480
SESSIONS = 1000


def best_ns(contenders: dict[str, Callable[[], object]], calls: int = 400, rounds: int = 150) -> dict[str, float]:
    """Shortest time of a call, of each contender, the loop around it taken off."""
    contenders = {"nothing": lambda: None, **contenders}
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, call in contenders.items():
            start = time.perf_counter_ns()
            for _ in range(calls):
                call()
            best[name] = min(best[name], (time.perf_counter_ns() - start) / calls)
    return {name: ns - best["nothing"] for name, ns in best.items() if name != "nothing"}


def long_cue() -> cues.Cue:
    """A second of sound: it stays in the cache while the contenders take turns, or the first would fetch it for all."""
    return cues.Cue(name="tone", samples=0.05 * np.sin(np.arange(24_000) * 0.2))


def sounding(n_voices: int, cue: cues.Cue) -> cues.Mixer:
    mixer = cues.Mixer()
    for _ in range(n_voices):
        mixer.play(cue, loop=True)
    for _ in range(20):
        mixer.mix(np.zeros(N, dtype=np.float32))
    return mixer


def ramping(cue: cues.Cue, frame: np.ndarray, out: np.ndarray) -> tuple[Callable[[], object], Callable[[], object]]:
    """A mix of one frame, all duck attack and change of gain, that can be repeated; and what of it is no mixing."""
    mixer = cues.Mixer(duck_db=-6.0)
    # With an attack of its own, so that no other ramp is in the way of the change of gain.
    soft = cues.Cue(name="soft", samples=cue.samples * np.minimum(1.0, np.arange(len(cue)) / 4800) ** 2)
    voice = mixer.play(soft)
    one = np.zeros(1, dtype=np.float32)
    mixer.mix(one)
    voice.gain_db = -3.0
    for _ in range(2):
        mixer.mix(one)
    # A frame within ramps changes nothing of a row but its position.
    words, position = mixer._row.words, mixer.position

    def mix() -> object:
        words[layout.POSITION_I64] = position
        return mixer.mix(frame, out=out)

    def only_reset() -> None:
        words[layout.POSITION_I64] = position

    return mix, only_reset


class Slotted:
    """M4's yardstick: a method written in Python that does nothing."""

    __slots__ = ()

    def mix(self, frame: np.ndarray) -> np.ndarray:
        """Return `frame`, as an idle mixer does."""
        return frame


def in_every_state(a: np.ndarray, out: np.ndarray, raw: bytes, cue: cues.Cue) -> dict[str, Callable[[], object]]:
    """Frames of a session (M8) by name: with a cue, without, and int16; over speech that pauses in digital silence.

    In all of them a router waits for the answer's first word; in "loop" its waiting sound is heard, too.
    """
    calls: dict[str, Callable[[], object]] = {}
    options = {"waiting": {}, "loop": {}, "follow": {"follow_speech": True}, "guard": {"guard": True}}
    for state, given in options.items():
        for sound in ("cue", "idle", "pcm16"):
            mixer = cues.Mixer(**given)
            rules = CueRules(tool_call=None, working_after_s=0.5 if state == "loop" else 1e5)
            router = CueRouter({"working": cue}, mixer, rules=rules, limits=Limits(model_s=1e6, tool_s=1e6))
            router.handle(ToolCallStart("read_file", "1"))
            router.handle(ToolCallEnd("read_file", "1"))
            if sound != "idle":
                mixer.play(cue, loop=True)
            talk = np.zeros_like(a) if state == "loop" else a  # speech would end the loop
            for _ in range(200):
                mixer.mix(np.zeros_like(a), out=out)
            if sound == "pcm16":
                pieces = cycle([raw if talk.any() else bytes(len(raw)), bytes(len(raw))])
                calls[f"{state}, {sound}"] = lambda m=mixer, p=pieces: m.mix_pcm16(next(p))
            else:
                frames = cycle([talk, np.zeros_like(a)])
                calls[f"{state}, {sound}"] = lambda m=mixer, f=frames: m.mix(next(f), out=out)
    return calls


def loud_speech(peak: float) -> list[np.ndarray]:
    """Frames of a second of harmonics that come and go, with pauses of digital silence."""
    t, rng = np.arange(24_000) / 24_000, np.random.default_rng(1)
    talk = sum(np.sin(2 * np.pi * 120 * k * t + rng.uniform(0, 6)) / k**1.2 for k in range(1, 30))
    talk *= np.clip(np.sin(2 * np.pi * 4 * t), 0, 1)
    return list((peak * talk / np.abs(talk).max()).astype(np.float32).reshape(-1, N))


def with_limiter(out: np.ndarray, cue: cues.Cue) -> dict[str, Callable[[], object]]:
    """Frames of a mixer with a limiter (M9): loud speech with a cue, and as loud as passes without being turned down.

    A tone that it turns down in every frame takes 12 to 13 times an `np.add`: two fifths for the interpolated peaks, a
    third for the release, which is a recursion over samples, and a fifth to smooth the gain.
    """
    calls: dict[str, Callable[[], object]] = {}
    for sound, peak in (("cue", 0.9), ("idle", 0.7)):
        mixer = cues.Mixer(limiter=True)
        if sound == "cue":
            mixer.play(cue, loop=True)
        frames = cycle(loud_speech(peak))
        calls[f"limiter, {sound}"] = lambda m=mixer, f=frames: m.mix(next(f), out=out)
    return calls


def without_entries(mixer: cues.Mixer) -> cues.Mixer:
    """A mixer as where `CUES_NO_ENTRIES` is set."""
    vars(mixer).pop("mix")
    return mixer


def pipecat_mixer(cue: cues.Cue) -> Any:
    try:
        from pipecat.audio.mixers.soundfile_mixer import SoundfileMixer
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cue.wav"
        soundfile.write(path, cue.samples, cue.sample_rate, "PCM_16")
        mixer = SoundfileMixer(sound_files={"cue": str(path)}, default_sound="cue", volume=1.0, loop=True)
        asyncio.run(mixer.start(cue.sample_rate))
    return mixer


def livekit_numpy(a: bytes, b: bytes) -> bytes:
    streams = [np.frombuffer(data, dtype=np.int16).reshape(-1, 1).astype(np.float32) for data in (a, b)]
    mixed = np.sum(np.stack(streams, axis=0), axis=0)
    return np.clip(mixed, -32768, 32767).astype(np.int16).tobytes()


def peers(a: np.ndarray, b: np.ndarray, raw: bytes, raw_cue: bytes) -> dict[str, Callable[[], object]]:
    """The peers that are installed."""
    calls: dict[str, Callable[[], object]] = {}
    with suppress(ImportError):
        import pydub

        segment, other = (
            pydub.AudioSegment(data, sample_width=2, frame_rate=24000, channels=1) for data in (raw, raw_cue)
        )
        calls["pydub overlay"] = lambda: segment.overlay(other)
    with suppress(ImportError):
        import pedalboard

        board, rows = pedalboard.Gain(-6.0), a[None]
        calls["pedalboard Gain + add"] = lambda: np.add(board(rows, 24000), b)
    return calls


def hot() -> dict[str, float]:
    cue = long_cue()
    a, b, out = (np.random.default_rng(k).uniform(-0.1, 0.1, N).astype(np.float32) for k in range(3))
    raw, raw_cue = (a * 32767).astype("<i2").tobytes(), (b * 32767).astype("<i2").tobytes()
    following = cues.Mixer(follow_speech=True)
    one, two, eight, idle, ramp = (
        sounding(1, cue),
        sounding(2, cue),
        sounding(8, cue),
        cues.Mixer(),
        ramping(cue, a, out),
    )
    slotted, plain = Slotted(), without_entries(sounding(1, cue))
    turns = cycle([a, b])
    contenders: dict[str, Callable[[], object]] = {
        "np.add(a, b, out)": lambda: np.add(a, b, out=out),
        "np.add(a, b)": lambda: np.add(a, b),
        "a slot method": lambda: slotted.mix(a),
        "mix, idle": lambda: idle.mix(a),
        "mix, idle, follow_speech": lambda: following.mix(a),
        "mix(out), 1 cue, ducked": lambda: one.mix(a, out=out),
        "mix(out), 1 cue, both ramps": ramp[0],
        "reset for both ramps": ramp[1],
        "mix, 1 cue": lambda: one.mix(a),
        "mix(out), 1 cue, without entries": lambda: plain.mix(a, out=out),
        "mix(out), 2 cues": lambda: two.mix(a, out=out),
        "mix(out), 8 cues": lambda: eight.mix(a, out=out),
        "mix_pcm16, 1 cue": lambda: one.mix_pcm16(raw),
        "taking turns": lambda: next(turns),
        **in_every_state(a, out, raw, cue),
        **with_limiter(out, cue),
        **peers(a, b, raw, raw_cue),
        "livekit numpy": lambda: livekit_numpy(raw, raw_cue),
    }
    pipecat = pipecat_mixer(cue)
    if pipecat is not None:
        contenders["pipecat SoundfileMixer"] = lambda: pipecat._mix_with_sound(raw)
    times = best_ns(contenders)
    times["mix(out), 1 cue, both ramps"] -= times.pop("reset for both ramps")
    kernels = selection.kernels()
    selection.install(None)
    twin = cues.Mixer()
    for _ in range(8):
        twin.play(cue, loop=True)
    for _ in range(20):
        twin.mix(a)
    times["numpy twin, 8 cues"] = best_ns({"twin": lambda: twin.mix(a, out=out)}, calls=20, rounds=40)["twin"]
    selection.install(kernels)
    return times


def pool() -> dict[str, float]:
    """Nanoseconds a session-frame, hot and once every 20 ms, all sounding and one in ten."""
    cue = long_cue()
    frames = np.zeros((SESSIONS, N), dtype=np.float32)
    out = np.empty_like(frames)
    times = {}
    for name, step in (("all", 1), ("one in ten", 10)):
        sessions = cues.MixerPool(sessions=SESSIONS, frame_samples=N)
        for k in range(0, SESSIONS, step):
            sessions[k].play(cue, loop=True)
        for _ in range(20):
            sessions.mix(frames, out=out)
        taken = best_ns({"pool": lambda s=sessions: s.mix(frames, out=frames)}, 4, 60)
        times[f"pool hot, {name}"] = taken["pool"] / SESSIONS
        live = []
        for _ in range(80):
            time.sleep(0.02)
            start = time.perf_counter_ns()
            sessions.mix(frames, out=frames)
            live.append((time.perf_counter_ns() - start) / SESSIONS)
        times[f"pool at 20 ms, {name}"] = statistics.median(live)
    return times


async def sessions_at_20_ms(n_sessions: int = 500, ticks: int = 100) -> dict[str, float]:
    """Median of a call inside of live sessions that wake every 20 ms, ours and Pipecat's in turns on the same bytes."""
    cue = long_cue()
    loop = asyncio.get_running_loop()
    taken: dict[str, list[int]] = {"mix_pcm16": [], "pipecat": [], "np.add": [], "nothing": []}
    raw = bytes(bytearray(2 * N))
    mixers = [sounding(1, cue) for _ in range(n_sessions)]
    made = await asyncio.to_thread(lambda: [pipecat_mixer(cue) for _ in range(n_sessions)])
    begin = loop.time() + 0.2

    async def session(k: int) -> None:
        x, y, z = np.zeros(N, np.float32), np.zeros(N, np.float32), np.zeros(N, np.float32)
        calls = [
            ("mix_pcm16", lambda: mixers[k].mix_pcm16(raw)),
            ("np.add", lambda: np.add(x, y, out=z)),
            ("nothing", lambda: None),
        ]
        if made[k] is not None:
            calls.append(("pipecat", lambda: made[k]._mix_with_sound(raw)))
        for tick in range(ticks):
            await asyncio.sleep(max(0.0, begin + 0.02 * tick + 0.00004 * k - loop.time()))
            for turn in range(len(calls)):
                name, call = calls[(turn + tick) % len(calls)]
                start = time.perf_counter_ns()
                call()
                taken[name].append(time.perf_counter_ns() - start)

    await asyncio.gather(*(session(k) for k in range(n_sessions)))
    nothing = statistics.median(taken.pop("nothing"))
    return {f"{name} at 20 ms": statistics.median(ns) - nothing for name, ns in taken.items() if ns}


def figures() -> Iterable[Figure]:
    """The rows of M1 to M9 and E1."""
    cues.warm_up()
    ns = {**hot(), **pool(), **asyncio.run(sessions_at_20_ms())}
    add, alloc = ns["np.add(a, b, out)"], ns["np.add(a, b)"]
    one, eight, pcm = ns["mix(out), 1 cue, ducked"], ns["mix(out), 8 cues"], ns["mix_pcm16, 1 cue"]
    pipecat, pipecat_live = ns.get("pipecat SoundfileMixer"), ns.get("pipecat at 20 ms")
    pydub, board = ns.get("pydub overlay"), ns.get("pedalboard Gain + add")
    note = "it is not installed"
    yield at_most("M1", "mix(out), one ducked cue / np.add(out)", one / add, 1.2)
    yield at_most("M1", "mix(out), duck and gain ramp / np.add(out)", ns["mix(out), 1 cue, both ramps"] / add, 1.2)
    yield at_most("M1", "mix, one cue / np.add", ns["mix, 1 cue"] / alloc, 1.2)
    yield at_most("M1", "without entries / np.add(out)", ns["mix(out), 1 cue, without entries"] / add, 3)
    yield at_least("M2", "Pipecat's mixer / mix_pcm16, hot", pipecat and pipecat / pcm, 20, note=note)
    live = pipecat_live and pipecat_live / ns["mix_pcm16 at 20 ms"]
    yield at_least("M2", "Pipecat's mixer / mix_pcm16, 500 sessions at 20 ms", live, 8, note=note)
    yield at_least("M3", "pydub overlay / mix_pcm16", pydub and pydub / pcm, 40, note=note)
    yield at_least("M3", "LiveKit's numpy / mix_pcm16", ns["livekit numpy"] / pcm, 40)
    yield at_least("M3", "pedalboard Gain + add / mix(out)", board and board / one, 6, note=note)
    yield at_most("M4", "idle mix / a slot method", ns["mix, idle"] / ns["a slot method"], 2.5)
    yield at_most("M4", "to follow speech / np.add(out)", (ns["mix, idle, follow_speech"] - ns["mix, idle"]) / add, 0.3)
    yield at_most("M5", "each further cue / np.add(out)", (eight - one) / 7 / add, 0.15)
    yield at_least("M5", "numpy's loops / mix(out), 8 cues", ns["numpy twin, 8 cues"] / eight, 30)
    yield at_most("M6", "pool, hot, a session-frame / np.add(out)", ns["pool hot, all"] / add, 0.4)
    yield at_most("M6", "pool at 20 ms / np.add(out)", ns["pool at 20 ms, all"] / add, 1.2)
    yield at_most("M6", "pool, one in ten sounding / np.add(out)", ns["pool hot, one in ten"] / add, 0.12)
    turns = ns["taking turns"]
    for state in ("waiting", "loop", "follow", "guard"):
        limits = {"cue": 1.2, "idle": 1.2 if state == "loop" else 0.5, "pcm16": 1.0}  # a loop is a cue
        for sound, limit in limits.items():
            yield at_most("M8", f"{state}, {sound} / np.add(out)", (ns[f"{state}, {sound}"] - turns) / add, limit)
    yield at_most("M9", "with the limiter, one cue / np.add(out)", (ns["limiter, cue"] - turns) / add, 3)
    yield at_most("M9", "with the limiter, idle / np.add(out)", (ns["limiter, idle"] - turns) / add, 2)
    yield from mixer_events.figures()


if __name__ == "__main__":
    sys.exit(run(__doc__, figures))
