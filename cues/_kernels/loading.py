"""The kernels for this process: from the object file, or compiled, once for a machine."""

from __future__ import annotations

import logging
import time
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cues._kernels.machine_code import MachineCode

__all__ = ["compiled_code", "load_kernels"]

logger = logging.getLogger(__name__)


@cache
def load_kernels() -> MachineCode | None:
    """The compiled kernels; None, and a warning, if they cannot be had."""
    try:
        from cues._kernels import object_file
        from cues._kernels.machine_code import MachineCode, usable_levels

        best, *_ = levels = usable_levels()
        code = object_file.find(levels)
        if code is None:
            code = compiled_code(best)
            kept = object_file.keep(code, best)
            logger.info("the kernels are kept in %s", kept or "no folder: none can be written")
        return MachineCode(code)
    except Exception as error:  # noqa: BLE001  (whatever a compiler or a system refuses, numpy mixes)
        logger.warning("numpy mixes, at tens of microseconds a frame instead of less than one: %s", error)
        return None


def compiled_code(level: str) -> bytes:
    """Newly compiled machine code for a level; takes 10 s."""
    logger.info("compiling the kernels for %s, once for this machine", level)
    begin = time.perf_counter()
    from cues._kernels import building

    code = building.build(level)
    logger.info("compiled the kernels in %.1f s", time.perf_counter() - begin)
    return code
