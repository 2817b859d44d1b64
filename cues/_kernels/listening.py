"""The loop that listens to how loud the speech is; the method is told in `cues.mixing.level`."""

from __future__ import annotations

import numpy as np

from cues._kernels import level_layout as at
from cues._kernels.compiling import kernel
from cues._kernels.loops import sum_of_squares
from cues._kernels.memory import carray, float64_at, int64_at

__all__ = ["hear"]


@kernel
def hear(state: int, samples: int, n: int, position: int) -> None:
    """Listen to `n` samples of speech from absolute sample `position` on."""
    words = carray(int64_at(state), at.WORDS)
    floats = carray(float64_at(state), at.WORDS)
    block = words[at.BLOCK_I64]
    done = np.int64(0)
    while done < n:
        left = block - (position + done) % block
        step = min(n - done, left)
        words[at.SUM_I64] += sum_of_squares(samples + 4 * done, step)
        done += step
        if step == left:
            mean_square = np.float64(words[at.SUM_I64]) / np.float64(block) / (at.FULL_SCALE * at.FULL_SCALE)
            words[at.SUM_I64] = 0
            if mean_square >= at.GATE:
                floats[at.MEAN_SQUARE_F64] = floats[at.MEAN_SQUARE_F64] * at.KEEP + mean_square
                floats[at.WEIGHT_F64] = floats[at.WEIGHT_F64] * at.KEEP + 1.0
