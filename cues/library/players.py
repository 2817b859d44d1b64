"""Cues under the names and in the formats that players of files look for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cues.errors import AudioFileError, CueValueError
from cues.files import explained
from cues.library.audiofile import encoded
from cues.library.export import Export, digest_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from cues.cue import Cue

__all__ = ["MANIFEST", "PLAYERS", "PlayerFile", "export_for_player"]

MANIFEST = "cues-export.json"


class PlayerFile(NamedTuple):
    """A file that a player looks for: its name, the cue in it and its rate, Hz; 16 bits, one channel."""

    name: str
    cue: str
    sample_rate: int


PLAYERS: dict[str, tuple[PlayerFile, ...]] = {
    "home-assistant": (
        # Home Assistant Voice and Linux Voice Assistant: FLAC at 48 kHz, their own rate.
        PlayerFile("wake_word_triggered.flac", "listening", 48000),
        PlayerFile("timer_finished.flac", "attention", 48000),
        PlayerFile("processing.wav", "thinking", 48000),
        # Wyoming satellites: WAV at 22,050 Hz, the rate of their sound command.
        PlayerFile("awake.wav", "listening", 22050),
        PlayerFile("done.wav", "tool_call", 22050),
        PlayerFile("timer_finished.wav", "attention", 22050),
        # For `preannounce_media_id`, `media_player.play_media` and automations.
        *(PlayerFile(f"{name}.flac", name, 48000) for name in ("tool_call", "agent", "success", "error", "attention")),
    )
}
"""The files of each player."""


def export_for_player(
    bank_at: Callable[[int], Mapping[str, Cue]], folder: str | os.PathLike[str], player: str
) -> Export:
    """Write the files that `player` (a key of `PLAYERS`) looks for to `folder`, with a manifest of their digests.

    `bank_at` gives the bank at a sample rate, Hz. A file there that is not the unchanged one of an earlier export is
    kept.
    """
    if player not in PLAYERS:
        raise CueValueError(f"player is {player!r}; it must be one of {', '.join(PLAYERS)}")
    target = Path(folder)
    written, kept, digests = [], [], _digests(target / MANIFEST)
    banks = {rate: bank_at(rate) for rate in {file.sample_rate for file in PLAYERS[player]}}
    with explained(target, kind=AudioFileError):
        target.mkdir(parents=True, exist_ok=True)
        for file in PLAYERS[player]:
            path = target / file.name
            if path.exists() and digests.get(file.name) != digest_of(path.read_bytes()):
                kept.append(path)
                continue
            cue = banks[file.sample_rate][file.cue]
            data = encoded(cue.samples, cue.sample_rate, path.suffix[1:], "16")
            path.write_bytes(data)
            digests[file.name] = digest_of(data)
            written.append(path)
        manifest = {"for": player, "sha256": digests}
        (target / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return Export(written=tuple(written), kept=tuple(kept))


def _digests(manifest: Path) -> dict[str, str]:
    """The digests that an earlier export wrote down, by file name."""
    try:
        return dict(json.loads(manifest.read_text(encoding="utf-8"))["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}
