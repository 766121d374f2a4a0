r"""Copies of instances in bags, found by content: how much less such bags say than as many different instances.

A copy says nothing that the instance itself has not said, and its error is the same error again. So a bag with copies
is worth as many different instances of equal weight as

.. math:: n = \frac{(\sum_i w_i)^2}{\sum_g (\sum_{i \in g} w_i)^2}

where g are the different contents (Kish 1965). This is exact if the error depends on the content alone, and cautious if
equal short texts, such as "ok", were written by different people.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.bags import Bags
from quanet.data.duplicates import CHUNK, DIGITS, Hashes, hash_instances
from quanet.data.instances import column_names, is_text

FEWEST_FINE = 2  # values with many decimals that identify a row of numbers
BITS = np.uint64(32)  # of a hash that are compared: among a million instances, chance adds a hundred pairs
SIGN = np.uint32(2**31)  # the bit of a hash that decides its sign in a sum; the lowest ones decide which sum
NOISE = 3.0  # standard deviations of a sum of squares, below which it says nothing about copies

Short = NDArray[np.uint32]


def content_hashes(X: Any) -> Hashes | None:
    """A hash of every instance (n,), equal for copies; 0 if it may equal others by chance, None if X has no hashes.

    Texts are copies if they are equal up to case, white space and addresses. Rows of numbers are copies if they are
    equal and at least two of their values have more than four decimals. The hash of an instance depends on no other.

    Examples
    --------
    >>> first, second = content_hashes(["Good film", "good  film https://t.co/x1"])
    >>> bool(first == second), content_hashes(np.array([[1, 2], [1, 2]])).tolist()
    (True, [0, 0])
    """
    hashes = hash_instances(X)
    if hashes is None or is_text(X):
        return hashes
    return np.where(_are_fine(X, len(hashes)), hashes, np.uint64(0))


def _are_fine(X: Any, n: int) -> BoolArray:
    """Whether rows of numbers (n,) have so many decimals that they are not equal by chance."""
    if hasattr(X, "tocsr"):
        matrix = X.tocsr()
        found = np.concatenate([[0], np.cumsum(_has_decimals(matrix.data))])[matrix.indptr]
        return np.asarray(np.diff(found) >= FEWEST_FINE)
    values = np.asarray(X)
    if values.dtype.kind != "f":
        if column_names(X) is None or values.dtype.kind != "O":
            return np.zeros(n, dtype=bool)
        columns = [values[:, at].astype(float) for at in range(values.shape[1]) if _are_numbers(values[:, at])]
        values = np.stack(columns, axis=1) if columns else np.zeros((n, 0))
    rows = values.reshape(n, -1)
    found, step = np.empty(n, dtype=bool), max(1, CHUNK // max(1, rows.shape[1]))
    for start in range(0, n, step):
        part = slice(start, start + step)
        found[part] = _has_decimals(rows[part]).sum(axis=1) >= FEWEST_FINE
    return found


def _has_decimals(values: NDArray[Any]) -> BoolArray:
    return np.asarray(np.round(values, DIGITS) != values)


def _are_numbers(column: NDArray[Any]) -> bool:
    return all(isinstance(value, float | int | np.number) for value in column.tolist())


@dataclass(frozen=True, slots=True, eq=False)
class BagCopies:
    """Copies in b bags.

    Attributes
    ----------
    factor : (b,) by how much they increase the variance of a mean; 1 if all instances are different.
    number : (b,) instances with weight that are copies of others in the bag; -1 if unknown.
    """

    factor: FloatArray
    number: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class GroupHashes:
    """Hashes of instances by group, for pools in which not every instance has a row (`quanet.corpus`).

    Attributes
    ----------
    owner : (n,) the group of each row of the pool.
    hashes : (n,) of the rows of groups without sums.
    groups : (s,) groups with sums, ascending.
    sums : (s, m + 1) sums of the weights times a sign, by the rest of the hash (`content_sums`); last, the sum of the
        squared weights of instances without a hash.
    """

    owner: IntArray | NDArray[np.int32]
    hashes: Short
    groups: NDArray[np.int32]
    sums: FloatArray

    def __len__(self) -> int:
        return len(self.owner)

    def __getitem__(self, indices: IntArray) -> "GroupHashes":
        return GroupHashes(self.owner[indices], self.hashes[indices], self.groups, self.sums)

    def copies(self, bags: Bags) -> BagCopies:
        """Copies in bags of whole groups."""
        with_sums = np.isin(self.owner, self.groups)
        summed = np.zeros(len(bags), dtype=bool)
        summed[bags.owners[with_sums[bags.flat]]] = True
        found = _counted(self.hashes, bags)
        factor, number = found.factor, np.where(summed, -1, found.number)
        for at in np.flatnonzero(summed).tolist():
            factor[at] = self._factor(bags, bags.take(np.array([at])).flat, with_sums)
        return BagCopies(factor, number)

    def _factor(self, bags: Bags, rows: IntArray, with_sums: BoolArray) -> float:
        assert bags.merged is not None
        single = rows[~with_sums[rows]]
        weights = np.ones(len(single)) if bags.weights is None else bags.weights[single]
        found = self.sums[np.isin(self.groups, np.unique(self.owner[rows]))].sum(axis=0)
        m = len(found) - 1
        places, values = content_sums(self.hashes[single], weights, m)
        found = found + np.bincount(places, values, minlength=m + 1)
        plain = float(bags.merged.squares[rows].sum())
        factor = float((found[:-1] ** 2).sum() + found[-1]) / max(plain, 1e-300)
        # Without copies, it has the mean 1 and the variance 2 / m.
        return factor if factor > 1 + NOISE * np.sqrt(2 / m) else 1.0


def content_sums(hashes: Short, weights: FloatArray, m: int) -> tuple[IntArray, FloatArray]:
    """The place (n,) of each instance among m sums and one more, and what it adds there (n,).

    The squares of the m sums have a sum whose mean is that of the squared weights of the different contents, because
    other contents that share a sum have the same or the opposite sign by chance (Charikar, Chen and Farach-Colton
    2002). The sums are linear, so those of two parts of the data can be added.
    """
    unknown = hashes == 0
    places = np.where(unknown, m, (hashes & np.uint32(m - 1)).astype(np.intp))
    signs = np.where(hashes & SIGN, -1.0, 1.0)
    return places, np.where(unknown, weights**2, signs * weights)


def count_copies(
    hashes: "Hashes | Short | GroupHashes | None", bags: Bags, within: IntArray | None = None
) -> BagCopies:
    """Copies in bags of a pool.

    Parameters
    ----------
    hashes : of the instances of the pool (n,); None if only repeated row numbers are copies.
    bags : of the pool.
    within : (n,) clusters of the instances; only copies in the same cluster then count.

    Examples
    --------
    >>> found = count_copies(content_hashes(["a", "a", "a", "b", "c", "d"]), Bags([[0, 1, 2, 3], [3, 4, 4, 5]]))
    >>> found.factor, found.number
    (array([2.5, 1.5]), array([2, 1]))
    """
    if isinstance(hashes, GroupHashes):
        return hashes.copies(bags)
    if bags.merged is not None or (hashes is None and _in_order(bags.flat)):
        return BagCopies(np.ones(len(bags)), np.zeros(len(bags), dtype=np.intp))
    return _counted(hashes, bags, within)


def _in_order(rows: IntArray) -> bool:
    return bool((rows[1:] > rows[:-1]).all())


def _counted(hashes: "Hashes | Short | None", bags: Bags, within: IntArray | None = None) -> BagCopies:
    """Copies among single instances: by the lower bits of the hash, or by row number without a hash."""
    b, rows = len(bags), bags.flat
    keys = rows.astype(np.uint64) | (np.uint64(1) << BITS)
    if hashes is not None:
        few = hashes[rows].astype(np.uint32)
        keys = np.where(few == 0, keys, few.astype(np.uint64))
    owners = bags.owners
    if within is not None:
        pairs, places = np.unique(owners * (int(within.max()) + 1) + within[rows], return_inverse=True)
        owners, bag_of = places, pairs // (int(within.max()) + 1)
    keys |= owners.astype(np.uint64) << (BITS + np.uint64(1))
    weights = None if bags.weights is None else bags.relative_weights
    order = None if weights is None else np.argsort(keys)
    keys = np.sort(keys) if order is None else keys[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    if len(starts) == len(keys):
        return BagCopies(np.ones(b), np.zeros(b, dtype=np.intp))
    sums = np.diff(np.append(starts, len(keys))).astype(float)
    plain, present = bags.lengths.astype(float), sums
    if weights is not None:
        sums, present = (np.add.reduceat(values[order], starts) for values in (weights, weights > 0))
        plain = np.bincount(bags.owners, weights**2, minlength=b)
    owners = (keys[starts] >> (BITS + np.uint64(1))).astype(np.intp)
    if within is not None:
        owners = bag_of[owners]
    factor = np.bincount(owners, sums**2, minlength=b) / plain
    number = np.bincount(owners, np.maximum(present.astype(float) - 1, 0), minlength=b)
    return BagCopies(np.maximum(factor, 1.0), number.astype(np.intp))
