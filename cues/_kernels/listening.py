"""The compiled loop of the speech level; `cues.mixing.level` describes the method."""

from __future__ import annotations

import numpy as np

from cues._kernels import level_layout as layout
from cues._kernels.compiling import kernel
from cues._kernels.loops import sum_of_squares
from cues._kernels.memory import carray, float64_at, int64_at

__all__ = ["hear"]


@kernel
def hear(state: int, samples: int, n: int, position: int) -> None:
    """Listen to `n` samples of speech from absolute sample `position` on."""
    words = carray(int64_at(state), layout.WORDS)
    floats = carray(float64_at(state), layout.WORDS)
    block = words[layout.BLOCK_I64]
    done = np.int64(0)
    while done < n:
        left = block - (position + done) % block
        step = min(n - done, left)
        words[layout.SUM_I64] += sum_of_squares(samples + 4 * done, step)
        done += step
        if step == left:
            mean_square = (
                np.float64(words[layout.SUM_I64]) / np.float64(block) / (layout.FULL_SCALE * layout.FULL_SCALE)
            )
            words[layout.SUM_I64] = 0
            if mean_square >= layout.GATE:
                floats[layout.MEAN_SQUARE_F64] = floats[layout.MEAN_SQUARE_F64] * layout.KEEP + mean_square
                floats[layout.WEIGHT_F64] = floats[layout.WEIGHT_F64] * layout.KEEP + 1.0
