"""How often samples are cut off at full scale: `python -m bench.headroom`.

Cues at random times, one a second, over voice-like speech of some levels; no limiter.
"""

from __future__ import annotations

import numpy as np

import cues
from cues.synthesis.voicelike import speak_voice_like

SAYING = "Let me look that up for you, one moment please. I found three flights that leave before noon tomorrow."


def cut_off(talk: np.ndarray, sounds: list[cues.Cue], placement: str) -> tuple[int, int]:
    """How many samples were cut off, and how many cues sounded."""
    mixer, rng = cues.Mixer(), np.random.default_rng(0)
    for start in range(0, len(talk), 480):
        if rng.random() < 480 / 24000:
            mixer.play(sounds[rng.integers(len(sounds))], placement=placement)
        assert np.abs(mixer.mix(talk[start : start + 480])).max() <= 1.0
    return mixer.stats.limited_samples, mixer.stats.started


def main() -> None:
    cues.warm_up()
    bank = cues.load_bank()
    built_in = [cue for name, cue in bank.items() if name != "working"]
    loud = [cues.Cue(name=cue.name, samples=0.708 / np.abs(cue.samples).max() * cue.samples) for cue in built_in]
    speech = speak_voice_like(SAYING)
    speech = np.tile(speech / np.abs(speech).max(), 40)
    print(f"{'speech peaks':14} {'cues':22} {'placement':10} {'cut off':>8} of {len(speech)}")
    for peak_dbfs in (-3.0, -1.0, 0.0):
        talk = (10 ** (peak_dbfs / 20) * speech).astype(np.float32)
        for name, sounds in (("built in", built_in), ("peaks of -3 dBFS", loud)):
            for placement in ("overlay", "replace"):
                count, started = cut_off(talk, sounds, placement)
                print(f"{peak_dbfs:9.0f} dBFS {name:22} {placement:10} {count:8} ({started} cues)")


if __name__ == "__main__":
    main()
