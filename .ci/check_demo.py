"""Check the files that `cues demo` left in a folder: lengths, delay, and that no character of a call was spoken."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import soundfile

MAX_DELAY_MS = 40.0
PNG = b"\x89PNG\r\n\x1a\n"


def main(folder: Path) -> None:
    """Exit with a message at the first thing that is wrong."""
    record = json.loads((folder / "demo.json").read_text(encoding="utf-8"))
    mixed, rate = soundfile.read(folder / "demo.wav")
    speech, _ = soundfile.read(folder / "demo-speech.wav")
    announced = [cue for cue in record["cues"] if cue["for"] == "ToolCallStart"]
    onsets = [cue["onset_sample"] for cue in record["cues"]]
    before = mixed[: onsets[0]] if onsets else mixed
    checks = {
        "24 kHz": rate == record["sample_rate"] == 24000,
        "the speech is as long with cues as without": len(mixed) == len(speech) == record["output_samples"],
        "speech passed": np.count_nonzero(speech) > rate,
        "one cue announces the call": [cue["cue"] for cue in announced] == ["tool_call"],
        "it comes in time": all(0.0 <= cue["delay_ms"] <= MAX_DELAY_MS for cue in announced),
        "before the first cue the speech is untouched": np.array_equal(before, speech[: len(before)]),
        "the cue sounds": np.abs((mixed - speech)[onsets[0] : onsets[0] + rate // 4]).max() > 0.02,
        "nothing is clipped": np.abs(mixed).max() < 1.0,
        "no character of the call is spoken": not set('{}[]"_') & set(record["spoken_text"]),
        "the answer after the tool is spoken": record["spoken_text"].rstrip().endswith("walk."),
        "nothing failed": record["failure"] is None,
        "the picture is one": (folder / "demo.png").read_bytes().startswith(PNG),
    }
    for claim, holds in checks.items():
        print(f"{'ok ' if holds else 'NOT'} {claim}")
    sys.exit(0 if all(checks.values()) else 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
