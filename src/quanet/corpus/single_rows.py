"""Rows of single instances, in little memory: some of them are sorted or counted at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.data.copies import Short
from quanet.data.duplicates import MIXER, Hashes, hash_numbers

SORTED = 2**19  # rows that are sorted or counted at a time
MOST_BLOCKS = 16  # to sort: all rows are searched for those of each block


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of single instances.

    Attributes
    ----------
    groups : (n,).
    values : (n, d).
    hashes : (n,) the lower half of the hash of the content, 0 if unknown (`quanet.data.copies`).
    weights : (n,); None if all count alike.
    """

    groups: NDArray[np.int32]
    values: NDArray[np.float32]
    hashes: Short
    weights: FloatArray | None

    def take(self, chosen: IntArray | BoolArray | slice) -> "Rows":
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[chosen]
        return Rows(self.groups[chosen], self.values[chosen], self.hashes[chosen], weights)

    @classmethod
    def concatenate(cls, parts: Sequence["Rows"]) -> "Rows":
        """All rows of several parts."""
        parts = [part for part in parts if len(part.groups)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        weights = [part.weights for part in parts if part.weights is not None]
        return cls(
            np.concatenate([part.groups for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.hashes for part in parts]),
            np.concatenate(weights) if weights else None,
        )

    def counts(self, size: int) -> IntArray:
        """How many rows each of `size` groups has. `bincount` alone would copy the numbers of all rows."""
        counts = np.zeros(size, dtype=np.intp)
        for start in range(0, len(self.groups), SORTED):
            counts += np.bincount(self.groups[start : start + SORTED], minlength=size)
        return counts

    def in_order(self) -> "Rows":
        """The same rows in an order that follows from their values."""
        n = len(self.groups)
        if all(self.take(slice(start, start + SORTED + 1)).is_in_order() for start in range(0, n, SORTED)):
            return self
        if n <= SORTED:
            return self.take(self.order())
        # Some groups at a time, because a sort needs several times the memory of its rows.
        counts = self.counts(int(self.groups.max()) + 1)
        groups = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        values, hashes = np.empty_like(self.values), np.empty_like(self.hashes)
        weights = None if self.weights is None else np.empty_like(self.weights)
        starts = np.cumsum(counts) - counts
        firsts = np.flatnonzero(np.diff(starts // max(SORTED, n // MOST_BLOCKS), prepend=-1)).tolist()
        for first, last in zip(firsts, [*firsts[1:], len(counts)], strict=True):
            part = self.take(np.flatnonzero((self.groups >= first) & (self.groups < last)))
            order, places = part.order(), slice(starts[first], starts[first] + len(part.groups))
            values[places], hashes[places] = part.values[order], part.hashes[order]
            if weights is not None and part.weights is not None:
                weights[places] = part.weights[order]
        return Rows(groups, values, hashes, weights)

    def order(self) -> IntArray:
        """The positions (n,) of the rows in the order of `in_order`."""
        keys = self._keys()
        order = np.argsort(keys)
        ties = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
        if self._equal(order[ties], order[ties + 1]):
            return order
        weights = () if self.weights is None else (self.weights,)
        return np.lexsort((*weights, self.values[:, 0], self.hashes, self._hashed(), self.groups))

    def is_in_order(self) -> bool:
        """Whether `in_order` would change nothing."""
        keys = self._keys()
        ties = np.flatnonzero(keys[1:] == keys[:-1])
        return bool((keys[1:] >= keys[:-1]).all()) and self._equal(ties, ties + 1)

    def _keys(self) -> Hashes:
        """Group and hash as one number (n,), which is sorted fast. Rows that share it are almost always equal."""
        bits = np.uint64(int(self.groups.max()).bit_length())
        keys = self._hashed()
        if bits:
            keys >>= bits
            keys |= self.groups.astype(np.uint64) << (np.uint64(64) - bits)
        return keys

    def _hashed(self) -> Hashes:
        """A hash of each row (n,), of its values and its content."""
        hashes = hash_numbers(self.values)
        hashes += self.hashes.astype(np.uint64) * MIXER
        return hashes

    def _equal(self, some: IntArray, others: IntArray) -> bool:
        arrays = [self.values, self.hashes, *(() if self.weights is None else (self.weights,))]
        return all(np.array_equal(array[some], array[others]) for array in arrays)
