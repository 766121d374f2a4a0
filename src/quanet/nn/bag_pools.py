"""Rows and labels of held-out instances, and the bags drawn from them that networks are trained on."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.bags import Bags
from quanet.data.duplicates import split_groups
from quanet.protocols import UPP


@dataclass(frozen=True, slots=True)
class BagPool:
    """Rows (m, k + e), posteriors first, and classes (m,) of the instances that bags are drawn from.

    `groups` (m,) are equal for copies of an instance; None where all are different.
    """

    rows: FloatArray
    codes: IntArray
    k: int
    groups: IntArray | None = None

    def draw(self, b: int, sizes: tuple[int, int], *, rng: np.random.Generator) -> Bags:
        """Bags of one random size in this range, uniform on its logarithm, at prevalences uniform on the simplex."""
        n = int(np.exp(rng.uniform(np.log(sizes[0]), np.log(sizes[1] + 1))))
        return UPP(bag_size=n, repeats=b).draw_quietly(self.codes, rng=rng, classes=np.arange(self.k))

    def parts(self, shares: tuple[float, ...], *, rng: np.random.Generator) -> list["BagPool"]:
        """Disjoint pools with these shares of every class, drawn at random; copies of an instance are in the same."""
        bounds = np.cumsum(shares) / sum(shares)

        def parts_of(codes: IntArray) -> IntArray:
            member = np.empty(len(codes), dtype=np.intp)
            for c in range(self.k):
                positions = rng.permutation(np.flatnonzero(codes == c))
                # Half an instance off, so that rounding favours no part.
                member[positions] = np.searchsorted(bounds, (np.arange(len(positions)) + 0.5) / len(positions))
            return member

        member = split_groups(self.groups, self.codes, parts_of)
        return [self._take(member == part) for part in range(len(shares))]

    def _take(self, chosen: BoolArray) -> "BagPool":
        groups = None if self.groups is None else self.groups[chosen]
        return BagPool(self.rows[chosen], self.codes[chosen], self.k, groups)


def to_tensors(device: torch.device, *arrays: FloatArray) -> tuple[Tensor, ...]:
    """The arrays as 32-bit tensors on the device, for training."""
    return tuple(torch.as_tensor(array, dtype=torch.float32).to(device, non_blocking=True) for array in arrays)
