"""Which loops run: numpy's until `warm_up()`, the compiled ones from then on.

Nothing here compiles or imports numba; `cues.mixing.warmup` hands the kernels in when they are ready.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cues.mixing.backends import numpy_loops

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cues.mixing.scheduler import Session

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


def mix_row(session: Session, source: Samples, target: Samples) -> None:
    """Mix `source` into `target`, contiguous and of equal length, and move the session on; nothing else is due."""
    if _kernels is None:
        numpy_loops.mix_row(session, source, target)
    else:
        _kernels.mix_row(session.row.address, source.ctypes.data, target.ctypes.data, len(source))
