"""Differences between corrected rates that share human labels or clusters of rows."""

from collections.abc import Sequence

import numpy as np
from scipy import stats

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.labels.judge_covariance import JointSpread
from quanet.uncertainty.differences import Differences


def contrast_limits(
    weights: FloatArray, estimate: FloatArray, lower: FloatArray, upper: FloatArray, correlation: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weighted sums of rates with intervals: (m, r), three of (r, k), (k, r, r) -> three of (m, k).

    The distances between the limits and the estimates of the parts combine like correlated standard deviations, so that
    the interval is as asymmetric as theirs (MOVER: Zou and Donner 2008).

    Examples
    --------
    The errors of two rates that share everything cancel; those of independent rates add up in squares:

    >>> rates, reach = np.array([[0.3], [0.2]]), np.array([[0.04], [0.03]])
    >>> for shared in (1.0, 0.0):
    ...     both = np.array([[[1, shared], [shared, 1]]])
    ...     _, low, high = contrast_limits(np.array([[1, -1]]), rates, rates - reach, rates + reach, both)
    ...     print(low.round(3), high.round(3))
    [[0.09]] [[0.11]]
    [[0.05]] [[0.15]]
    """
    total = weights @ estimate

    def reach(for_positive: FloatArray, for_negative: FloatArray) -> FloatArray:
        far = np.where(weights[..., None] > 0, for_positive, for_negative)  # (m, r, k)
        parts = weights[..., None] * far
        return np.sqrt(np.maximum(np.einsum("mrc,crs,msc->mc", parts, correlation, parts), 0.0))

    below = reach(estimate - lower, upper - estimate)
    above = reach(upper - estimate, estimate - lower)
    return total, total - below, total + above


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
