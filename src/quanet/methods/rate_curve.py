"""Rates at every threshold of a score, and what bags count there."""

from typing import NamedTuple

import numpy as np

from quanet.arrays import BoolArray, FloatArray


class RateCurve(NamedTuple):
    """Thresholds, in ascending order, with the shares of positives and negatives that reach each: three times (m,)."""

    thresholds: FloatArray
    tpr: FloatArray
    fpr: FloatArray

    def where(self, kept: BoolArray) -> "RateCurve":
        """Some of the thresholds."""
        return RateCurve(self.thresholds[kept], self.tpr[kept], self.fpr[kept])


def rate_curve(scores: FloatArray, positive: BoolArray, thresholds: FloatArray | None = None) -> RateCurve:
    """Rates at every distinct score, or at given thresholds: (n,), (n,) -> a `RateCurve`.

    Examples
    --------
    >>> rate_curve(np.array([0.1, 0.4, 0.4, 0.9]), np.array([False, False, True, True]))
    RateCurve(thresholds=array([0.1, 0.4, 0.9]), tpr=array([1. , 1. , 0.5]), fpr=array([1. , 0.5, 0. ]))
    """
    at = np.unique(scores) if thresholds is None else thresholds
    sides = (np.sort(scores[positive]), np.sort(scores[~positive]))
    shares = [(len(side) - np.searchsorted(side, at)) / len(side) for side in sides]
    return RateCurve(at, *shares)


def share_reaching(scores: FloatArray, threshold: float) -> FloatArray:
    """Share of every bag's scores that are at least `threshold`: (..., n) -> (...).

    Examples
    --------
    >>> float(share_reaching(np.array([0.1, 0.4, 0.4, 0.9]), 0.4))
    0.75
    """
    return np.asarray(np.count_nonzero(scores >= threshold, axis=-1) / scores.shape[-1])


def median_sweep(scores: FloatArray, curve: RateCurve) -> FloatArray:
    """Median over all thresholds of the adjusted count: (..., n) -> (...).

    Examples
    --------
    Adjusted counts are 0.5, 1 and 0.5 at the three thresholds:

    >>> curve = RateCurve(np.array([0.2, 0.5, 0.8]), np.array([1.0, 0.75, 0.5]), np.array([0.5, 0.25, 0.0]))
    >>> float(median_sweep(np.array([0.1, 0.6, 0.6, 0.9]), curve))
    0.5
    """
    from quanet import kernels

    bags = np.ascontiguousarray(scores.reshape(-1, scores.shape[-1]))
    found = np.empty(len(bags))
    cells = np.empty(len(curve.thresholds), dtype=np.intp)
    kernels.cells_of(curve.thresholds, np.empty(len(cells)), cells)
    table = np.searchsorted(cells, np.arange(kernels.CELLS + 1))
    kernels.median_sweep(bags, curve.thresholds, table, curve.fpr, 1 / (curve.tpr - curve.fpr), found)
    return found.reshape(scores.shape[:-1])
