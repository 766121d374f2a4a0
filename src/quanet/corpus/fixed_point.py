"""Sums that do not depend on the order of their terms: numbers as integers, added exactly.

A sum of floats depends on the order in which they are added, so partitions in another order would give other digits.
Here each number is rounded once, to a multiple of a small unit, and integers are added.

Without weights, one integer of 64 bits is enough. Weights vary by many orders of magnitude, so a weighted number is
split into four integers of 30 bits each, which leaves room for a sum of billions of terms.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import FloatArray, IntArray

Int64 = NDArray[np.int64]
LIMB = 30  # bits
LIMBS = 4
FINE = 40  # bits after the point of weighted numbers
LARGEST = 1e12  # weight, so that its square fits


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """How numbers are written as integers.

    Attributes
    ----------
    bits : after the point.
    limbs : integers per number.

    Examples
    --------
    The sum is the same in any order, which is not so for floats:

    >>> weighted = FixedPoint(FINE, LIMBS)
    >>> values = np.array([1e12, 0.1, 0.2, -1e12, 3e-8])
    >>> forward, backward = weighted.write(values).sum(axis=0), weighted.write(values[::-1]).sum(axis=0)
    >>> bool((forward == backward).all()), round(float(weighted.floats(forward)), 9)
    (True, 0.30000003)
    """

    bits: int
    limbs: int

    def write(self, values: FloatArray) -> Int64:
        """Integers (..., limbs), the smallest first, of finite numbers (...)."""
        rest = np.rint(np.asarray(values, dtype=float) * 2.0**self.bits)
        out = np.zeros((*rest.shape, self.limbs), dtype=np.int64)
        largest = np.abs(rest).max(initial=0.0)
        for at in range(self.limbs - 1, 0, -1):
            if largest < 2.0 ** (LIMB * at):  # as almost always: large limbs are for large weights
                continue
            part = np.trunc(rest / 2.0 ** (LIMB * at))
            out[..., at] = part
            rest = rest - part * 2.0 ** (LIMB * at)
        out[..., 0] = rest
        return out

    def floats(self, sums: Int64) -> FloatArray:
        """The numbers (...) that integers (..., limbs) stand for."""
        total = sums[..., self.limbs - 1].astype(float)
        for at in range(self.limbs - 2, -1, -1):
            total = total * 2.0**LIMB + sums[..., at]
        return total / 2.0**self.bits


VALUES = FixedPoint(32, 1)  # posteriors, embeddings
DESCRIPTIONS = FixedPoint(16, 1)
COUNTS = FixedPoint(0, 1)
WEIGHTED = FixedPoint(FINE, LIMBS)


def add_by(codes: IntArray, values: Int64, size: int) -> Int64:
    """Sums of integers (n, ...) by code (n,) below `size`: (size, ...)."""
    sums = np.zeros((size, *values.shape[1:]), dtype=np.int64)
    if len(codes) == 0:
        return sums
    if (codes[1:] > codes[:-1]).all():
        sums[codes] = values
        return sums
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    sums[ordered[starts]] = np.add.reduceat(values[order], starts, axis=0)
    return sums
