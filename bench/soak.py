"""A day of session audio, as fast as it goes: `python -m bench.soak [--hours 24]`. No growth, no drift, no click.

Random starts, stops, thefts, changes of gain, releases and resumes, of cues that follow the speech; 10,000 and more in
a day. Memory is the process's peak; the position is compared with the samples that went in; every tenth minute is
searched for clicks.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

import numpy as np

import cues
from cues.meters.clicks import find_clicks

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.mixing_scripts import speech, tone

MINUTE = 60 * 24000


def events(mixer: cues.Mixer, voices: list[cues.Voice], bank: list[cues.Cue], rng: np.random.Generator) -> None:
    """Do one thing that a session may do."""
    kind = rng.integers(8)
    if kind < 5:
        placement = str(rng.choice(["overlay", "overlay", "replace", "in_pause"]))
        cue = bank[rng.integers(len(bank))]
        voices.append(
            mixer.play(cue, gain_db=float(rng.uniform(-12, 3)), placement=placement, loop=rng.random() < 0.05)
        )
    elif kind == 5 and voices:
        voices[rng.integers(len(voices))].stop(fade_ms=float(rng.uniform(0, 60)))
    elif kind == 6 and voices:
        voices[rng.integers(len(voices))].gain_db = float(rng.uniform(-20, 3))
    else:
        mixer.release(fade_ms=float(rng.uniform(0, 60)))
        mixer.resume()
    del voices[:-20]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=24.0)
    minutes = round(60 * parser.parse_args().hours)
    cues.warm_up()
    rng = np.random.default_rng(1)
    bank = [tone(9000), tone(3600, 880.0), tone(5000, 440.0)]
    talk, mixer, voices = speech(MINUTE), cues.Mixer(voices=2, follow_speech=True), []
    known = find_clicks(talk)
    clicks, n_events, first = 0, 0, 0
    start = time.perf_counter()
    for minute in range(minutes):
        out = np.empty(MINUTE, dtype=np.float32)
        for k in range(0, MINUTE, 480):
            if rng.random() < 0.004:
                events(mixer, voices, bank, rng)
                n_events += 1
            mixer.mix(talk[k : k + 480], out=out[k : k + 480])
        if minute % 10 == 0:
            found = find_clicks(out)
            clicks += sum(
                1 for at in found[(found > 500) & (found < MINUTE - 500)] if np.abs(known - at).min(initial=999) > 120
            )
        if minute == max(1, minutes // 10):
            first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - first
    print(f"{minutes / 60:.1f} h of audio in {time.perf_counter() - start:.0f} s, {n_events} events, {mixer.stats}")
    print(f"drift {mixer.position - minutes * MINUTE} samples, memory grown by {grown} KiB, new clicks {clicks}")


if __name__ == "__main__":
    main()
