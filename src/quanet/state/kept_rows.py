"""What is kept of the rows of each group: all of them up to a cap, and cells or a sample above it.

Nothing depends on the order of rows or on partitions: which rows are kept follows from the rows alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.data.duplicates import Hashes, hash_numbers
from quanet.state.fixed_point import Int64, add_by
from quanet.state.lattice import FINEST, Coordinates, Levels, coarser_cells, coarsest, coordinates_of, hash_cells
from quanet.state.layout import Layout

EXACT = -1  # level of a group whose rows are all kept
CHUNK = 2**14  # rows whose control variates are computed at a time


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows (n, d) of single instances, with their groups (n,) and weights (n,), which are 1 if there are none."""

    groups: NDArray[np.int32]
    values: NDArray[np.float32]
    weights: FloatArray

    def take(self, chosen: IntArray | BoolArray) -> "Rows":
        """Some of the rows."""
        return Rows(self.groups[chosen], self.values[chosen], self.weights[chosen])

    @classmethod
    def concatenate(cls, parts: Sequence["Rows"]) -> "Rows":
        """All rows of several parts."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))

    def in_order(self) -> "Rows":
        """The same rows in an order that follows from their values."""
        if not len(self.groups):
            return self
        hashes = hash_numbers(self.values)
        return self.take(np.lexsort((self.weights, self.values[:, 0], hashes, self.groups)))


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Rows merged by their key.

    Attributes
    ----------
    groups : (n,).
    keys : (n,) hash of the cell, or of the row if a sample is kept.
    coordinates : (n, k + 1) of the cell; (n, 0) if a sample is kept.
    counts : (n,) instances.
    sums : (n, d, limbs) of the rows times their weights.
    totals : (n, 2, limbs) of the weights and of their squares.
    """

    groups: NDArray[np.int32]
    keys: Hashes
    coordinates: Coordinates
    counts: Int64
    sums: Int64
    totals: Int64

    def take(self, chosen: IntArray | BoolArray) -> "Cells":
        """Some of the cells."""
        return Cells(*(getattr(self, name)[chosen] for name in self.__slots__))

    @classmethod
    def concatenate(cls, parts: Sequence["Cells"]) -> "Cells":
        """All cells of several parts."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))

    @classmethod
    def of(cls, rows: Rows, layout: Layout) -> "Cells":
        """Each row as a cell of its own, at the finest level."""
        weights = rows.weights
        if layout.has_cells:
            coordinates = coordinates_of(rows.values[:, : layout.classes])
            keys = hash_cells(coordinates)
        else:
            coordinates, keys = np.empty((len(weights), 0), dtype=np.int16), hash_numbers(rows.values)
        return cls(
            rows.groups,
            keys,
            coordinates,
            np.ones(len(weights), dtype=np.int64),
            layout.sums.write(rows.values * weights[:, None]),
            layout.totals.write(np.column_stack([weights, weights**2])),
        )

    def united(self) -> "Cells":
        """Cells of the same group with the same key as one, sorted by group and key."""
        if not len(self.groups):
            return self
        order = np.lexsort((self.keys, self.groups))
        groups, keys = self.groups[order], self.keys[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (np.diff(groups) != 0) | (keys[1:] != keys[:-1])
        starts = np.flatnonzero(new)
        if len(starts) == len(order):
            return self.take(order)
        counts, sums, totals = (
            np.add.reduceat(part[order], starts, axis=0) for part in (self.counts, self.sums, self.totals)
        )
        return Cells(groups[starts], keys[starts], self.coordinates[order[starts]], counts, sums, totals)


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
        rows = replace(self.rows, groups=numbers[self.rows.groups].astype(np.int32))
        cells, sampled = (
            replace(part, groups=numbers[part.groups].astype(np.int32))
            for part in (self.at_levels(levels[numbers]), self.sampled)
        )
        return KeptRows(self.layout, levels, rows, cells, sampled)

    def at_levels(self, levels: Levels) -> Cells:
        """The cells at coarser levels (g,) of their groups."""
        cells = self.cells
        before, after = self.levels[cells.groups], levels[cells.groups]
        if not self.layout.has_cells or np.array_equal(before, after):
            return cells
        coordinates = coarser_cells(cells.coordinates, before, after)
        return replace(cells, coordinates=coordinates, keys=hash_cells(coordinates))

    @classmethod
    def merged(cls, parts: Sequence["KeptRows"], cap: int) -> "KeptRows":
        """The rows of parts with the same numbers of groups, at most `cap` of each group."""
        layout = parts[0].layout
        levels: Levels = np.max([part.levels for part in parts], axis=0)
        rows = Rows.concatenate([part.rows for part in parts])
        over = (np.bincount(rows.groups, minlength=len(levels)) > cap) | (levels != EXACT)
        if not over.any():
            return cls(layout, levels, rows, parts[0].cells, parts[0].sampled)
        levels = np.where(over, np.maximum(levels, FINEST), levels).astype(np.int8)
        above = over[rows.groups]
        new = Cells.of(rows.take(above), layout)
        fresh = cls(layout, np.full(len(levels), FINEST, dtype=np.int8), rows.take(~above), new, parts[0].sampled)
        cells = Cells.concatenate([fresh.at_levels(levels), *(part.at_levels(levels) for part in parts)]).united()
        if layout.has_cells:
            return cls(layout, levels, fresh.rows, cells, parts[0].sampled).coarsened(cap)
        whole = whole_groups(rows.take(above), layout, len(levels))
        sampled = Cells.concatenate([whole, *(part.sampled for part in parts)]).united()
        return cls(layout, levels, fresh.rows, cells, sampled).smallest(cap)

    def coarsened(self, cap: int) -> "KeptRows":
        """At most `cap` cells of each group, at the finest level that allows it."""
        finer, coarser = self.levels.astype(np.intp) - 1, np.full(len(self.levels), coarsest(self.layout.classes))
        while (open_groups := coarser - finer > 1).any():  # by halving the interval of levels of each group
            middle = np.where(open_groups, np.maximum((finer + coarser) // 2, self.levels), self.levels)
            tried = replace(self, cells=self.cells.take(open_groups[self.cells.groups]))
            cells = tried.at_levels(middle.astype(np.int8)).united()
            fits = np.bincount(cells.groups, minlength=len(middle)) <= cap
            coarser, finer = np.where(open_groups & fits, middle, coarser), np.where(open_groups & ~fits, middle, finer)
        levels = np.where(self.levels == EXACT, EXACT, coarser).astype(np.int8)
        return replace(self, levels=levels, cells=self.at_levels(levels).united())

    def smallest(self, cap: int) -> "KeptRows":
        """The `cap` rows of each group with the smallest hashes, which are a random sample of its distinct rows."""
        starts = np.flatnonzero(np.diff(self.cells.groups, prepend=-1))
        lengths = np.diff(np.append(starts, len(self.cells.groups)))
        rank = np.arange(len(self.cells.groups)) - np.repeat(starts, lengths)
        return replace(self, cells=self.cells.take(rank < cap))

    def in_order(self) -> "KeptRows":
        """The same, in an order that follows from the rows alone."""
        return replace(self, rows=self.rows.in_order(), cells=self.cells.united(), sampled=self.sampled.united())


def whole_groups(rows: Rows, layout: Layout, groups: int) -> Cells:
    """The groups of some rows as one cell each, with the sums of their control variates."""
    present = np.unique(rows.groups)
    totals = np.zeros((groups, 2, layout.totals.limbs), dtype=np.int64)
    sums = np.zeros((groups, layout.controls, layout.sums.limbs), dtype=np.int64)
    for start in range(0, len(rows.groups), CHUNK):
        part = rows.take(np.arange(start, min(start + CHUNK, len(rows.groups))))
        weights, codes = part.weights, part.groups.astype(np.intp)
        sums += add_by(codes, layout.sums.write(layout.control_variates(part.values) * weights[:, None]), groups)
        totals += add_by(codes, layout.totals.write(np.column_stack([weights, weights**2])), groups)
    counts = np.bincount(rows.groups, minlength=groups)[present].astype(np.int64)
    keys, coordinates = np.zeros(len(present), dtype=np.uint64), np.empty((len(present), 0), dtype=np.int16)
    return Cells(present.astype(np.int32), keys, coordinates, counts, sums[present], totals[present])
