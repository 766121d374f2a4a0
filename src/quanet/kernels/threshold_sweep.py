"""The median sweep: a bag's estimate at every threshold, and their median."""

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.kernels.compiler import compiled

SHIFT = 44  # of a float: its exponent and eight digits are left, 256 cells for every power of two
LOWEST = (1023 - 40) << 8  # scores below 2^-40, or as near to 1, share a cell
HALF = (1022 << 8) - LOWEST  # the cell of 0.5
CELLS = 2 * HALF + 2
BINS = 1024  # of the histogram that narrows the search for the median


@compiled
def cells_of(scores: FloatArray, distance: FloatArray, out: IntArray) -> None:
    """Fill `out` with the cells of scores (n,), in their order: the finer the nearer to 0 or 1, where scores crowd."""
    for j in range(len(scores)):
        distance[j] = min(scores[j], 1.0 - scores[j])
    bits = distance.view(np.int64)
    for j in range(len(scores)):
        cell = min(max((bits[j] >> SHIFT) - LOWEST, 0), HALF)
        out[j] = cell if scores[j] < 0.5 else CELLS - 1 - cell


@compiled
def place_of(score: float, thresholds: FloatArray, low: int, high: int) -> int:
    """How many thresholds are at most `score`, which are between `low` and `high`."""
    while low < high:
        middle = (low + high) // 2
        if thresholds[middle] <= score:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def middle_of(values: FloatArray, bins: IntArray, found: FloatArray) -> float:
    """Median of values in [0, 1]: a histogram finds the bins of the middle values, and only those are sorted."""
    m = len(values)
    bins[:] = 0
    for j in range(m):
        bins[int(values[j] * BINS)] += 1
    lower, upper = (m - 1) // 2, m // 2  # the ranks of the one or two middle values
    before, first = 0, 0
    while before + bins[first] <= lower:
        before += bins[first]
        first += 1
    last, upto = first, before + bins[first]
    while upto <= upper:
        last += 1
        upto += bins[last]
    size = 0
    least, most = np.inf, -np.inf
    for j in range(m):
        bin_of = int(values[j] * BINS)
        if first <= bin_of <= last:
            found[size] = values[j]
            least, most = min(least, values[j]), max(most, values[j])
            size += 1
    if least == most:
        return least
    inside = np.sort(found[:size])
    return 0.5 * (inside[lower - before] + inside[upper - before])


@compiled
def median_sweep(
    scores: FloatArray,
    thresholds: FloatArray,
    table: IntArray,
    fpr: FloatArray,
    gain: FloatArray,
    out: FloatArray,
) -> None:
    """Fill `out` (b,) with the median over thresholds (m,) of the adjusted counts of scores (b, n).

    At a threshold t the adjusted count is (c - fpr) gain, clipped to [0, 1], where c is the share of scores of at least
    t and gain = 1 / (tpr - fpr). ``table[c]`` (CELLS + 1,) is how many thresholds lie in cells before c.
    """
    b, n = scores.shape
    m = len(thresholds)
    counts = np.empty(m + 1, dtype=np.int64)
    cells, distance = np.empty(n, dtype=np.int64), np.empty(n)
    values, found = np.empty(m), np.empty(m)
    bins = np.empty(BINS + 1, dtype=np.int64)
    share = 1.0 / n
    for i in range(b):
        counts[:] = 0
        cells_of(scores[i], distance, cells)
        for j in range(n):
            cell = cells[j]
            counts[place_of(scores[i, j], thresholds, table[cell], table[cell + 1])] += 1
        above = 0
        for j in range(m - 1, -1, -1):
            above += counts[j + 1]
            values[j] = above
        for j in range(m):
            values[j] = min(max((values[j] * share - fpr[j]) * gain[j], 0.0), 1.0)
        out[i] = middle_of(values, bins, found)
