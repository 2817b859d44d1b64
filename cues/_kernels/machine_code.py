"""Machine code in memory: loaded through llvmlite alone, which takes a tenth of the time of numba's import."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from llvmlite import binding  # type: ignore[import-untyped]  # it has no types

__all__ = ["MachineCode", "processor_level", "target_machine"]

# The levels of x86-64 (System V ABI, AMD64 supplement 1.0, table 3.1) and what each adds to the one after it.
_LEVELS = {
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe",
    "x86-64-v2": "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3",
    "x86-64": "",
}


@cache
def processor_level() -> str:
    """LLVM's name for what code may use here, and so for machines that can share it.

    Levels, not models: a fleet of different x86-64 machines, or a container image for it, needs one or two files. The
    mixing loops are within the noise of code for the very model.
    """
    if not binding.get_process_triple().startswith("x86_64"):
        return "generic"
    try:
        features = binding.get_host_cpu_features()
    except RuntimeError:  # not every system tells
        return "x86-64"
    names = list(_LEVELS)
    needs = [" ".join(list(_LEVELS.values())[i:]).split() for i in range(len(names))]
    return next(name for name, needed in zip(names, needs, strict=True) if all(features.get(one) for one in needed))


def target_machine() -> Any:
    """LLVM's target for code that is loaded into a process; x86 needs static relocation there."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    relocation = "static" if target.name.startswith("x86") else "default"
    return target.create_target_machine(
        cpu=processor_level(), opt=3, reloc=relocation, codemodel="jitdefault", jit=True
    )


class MachineCode:
    """The functions of `cues._kernels.entries` from an object file; they stay until the process ends.

    Attributes
    ----------
    mix_tuple, mix_rows : callables
        They keep the GIL: a frame takes a microsecond, and a thread that gives the GIL away may wait 5 ms for it.
    mix_entry, mix_pcm16_entry : int
        Addresses of C methods.

    Raises
    ------
    OSError
        If the system does not let a process make code.
    """

    def __init__(self, code: bytes) -> None:
        binding.check_jit_execution()
        engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target_machine())
        engine.add_object_file(binding.ObjectFileRef.from_data(code))
        engine.finalize_object()
        word = ctypes.c_int64
        self.mix_tuple = ctypes.PYFUNCTYPE(word, ctypes.py_object)(engine.get_function_address("mix_tuple"))
        self.mix_rows = ctypes.PYFUNCTYPE(word, *[word] * 7)(engine.get_function_address("mix_rows"))
        self.mix_entry: int = engine.get_function_address("mix_entry")
        self.mix_pcm16_entry: int = engine.get_function_address("mix_pcm16_entry")
        engine.detach()  # never freed: methods may be called while the interpreter ends
