"""Commands from many threads under forced switching: `python -m bench.mixer_threads [--trials 300] [--events 1000000]`.

Each trial closes a mixer, or the sessions of a pool, while other threads play, stop, release and resume. Afterwards
nothing may sound, nothing may be active, and an idle mixer must return the frame itself.

With `--events`, threads give random commands over speech, and the same commands are given again on other frames: no
click, no lost voice, no other sample, and a gain of the speech that bends no more than a fade.

Exits with 1 if one trial fails.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

import cues
from tests.support.mixer_storm import Storm, again, faults_of, storm
from tests.support.mixing_scripts import RATE, speech
from tests.support.threads import forced_switching

if TYPE_CHECKING:
    from collections.abc import Callable

FOREVER = cues.Cue(name="forever", samples=np.full(4800, 0.25))
STORM, SAMPLES_AN_EVENT = 5000, 360
AFTERWARDS = 24_000  # samples; the longest fade and the speech's way back take half of them


def disturb(mixer: cues.Mixer, voices: list[cues.Voice]) -> None:
    """Give commands until the mixer is closed."""
    with suppress(cues.errors.MixerClosedError):
        for turn in range(10_000):
            voices.append(mixer.play(FOREVER, loop=True, placement=("overlay", "replace", "in_pause")[turn % 3]))
            mixer.release()
            voices[-1].gain_db = -6.0
            mixer.resume()
            voices[turn // 2].stop()


def together(mix: Callable[[], object], *acts: Callable[[], object]) -> None:
    """Run each act in a thread, and mix until all have ended."""
    start = threading.Barrier(len(acts) + 1)

    def begin(act: Callable[[], object]) -> None:
        start.wait()
        act()

    threads = [threading.Thread(target=begin, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    start.wait()
    while any(thread.is_alive() for thread in threads):
        mix()
    for thread in threads:
        thread.join()


def one_mixer() -> bool:
    """Whether a mixer is silent and idle after it was closed."""
    mixer, frame = cues.Mixer(), np.zeros(480, dtype=np.float32)
    voices: list[cues.Voice] = []
    together(lambda: mixer.mix(frame), lambda: disturb(mixer, voices), lambda: disturb(mixer, voices), mixer.close)
    mixer.silence(AFTERWARDS)
    return mixer.mix(frame) is frame and not mixer.active and all(voice.done for voice in voices)


def a_pool() -> bool:
    """Whether a pool is silent after its sessions were closed and renewed repeatedly."""
    pool, frames = cues.MixerPool(sessions=2), np.zeros((2, 480), dtype=np.float32)
    voices: list[cues.Voice] = []

    def renew(row: int) -> None:
        for _ in range(30):
            mixer = pool[row]
            with suppress(cues.errors.MixerClosedError):  # of the other thread that has this place
                voices.extend(mixer.play(FOREVER, loop=True) for _ in range(3))
            mixer.close()

    together(lambda: pool.mix(frames), lambda: renew(0), lambda: renew(0), lambda: renew(1))
    for mixer in pool:
        mixer.close()
    sessions = list(pool)
    first = [mixer.position for mixer in sessions]
    out = [pool.mix(frames) for _ in range(4)]
    silent = not any(part.any() for part in out) and not any(mixer.active for mixer in sessions)
    return silent and first == [0, 0] and [mixer.position for mixer in sessions] == [4 * 480] * 2


def differences(first: Storm, talk: np.ndarray, seed: int) -> list[str]:
    """Frame lengths on which the commands that were written down gave another output.

    Where one thread gives the commands, frames do not matter to the bit: `test_mixer_properties.py`.
    """
    rng = np.random.default_rng([seed, 99])
    found = []
    for longest in (700, 5000):
        twin = again(first, talk, lambda longest=longest: int(rng.integers(1, longest)))
        if not np.array_equal(twin.out, first.out) or twin.onsets != first.onsets:
            found.append(f"another output on frames of up to {longest} samples")
    return found


def storms(n_events: int, seed: int) -> int:
    """Number of storms that broke a rule; each gives `STORM` commands from four threads."""
    cues.warm_up()
    failed, started, begin = 0, 0, time.perf_counter()
    for number in range(-(-n_events // STORM)):
        minute = 0.6 * speech(60 * RATE, seed + number)
        edge = np.linspace(0.0, 1.0, RATE // 50, dtype=np.float32)  # the minutes follow each other without a click
        minute[: len(edge)] *= edge
        minute[-len(edge) :] *= edge[::-1]
        talk = np.resize(minute, STORM * SAMPLES_AN_EVENT)
        first = storm(talk, STORM, 4, seed + number)
        faults = faults_of(first, talk) + differences(first, talk, seed + number)
        failed += bool(faults)
        started += first.mixer.stats.started
        for fault in faults:
            print(f"seed {seed + number}: {fault}", flush=True)
    took = time.perf_counter() - begin
    print(f"{(number + 1) * STORM} commands, {started} voices started, {failed} storms failed, {took:.0f} s")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--events", type=int, default=0, help="random commands; the trials are left out")
    parser.add_argument("--seed", type=int, default=0, help="of the first commands")
    options = parser.parse_args()
    if options.events:
        return storms(options.events, options.seed)
    trials = options.trials
    failed = 0
    for kernels in (False, True):
        if kernels:
            cues.warm_up()
        for trial in (one_mixer, a_pool):
            with forced_switching():
                bad = sum(not trial() for _ in range(trials))
            print(f"{trial.__name__}, {'compiled' if kernels else 'numpy'} loops: {bad} of {trials} trials failed")
            failed += bad
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
