"""What is kept of the rows of each group: all of them up to a cap, and cells or a sample above it.

Nothing depends on the order of rows or on partitions: which rows are kept follows from the rows alone.

Cells of posteriors: neighbouring rows share a cell, which keeps its exact count and mean.

The lattice divides the fourth roots of posteriors evenly: small posteriors matter most, because calibration and maximum
likelihood read their logarithms. The predicted class is part of a cell, so that a plain count is exact. Each level
merges the cells of the level before in pairs, along one class after the other, so that cells of two partitions can be
merged at the coarser of both levels.

A cell is one number: its highest bits are the predicted class, and the bits of the coordinates take turns, so that each
level drops one more of the lowest bits. In sorted cells, those that share a coarser one are neighbours.

A method that reads means is exact on cells. For others the error is of second order in the size of a cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.corpus.fixed_point import Int64
from quanet.corpus.layout import Layout
from quanet.data.copies import Short, content_sums
from quanet.data.duplicates import MIXER, Hashes, hash_numbers

SORTED = 2**19  # rows that are sorted or counted at a time
MOST_BLOCKS = 16  # to sort: all rows are searched for those of each block
SUMMED = 2**20  # rows that are added to sums by content at a time
EXACT = -1  # level of a group whose rows are all kept
BLOCK = 2**19  # rows that become cells at a time
CHUNK = 2**19  # control variates that are computed at a time
BITS = 12  # of a coordinate at the finest level
FINEST = 0
CELL_BITS = 38  # of a cell, for up to three classes
CellKeys = NDArray[np.uint64]
Levels = NDArray[np.int8]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of single instances, in little memory: some of them are sorted or counted at a time.

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


@dataclass(frozen=True, slots=True, eq=False)
class CopySums:
    """How many copies there are in s groups above the cap, whose rows are not kept: sums by the hash of the content.

    Each group has m sums of weights with a sign; a hash decides the sum and the sign (`content_sums`). The squares of
    the sums estimate the sum of the squared weights of the different contents, with a relative standard deviation of
    the root of 2 / m, so that one content that occurs very often is never missed. The sums are integers, so they depend
    neither on the order of rows nor on partitions. Half as many sums are the sums of pairs.

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
    for start in range(0, len(groups), SUMMED):
        part = slice(start, start + SUMMED)
        at, values = content_sums(hashes[part], weights[part], m)
        places, written = numbers[groups[part]] * (m + 1) + at, layout.totals.write(values)
        for limb in range(layout.totals.limbs):  # sums of so few limbs are exact in double precision
            flat[:, limb] += np.bincount(places, written[:, limb], minlength=len(flat)).astype(np.int64)


def coarsest(classes: int) -> int:
    """The level at which a cell is given by its predicted class alone."""
    return BITS * classes


def lattice_cells(posteriors: NDArray[np.floating]) -> CellKeys:
    """The cell (n,) of each row of posteriors (n, k), at the finest level.

    Examples
    --------
    >>> [f"{cell:025b}" for cell in lattice_cells(np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()]
    ['0010101010101010101010101', '1101010101010101010101010']
    """
    k = posteriors.shape[1]
    spread = _spread_bits(k)
    cells: CellKeys = posteriors.argmax(axis=1).astype(np.uint64) << np.uint64(BITS * k)
    for at in range(k):
        roots = np.sqrt(np.sqrt(np.clip(posteriors[:, at].astype(float), 0.0, 1.0)))
        cells |= spread[np.minimum((roots * 2**BITS).astype(np.intp), 2**BITS - 1)] << np.uint64(at)
    return cells


def coarser_cells(cells: CellKeys, levels: Levels) -> CellKeys:
    """Cells (n,) at levels (n,) that are at least as coarse.

    Examples
    --------
    >>> [coarser_cells(np.uint64([0b110111]), np.int8([level])).tolist() for level in (0, 1, 2, 3)]
    [[55], [54], [52], [48]]
    """
    drop = levels.astype(np.uint64)
    return cells >> drop << drop


def common_levels(cells: CellKeys) -> IntArray:
    """The finest level (n - 1,) at which each of n cells and the next are the same.

    Examples
    --------
    >>> common_levels(np.uint64([0b100, 0b101, 0b111, 0b111])).tolist()
    [1, 2, 0]
    """
    return np.frexp((cells[1:] ^ cells[:-1]).astype(float))[1].astype(np.intp)  # the number of bits


