"""Compile the kernels to one object file that needs nothing but CPython's public C functions."""

from typing import Any

import numba
from llvmlite import binding  # type: ignore[import-untyped]  # it has no types

from cues._kernels import entries, metering
from cues._kernels.machine_code import target_machine

_KNOWN = "Py", "llvm."
"""Prefixes of the functions that code may call: CPython's public API, and LLVM's intrinsics."""


def build(level: str) -> bytes:
    """Machine code of all exported kernels for a level; raises if it needs more than CPython's functions."""
    machine = target_machine(level)
    module = binding.parse_assembly("")

    def symbols() -> tuple[Any, ...]:
        return (*module.functions, *module.global_variables)

    exported = (*entries.EXPORTED, *metering.EXPORTED)
    for function in exported:
        module.link_in(_compiled(function))
    names = {function.__name__ for function in exported}
    for symbol in symbols():
        if not symbol.is_declaration and symbol.name not in names:
            symbol.linkage = "internal"
    # Once all is internal, the passes see that nothing raises, and drop numba's code for that.
    options = binding.create_pipeline_tuning_options(speed_level=3)
    passes = binding.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    unknown = [symbol.name for symbol in symbols() if symbol.is_declaration and not symbol.name.startswith(_KNOWN)]
    if unknown:
        raise RuntimeError(f"numba {numba.__version__} made code that needs {', '.join(unknown)}")
    code: bytes = machine.emit_object(module)
    return code


def _compiled(kernel: Any) -> Any:
    """LLVM module of a kernel as a C function of words, which has the kernel's name."""
    words = [numba.types.int64] * kernel.py_func.__code__.co_argcount
    fused = kernel.targetoptions.get("fastmath", False)
    callback = numba.cfunc(numba.types.int64(*words), error_model="numpy", fastmath=fused)(kernel.py_func)
    module = binding.parse_assembly(callback.inspect_llvm())
    module.get_function(callback.native_name).name = kernel.__name__
    return module
