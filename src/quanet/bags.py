"""Bags: sets of instances of a pool, as row numbers, and their prevalences."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.errors import InvalidBags, InvalidData
from quanet.simplex import check_prevalences

CHUNK = 2**18  # numbers gathered at a time: two megabytes fit into the cache of a core


class Bags:
    """A stack of bags, as row numbers into a pool.

    Parameters
    ----------
    indices : (b, n) row numbers, or a sequence of `b` arrays if the bags differ in size.
    prevalences : (b, k) realised prevalences, if the labels of the pool are known.
    labels : (b,) names of the bags, such as months or products.
    pool_size : number of instances in the pool. If given, the bags can only be used with a pool of this size.

    Examples
    --------
    >>> bags = Bags([[0, 1], [1, 2], [4, 5]])
    >>> len(bags), bags.sizes
    (3, array([2, 2, 2]))
    >>> Bags([[0, 1, 2], [3]], labels=["May", "June"])
    Bags(2 bags of 1 to 3 instances)
    """

    __slots__ = ("_prevalences", "flat", "labels", "pool_size", "sizes")

    def __init__(
        self,
        indices: IntArray | Sequence[ArrayLike],
        prevalences: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pool_size: int | None = None,
    ) -> None:
        self.pool_size = pool_size
        if isinstance(indices, np.ndarray) and indices.ndim == 2:
            self.flat: IntArray = indices.ravel()
            self.sizes: IntArray = np.full(len(indices), indices.shape[1], dtype=np.intp)
        else:
            parts = [np.asarray(bag) for bag in indices]
            self.flat = np.concatenate(parts) if parts else np.empty(0, dtype=np.intp)
            self.sizes = np.array([part.size for part in parts], dtype=np.intp)
        self._prevalences = None if prevalences is None else check_prevalences(prevalences)
        self.labels: LabelArray = np.arange(len(self)) if labels is None else np.asarray(labels)
        self._check()

    def _check(self) -> None:
        if len(self) == 0:
            raise InvalidBags("There are no bags. Pass at least one list of row numbers.")
        if (self.sizes == 0).any():
            empty = self.labels[self.sizes == 0].tolist()[0] if len(self.labels) == len(self) else "?"
            raise InvalidBags(f"Bag {empty!r} is empty, so it has no prevalence. Leave it out.")
        if self.flat.dtype.kind not in "iu" or self.flat.ndim != 1:
            raise InvalidBags(f"Bags must be lists of row numbers (integers); got values of type {self.flat.dtype}.")
        if self.flat.min() < 0:
            raise InvalidBags(f"Row number {self.flat.min()} is negative. Rows are counted from 0.")
        for name, values in (("prevalences", self._prevalences), ("labels", self.labels)):
            if values is not None and len(values) != len(self):
                raise InvalidBags(f"There are {len(self)} bags but {len(values)} {name}. Pass one for each bag.")

    def __len__(self) -> int:
        return len(self.sizes)

    def __repr__(self) -> str:
        low, high = self.sizes.min(), self.sizes.max()
        return f"Bags({len(self)} bags of {low if low == high else f'{low} to {high}'} instances)"

    @property
    def indices(self) -> IntArray:
        """Row numbers, (b, n); only if all bags have the same size."""
        if (self.sizes != self.sizes[0]).any():
            raise InvalidBags("The bags differ in size, so they are not a matrix. Iterate over `by_size()`.")
        return self.flat.reshape(len(self), -1)

    @property
    def prevalences(self) -> FloatArray:
        """Realised prevalences, (b, k); only if the bags were drawn from labelled instances."""
        if self._prevalences is None:
            raise InvalidBags("The bags have no true prevalences. Draw them from labels with a protocol, such as APP.")
        return self._prevalences

    def by_size(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Bags of one size at a time: their positions (g,) and their row numbers (g, n)."""
        starts = np.cumsum(self.sizes) - self.sizes
        for size in np.unique(self.sizes).tolist():
            positions = np.flatnonzero(self.sizes == size)
            if len(positions) == len(self):
                yield positions, self.indices
            else:
                yield positions, self.flat[starts[positions, None] + np.arange(size)]

    def check_pool(self, n: int) -> None:
        """Raise `InvalidBags` if the bags do not fit a pool of n instances."""
        if self.pool_size is not None and self.pool_size != n:
            raise InvalidBags(
                f"The bags were made for a pool of {self.pool_size:,} instances, but this pool has {n:,}. "
                "Make them from the labels or groups of this pool."
            )
        if self.flat.max() >= n:
            raise InvalidBags(f"Row number {self.flat.max()} is outside the pool, which has {n} instances.")

    def take(self, positions: IntArray) -> "Bags":
        """The bags at the given positions, with their labels."""
        starts = np.cumsum(self.sizes) - self.sizes
        members = [self.flat[starts[at] : starts[at] + self.sizes[at]] for at in positions.tolist()]
        prevalences = None if self._prevalences is None else self._prevalences[positions]
        return Bags(members, prevalences, self.labels[positions])

    def shares(self, codes: IntArray, k: int) -> FloatArray:
        """Prevalences (b, k) of k classes in every bag, for a pool whose instances have these classes (n,).

        Examples
        --------
        >>> Bags([[0, 1], [1, 2]]).shares(np.array([0, 0, 1]), 2)
        array([[1. , 0. ],
               [0.5, 0.5]])
        """
        self.check_pool(len(codes))
        owners = np.repeat(np.arange(len(self)), self.sizes)
        counts = np.bincount(owners * k + codes[self.flat], minlength=len(self) * k).reshape(len(self), k)
        return counts / self.sizes[:, None]

    def gather(self, rows: FloatArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Positions (g,) and rows (g, n, d) of the bags, a bounded number of them at a time."""
        self.check_pool(len(rows))
        for positions, matrix in self.by_size():
            together = max(1, CHUNK // (matrix.shape[1] * max(1, rows.shape[1])))
            for start in range(0, len(positions), together):
                chunk = slice(start, start + together)
                yield positions[chunk], rows.take(matrix[chunk], axis=0)


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
