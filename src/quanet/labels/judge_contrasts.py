"""Differences between corrected rates that share human labels or clusters of rows."""

from collections.abc import Sequence

import numpy as np
from scipy import stats

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.labels.judge_covariance import JointSpread
from quanet.uncertainty.contrasts import combined_reaches
from quanet.uncertainty.differences import Differences


def contrast_limits(
    weights: FloatArray, estimate: FloatArray, lower: FloatArray, upper: FloatArray, correlation: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weighted sums of rates with intervals: (m, r), three of (r, k), (k, r, r) -> three of (m, k)."""
    total = weights @ estimate
    reaches = combined_reaches(weights[..., None], estimate - lower, upper - estimate, correlation[None], np.False_)
    return total, total - reaches[0], total + reaches[1]


def contrast_rates(
    weights: FloatArray,
    names: tuple[Sequence[str], Sequence[str]],
    rates: tuple[FloatArray, FloatArray, FloatArray],
    spread: JointSpread,
    *,
    level: float,
    classes: LabelArray,
    sizes: IntArray | None = None,
) -> Differences:
    """Differences between weighted means of corrected rates, with intervals, p-values and Holm's correction.

    Parameters
    ----------
    weights : (m, r) of each rate in each difference: positive for the second side, negative for the first.
    names : of the first and second sides, (m,) each.
    rates : estimate, lower and upper limits of the rates, (r, k) each.
    spread : how the rates vary together.
    level, classes : confidence level and (k,) labels of the rates.
    sizes : (m, 2) instances of both sides.
    """
    estimate, lower, upper = rates
    found, low, high = contrast_limits(weights, estimate, lower, upper, spread.correlation)
    apart = np.broadcast_to(np.eye(len(estimate)), spread.correlation.shape)
    _, low_apart, high_apart = contrast_limits(weights, estimate, lower, upper, apart)
    # The distance from the estimate to its limit towards 0 stands for the quantile of `level`.
    towards = np.where(found > 0, found - low, high - found)
    freedom = np.where(weights[..., None] != 0, spread.freedom, np.inf).min(axis=1)
    quantile = stats.t.ppf((1 + level) / 2, freedom)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(found == 0, 0.0, np.abs(found) / towards * quantile)
    return Differences.of(
        *names,
        found,
        np.maximum(low, -1),
        np.minimum(high, 1),
        2 * stats.t.sf(t, freedom),
        level=level,
        classes=classes,
        first_estimate=np.maximum(-weights, 0) @ estimate,
        second_estimate=np.maximum(weights, 0) @ estimate,
        sizes=sizes,
        relative_width=(high - low) / np.maximum(high_apart - low_apart, 1e-300),
    )
