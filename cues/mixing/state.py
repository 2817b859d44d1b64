"""The row of a session's state, which the scheduler writes and the kernels read."""

from __future__ import annotations

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


def new_table(sessions: int, options: MixerOptions) -> NDArray[np.int64]:
    """Rows of `sessions` idle sessions: int64, shape `(sessions, row_bytes / 8)`."""
    words = layout.row_bytes(options.voices) // 8
    memory = np.zeros(sessions * words + layout.LINE_BYTES // 8, dtype=np.int64)
    first = -memory.ctypes.data % layout.LINE_BYTES // 8
    table = memory[first : first + sessions * words].reshape(sessions, words)
    Row(table[0]).reset(options)
    table[1:] = table[0]
    return table


class Row(NotCopyable):
    """Views of one session's row, laid out as in `cues._kernels.layout`."""

    __slots__ = ("address", "buffer", "floats", "ints", "words")

    def __init__(self, words: NDArray[np.int64]) -> None:
        self.words = words
        self.buffer = memoryview(words)  # type: ignore[arg-type]  # numpy's arrays are buffers in Python 3.12's types only
        self.ints: NDArray[np.int32] = words.view(np.int32)
        self.floats: NDArray[np.float32] = words.view(np.float32)
        self.address = int(words.ctypes.data)

    def reset(self, options: MixerOptions) -> None:
        """Reset to an idle session at sample 0."""
        self.words[:] = 0
        self.words[layout.WAKE_I64] = self.words[layout.NEXT_T0_I64] = layout.NEVER
        self.ints[layout.SLOTS_I32] = options.voices + 1
        self.ints[layout.FLAGS_I32] = layout.FLAG_GUARD if options.guard else 0
        self.floats[layout.SPEECH_G0_F32] = self.floats[layout.SPEECH_G1_F32] = 1.0

    @property
    def position(self) -> int:
        """Output samples so far."""
        return self.words.item(layout.POSITION_I64)

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
        return self.words[first // 2 : last // 2], self.ints[first:last], self.floats[first:last]

    def flags_of(self, number: int) -> int:
        """Ramp length and flags of a slot, faster than by its view."""
        return self.ints.item((layout.BUS_BYTES + layout.VOICE_BYTES * number) // 4 + layout.VOICE_N_I32)

    def sound_of(self, number: int) -> int:
        """Address of the sound in a slot; 0 for none."""
        return self.words.item((layout.BUS_BYTES + layout.VOICE_BYTES * number) // 8 + layout.VOICE_SOUND_I64)

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

    def mark_busy(self, sounds: Sequence[Sound | None], *, listen: bool) -> None:
        """Set or clear the flags for samples that need mixing, and for speech in which a cue waits for a pause."""
        flags = int(self.ints[layout.FLAGS_I32]) & ~(layout.FLAG_BUSY | layout.FLAG_LISTEN)
        flags |= layout.FLAG_BUSY if self.busy_until(sounds) > self.position else 0
        self.ints[layout.FLAGS_I32] = flags | layout.FLAG_LISTEN if listen else flags
