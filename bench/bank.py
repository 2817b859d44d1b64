"""Loading the bank: from memory, from a warm disk cache, and rendered anew; and making a tool's motif.

    python -m bench.bank

Goal: the built-in set from a warm disk cache in under 5 ms after imports, and sooner than rendering it.
"""

from __future__ import annotations

import os
import sys
import tempfile

import soundfile

import cues
from bench.interleaved import best_s
from cues.library import bank, cache


def forgetting(disk: bool, pack_dir: str | None) -> None:
    """Load the bank with an empty memory, with or without the disk cache."""
    bank._remembered.clear()
    cache.cache_dir = found if disk else nowhere
    cues.load_bank(pack_dir)
    cache.cache_dir = found


def nowhere() -> None:
    """No disk cache."""


found = cache.cache_dir


def compare(what: str, pack_dir: str | None) -> tuple[float, float]:
    """Times (ms) from the disk and rendered, printed."""
    best = best_s(
        {
            "memory": lambda: cues.load_bank(pack_dir),
            "disk": lambda: forgetting(True, pack_dir),
            "made": lambda: forgetting(False, pack_dir),
        }
    )
    ms = {name: 1e3 * s for name, s in best.items()}
    print(f"{what}: memory {ms['memory']:.2f} ms, disk cache {ms['disk']:.2f} ms, made anew {ms['made']:.1f} ms")
    return ms["disk"], ms["made"]


def main() -> bool:
    """Print the times, and say whether the goal holds."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"CUES_CACHE_DIR": f"{folder}/cache", "CUES_PACK": ""}
        disk, made = compare("built-in set", None)
        pack = f"{folder}/pack"
        os.mkdir(pack)  # noqa: PTH102  (a path as text)
        for name, cue in cues.load_bank(sample_rate=48000).items():
            soundfile.write(f"{pack}/{name}.wav", cue.samples, 48000)
        pack_disk, pack_made = compare("pack of seven 48 kHz files", pack)
        cache.cache_dir = nowhere
        best = best_s(
            {
                "set": lambda: bank._remembered.clear() or cues.load_bank(""),
                "set and motif": lambda: bank._remembered.clear() or cues.load_bank("")["motif:read_file"],
            }
        )
        print(f"motif of a tool, made anew: {1e3 * (best['set and motif'] - best['set']):.1f} ms")
    return disk < 5.0 and disk < made and pack_disk < pack_made


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
