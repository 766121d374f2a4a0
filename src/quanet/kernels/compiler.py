"""How a loop is compiled: numba is imported here and nowhere else."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numba
from numba.core import cgutils as cgutils_module
from numba.core import types
from numba.extending import intrinsic

cgutils: Any = cgutils_module  # its own types are incomplete
F = TypeVar("F", bound=Callable[..., object])

# Sums may be reordered to use vector units; infinities and NaN keep their meaning.
REORDER = {"reassoc", "contract", "arcp", "nsz"}


def compiled(function: F) -> F:
    """Compile `function`, keeping the machine code on disk where a folder for it can be written."""
    compiler = partial(numba.njit, error_model="numpy", fastmath=REORDER, nogil=True)
    try:
        return cast("F", compiler(cache=True)(function))
    except RuntimeError:  # no writable folder, as in a read-only container: compile in every process
        return cast("F", compiler()(function))


def _load_early(_context: Any, array: Any, _at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, byte, number = signature.args[0], cgutils.voidptr_t, cgutils.int32_t
        view = context.make_array(kind)(context, builder, arguments[0])
        where = [arguments[1], *[context.get_constant(types.intp, 0)] * (kind.ndim - 1)]
        pointer = builder.bitcast(cgutils.get_item_pointer(context, builder, kind, view, where), byte)
        returns = cgutils.ir.FunctionType(cgutils.ir.VoidType(), [byte, number, number, number])
        instruction = builder.module.declare_intrinsic("llvm.prefetch", [byte], returns)
        builder.call(instruction, [pointer, number(0), number(3), number(1)])  # to read, to keep, and data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


# In compiled loops, prefetch(array, at) starts to load array[at], and does not wait for it. Random reads of tables that
# are larger than the processor's caches are much faster this way.
prefetch = cast("Callable[[Any, int], None]", intrinsic(_load_early))
