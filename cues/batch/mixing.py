"""Mix of cues into one recording of a batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cues.batch.recordings import OnRecording
from cues.batch.rows import Row
from cues.errors import AudioFileError, CueValueError
from cues.files import explained, replacing, unfinished_name
from cues.library.audiofile import in_memory, read_channels
from cues.library.bank import Bank, load_bank
from cues.mixing.offline import Insert, mix_recording
from cues.signal.pcm import dithered_int16, int16_of_float

__all__ = ["COLUMNS", "Mix", "Original", "sweep"]

COLUMNS = ("file", "status", "error", "output", "length_s", "sample_rate", "channels", "n_cues")
"""Columns of the table of mixed recordings."""

# These subtypes are kept; all others become 24 bits. Coded anew, ADPCM, GSM and MP3 would change every sample.
_SUBTYPES = {
    "WAV": ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"),
    "FLAC": ("PCM_S8", "PCM_16", "PCM_24"),
}
_BITS = {"PCM_U8": 8, "PCM_S8": 8, "PCM_24": 24, "PCM_32": 32}
_WIDE = ("PCM_32", "DOUBLE")  # float32 does not hold their values


@dataclass(frozen=True, slots=True)
class Mix(OnRecording):
    """Task that mixes cues (name, onset in s, gain in dB) into a recording, and replaces `output` when it is complete.

    A change of `pack_stamp`, the state of the pack, invalidates earlier results.
    """

    cues: tuple[tuple[str, float, float], ...]
    output: str
    pack: str | None = None
    pack_stamp: str = ""

    def run(self) -> Row:
        """Mix each channel separately, but for phrases; samples without a cue or ducking keep their values."""
        original = Original.read(self)
        channels, rate = original.channels, original.rate
        length_s = len(channels) / rate
        late = [time_s for _, time_s, _ in self.cues if time_s > length_s]
        if late:
            raise CueValueError(f"a cue at {late[0]:g} s is after the recording's end, {length_s:.2f} s")
        bank = _bank(self.pack, self.pack_stamp)
        inserts = [Insert(cue=bank[name], at_s=time_s, gain_db=gain_db) for name, time_s, gain_db in self.cues]
        waits = any(insert.cue.phrases for insert in inserts)
        if waits and channels.shape[1] > 1:  # for the words of all channels
            mixed = mix_recording(channels, rate, inserts).samples
        else:
            columns = [np.ascontiguousarray(channels[:, k]) for k in range(channels.shape[1])]
            mixed = np.stack([mix_recording(column, rate, inserts).samples for column in columns], axis=1)
        original.write_changed(mixed, self.output)
        return {
            "output": self.output,
            "length_s": round(len(mixed) / rate, 6),
            "sample_rate": rate,
            "channels": channels.shape[1],
            "n_cues": len(self.cues),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Original:
    """A recording to change: float32 `channels`, the same samples with all their bits, rate (Hz) and subtype."""

    channels: NDArray[np.float32]
    exact: NDArray[Any]
    rate: int
    subtype: str

    @classmethod
    def read(cls, task: OnRecording) -> Original:
        """The recording of a task."""
        file = task.source.open()
        channels, rate, subtype = read_channels(file, task.file)
        exact = read_channels(file, task.file, dtype="float64")[0] if subtype in _WIDE else channels
        return cls(channels, exact, rate, subtype)

    def write_changed(self, changed: NDArray[np.float32], name: str) -> None:
        """Write the changed channels to the file `name` when they are complete, in the sample format of the original.

        Samples that are equal in `channels` keep all their bits.
        """
        file_format = "FLAC" if name.lower().endswith(".flac") else "WAV"
        subtype = self.subtype if self.subtype in _SUBTYPES[file_format] else "PCM_24"
        output = Path(name)
        data = in_memory(self._encoded(changed, subtype), self.rate, file_format, subtype)
        with explained(output, kind=AudioFileError):
            output.parent.mkdir(parents=True, exist_ok=True)
            with replacing(output) as part:
                part.write_bytes(data)

    def _encoded(self, changed: NDArray[np.float32], subtype: str) -> NDArray[Any]:
        """Samples in the file's format; libsndfile scales by 32767 and would change untouched samples."""
        n_before = len(self.channels)
        touched = np.ones(changed.shape, dtype=bool)
        touched[:n_before] = changed[:n_before] != self.channels
        if subtype == "PCM_16":
            dithered = np.stack([dithered_int16(changed[:, k]) for k in range(changed.shape[1])], axis=1)
            return np.where(touched, dithered, int16_of_float(changed))
        if subtype in ("ULAW", "ALAW"):
            return int16_of_float(changed)
        samples = changed.astype(self.exact.dtype)
        np.copyto(samples[:n_before], self.exact, where=~touched[:n_before])
        if subtype not in _BITS:
            return samples
        bits = _BITS[subtype]
        full_scale = 2.0 ** (bits - 1)
        steps = np.clip(np.rint(samples.astype(np.float64) * full_scale), -full_scale, full_scale - 1.0)
        return steps.astype(np.int32) << (32 - bits)


@lru_cache(maxsize=4)
def _bank(pack: str | None, pack_stamp: str) -> Bank:
    del pack_stamp
    return load_bank(pack)


def sweep(outputs: Iterable[str]) -> None:
    """Delete temporary files that killed workers left beside these outputs."""
    paths = {Path(output) for output in outputs}
    for folder in {path.parent for path in paths}:
        for part in folder.glob(".*"):
            if folder / (unfinished_name(part) or ".") in paths:
                part.unlink(missing_ok=True)
