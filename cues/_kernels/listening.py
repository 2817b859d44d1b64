"""The compiled loops that listen to the speech; `cues.mixing.level` describes the speech's level."""

from __future__ import annotations

import numpy as np

from cues._kernels import layout
from cues._kernels.compiling import kernel
from cues._kernels.loops import last_above, sum_of_squares
from cues._kernels.memory import carray, float64_at, int32_at, int64_at

__all__ = ["SPEECH_BITS", "listen"]

SPEECH_BITS = np.int32(layout.SPEECH_BITS)


@kernel
def measure(state: int, samples: int, n: int, position: int) -> None:
    """Follow the level of `n` samples of speech from absolute sample `position` on."""
    words = carray(int64_at(state), layout.LEVEL_WORDS)
    floats = carray(float64_at(state), layout.LEVEL_WORDS)
    block = words[layout.LEVEL_BLOCK_I64]
    done = np.int64(0)
    while done < n:
        left = block - (position + done) % block
        step = min(n - done, left)
        words[layout.LEVEL_SUM_I64] += sum_of_squares(samples + 4 * done, step)
        done += step
        if step == left:
            total = np.float64(words[layout.LEVEL_SUM_I64])
            mean_square = total / np.float64(block) / (layout.FULL_SCALE * layout.FULL_SCALE)
            words[layout.LEVEL_SUM_I64] = 0
            if mean_square >= layout.GATE:
                mean = floats[layout.LEVEL_MEAN_SQUARE_F64]
                floats[layout.LEVEL_MEAN_SQUARE_F64] = mean * layout.KEEP + mean_square
                floats[layout.LEVEL_WEIGHT_F64] = floats[layout.LEVEL_WEIGHT_F64] * layout.KEEP + 1.0


@kernel
def listen(row: int, samples: int, n: int, listened: int) -> None:
    """Follow the level of `n` samples of speech, and note the last one of the first `listened` that is heard."""
    words = carray(int64_at(row), 12)
    flags = carray(int32_at(row), 24)[layout.FLAGS_I32]
    if flags & layout.FLAG_APART:
        return
    if flags & layout.FLAG_FOLLOW:
        measure(words[layout.LEVEL_I64], samples, n, words[layout.POSITION_I64])
    last = last_above(samples, listened, SPEECH_BITS)
    if last > 0:
        words[layout.HEARD_I64] = words[layout.POSITION_I64] + last
