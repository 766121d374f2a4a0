"""Cells of posteriors: neighbouring rows share a cell, which keeps its exact count and mean.

The lattice divides the fourth roots of posteriors evenly: small posteriors matter most, because calibration and maximum
likelihood read their logarithms. The predicted class is part of a cell, so that a plain count is exact. Each level
merges the cells of the level before in pairs, along one class after the other, so that cells of two partitions can be
merged at the coarser of both levels.

A method that reads means is exact on cells. For others the error is of second order in the size of a cell.
"""

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import IntArray
from quanet.data.duplicates import Hashes, hash_numbers

BITS = 12  # of a coordinate at the finest level
FINEST = 0
Coordinates = NDArray[np.int16]
Levels = NDArray[np.int8]


def coarsest(classes: int) -> int:
    """The level at which a cell is given by its predicted class alone."""
    return BITS * classes


def coordinates_of(posteriors: NDArray[np.floating]) -> Coordinates:
    """The cell (n, k + 1) of each row of posteriors (n, k), at the finest level: coordinates and predicted class."""
    roots = np.sqrt(np.sqrt(np.clip(np.asarray(posteriors, dtype=float), 0.0, 1.0)))
    cells = np.minimum((roots * 2**BITS).astype(np.int16), 2**BITS - 1)
    return np.column_stack([cells, posteriors.argmax(axis=1).astype(np.int16)])


def coarser_cells(cells: Coordinates, before: Levels, after: Levels) -> Coordinates:
    """Cells (n, k + 1) of some levels (n,), at levels (n,) that are at least as coarse.

    Examples
    --------
    >>> cells = np.array([[7, 5, 0]], dtype=np.int16)
    >>> [coarser_cells(cells, np.int8([0]), np.int8([level])).tolist() for level in (1, 2, 3)]
    [[[3, 5, 0]], [[3, 2, 0]], [[1, 2, 0]]]
    """
    k = cells.shape[1] - 1
    shift = _shifts(after, k) - _shifts(before, k)
    return np.column_stack([cells[:, :-1] >> shift, cells[:, -1]]).astype(np.int16)


def _shifts(levels: Levels, k: int) -> IntArray:
    """How many bits of each coordinate (n, k) a level drops."""
    return (levels[:, None].astype(np.intp) + np.arange(k)[::-1]) // k


def hash_cells(cells: Coordinates) -> Hashes:
    """A hash (n,) of each cell; equal cells have equal hashes in every process."""
    return hash_numbers(cells)
