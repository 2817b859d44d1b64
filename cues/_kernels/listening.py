"""The compiled loops that listen to the speech; `cues.mixing.level` describes the speech's level."""

import numpy as np

from cues._kernels import layout
from cues._kernels.loops import last_above, loudest_channel, peak_bits, sum_of_squares
from cues._kernels.tools import carray, float64_at, int32_at, int64_at, kernel, stack

SPEECH_BITS = np.int32(layout.SPEECH_BITS)
_STEP_BITS = np.int32(layout.STEP_BITS)
_SCRATCH_BYTES = 4 * layout.SCRATCH_SAMPLES


@kernel
def measure(state: int, samples: int, n: int, position: int, bits: np.int32) -> None:
    """Follow the level of `n` samples of speech, of peak `bits`, from absolute sample `position` on."""
    words = carray(int64_at(state), layout.LEVEL_WORDS)
    floats = carray(float64_at(state), layout.LEVEL_WORDS)
    block = words[layout.LEVEL_BLOCK_I64]
    done = np.int64(0)
    while done < n:
        left = block - (position + done) % block
        step = min(n - done, left)
        if bits >= _STEP_BITS:
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
def listen(row: int, frames: int, n: int, channels: int, listened: int) -> np.int32:
    """Follow the level of `n` samples of speech, and note the last one of the first `listened` that is heard."""
    # The result is the peak of these (of all `n`, if a guard needs it), in the loudest channel.
    words = carray(int64_at(row), 12)
    flags = carray(int32_at(row), 24)[layout.FLAGS_I32]
    samples = frames
    if channels > 1:
        samples = stack(_SCRATCH_BYTES)
        loudest_channel(frames, samples, n, channels)
    checked = n if flags & layout.FLAG_GUARD else listened
    bits = peak_bits(samples, checked)
    if not flags & layout.FLAG_APART:
        if flags & layout.FLAG_FOLLOW:
            # Silence is not squared, where all of it is known to be silent.
            level_bits = bits if checked == n else _STEP_BITS
            measure(words[layout.LEVEL_I64], samples, n, words[layout.POSITION_I64], level_bits)
        last = last_above(samples, listened, SPEECH_BITS) if bits > SPEECH_BITS else 0
        if last > 0:
            words[layout.HEARD_I64] = words[layout.POSITION_I64] + last
    return bits
