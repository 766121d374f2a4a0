"""What is kept of the rows of each group: all of them up to a cap, and cells or a sample above it.

Nothing depends on the order of rows or on partitions: which rows are kept follows from the rows alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.data.duplicates import Hashes, hash_numbers
from quanet.state.fixed_point import FixedPoint, Int64, add_by
from quanet.state.lattice import CELL_BITS, FINEST, Levels, coarser_cells, coarsest, common_levels, lattice_cells
from quanet.state.layout import Layout

EXACT = -1  # level of a group whose rows are all kept
BLOCK = 2**19  # rows that become cells at a time
CHUNK = 2**14  # rows whose control variates are computed at a time


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows (n, d) of single instances, with their groups (n,) and weights (n,); None if all count alike."""

    groups: NDArray[np.int32]
    values: NDArray[np.float32]
    weights: FloatArray | None

    def take(self, chosen: IntArray | BoolArray | slice) -> "Rows":
        """Some of the rows."""
        return Rows(self.groups[chosen], self.values[chosen], None if self.weights is None else self.weights[chosen])

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
            np.concatenate(weights) if weights else None,
        )

    def in_order(self) -> "Rows":
        """The same rows in an order that follows from their values."""
        if not len(self.groups):
            return self
        # Group and hash as one number, which is sorted much faster. Rows that share it are almost always equal.
        bits = np.uint64(int(self.groups.max()).bit_length())
        joined = hash_numbers(self.values)
        if bits:
            joined >>= bits
            joined |= self.groups.astype(np.uint64) << (np.uint64(64) - bits)
        order = np.argsort(joined)
        ties = np.flatnonzero(joined[order[1:]] == joined[order[:-1]])
        if len(ties) and not self._equal(order[ties], order[ties + 1]):
            weights = () if self.weights is None else (self.weights,)
            order = np.lexsort((*weights, self.values[:, 0], hash_numbers(self.values), self.groups))
        return self.take(order)

    def _equal(self, some: IntArray, others: IntArray) -> bool:
        return np.array_equal(self.values[some], self.values[others]) and (
            self.weights is None or np.array_equal(self.weights[some], self.weights[others])
        )


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Rows merged by their key.

    Attributes
    ----------
    groups : (n,).
    keys : (n,) the cell of the lattice, or a hash of the row if a sample is kept.
    counts : (n,) instances.
    sums : (n, d, limbs) of the inputs times their weights.
    totals : (n, 2, limbs) of the weights and of their squares; (n, 0, limbs) without weights, where both are the count.
    """

    groups: NDArray[np.int32]
    keys: Hashes
    counts: Int64
    sums: Int64
    totals: Int64

    def take(self, chosen: IntArray | BoolArray) -> "Cells":
        """Some of the cells."""
        return Cells(*(getattr(self, name)[chosen] for name in self.__slots__))

    @classmethod
    def of(cls, rows: Rows, layout: Layout) -> "Cells":
        """Each row as a cell of its own, at the finest level."""
        inputs = rows.values[:, : layout.inputs]  # a model computes the likelihoods again
        keys = lattice_cells(inputs[:, : layout.classes]) if layout.has_cells else hash_numbers(inputs)
        counts = np.ones(len(rows.groups), dtype=np.int64)
        return cls(rows.groups, keys, counts, *_written(inputs, rows.weights, layout.sums, layout.totals))

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
            np.add.reduceat(np.concatenate([getattr(part, name) for part in parts])[order], starts, axis=0)
            for name in ("counts", "sums", "totals")
        )
        return cls(groups[starts], keys[starts], *sums)

    def at_keys(self, keys: Hashes) -> "Cells":
        """Sorted cells with coarser keys, which have the same order; those that are now equal as one."""
        starts = _first_of_each(self.groups, keys)
        sums = (np.add.reduceat(part, starts, axis=0) for part in (self.counts, self.sums, self.totals))
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
    """

    layout: Layout
    levels: NDArray[np.int8]
    rows: Rows
    cells: Cells
    sampled: Cells

    @classmethod
    def of(cls, layout: Layout, rows: Rows, groups: int) -> "KeptRows":
        """All rows of some groups."""
        none = rows.take(np.empty(0, dtype=np.intp))
        levels: Levels = np.full(groups, EXACT, dtype=np.int8)
        return cls(layout, levels, rows, Cells.of(none, layout), whole_groups(none, layout, groups))

    def renumbered(self, numbers: IntArray, size: int) -> "KeptRows":
        """The same rows with other numbers (g,) of the groups, below `size`."""
        levels: Levels = np.full(size, EXACT, dtype=np.int8)
        np.maximum.at(levels, numbers, self.levels)
        few, cells = numbers.astype(np.int32), self.cells
        rows = replace(self.rows, groups=few[self.rows.groups])
        cells = replace(cells, groups=few[cells.groups], keys=self.at_levels(levels[numbers]))
        return KeptRows(self.layout, levels, rows, cells, replace(self.sampled, groups=few[self.sampled.groups]))

    def at_levels(self, levels: Levels) -> Hashes:
        """The keys of the cells at coarser levels (g,) of their groups."""
        return coarser_cells(self.cells.keys, levels[self.cells.groups]) if self.layout.has_cells else self.cells.keys

    @classmethod
    def merged(cls, parts: Sequence["KeptRows"], cap: int) -> "KeptRows":
        """The rows of parts with the same numbers of groups, at most `cap` of each group."""
        layout, has_cells = parts[0].layout, parts[0].layout.has_cells
        levels: Levels = np.max([part.levels for part in parts], axis=0)
        sizes = sum(np.bincount(part.rows.groups, minlength=len(levels)) for part in parts)
        over = (sizes > cap) | (levels != EXACT)
        if not over.any():
            rows = Rows.concatenate([part.rows for part in parts])
            return cls(layout, levels, rows, parts[0].cells, parts[0].sampled)
        levels = np.where(over, np.maximum(levels, FINEST), levels).astype(np.int8)
        above = [part.rows.take(over[part.rows.groups]) for part in parts]
        fresh = [replace(parts[0], cells=Cells.of(one, layout)) for one in above if len(one.groups)]
        at_levels = [replace(part.cells, keys=part.at_levels(levels)) for part in (*parts, *fresh)]
        cells = Cells.united(at_levels, joined=has_cells)
        del fresh, at_levels
        rows = Rows.concatenate([part.rows.take(~over[part.rows.groups]) for part in parts])
        if has_cells:
            return cls(layout, levels, rows, cells, parts[0].sampled).coarsened(cap)
        whole = [whole_groups(one, layout, len(levels)) for one in above if len(one.groups)]
        sampled = Cells.united([*whole, *(part.sampled for part in parts)], joined=True)
        return cls(layout, levels, rows, cells, sampled).smallest(cap)

    def bounded(self, cap: int) -> "KeptRows":
        """The same with at most `cap` rows of each group: some rows at a time, because cells need more memory."""
        n = len(self.rows.groups)
        if n <= BLOCK or (np.bincount(self.rows.groups).max() <= cap and not len(self.cells.groups)):
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
        return replace(self, rows=self.rows.in_order(), cells=cells, sampled=Cells.united([self.sampled], joined=True))


