"""Which loops run: numpy's until `warm_up()`, the compiled ones from then on.

Nothing here loads or compiles; `cues.mixing.warmup` hands the kernels in when they are ready.
"""

from typing import Any

import numpy as np

from cues._kernels import layout
from cues.arrays import Samples
from cues.mixing.backends import numpy_loops
from cues.mixing.scheduler import Scheduler
from cues.mixing.state import Row

__all__ = ["install", "kernels", "mix_or_pass", "try_to_mix"]


_ARRAY, _FLOAT32 = np.ndarray, np.dtype(np.float32)
_kernels: Any = None


def kernels() -> Any:
    """The compiled mixing loops, a `MachineCode`; None before `warm_up()`."""
    return _kernels


def install(kernels: Any) -> None:
    """Use these compiled loops from the next frame on; None goes back to numpy's."""
    global _kernels  # noqa: PLW0603  (one switch for the process)
    _kernels = kernels


def mix_or_pass(scheduler: Scheduler, source: Samples, target: Samples) -> int:
    """Mix or copy contiguous samples for which the scheduler has run; the result of a kernel call."""
    if _kernels is None:
        return numpy_loops.mix_or_pass(scheduler, source, target)
    done: int = _kernels.mix_tuple((scheduler.row.address, source, target, True))
    return done


def try_to_mix(row: Row, frame: Samples, out: Samples | None) -> Samples | None:
    """Result of `Mixer.mix` by one call of a kernel; None if it takes numpy, the scheduler or a conversion."""
    if _kernels is None or not _is_float32(frame) or not (out is None or _is_float32(out)):
        return None
    target = np.empty(frame.shape, dtype=np.float32) if out is None else out
    done = _kernels.mix_tuple((row.address, frame, target, False))
    if done == layout.REFUSED:
        return None
    return frame if out is None and done == layout.PASSED else target


def _is_float32(thing: Any) -> bool:
    """Whether an argument is an array of float32, and of no subclass."""
    return type(thing) is _ARRAY and thing.dtype is _FLOAT32
