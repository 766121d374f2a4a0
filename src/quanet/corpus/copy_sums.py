"""How many copies there are in groups above the cap, whose rows are not kept: sums by the hash of the content.

Each group has m sums of weights with a sign; a hash decides the sum and the sign (`quanet.data.copies.content_sums`).
The squares of the sums estimate the sum of the squared weights of the different contents, with a relative standard
deviation of the root of 2 / m, so that one content that occurs very often is never missed. The sums are integers, so
they depend neither on the order of rows nor on partitions. Half as many sums are the sums of pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import IntArray
from quanet.corpus.fixed_point import Int64
from quanet.corpus.layout import Layout
from quanet.corpus.single_rows import Rows
from quanet.data.copies import content_sums

CHUNK = 2**20  # rows added at a time


@dataclass(frozen=True, slots=True, eq=False)
class CopySums:
    """Sums of s groups.

    Attributes
    ----------
    groups : (s,) ascending.
    sums : (s, m + 1, limbs) of the weights with a sign; last, of the squared weights of instances without a hash.
    """

    groups: NDArray[np.int32]
    sums: Int64

    @classmethod
    def none(cls) -> "CopySums":
        """No groups."""
        return cls(np.empty(0, dtype=np.int32), np.empty((0, 1, 1), dtype=np.int64))

    @classmethod
    def united(cls, parts: Sequence["CopySums"], rows: Sequence[Rows], layout: Layout, m: int) -> "CopySums":
        """The sums of several parts and of rows, with at most m sums for each group; m is a power of two."""
        parts = [part for part in parts if len(part.groups)]
        rows = [part for part in rows if len(part.groups)]
        if not parts and not rows:
            return cls.none()
        m = min([m, *(part.sums.shape[1] - 1 for part in parts)])
        groups = np.unique(np.concatenate([*(part.groups for part in parts), *(part.groups for part in rows)]))
        sums = np.zeros((len(groups), m + 1, layout.totals.limbs), dtype=np.int64)
        for part in parts:
            places = np.searchsorted(groups, part.groups)
            if len(np.unique(part.groups)) == len(part.groups):
                sums[places] += part.folded(m)
            else:
                np.add.at(sums, places, part.folded(m))
        if rows:
            numbers = np.zeros(int(groups[-1]) + 1, dtype=np.intp)
            numbers[groups] = np.arange(len(groups))
            _add_rows(sums, rows, numbers, layout)
        return cls(groups, sums)

    def folded(self, m: int) -> Int64:
        """Fewer sums: those whose hashes now have the same lowest bits together."""
        s, size, limbs = self.sums.shape
        if size == m + 1:
            return self.sums
        folded: Int64 = self.sums[:, :-1].reshape(s, -1, m, limbs).sum(axis=1)
        return np.concatenate([folded, self.sums[:, -1:]], axis=1)

    def renumbered(self, numbers: IntArray) -> "CopySums":
        """The same sums with other numbers (g,) of the groups; several may get the same number."""
        return replace(self, groups=numbers[self.groups].astype(np.int32))


def _add_rows(sums: Int64, rows: Sequence[Rows], numbers: IntArray, layout: Layout) -> None:
    """Add rows to the sums (s, m + 1, limbs) of their groups, which have these places there, some rows at a time."""
    flat, m = sums.reshape(-1, layout.totals.limbs), sums.shape[1] - 1
    groups, hashes = np.concatenate([one.groups for one in rows]), np.concatenate([one.hashes for one in rows])
    given = [one.weights for one in rows if one.weights is not None]
    weights = np.concatenate(given) if given else np.ones(len(groups))
    for start in range(0, len(groups), CHUNK):
        part = slice(start, start + CHUNK)
        at, values = content_sums(hashes[part], weights[part], m)
        places, written = numbers[groups[part]] * (m + 1) + at, layout.totals.write(values)
        for limb in range(layout.totals.limbs):  # sums of so few limbs are exact in double precision
            flat[:, limb] += np.bincount(places, written[:, limb], minlength=len(flat)).astype(np.int64)
