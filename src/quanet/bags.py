"""Bags: sets of instances of a pool, as row numbers, and their prevalences."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray, LabelArray, Merged, check_weights
from quanet.errors import InvalidBags
from quanet.simplex import check_prevalences, ranked_by_weight, row_keys, spread_in_order, whole_counts

CHUNK = 2**18  # numbers gathered at a time: two megabytes fit into the cache of a core
REPEATS = 4  # instances of a bag without weights for each instance with a weight
MERGED_REPEATS = 32  # for each row that stands for several instances
LEAST_REPEATED = 1000  # instances of a bag without weights, so that the weights of few instances are precise
LEAST_MERGED = 2**13  # the same if rows stand for several instances
MOST_REPEATED = 2**20  # instances that weights may add to a bag

RowKeys = Callable[[], list[FloatArray]]


class Bags:
    """A stack of bags, as row numbers into a pool: what protocols draw and what `predict_bags` estimates.

    Parameters
    ----------
    indices : (b, n) row numbers, or a sequence of `b` arrays if the bags differ in size.
    prevalences : (b, k) realised prevalences, if the labels of the pool are known.
    labels : (b,) names of the bags, such as months or products.
    pool_size : number of instances in the pool. If given, the bags can only be used with a pool of this size.
    weights : (N,) weights of the instances of the pool, such as views; None if all instances count alike. Prevalences
        are then shares of the weight. An instance of weight 0 counts as absent.
    merged : if rows stand for several instances: how many; `weights` are then the sums of their weights.

    Attributes
    ----------
    flat : (sum of `lengths`,) row numbers of all bags, one bag after the other.
    labels, pool_size, weights, merged : as given; bags without labels are numbered from 0.
    lengths : (b,) row numbers of every bag.
    sizes : (b,) instances of every bag; other than `lengths` only if rows are merged.

    Examples
    --------
    >>> bags = Bags([[0, 1], [1, 2], [4, 5]])
    >>> len(bags), bags.sizes
    (3, array([2, 2, 2]))
    >>> Bags([[0, 1, 2], [3]], labels=["May", "June"])
    Bags(2 bags of 1 to 3 instances)
    """

    __slots__ = ("_prevalences", "flat", "labels", "lengths", "merged", "pool_size", "sizes", "weights")

    def __init__(
        self,
        indices: IntArray | Sequence[ArrayLike],
        prevalences: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pool_size: int | None = None,
        weights: ArrayLike | None = None,
        merged: Merged | None = None,
    ) -> None:
        self.merged = merged
        self.weights = None if weights is None else check_weights(weights, pool_size)
        self.pool_size = pool_size if self.weights is None else len(self.weights)
        if isinstance(indices, np.ndarray) and indices.ndim == 2:
            self.flat: IntArray = indices.ravel()
            self.lengths: IntArray = np.full(len(indices), indices.shape[1], dtype=np.intp)
        else:
            parts = [np.asarray(bag) for bag in indices]
            self.flat = np.concatenate(parts) if parts else np.empty(0, dtype=np.intp)
            self.lengths = np.array([part.size for part in parts], dtype=np.intp)
        self._prevalences = None if prevalences is None else check_prevalences(prevalences)
        self.labels: LabelArray = np.arange(len(self)) if labels is None else np.asarray(labels)
        self._check()
        self.sizes: IntArray = self.lengths
        if merged is not None:
            self.sizes = np.bincount(self.owners, merged.counts[self.flat], minlength=len(self)).astype(np.intp)

    def _check(self) -> None:
        if len(self) == 0:
            raise InvalidBags("There are no bags. Pass at least one list of row numbers.")
        if (self.lengths == 0).any():
            empty = self.labels[self.lengths == 0].tolist()[0] if len(self.labels) == len(self) else "?"
            raise InvalidBags(f"Bag {empty!r} is empty, so it has no prevalence. Leave it out.")
        if self.flat.dtype.kind not in "iu" or self.flat.ndim != 1:
            raise InvalidBags(f"Bags must be lists of row numbers (integers); got values of type {self.flat.dtype}.")
        if self.flat.min() < 0:
            raise InvalidBags(f"Row number {self.flat.min()} is negative. Rows are counted from 0.")
        for name, values in (("prevalences", self._prevalences), ("labels", self.labels)):
            if values is not None and len(values) != len(self):
                raise InvalidBags(f"There are {len(self)} bags but {len(values)} {name}. Pass one for each bag.")
        if self.weights is not None:
            self.check_pool(len(self.weights))
            if empty := self.labels[self.totals == 0].tolist():
                raise InvalidBags(f"All weights in bag {empty[0]!r} are 0, so it has no shares. Leave it out.")

    def __len__(self) -> int:
        return len(self.lengths)

    def __repr__(self) -> str:
        low, high = self.sizes.min(), self.sizes.max()
        return f"Bags({len(self)} bags of {low if low == high else f'{low} to {high}'} instances)"

    @property
    def indices(self) -> IntArray:
        """Row numbers, (b, n); only if all bags have the same size."""
        if (self.lengths != self.lengths[0]).any():
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
        starts = np.cumsum(self.lengths) - self.lengths
        for size in np.unique(self.lengths).tolist():
            positions = np.flatnonzero(self.lengths == size)
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
        every, prevalences = self.members, None if self._prevalences is None else self._prevalences[positions]
        members = [every[at] for at in positions.tolist()]
        return Bags(members, prevalences, self.labels[positions], weights=self.weights, merged=self.merged)

    def joined(self) -> "Bags":
        """One bag of the instances of all bags."""
        return Bags(self.flat[None], labels=["all"], weights=self.weights, merged=self.merged)

    @property
    def members(self) -> list[IntArray]:
        """The row numbers of every bag."""
        return np.split(self.flat, np.cumsum(self.lengths)[:-1])

    @property
    def owners(self) -> IntArray:
        """The bag of every row number in `flat`."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def totals(self) -> FloatArray:
        """(b,) weight of every bag; its number of instances if there are no weights."""
        if self.weights is None:
            return self.lengths.astype(float)
        return np.asarray(np.bincount(self.owners, self.weights[self.flat], minlength=len(self)), dtype=float)

    @property
    def relative_weights(self) -> FloatArray:
        """Weights of the instances in `flat`, relative to the largest of their bag: 1 if all weights are equal."""
        if self.weights is None:
            return np.ones(len(self.flat))
        weights = self.weights[self.flat]
        return weights / np.repeat(np.maximum.reduceat(weights, np.cumsum(self.lengths) - self.lengths), self.lengths)

    @property
    def noise(self) -> FloatArray:
        """(b,) variance of shares, relative to p (1 - p), since only a sample of a bag's instances is known."""
        if self.merged is None:
            return np.zeros(len(self))
        return np.maximum.reduceat(self.merged.noise[self.flat], np.cumsum(self.lengths) - self.lengths)

    @property
    def exposure(self) -> FloatArray | None:
        """(N,) sums of the squared weights of each row's instances; None if all instances count alike."""
        if self.weights is None:
            return None
        if self.merged is None:
            return self.weights**2
        return None if np.array_equal(self.merged.squares, self.merged.counts) else self.merged.squares

    @property
    def effective_sizes(self) -> IntArray:
        r"""(b,) number of instances of equal weight that say as much: :math:`(\sum w)^2 / \sum w^2` (Kish 1965).

        Examples
        --------
        >>> Bags([[0, 1, 2, 3], [2, 3]], weights=[1, 1, 1, 97]).effective_sizes
        array([1, 1])
        >>> Bags([[0, 1, 2, 3]], weights=[1, 1, 2, 2]).effective_sizes
        array([4])
        """
        if self.weights is None or self.exposure is None:
            return self.sizes
        weights = self.relative_weights
        squares = weights**2
        if self.merged is not None:
            with np.errstate(invalid="ignore"):
                squares = np.nan_to_num(self.merged.squares[self.flat] * (weights / self.weights[self.flat]) ** 2)
        sums, squared = (np.bincount(self.owners, values, minlength=len(self)) for values in (weights, squares))
        return np.maximum(np.rint(sums**2 / squared), 1).astype(np.intp)

    def weighted_by(self, weights: ArrayLike, codes: IntArray, k: int) -> "Bags":
        """The same bags of a pool with these weights and classes (N,), with shares of the weight as prevalences."""
        members = self.members
        weighted = Bags(members, None, self.labels, len(codes), weights)
        return Bags(members, weighted.shares(codes, k), self.labels, len(codes), weights)

    def shares(self, codes: IntArray, k: int) -> FloatArray:
        """Prevalences (b, k) of k classes in every bag, for a pool whose instances have these classes (n,).

        Examples
        --------
        >>> Bags([[0, 1], [1, 2]]).shares(np.array([0, 0, 1]), 2).tolist()
        [[1.0, 0.0], [0.5, 0.5]]
        >>> Bags([[0, 1], [1, 2]], weights=[1, 1, 3]).shares(np.array([0, 0, 1]), 2).tolist()
        [[1.0, 0.0], [0.25, 0.75]]
        """
        self.check_pool(len(codes))
        ends, counts = np.cumsum(self.lengths), np.empty((len(self), k))
        weights = None if self.weights is None else self.relative_weights
        for some in self._neighbours():
            rows = slice(ends[some[0]] - self.lengths[some[0]], ends[some[-1]])
            cells = np.repeat(np.arange(len(some)) * k, self.lengths[some]) + codes[self.flat[rows]]
            found = np.bincount(cells, None if weights is None else weights[rows], minlength=len(some) * k)
            counts[some] = found.reshape(-1, k)
        return counts / counts.sum(axis=1, keepdims=True)

    def _neighbours(self) -> list[IntArray]:
        """Positions of neighbouring bags, some at a time, because what follows from their rows needs much memory."""
        return np.split(np.arange(len(self)), np.flatnonzero(np.diff(np.cumsum(self.lengths) // CHUNK)) + 1)

    def unweighted(self, rows: FloatArray, sizes: IntArray | None = None, keys: RowKeys | None = None) -> "Bags":
        """Bags without weights, in which each instance occurs as often as its weight says.

        So every method estimates shares of weights. Small whole weights are repeated exactly. Others are rounded along
        the instances sorted by their rows, where rounding errors cancel: each bag keeps its distribution of rows, and
        the result does not depend on the order of the instances.

        Parameters
        ----------
        rows : (N, d) of the pool.
        sizes : (b,) of the result. None means several times as many instances as there are with a weight above 0.
        keys : returns `row_keys` of the pool, if several calls share them.

        Examples
        --------
        >>> Bags([[0, 1, 2]], weights=[2, 0, 6]).unweighted(np.eye(3)).indices
        array([[0, 2, 2, 2]])
        """
        if self.weights is None and sizes is None:
            return self
        self.check_pool(len(rows))
        weights = np.ones(len(rows)) if self.weights is None else self.weights
        members: list[IntArray] = [self.flat] * len(self)
        repeats, least = (REPEATS, LEAST_REPEATED) if self.merged is None else (MERGED_REPEATS, LEAST_MERGED)
        for positions, matrix in self.by_size():
            of_bags = weights[matrix]
            n = (of_bags > 0).sum(axis=1)
            most = np.minimum(np.maximum(repeats * n, least), n + MOST_REPEATED)  # to round weights, bounded
            most = most if sizes is None else sizes[positions]
            exact, counts = whole_counts(of_bags, most, MOST_REPEATED)
            exact &= sizes is None
            if not exact.all():
                by = [key[matrix[~exact]] for key in (row_keys(rows) if keys is None else keys())]
                by[2:] = [ranked_by_weight(number, of_bags[~exact]) for number in by[2:]]
                counts[~exact] = spread_in_order(of_bags[~exact], most[~exact], by)
            ends = np.cumsum(counts.sum(axis=1))[:-1]
            for at, bag in zip(positions.tolist(), np.split(np.repeat(matrix, counts.ravel()), ends), strict=True):
                members[at] = bag
        return Bags(members, self._prevalences, self.labels, len(rows))

    def gather(self, rows: FloatArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Positions (g,) and rows (g, n, d) of the bags, a bounded number at a time; those of `unweighted` bags."""
        self.check_pool(len(rows))
        keys = cache(lambda: row_keys(rows))
        for some in [np.arange(len(self))] if self.weights is None else self._neighbours():
            bags = self if self.weights is None else self.take(some).unweighted(rows, keys=keys)
            for positions, matrix in bags.by_size():
                together = max(1, CHUNK // (matrix.shape[1] * max(1, rows.shape[1])))
                for start in range(0, len(positions), together):
                    chunk = slice(start, start + together)
                    yield some[positions[chunk]], rows.take(matrix[chunk], axis=0)