def whole_groups(rows: Rows, layout: Layout, groups: int) -> Cells:
    """The groups of some rows as one cell each, with the sums of their control variates."""
    present = np.unique(rows.groups)
    totals = np.zeros((groups, layout.total_columns, layout.totals.limbs), dtype=np.int64)
    sums = np.zeros((groups, layout.controls, layout.control_sums.limbs), dtype=np.int64)
    for start in range(0, len(rows.groups), CHUNK):
        part = rows.take(slice(start, start + CHUNK))
        written = _written(layout.control_variates(part.values), part.weights, layout.control_sums, layout.totals)
        codes = part.groups.astype(np.intp)
        sums += add_by(codes, written[0], groups)
        totals += add_by(codes, written[1], groups)
    counts = np.bincount(rows.groups, minlength=groups)[present].astype(np.int64)
    keys = np.zeros(len(present), dtype=np.uint64)
    return Cells(present.astype(np.int32), keys, counts, sums[present], totals[present])


def _written(values: Any, weights: FloatArray | None, sums: FixedPoint, totals: FixedPoint) -> tuple[Int64, Int64]:
    """Values (n, c) times weights as integers, and weights and their squares: `Cells.sums` and `Cells.totals`."""
    if weights is None:
        return sums.write(values), np.empty((len(values), 0, totals.limbs), dtype=np.int64)
    return sums.write(values * weights[:, None]), totals.write(np.column_stack([weights, weights**2]))


def _first_of_each(groups: NDArray[np.int32], keys: Hashes) -> IntArray:
    """Where a cell starts that is not the one before."""
    return np.flatnonzero(np.concatenate([[True], (groups[1:] != groups[:-1]) | (keys[1:] != keys[:-1])]))
