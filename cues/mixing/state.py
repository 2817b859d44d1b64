"""The row of a session's state, which the scheduler writes and the kernels read."""

from __future__ import annotations

import struct
from array import array
from typing import TYPE_CHECKING

import numpy as np

from cues._kernels import layout
from cues.mixing.not_copyable import NotCopyable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cues.mixing.parameters import MixerOptions
    from cues.mixing.sound import Sound

__all__ = ["Row", "new_table"]

_INT = struct.Struct("=i")


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
        self.ints[layout.SLOTS_I32] = options.voices + 1
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

    def promote(self) -> None:
        """Make the next speech ramp the current one, which has ended."""
        self.words[layout.SPEECH_T0_I64] = self.words[layout.NEXT_T0_I64]
        self.words[layout.NEXT_T0_I64] = layout.NEVER
        self.ints[layout.SPEECH_N_I32] = self.ints[layout.NEXT_N_I32]
        self.floats[layout.SPEECH_G0_F32] = self.floats[layout.SPEECH_G1_F32]
        self.floats[layout.SPEECH_G1_F32] = self.floats[layout.NEXT_G1_F32]
        self.floats[layout.SPEECH_SLOPE_F32] = 0.0

    def voice(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        """Views of a slot: int64, int32 and float32."""
        first = (layout.BUS_BYTES + layout.VOICE_BYTES * number) // 4
        last = first + layout.VOICE_BYTES // 4
        words = np.frombuffer(self.words, dtype=np.int64)
        return words[first // 2 : last // 2], self.ints[first:last], self.floats[first:last]

    def sounding(self) -> list[int]:
        """Numbers of the slots that sound."""
        first = layout.BUS_BYTES // 8 + layout.VOICE_SOUND_I64
        sounds: list[int] = self.words[first :: layout.VOICE_BYTES // 8].tolist()
        return [number for number, sound in enumerate(sounds) if sound]

    def voice_end(self, number: int, length: int) -> int:
        """The sample at which a voice of `length` samples ends."""
        words, ints, _ = self.voice(number)
        flags, start = int(ints[layout.VOICE_N_I32]), int(words[layout.VOICE_START_I64])
        end = layout.NEVER if flags & layout.VOICE_LOOPS else start + length
        if flags & layout.VOICE_ENDS:
            end = min(end, start + int(ints[layout.VOICE_T0_I32]) + (flags & layout.RAMP_MASK))
        return end

    def busy_until(self, sounds: Sequence[Sound | None]) -> int:
        """The sample from which speech passes unchanged if nothing else is planned."""
        end = layout.NEVER
        if self.words[layout.NEXT_T0_I64] != layout.NEVER:
            if self.floats[layout.NEXT_G1_F32] == 1.0:
                end = int(self.words[layout.NEXT_T0_I64]) + abs(int(self.ints[layout.NEXT_N_I32]))
        elif self.floats[layout.SPEECH_G1_F32] == 1.0:
            end = int(self.words[layout.SPEECH_T0_I64]) + abs(int(self.ints[layout.SPEECH_N_I32]))
        playing = [(number, sounds[number]) for number in self.sounding()]
        return max([end, *(self.voice_end(number, sound.length) for number, sound in playing if sound)])
