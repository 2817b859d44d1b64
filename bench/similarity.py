"""How alike the built-in cues are to each other, and each to itself at another pitch.

    python -m bench.similarity

Goal: no two of them above 0.85, and each transposition above `CONFUSABLE`.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import cues
from cues.meters.similarity import CONFUSABLE, similarity
from cues.synthesis.catalog import CATALOG

GOAL = 0.85
SEMITONES = (-7, -3, 2, 5, 9)


def transposed(name: str, semitones: float) -> cues.Cue:
    """A built-in cue, higher by some semitones."""
    spec = CATALOG[name].spec
    factor = 2.0 ** (semitones / 12.0)
    notes = tuple(replace(note, hz=note.hz * factor) for note in spec.notes)
    return cues.Cue(name=name, samples=cues.render(replace(spec, notes=notes)))


def main() -> bool:
    """Print both tables, and say whether the goal holds."""
    bank = cues.load_bank("")
    names = sorted(bank)
    print(f"{'':11}" + "".join(f"{name:>11}" for name in names) + "   transposed, least")
    pairs, copies = [], []
    for row, name in enumerate(names):
        alike = [similarity(bank[name], bank[other]) for other in names[:row]]
        copy = min(similarity(bank[name], transposed(name, semitones)) for semitones in SEMITONES)
        print(f"{name:11}" + "".join(f"{value:11.2f}" for value in alike).ljust(11 * len(names)) + f"   {copy:.2f}")
        pairs += alike
        copies.append(copy)
    print(f"two cues: at most {max(pairs):.2f}; a cue and its transposition: at least {min(copies):.2f}")
    return max(pairs) <= GOAL and min(copies) > CONFUSABLE


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
