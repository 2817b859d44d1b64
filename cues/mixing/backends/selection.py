"""Which loops run: numpy's until `warm_up()`, the compiled ones from then on.

Nothing here loads or compiles; `cues.mixing.warmup` hands the kernels in when they are ready.
"""

from typing import Any

from cues.arrays import Samples
from cues.mixing.backends import numpy_loops
from cues.mixing.scheduler import Scheduler

__all__ = ["install", "kernels", "mix_part"]


_kernels: Any = None


def kernels() -> Any:
    """The compiled mixing loops, a `MachineCode`; None before `warm_up()`."""
    return _kernels


def install(kernels: Any) -> None:
    """Use these compiled loops from the next frame on; None goes back to numpy's."""
    global _kernels  # noqa: PLW0603  (one switch for the process)
    _kernels = kernels


def mix_part(scheduler: Scheduler, source: Samples, target: Samples) -> int:
    """Mix or copy contiguous samples for which the scheduler has run; the result of a kernel call."""
    if _kernels is None:
        return numpy_loops.mix_part(scheduler, source, target)
    done: int = _kernels.mix_tuple((scheduler.row.address, source, target))
    return done
