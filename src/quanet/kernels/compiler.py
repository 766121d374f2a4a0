"""How a loop is compiled: numba is imported here and nowhere else."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar, cast

import numba

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
