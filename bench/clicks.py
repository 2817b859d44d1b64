"""Random events, searched for clicks that the speech does not have: `python -m bench.clicks [--seeds 8]`.

Starts, stops, thefts, changes of gain, releases and resumes at random samples. Prints the new clicks of each seed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import cues

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.listening import new_clicks
from tests.support.mixing_scripts import RATE, clickless_script


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--events", type=int, default=10_000)
    options = parser.parse_args()
    cues.warm_up()
    for seed in range(options.seeds):
        script = clickless_script(seed, options.events)
        out, mixer = script.run(lambda: 480)
        found = new_clicks(out, script.speech)
        stats = mixer.stats
        print(
            f"seed {seed}: {options.events} events, {stats.started} started, {stats.stolen} stolen, new clicks {found}"
        )
        print(f"    {len(out) / RATE:.0f} s of audio, {stats.limited_samples} samples cut off", flush=True)


if __name__ == "__main__":
    main()
