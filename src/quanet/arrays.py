"""Array types for signatures; rows that stand for several instances; checks of rows and of weights."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quanet.errors import InvalidBags, InvalidData

BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
LabelArray: TypeAlias = NDArray[Any]

LARGEST_WEIGHT = 1e150  # so that squares are finite


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """Rows of a pool that stand for several instances each (`quanet.corpus`).

    Attributes
    ----------
    counts : (N,) instances that each row stands for.
    squares : (N,) sums of their squared weights; equal to `counts` if all instances count alike.
    noise : (N,) if rows are a random sample of a bag, the variance of its shares that this adds, relative to p (1 - p).
    """

    counts: IntArray
    squares: FloatArray
    noise: FloatArray


def check_weights(weights: ArrayLike, n: int | None = None) -> FloatArray:
    """Weights of n instances as floats (n,), or an `InvalidData` that names the row: finite, none negative, not all 0.

    Examples
    --------
    >>> check_weights([3, 0, 1.5])
    array([3. , 0. , 1.5])
    """
    try:
        values = np.asarray(weights, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidData(f"Weights must be numbers: {error}.") from None
    if values.ndim != 1 or (n is not None and len(values) != n):
        raise InvalidData(f"Pass one weight per instance{'' if n is None else f' ({n:,})'}; got shape {values.shape}.")
    invalid = np.flatnonzero(~(np.isfinite(values) & (values >= 0) & (values <= LARGEST_WEIGHT)))
    if len(invalid):
        raise InvalidData(
            f"The weight at index {invalid[0]} is {values[invalid[0]]}; weights must be numbers from 0 up. "
            "Correct or drop these instances; a weight of 0 means that an instance does not count."
        )
    if not values.any():
        raise InvalidData("All weights are 0. At least one instance needs a weight above 0; or pass no weights.")
    return values


def check_rows(rows: ArrayLike, *, width: int | None = None) -> FloatArray:
    """Return rows as floats (..., n, d), or raise an error if they are not a stack of bags.

    Examples
    --------
    >>> check_rows([[0.5, 0.5]]).shape
    (1, 2)
    """
    values = np.asarray(rows, dtype=float)
    if values.ndim < 2:
        raise InvalidData(f"Rows must be a matrix (n, d) or a stack of matrices; got shape {values.shape}.")
    check_not_empty(values.shape[-2])
    if width is not None and values.shape[-1] != width:
        raise InvalidData(f"Rows must have {width} columns; got {values.shape[-1]}.")
    return values


def check_not_empty(n: int) -> None:
    """Raise `InvalidBags` if a bag has n = 0 instances."""
    if n == 0:
        raise InvalidBags("The bag is empty, so it has no prevalence. Pass at least one instance.")
