"""What kernels need of numba: how they are compiled, and memory by address, which holds a session and its samples.

numba spends about 36 ns on each array argument, more than a frame costs. `error_model="numpy"` leaves out the
zero-division branch, which alone keeps loops from being vectorized. `building` compiles all kernels to one object file.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numba.core.cgutils
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # it has no types
from numba.extending import intrinsic

# numba's inner parts are typed in part only.
_cgutils: Any = numba.core.cgutils
types: Any = numba.types
_intrinsic: Any = intrinsic

_Result = TypeVar("_Result")
_BYTE_POINTER = ir.IntType(8).as_pointer()
_WORD = ir.IntType(64)


def kernel(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """`function`, to be compiled."""
    return numba.njit(error_model="numpy")(function)


def fused_kernel(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """As `kernel`, but products may be added before they are rounded: 10 % less time for a recursive filter."""
    # For meters alone. Which products are fused is the compiler's choice, and a mix must not change with how it was
    # cut.
    return numba.njit(error_model="numpy", fastmath={"contract"})(function)


def _viewer(element: Any, llvm_type: Any) -> Any:
    """An intrinsic that turns an address into a pointer to `element`, for `numba.carray`."""

    def viewer(_typing: Any, address: Any) -> Any:
        del address

        def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], llvm_type.as_pointer())

        return types.CPointer(element)(types.int64), build

    return intrinsic(viewer)


float32_at = _viewer(types.float32, ir.FloatType())
float64_at = _viewer(types.float64, ir.DoubleType())
int16_at = _viewer(types.int16, ir.IntType(16))
int32_at = _viewer(types.int32, ir.IntType(32))
int64_at = _viewer(types.int64, ir.IntType(64))


def _build_prefetch(_typing: Any, address: Any) -> Any:
    """Ask for the cache line at `address`, which is going to be written to."""
    del address

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [_BYTE_POINTER, flag, flag, flag])
        fetch = _cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        pointer = builder.inttoptr(arguments[0], _BYTE_POINTER)
        builder.call(fetch, [pointer, flag(1), flag(3), flag(1)])
        return arguments[0]

    return types.int64(types.int64), build


def _build_stack(_typing: Any, n_bytes: Any) -> Any:
    """The address of `n_bytes`, a constant, that last until the kernel returns."""
    if not isinstance(n_bytes, types.IntegerLiteral):
        return None

    def build(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        return builder.ptrtoint(_cgutils.alloca_once(builder, _WORD, n_bytes.literal_value // 8), _WORD)

    return types.int64(n_bytes), build


def _build_call_at(_typing: Any, function: Any, a: Any, b: Any, c: Any) -> Any:
    """The result of the C function at an address, called with three words."""
    del function, a, b, c

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_WORD, [_WORD] * 3).as_pointer()
        return builder.call(builder.inttoptr(arguments[0], kind), arguments[1:])

    return types.int64(types.int64, types.int64, types.int64, types.int64), build


# As kernels call them, without the typing context that they are written with.
prefetch: Callable[[int], int] = _intrinsic(_build_prefetch)
call_at: Callable[[int, int, int, int], int] = _intrinsic(_build_call_at)
stack: Callable[[int], int] = _intrinsic(prefer_literal=True)(_build_stack)
carray: Any = numba.carray  # type: ignore[attr-defined]  # numba's own interface, not in its __all__


@kernel
def float_of_bits(bits: np.int32) -> np.float32:
    """The float32 that has these bits."""
    return np.int32(bits).view(np.float32)


@kernel
def peek(address: int) -> int:
    """The int64 at `address`."""
    word: int = carray(int64_at(address), 1)[0]
    return word
