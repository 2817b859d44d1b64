"""Mixing cues into one recording of a batch."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cues.batch.tasks import FATAL_ERRNOS
from cues.errors import AudioFileError, CueValueError, reason_of
from cues.files import replacing, unfinished_name
from cues.library.audiofile import in_memory, read_channels
from cues.signal.pcm import dithered_int16, int16_of_float

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from cues.batch.sources import Source
    from cues.batch.tasks import Row
    from cues.library.bank import Bank

__all__ = ["COLUMNS", "Mix", "sweep"]

COLUMNS = ("file", "status", "error", "output", "length_s", "sample_rate", "channels", "n_cues")
"""Columns of the table of mixed recordings."""

# Sample formats that are kept; all others become 24 bits.
_SUBTYPES = ("PCM_16", "PCM_24", "FLOAT")


@dataclass(frozen=True, slots=True)
class Mix:
    """The task of putting cues into a recording.

    Parameters
    ----------
    source : the recording.
    cues : (name, time of its first sample in s, gain in dB).
    output : file to write; it replaces an older one once it is whole.
    pack : folder of the pack that the cues come from, or None.
    pack_stamp : what changes when the pack does: results of another pack do not count.
    """

    source: Source
    cues: tuple[tuple[str, float, float], ...]
    output: str
    pack: str | None = None
    pack_stamp: str = ""

    @property
    def file(self) -> str:
        """The recording's path."""
        return self.source.file

    def run(self) -> Row:
        """Each channel goes through a mixer of its own; samples that no cue or duck touches stay as they were."""
        channels, rate, subtype = read_channels(self.source.open(), self.file)
        length_s = len(channels) / rate
        late = [time_s for _, time_s, _ in self.cues if time_s > length_s]
        if late:
            raise CueValueError(f"a cue at {late[0]:g} s lies beyond the recording's end, {length_s:.2f} s")
        mixed = _mixed(channels, rate, self.cues, _bank(self.pack, self.pack_stamp))
        file_format = "FLAC" if self.output.lower().endswith(".flac") else "WAV"
        if subtype not in _SUBTYPES or (file_format == "FLAC" and subtype == "FLOAT"):
            subtype = "PCM_24"
        _write(Path(self.output), before=channels, mixed=mixed, rate=rate, file_format=file_format, subtype=subtype)
        return {
            "output": self.output,
            "length_s": round(len(mixed) / rate, 6),
            "sample_rate": rate,
            "channels": channels.shape[1],
            "n_cues": len(self.cues),
        }


@lru_cache(maxsize=4)
def _bank(pack: str | None, pack_stamp: str) -> Bank:
    del pack_stamp
    from cues.library.bank import load_bank

    return load_bank(pack)


def _mixed(
    channels: NDArray[np.float32], rate: int, cues: tuple[tuple[str, float, float], ...], bank: Bank
) -> NDArray[np.float32]:
    """All channels with the cues in them; silence is added until the last cue has ended."""
    from cues.mixing.offline import Insert, mix_recording

    inserts = [Insert(cue=bank[name], at_s=time_s, gain_db=gain_db) for name, time_s, gain_db in cues]
    columns = [np.ascontiguousarray(channels[:, k]) for k in range(channels.shape[1])]
    return np.stack([mix_recording(column, rate, inserts).samples for column in columns], axis=1)


def _write(
    output: Path,
    *,
    before: NDArray[np.float32],
    mixed: NDArray[np.float32],
    rate: int,
    file_format: str,
    subtype: str,
) -> None:
    """Write under another name, then move into place: a broken-off run leaves no half file."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with replacing(output) as part:
            part.write_bytes(in_memory(_encoded(before, mixed, subtype), rate, file_format, subtype))
    except (RuntimeError, OSError) as error:
        if getattr(error, "errno", None) in FATAL_ERRNOS:
            raise
        raise AudioFileError(f"{output}: cannot be written: {reason_of(error)}") from error


def sweep(outputs: Iterable[str]) -> None:
    """Delete what workers that were killed left of these outputs: half files, under the names that `_write` gives."""
    names: dict[Path, set[str]] = {}
    for output in map(Path, outputs):
        names.setdefault(output.parent, set()).add(output.name)
    for folder, wanted in names.items():
        with contextlib.suppress(OSError):  # the folder may not be there yet
            for path in folder.iterdir():
                if unfinished_name(path) in wanted:
                    path.unlink(missing_ok=True)


def _encoded(before: NDArray[np.float32], mixed: NDArray[np.float32], subtype: str) -> NDArray[Any]:
    """Samples as the file holds them. libsndfile would scale by 32767, and change samples that nothing touched."""
    if subtype == "PCM_16":
        touched = np.ones(mixed.shape, dtype=bool)
        touched[: len(before)] = mixed[: len(before)] != before
        dithered = np.stack([dithered_int16(mixed[:, k]) for k in range(mixed.shape[1])], axis=1)
        return np.where(touched, dithered, int16_of_float(mixed))
    if subtype == "PCM_24":
        steps = np.clip(np.rint(mixed.astype(np.float64) * 8388608.0), -8388608, 8388607)
        return steps.astype(np.int32) << 8
    return mixed
