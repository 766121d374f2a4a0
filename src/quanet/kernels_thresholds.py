"""The compiled loop of the median sweep: a bag's estimate at every threshold, and their median."""

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.kernels import compiled

CELLS = 4096  # of the table that narrows the search for a score's place among the thresholds
BINS = 1024  # of the histogram that narrows the search for the median


@compiled
def place_of(score: float, thresholds: FloatArray, table: IntArray) -> int:
    """How many thresholds are at most `score`; ``table[c]`` is how many lie below c / CELLS."""
    cell = min(max(int(score * CELLS), 0), CELLS - 1)
    low, high = table[cell], table[cell + 1]
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
    t and gain = 1 / (tpr - fpr).
    """
    b, n = scores.shape
    m = len(thresholds)
    counts = np.empty(m + 1, dtype=np.int64)
    values, found = np.empty(m), np.empty(m)
    bins = np.empty(BINS + 1, dtype=np.int64)
    for i in range(b):
        counts[:] = 0
        for j in range(n):
            counts[place_of(scores[i, j], thresholds, table)] += 1
        above = 0
        for j in range(m - 1, -1, -1):
            above += counts[j + 1]
            values[j] = above
        for j in range(m):
            values[j] = min(max((values[j] / n - fpr[j]) * gain[j], 0.0), 1.0)
        out[i] = middle_of(values, bins, found)
