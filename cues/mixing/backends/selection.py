"""Which loops run: numpy's until `warm_up()`, the compiled ones from then on.

Nothing here compiles or imports numba; `cues.mixing.warmup` hands the kernels in when they are ready.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cues.mixing.backends import numpy_loops

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from cues.mixing.level import SpeechLevel
    from cues.mixing.limiter import Limiter
    from cues.mixing.sound import Sound
    from cues.mixing.state import Row

    Samples = NDArray[np.float32]

__all__ = ["install", "kernels", "mix_row"]

_kernels: Any = None


def kernels() -> Any:
    """The module of compiled mixing loops, or None before `warm_up()`."""
    return _kernels


def install(module: Any) -> None:
    """Use the compiled loops of `module` from the next frame on; None goes back to numpy's."""
    global _kernels  # noqa: PLW0603  (one switch for the process)
    _kernels = module


def mix_row(  # noqa: PLR0917  (the row, what it points to, and the frame)
    row: Row,
    sounds: Sequence[Sound | None],
    limiter: Limiter | None,
    level: SpeechLevel | None,
    source: Samples,
    target: Samples,
) -> None:
    """Mix `source` into `target`, contiguous and of equal length, and advance the row; the scheduler has run."""
    if _kernels is None:
        numpy_loops.mix_row(row, sounds, limiter, level, source, target)
    else:
        _kernels.mix_row(row.address, source.ctypes.data, target.ctypes.data, len(source))
