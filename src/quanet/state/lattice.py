"""Cells of posteriors: neighbouring rows share a cell, which keeps its exact count and mean.

The lattice divides the fourth roots of posteriors evenly: small posteriors matter most, because calibration and maximum
likelihood read their logarithms. The predicted class is part of a cell, so that a plain count is exact. Each level
merges the cells of the level before in pairs, along one class after the other, so that cells of two partitions can be
merged at the coarser of both levels.

A cell is one number: its highest bits are the predicted class, and the bits of the coordinates take turns, so that each
level drops one more of the lowest bits. In sorted cells, those that share a coarser one are neighbours.

A method that reads means is exact on cells. For others the error is of second order in the size of a cell.
"""

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import IntArray

BITS = 12  # of a coordinate at the finest level
FINEST = 0
CELL_BITS = 38  # of a cell, for up to three classes
CellKeys = NDArray[np.uint64]
Levels = NDArray[np.int8]


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
