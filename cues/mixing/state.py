"""A session's row of memory, seen through numpy: what the planner writes and the mixing loops read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cues._kernels import layout as at
from cues.errors import CueTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from numpy.typing import NDArray

    from cues.mixing.parameters import SessionOptions
    from cues.mixing.sound import Sound

__all__ = ["InPlace", "Row", "new_table"]


class InPlace:
    """Something that the loops find by its address: a copy, or what a pickle brings back, would not be there."""

    __slots__ = ()

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise CueTypeError(f"a {type(self).__name__} is part of a live session; it can be neither copied nor pickled")


def new_table(sessions: int, options: SessionOptions) -> NDArray[np.int64]:
    """State of `sessions` idle sessions, one row each: int64, shape `(sessions, row_bytes / 8)`."""
    words = at.row_bytes(options.voices) // 8
    memory = np.zeros(sessions * words + at.LINE_BYTES // 8, dtype=np.int64)
    first = -memory.ctypes.data % at.LINE_BYTES // 8
    table = memory[first : first + sessions * words].reshape(sessions, words)
    Row(table[0]).reset(options)
    table[1:] = table[0]
    return table


class Row(InPlace):
    """Views of one session's row; the layout is in `cues._kernels.layout`."""

    __slots__ = ("address", "floats", "ints", "words")

    def __init__(self, words: NDArray[np.int64]) -> None:
        self.words = words
        self.ints: NDArray[np.int32] = words.view(np.int32)
        self.floats: NDArray[np.float32] = words.view(np.float32)
        self.address = int(words.ctypes.data)

    def reset(self, options: SessionOptions) -> None:
        """Back to an idle session at sample 0."""
        self.words[:] = 0
        self.words[at.WAKE_I64] = self.words[at.NEXT_T0_I64] = at.NEVER
        self.ints[at.SLOTS_I32] = options.voices + 1
        self.ints[at.FLAGS_I32] = at.FLAG_GUARD if options.guard else 0
        self.floats[at.SPEECH_G0_F32] = self.floats[at.SPEECH_G1_F32] = 1.0

    @property
    def position(self) -> int:
        """Samples out so far."""
        return self.words.item(at.POSITION_I64)

    def voice(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        """Views of one voice's slot."""
        first = (at.BUS_BYTES + at.VOICE_BYTES * number) // 4
        last = first + at.VOICE_BYTES // 4
        return self.words[first // 2 : last // 2], self.ints[first:last], self.floats[first:last]

    def flags_of(self, number: int) -> int:
        """Length of a voice's ramp and its two flags, quicker than by a view of its slot."""
        return self.ints.item((at.BUS_BYTES + at.VOICE_BYTES * number) // 4 + at.VOICE_N_I32)

    def sound_of(self, number: int) -> int:
        """The address of what sounds in a slot; 0 if nothing does."""
        return self.words.item((at.BUS_BYTES + at.VOICE_BYTES * number) // 8 + at.VOICE_SOUND_I64)

    def sounding(self) -> list[int]:
        """Numbers of the slots in which something sounds."""
        first = at.BUS_BYTES // 8 + at.VOICE_SOUND_I64
        sounds: list[int] = self.words[first :: at.VOICE_BYTES // 8].tolist()
        return [number for number, sound in enumerate(sounds) if sound]

    def voice_end(self, number: int, length: int) -> int:
        """The sample at which a voice of `length` samples will have ended."""
        words, ints, _ = self.voice(number)
        flags, start = int(ints[at.VOICE_N_I32]), int(words[at.VOICE_START_I64])
        end = at.NEVER if flags & at.VOICE_LOOPS else start + length
        if flags & at.VOICE_ENDS:
            end = min(end, start + int(ints[at.VOICE_T0_I32]) + (flags & at.RAMP_MASK))
        return end

    def busy_until(self, sounds: Sequence[Sound | None]) -> int:
        """The sample from which on the speech passes as it is, if nothing else is planned."""
        end = at.NEVER
        if self.words[at.NEXT_T0_I64] != at.NEVER:
            if self.floats[at.NEXT_G1_F32] == 1.0:
                end = int(self.words[at.NEXT_T0_I64]) + abs(int(self.ints[at.NEXT_N_I32]))
        elif self.floats[at.SPEECH_G1_F32] == 1.0:
            end = int(self.words[at.SPEECH_T0_I64]) + abs(int(self.ints[at.SPEECH_N_I32]))
        playing = [(number, sounds[number]) for number in self.sounding()]
        return max([end, *(self.voice_end(number, sound.length) for number, sound in playing if sound)])

    def mark_busy(self, sounds: Sequence[Sound | None]) -> None:
        """Note whether the coming samples need mixing."""
        flags = int(self.ints[at.FLAGS_I32]) & ~at.FLAG_BUSY
        busy = self.busy_until(sounds) > self.position
        self.ints[at.FLAGS_I32] = flags | at.FLAG_BUSY if busy else flags
