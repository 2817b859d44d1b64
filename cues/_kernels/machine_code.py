"""Machine code in memory: loaded through llvmlite alone, which takes a tenth of the time of numba's import."""

import ctypes
from functools import cache
from typing import Any

from llvmlite import binding  # type: ignore[import-untyped]  # it has no types

# The levels of x86-64 (System V ABI, AMD64 supplement 1.0, table 3.1), and the features that each adds to the next one.
_LEVELS = {
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe",
    "x86-64-v2": "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3",
    "x86-64": "",
}


def levels() -> list[str]:
    """LLVM's names for the processors that code can be made for, best first."""
    # Levels, not models: a fleet of different machines, or a container image for it, needs one file or two. A mix has
    # the same bits at every level, and the highest level takes no longer than code for one model.
    return list(_LEVELS) if binding.get_process_triple().startswith("x86_64") else ["generic"]


@cache
def usable_levels() -> list[str]:
    """The levels whose code this processor runs, best first."""
    try:
        features = binding.get_host_cpu_features()
    except RuntimeError:  # not every system tells
        features = {}
    found = levels()
    while not all(features.get(name) for level in found for name in _LEVELS.get(level, "").split()):
        found.pop(0)
    return found


def target_machine(level: str) -> Any:
    """LLVM's target for code that is loaded into a process; x86 needs static relocation there."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    relocation = "static" if target.name.startswith("x86") else "default"
    return target.create_target_machine(cpu=level, opt=3, reloc=relocation, codemodel="jitdefault", jit=True)


class MachineCode:
    """The functions of an object file; they stay until the process ends.

    The callables `mix_tuple` and `mix_rows` keep the GIL: a frame takes a microsecond, and a thread that gives the GIL
    away may wait 5 ms for it. `mix_entry` and `mix_pcm16_entry` are addresses of C methods. The meters' kernels release
    the GIL. Raises `OSError` if the system does not let a process make code.
    """

    def __init__(self, code: bytes) -> None:
        binding.check_jit_execution()
        engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target_machine(usable_levels()[0]))
        engine.add_object_file(binding.ObjectFileRef.from_data(code))
        engine.finalize_object()
        word = ctypes.c_int64
        self.mix_tuple = ctypes.PYFUNCTYPE(word, ctypes.py_object)(engine.get_function_address("mix_tuple"))
        self.mix_rows = ctypes.PYFUNCTYPE(word, *[word] * 7)(engine.get_function_address("mix_rows"))
        self.mix_entry: int = engine.get_function_address("mix_entry")
        self.mix_pcm16_entry: int = engine.get_function_address("mix_pcm16_entry")
        self.slot_energies, self.lane_energies, self.peak_4x, self.prediction_errors = (
            ctypes.CFUNCTYPE(word, *[word] * n_words)(engine.get_function_address(name))
            for name, n_words in (("slot_energies", 7), ("lane_energies", 7), ("peak_4x", 3), ("prediction_errors", 7))
        )
        engine.detach()  # never freed: methods may be called while the interpreter ends