def _spread_bits(k: int) -> CellKeys:
    """Every coordinate with k - 1 zeros before each of its bits."""
    coordinates, spread = np.arange(2**BITS, dtype=np.uint64), np.zeros(2**BITS, dtype=np.uint64)
    for bit in range(BITS):
        spread |= (coordinates >> np.uint64(bit) & np.uint64(1)) << np.uint64(bit * k)
    return spread


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Rows merged by their key.

    Attributes
    ----------
    groups : (n,).
    keys : (n,) the cell of the lattice, or a hash of the row if a sample is kept.
    counts : (n,) instances.
    sums : (n, d, limbs) of the inputs times their weights; the row itself (n, d) if a sample is kept, as float32.
    totals : (n, 2, limbs) of the weights and of their squares; (n, 0, limbs) without weights, where both are the count.
    """

    groups: NDArray[np.int32]
    keys: Hashes
    counts: Int64
    sums: Any
    totals: Int64

    def take(self, chosen: IntArray | BoolArray) -> "Cells":
        """Some of the cells."""
        return Cells(*(getattr(self, name)[chosen] for name in self.__slots__))

    @classmethod
    def of(cls, rows: Rows, layout: Layout) -> "Cells":
        """Each row as a cell of its own, at the finest level."""
        inputs = rows.values[:, : layout.inputs]  # a model computes the likelihoods again
        counts, totals = np.ones(len(rows.groups), dtype=np.int64), _written_weights(rows, layout)
        if not layout.has_cells:
            return cls(rows.groups, hash_numbers(inputs), counts, inputs, totals)
        cells = lattice_cells(inputs[:, : layout.classes])
        weighted: Any = inputs if rows.weights is None else inputs * rows.weights[:, None]
        return cls(rows.groups, cells, counts, layout.sums.write(weighted), totals)

    def means(self, layout: Layout) -> FloatArray:
        """The mean row (n, d) of the instances of each cell."""
        if not layout.has_cells:
            return self.sums.astype(float)
        weights = self.floats(layout)[:, :1]
        # A cell whose weights are all 0 has no mean, and needs none.
        found = np.where(weights > 0, layout.sums.floats(self.sums) / np.maximum(weights, 1e-300), 1.0)
        found[:, : layout.classes] /= found[:, : layout.classes].sum(axis=1, keepdims=True)  # rounded sums
        return found

    def floats(self, layout: Layout) -> FloatArray:
        """Weights of the cells, and sums of squared weights: (n, 2)."""
        if not layout.weighted:
            return np.column_stack([self.counts, self.counts]).astype(float)
        return layout.totals.floats(self.totals)

    @classmethod
    def united(cls, parts: Sequence["Cells"], *, joined: bool) -> "Cells":
        """Cells of the same group with the same key as one, sorted by group and key.

        Parameters
        ----------
        parts : all cells.
        joined : whether keys have few bits, so that a group and a key are one number, which is sorted faster.
        """
        parts = [part for part in parts if len(part.groups)] or parts[:1]
        if not len(parts[0].groups):
            return parts[0]
        groups, keys = (np.concatenate([getattr(part, name) for part in parts]) for name in ("groups", "keys"))
        if joined:
            numbers = keys | groups.astype(np.uint64) << np.uint64(CELL_BITS)
            if len(parts) == 1 and (numbers[1:] > numbers[:-1]).all():
                return parts[0]
            order = np.argsort(numbers)
        else:
            order = np.lexsort((keys, groups))
        groups, keys = groups[order], keys[order]
        starts = _first_of_each(groups, keys)
        # One array at a time, to need little memory.
        sums = (
            _united(np.concatenate([getattr(part, name) for part in parts])[order], starts)
            for name in ("counts", "sums", "totals")
        )
        return cls(groups[starts], keys[starts], *sums)

    def at_keys(self, keys: Hashes) -> "Cells":
        """Sorted cells with coarser keys, which have the same order; those that are now equal as one."""
        starts = _first_of_each(self.groups, keys)
        sums = (_united(part, starts) for part in (self.counts, self.sums, self.totals))
        return Cells(self.groups[starts], keys[starts], *sums)


@dataclass(frozen=True, slots=True, eq=False)
class KeptRows:
    """What is kept of the rows of g groups.

    Attributes
    ----------
    layout : of the rows.
    levels : (g,) `EXACT`, or the level of the group's cells (`FINEST` if a sample is kept).
    rows : of groups at or below the cap.
    cells : of groups above the cap.
    sampled : groups of which a sample is kept, as one cell each, with the sums of their control variates.
    copies : of groups above the cap.
    """

    layout: Layout
    levels: NDArray[np.int8]
    rows: Rows
    cells: Cells
    sampled: Cells
    copies: CopySums

    @classmethod
    def of(cls, layout: Layout, rows: Rows, groups: int) -> "KeptRows":
        """All rows of some groups."""
        none = rows.take(np.empty(0, dtype=np.intp))
        levels: Levels = np.full(groups, EXACT, dtype=np.int8)
        return cls(layout, levels, rows, Cells.of(none, layout), whole_groups(none, layout), CopySums.none())

    def renumbered(self, numbers: IntArray, size: int) -> "KeptRows":
        """The same rows with other numbers (g,) of the groups, below `size`."""
        if len(numbers) == size and np.array_equal(numbers, np.arange(size)):
            return self
        levels: Levels = np.full(size, EXACT, dtype=np.int8)
        np.maximum.at(levels, numbers, self.levels)
        few, cells = numbers.astype(np.int32), self.cells
        rows = replace(self.rows, groups=few[self.rows.groups])
        cells = replace(cells, groups=few[cells.groups], keys=self.at_levels(levels[numbers]))
        sampled = replace(self.sampled, groups=few[self.sampled.groups])
        return KeptRows(self.layout, levels, rows, cells, sampled, self.copies.renumbered(numbers))

    def at_levels(self, levels: Levels) -> Hashes:
        """The keys of the cells at coarser levels (g,) of their groups."""
        return coarser_cells(self.cells.keys, levels[self.cells.groups]) if self.layout.has_cells else self.cells.keys

    @staticmethod
    def above(parts: Sequence["KeptRows"], cap: int) -> BoolArray:
        """Whether each group (g,) of parts with the same numbers of groups has more than `cap` rows, or cells."""
        sizes = sum(part.rows.counts(len(part.levels)) for part in parts)
        return (sizes > cap) | (np.max([part.levels for part in parts], axis=0) != EXACT)

    @classmethod
    def merged(cls, parts: Sequence["KeptRows"], cap: int) -> "KeptRows":
        """The rows of parts with the same numbers of groups, at most `cap` of each group."""
        layout, has_cells = parts[0].layout, parts[0].layout.has_cells
        levels: Levels = np.max([part.levels for part in parts], axis=0)
        over = cls.above(parts, cap)
        if not over.any():
            rows = Rows.concatenate([part.rows for part in parts])
            return cls(layout, levels, rows, parts[0].cells, parts[0].sampled, CopySums.none())
        levels = np.where(over, np.maximum(levels, FINEST), levels).astype(np.int8)
        above = [part.rows.take(over[part.rows.groups]) for part in parts]
        copies = CopySums.united([part.copies for part in parts], above, layout, layout.copy_sums(len(over)))
        fresh = [replace(parts[0], cells=Cells.of(one, layout)) for one in above if len(one.groups)]
        at_levels = [replace(part.cells, keys=part.at_levels(levels)) for part in (*parts, *fresh)]
        cells = Cells.united(at_levels, joined=has_cells)
        del fresh, at_levels
        rows = Rows.concatenate([part.rows.take(~over[part.rows.groups]) for part in parts])
        if has_cells:
            return cls(layout, levels, rows, cells, parts[0].sampled, copies).coarsened(cap)
        whole = [whole_groups(one, layout) for one in above if len(one.groups)]
        sampled = Cells.united([*whole, *(part.sampled for part in parts)], joined=True)
        return cls(layout, levels, rows, cells, sampled, copies).smallest(cap)

    def bounded(self, cap: int) -> "KeptRows":
        """The same with at most `cap` rows of each group: some rows at a time, because cells need more memory."""
        n = len(self.rows.groups)
        if n <= BLOCK or (self.rows.counts(len(self.levels)).max() <= cap and not len(self.cells.groups)):
            return KeptRows.merged([self], cap)
        none = np.empty(0, dtype=np.intp)
        kept = replace(self, rows=self.rows.take(none))
        alone = KeptRows.of(self.layout, kept.rows, len(self.levels))
        for start in range(0, n, BLOCK):
            kept = KeptRows.merged([kept, replace(alone, rows=self.rows.take(slice(start, start + BLOCK)))], cap)
        return kept

    def coarsened(self, cap: int) -> "KeptRows":
        """At most `cap` cells of each group, which are sorted, at the finest level that allows it."""
        cells, size = self.cells, coarsest(self.layout.classes) + 1
        many = np.bincount(cells.groups, minlength=len(self.levels)) > cap
        if not many.any():
            return self
        number = np.cumsum(many) - 1  # of the groups with too many cells
        # A group has as many cells at a level as it has neighbours that only a coarser one unites, and one.
        pair = np.flatnonzero(many[cells.groups[1:]] & (cells.groups[1:] == cells.groups[:-1]))
        common = np.minimum(common_levels(cells.keys)[pair], size)
        places = number[cells.groups[pair]] * (size + 1) + common
        found = np.bincount(places, minlength=int(many.sum()) * (size + 1)).reshape(-1, size + 1)
        coarser = np.cumsum(found[:, ::-1], axis=1)[:, ::-1][:, 1:]  # neighbours that a level does not unite
        levels = self.levels.copy()
        levels[many] = (coarser >= cap).sum(axis=1)
        return replace(self, levels=levels, cells=cells.at_keys(self.at_levels(levels)))

    def smallest(self, cap: int) -> "KeptRows":
        """The `cap` rows of each group with the smallest hashes, which are a random sample of its distinct rows."""
        starts = np.flatnonzero(np.diff(self.cells.groups, prepend=-1))
        lengths = np.diff(np.append(starts, len(self.cells.groups)))
        rank = np.arange(len(self.cells.groups)) - np.repeat(starts, lengths)
        return replace(self, cells=self.cells.take(rank < cap))

    def in_order(self) -> "KeptRows":
        """The same, in an order that follows from the rows alone."""
        cells = Cells.united([self.cells], joined=self.layout.has_cells)
        sampled = Cells.united([self.sampled], joined=True)
        copies = CopySums.united([self.copies], [], self.layout, self.layout.copy_sums(len(self.levels)))
        return replace(self, rows=self.rows.in_order(), cells=cells, sampled=sampled, copies=copies)


def whole_groups(rows: Rows, layout: Layout) -> Cells:
    """The groups of some rows as one cell each, with the sums of their control variates."""
    rows = rows.take(np.argsort(rows.groups, kind="stable"))
    present, places, counts = np.unique(rows.groups, return_inverse=True, return_counts=True)
    sums = np.zeros((layout.controls, len(present), layout.sums.limbs), dtype=np.int64)
    totals = np.zeros((len(present), layout.total_columns, layout.totals.limbs), dtype=np.int64)
    step = CHUNK // max(layout.controls, 1) + 1
    for start in range(0, len(places), step):
        part, some = rows.take(slice(start, start + step)), places[start : start + step]
        starts = np.flatnonzero(np.diff(some, prepend=-1))
        written = layout.sums.write(
            layout.control_variates(part.values) * (1 if part.weights is None else part.weights)
        )
        sums[:, some[starts]] += np.add.reduceat(written, starts, axis=1)
        totals[some[starts]] += np.add.reduceat(_written_weights(part, layout), starts, axis=0)
    keys = np.zeros(len(present), dtype=np.uint64)
    return Cells(present.astype(np.int32), keys, counts.astype(np.int64), np.moveaxis(sums, 0, 1).copy(), totals)


def _written_weights(rows: Rows, layout: Layout) -> Int64:
    """Weights of rows and their squares as integers: `Cells.totals`."""
    if rows.weights is None:
        return np.empty((len(rows.groups), 0, layout.totals.limbs), dtype=np.int64)
    return layout.totals.write(np.column_stack([rows.weights, rows.weights**2]))


def _united(ordered: Any, starts: IntArray) -> Any:
    """Sums of integers from each start to the next; of rows the first, since all have the same hash."""
    return ordered[starts] if ordered.dtype == np.float32 else np.add.reduceat(ordered, starts, axis=0)


def _first_of_each(groups: NDArray[np.int32], keys: Hashes) -> IntArray:
    """Where a cell starts that is not the one before."""
    return np.flatnonzero(np.concatenate([[True], (groups[1:] != groups[:-1]) | (keys[1:] != keys[:-1])]))
