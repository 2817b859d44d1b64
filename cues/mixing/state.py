"""A session's options, and the row of its state, which the scheduler writes and the kernels read."""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from cues._kernels import layout
from cues.errors import CueTypeError
from cues.units import checked_number, checked_whole_number

__all__ = ["PAUSE_MS", "MixerOptions", "NotCopyable", "Row", "new_table", "speech_bits"]

PAUSE_MS = 80.0
"""Least length of a pause in the speech, ms."""
_INT = struct.Struct("=i")


class NotCopyable:
    """An object that can be neither copied nor pickled, because the kernels hold its address."""

    __slots__ = ()

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise CueTypeError(f"a {type(self).__name__} is part of a live session; it can be neither copied nor pickled")


@dataclass(frozen=True, slots=True)
class MixerOptions:
    """Checked parameters of `Mixer`, which documents them, in its order."""

    sample_rate: int = 24000
    voices: int = 8
    limiter: bool = False
    guard: bool = False
    duck_db: float = -6.0
    gap_limit_ms: float = 1000.0
    follow_speech: bool = False
    channels: int = 1

    def __post_init__(self) -> None:
        checked = {
            "sample_rate": checked_whole_number("sample_rate", self.sample_rate, 1000, 384_000),
            "voices": checked_whole_number("voices", self.voices, 1, 256),
            "channels": checked_whole_number("channels", self.channels, 1, 64),
            "duck_db": checked_number("duck_db", self.duck_db, -60.0, 0.0),
            "gap_limit_ms": checked_number("gap_limit_ms", self.gap_limit_ms, 0.0, 60_000.0),
            **{name: bool(getattr(self, name)) for name in ("limiter", "guard", "follow_speech")},
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)


def new_table(sessions: int, options: MixerOptions) -> NDArray[np.int64]:
    """Rows of `sessions` idle sessions: int64, shape `(sessions, words)`."""
    words = _words(options)
    memory = np.zeros(sessions * words + layout.LINE_BYTES // 8, dtype=np.int64)
    first = -memory.ctypes.data % layout.LINE_BYTES // 8
    table = memory[first : first + sessions * words].reshape(sessions, words)
    Row.of_table(table[0]).reset(options)
    table[1:] = table[0]
    return table


def _words(options: MixerOptions) -> int:
    """Length of a row, whole cache lines; stolen tails have a slot of their own."""
    used = layout.BUS_BYTES + layout.VOICE_BYTES * (options.voices + 1)
    return -(-used // layout.LINE_BYTES) * layout.LINE_BYTES // 8


class Row(NotCopyable):
    """Views of one session's row, laid out as in `cues._kernels.layout`."""

    __slots__ = ("address", "words")

    def __init__(self, words: memoryview[int] | array[int], address: int) -> None:
        # Python reads and writes their items in half the time of a numpy array's.
        self.words, self.address = words, address

    @classmethod
    def of_table(cls, words: NDArray[np.int64]) -> Row:
        """A row of `new_table`."""
        return cls(memoryview(words), int(words.ctypes.data))  # type: ignore[arg-type]  # buffers have a type since 3.12

    @classmethod
    def alone(cls, options: MixerOptions) -> Row:
        """A row with memory of its own, in fewer Python objects than a table's."""
        words = array("q", [0]) * _words(options)
        row = cls(words, words.buffer_info()[0])
        row.reset(options)
        return row

    @property
    def ints(self) -> NDArray[np.int32]:
        """The row seen as int32."""
        return np.frombuffer(self.words, dtype=np.int32)

    @property
    def floats(self) -> NDArray[np.float32]:
        """The row seen as float32."""
        return np.frombuffer(self.words, dtype=np.float32)

    def reset(self, options: MixerOptions) -> None:
        """Reset to an idle session at sample 0."""
        self.ints[:] = 0
        self.words[layout.WAKE_I64] = self.words[layout.NEXT_T0_I64] = layout.NEVER
        shorts = np.frombuffer(self.words, dtype=np.int16)
        shorts[layout.SLOTS_I16], shorts[layout.CHANNELS_I16] = options.voices + 1, options.channels
        self.ints[layout.FLAGS_I32] = layout.FLAG_GUARD if options.guard else 0
        self.floats[layout.SPEECH_G0_F32] = self.floats[layout.SPEECH_G1_F32] = 1.0

    def move_to(self, other: Row) -> None:
        """Continue in the memory of another row, which gets this one's."""
        other.ints[:] = self.ints
        self.words, other.words = other.words, self.words
        self.address, other.address = other.address, self.address
        self.words[layout.WAKE_I64] = -1  # a command queued meanwhile set its mark in the old memory
        other.words[layout.WAKE_I64] = -1  # an entry looked up earlier falls back to Python, and so reaches the new one

    @property
    def position(self) -> int:
        """Output samples so far."""
        return self.words[layout.POSITION_I64]

    @property
    def flags(self) -> int:
        """The flags of `cues._kernels.layout`."""
        flags: int = _INT.unpack_from(self.words, 4 * layout.FLAGS_I32)[0]
        return flags


def speech_bits(frame: NDArray[np.float32]) -> NDArray[np.int32]:
    """The magnitude of each sample, in the loudest channel, as the bits of a float32; NaN and infinity are largest."""
    bits: NDArray[np.int32] = frame.view(np.int32) & 0x7FFFFFFF
    return bits if bits.ndim == 1 else bits.max(axis=1)
