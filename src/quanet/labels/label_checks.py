"""Check whether labelled instances look like a random part, or were chosen by hand."""

import numpy as np
from scipy import stats

from quanet.arrays import FloatArray, IntArray

CHOSEN = 0.001  # p-value below which labels are taken to be hand-picked


def random_part(posteriors: FloatArray, known: FloatArray, counts: FloatArray | None = None) -> float:
    """P-value of the hypothesis that the labelled instances are a random part, judged by posteriors (N, k), (n, k).

    Two-sample Kolmogorov-Smirnov tests of every class, corrected for their number. The labelled instances are among
    the N; `counts` (N,) are the instances that each row stands for, None for one each.

    Examples
    --------
    >>> posteriors = np.linspace(0, 1, 1000)[:, None] * [1, -1] + [0, 1]
    >>> random_part(posteriors, posteriors[::10]) > 0.5, random_part(posteriors, posteriors[:100]) < 1e-6
    (True, True)
    """
    heights = np.ones(len(posteriors)) if counts is None else counts
    total, n = float(heights.sum()), len(known)
    if n == 0 or n >= total:
        return 1.0
    each = [1] if posteriors.shape[1] == 2 else range(posteriors.shape[1])
    distance = max(_distance(posteriors[:, c], heights, known[:, c]) for c in each) * total / (total - n)
    return min(1.0, len(each) * float(stats.kstwo.sf(distance, np.round(n * (total - n) / total))))


def _distance(values: FloatArray, heights: FloatArray, known: FloatArray) -> float:
    """Largest difference between the distribution of values (N,) with heights (N,) and that of known ones (n,)."""
    points, place = np.unique(values, return_inverse=True)
    # A row may be the mean of several instances: a known value counts at the nearest row.
    nearest = np.searchsorted((points[1:] + points[:-1]) / 2, known, side="right")
    among = np.bincount(nearest, minlength=len(points)).cumsum() / len(known)
    every = np.bincount(place.ravel(), heights, minlength=len(points)).cumsum() / heights.sum()
    return float(np.abs(among - every).max())


def in_one_place(rows: IntArray, total: int) -> bool:
    """Whether labelled rows (n,), counted from 0, are concentrated in a part of a file of `total` rows.

    Examples
    --------
    >>> in_one_place(np.arange(100), 1000), in_one_place(np.arange(0, 1000, 10), 1000)
    (True, False)
    """
    if len(rows) in (0, total):
        return False
    return bool(stats.kstest((rows + 0.5) / total, "uniform").pvalue < CHOSEN)
