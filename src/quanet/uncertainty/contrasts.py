r"""Contrasts of the prevalences of bags, such as differences and trends, with the errors that bags share.

A difference and a trend are contrasts :math:`\sum_i w_i p_i` of the prevalences of bags. The interval of a contrast
combines the intervals of the bags (MOVER; Zou and Donner 2008; Newcombe 1998 for two bags): with the distances
:math:`r_i` from an estimate to that end of its interval that moves the contrast down,

.. math:: \Big(\sum_i w_i \hat p_i - L\Big)^2 = \sum_i w_i^2 r_i^2 (1 - \lambda_i)
          + z^2 \,\mathrm{var}\Big(\sum_i w_i e_i\Big)

and likewise for the upper end. So the interval of a contrast is as skewed as those of the bags, near 0 and 1. The last
term is the variance of what the bags share, the errors e that come from what the quantifier has learned from held-out
instances (`shared_errors`); :math:`\lambda` is its share of the variance of a bag. Drift is combined in the same way,
with correlations of the biases (`shared_drift`), and added by the root of the sum of squares, as in `widening`.

The p-value is 1 minus the highest level at which the interval does not contain 0.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.data.instances import Inputs
from quanet.uncertainty.intervals import predict_interval_bags
from quanet.uncertainty.policy import Method, Target
from quanet.uncertainty.regions import Interval
from quanet.uncertainty.shared_drift import drift_correlation
from quanet.uncertainty.shared_errors import LearnedErrors, learned_errors
from quanet.uncertainty.widening import Drift, measure_drift, wilson

BISECTIONS = 60
LARGEST_QUANTILE = 38.0  # of the normal distribution in double precision
MEMORY = 2**24  # numbers of correlations at a time

_Reaches = tuple[FloatArray, FloatArray]  # distances (m, k) from contrasts to the lower and upper ends


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """Bags that are compared, with what is known about their errors.

    Attributes
    ----------
    quantifier : fitted.
    inputs, bags : what the quantifier has read, and the bags.
    interval : of the bags, without drift.
    learned : what the errors of the bags share.
    drift : of the bags; None if it is not included.
    """

    quantifier: Quantifier
    inputs: Inputs
    bags: Bags
    interval: Interval
    learned: LearnedErrors
    drift: Drift | None


@dataclass(frozen=True, slots=True, eq=False)
class Contrasts:
    """Contrasts of prevalences: arrays (m, k).

    Attributes
    ----------
    estimate, lower, upper, p_value : of the contrasts.
    drift : what drift may contribute; NaN if unknown.
    relative_width : width of the interval, compared with that if bags shared nothing.
    """

    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    p_value: FloatArray
    drift: FloatArray
    relative_width: FloatArray


def read_sides(
    quantifier: Quantifier,
    X: Any,
    bags: Bags,
    level: float,
    *,
    method: Method = "auto",
    target: Target = "source",
    held_out: tuple[Any, Any] | None = None,
    rng: int = 0,
    drift: bool = True,
    clusters: ArrayLike | None = None,
) -> Sides:
    """Intervals of bags of a pool X, and the errors that they share."""
    check_is_fitted(quantifier, "classes_")
    quantifier = quantifier.chosen()
    read = quantifier.read(X)
    interval = predict_interval_bags(
        quantifier,
        read,
        bags,
        level,
        method=method,
        target=target,
        held_out=held_out,
        rng=rng,
        drift=False,
        clusters=clusters,
    )
    learned = learned_errors(
        quantifier,
        read,
        bags,
        interval,
        method=method,
        target_is_bag=target == "bag",
        held_out=held_out,
        seed=rng,
        clusters=clusters,
    )
    ends = (interval.lower, interval.upper)
    found = measure_drift(quantifier, read, bags, interval.estimate, ends, level) if drift else None
    return Sides(quantifier, read, bags, interval, learned, found)


def contrast(sides: Sides, members: IntArray, weights: FloatArray) -> Contrasts:
    """Contrasts of the bags at positions (m, g) with weights (m, g, k) that sum to 0 over g."""
    m, g = members.shape
    k = sides.interval.estimate.shape[1]
    found = np.empty((6, m, k))
    batch = max(1, MEMORY // (g * max(g, len(sides.learned.parts)) * k))
    correlation = None
    if sides.drift is not None:
        # For all contrasts at once, because bags share information about their distances.
        correlation = drift_correlation(
            sides.quantifier, sides.inputs, sides.bags, sides.interval.estimate, sides.drift, members
        )
    for start in range(0, m, batch):
        rows = slice(start, start + batch)
        found[:, rows] = _contrast(
            sides, members[rows], weights[rows], None if correlation is None else correlation[rows]
        )
    return Contrasts(*found)


def _contrast(sides: Sides, members: IntArray, weights: FloatArray, drifted: FloatArray | None) -> FloatArray:
    """Estimate, lower and upper end, p-value, drift and relative width of contrasts: (6, m, k)."""
    interval, shrinkage, scale = sides.interval, sides.quantifier.shrinkage_, sides.quantifier.drift_
    value = (weights * interval.estimate[members]).sum(axis=1)
    most = np.abs(weights).sum(axis=1) / 2
    if shrinkage == 1:
        unknown = np.full(value.shape, np.nan)
        return np.stack([value, -most, most, np.ones_like(value), unknown, np.ones_like(value)])
    reaches, apart = _sampling_reaches(sides, members, weights)
    biases, alone, cost = _drift_reaches(sides, members, weights, drifted)
    below, above = (np.hypot(reach, bias) for reach, bias in zip(reaches, biases, strict=True))
    middle = (weights * sides.learned.centre[members]).sum(axis=1)
    lower, upper = np.clip(middle - below, -most, most), np.clip(middle + above, -most, most)
    lower, upper = lower - shrinkage * (lower + most), upper + shrinkage * (most - upper)
    # Beyond what the extension for weak classifiers covers.
    excess = np.where(middle * value > 0, np.abs(middle), 0.0) - most * shrinkage / (1 - shrinkage)
    sampling, bias = (np.where(middle > 0, *of_sides) for of_sides in (reaches, biases))
    t, degrees = (1.0, np.inf) if scale is None else (scale.quantile(interval.level), scale.degrees)
    p = p_values(excess, sampling, bias, interval.level, t, degrees)
    lower, upper = np.minimum(lower, value), np.maximum(upper, value)
    widest = np.hypot(apart[0], alone[0]) + np.hypot(apart[1], alone[1])
    return np.stack([value, lower, upper, p, cost, (below + above) / np.maximum(widest, 1e-300)])


def _sampling_reaches(sides: Sides, members: IntArray, weights: FloatArray) -> tuple[_Reaches, _Reaches]:
    """Distances to the ends of intervals without drift, and those if bags shared nothing."""
    interval, shrinkage = sides.interval, sides.quantifier.shrinkage_
    # The ends without the extension for weak classifiers, which is applied to the contrast.
    centre = sides.learned.centre[members]
    low = np.maximum(centre - interval.lower[members] / (1 - shrinkage), 0.0)
    high = np.maximum((interval.upper[members] - shrinkage) / (1 - shrinkage) - centre, 0.0)
    whole = (low + high) >= 1.0  # a bag that says nothing
    share = np.where(whole, 1.0, sides.learned.independent[members])
    parts = np.where(whole, 0.0, weights * sides.learned.parts[:, members]).sum(axis=2)  # (r, m, k)
    shared = stats.norm.ppf((1 + interval.level) / 2) * np.sqrt((parts**2).sum(axis=0))
    alike = np.eye(members.shape[1])[None]
    below, above = combined_reaches(weights * np.sqrt(share), low, high, alike, whole)
    return (np.hypot(below, shared), np.hypot(above, shared)), combined_reaches(weights, low, high, alike, whole)


def _drift_reaches(
    sides: Sides, members: IntArray, weights: FloatArray, correlation: FloatArray | None
) -> tuple[_Reaches, _Reaches, FloatArray]:
    """Distances to the ends of intervals of the bias, those if bags shared none, and what drift may contribute."""
    drift, scale, estimate = sides.drift, sides.quantifier.drift_, sides.interval.estimate[members]
    nothing = np.zeros((len(members), estimate.shape[2]))
    if drift is None or correlation is None or scale is None or scale.unknown:
        return (nothing, nothing), (nothing, nothing), np.full(nothing.shape, np.nan)
    variance = drift.variance[members][:, :, None]
    known = np.isfinite(variance)
    low, high = wilson(estimate, np.where(known, variance, 0.0), scale.quantile(sides.interval.level))
    ends, whole = (estimate - low, high - estimate), np.zeros(estimate.shape, dtype=bool)
    biases = combined_reaches(weights, *ends, correlation, whole)
    alone = combined_reaches(weights, *ends, np.eye(members.shape[1])[None], whole)
    return biases, alone, np.where(known.all(axis=1), (biases[0] + biases[1]) / 2, np.nan)


def combined_reaches(
    weights: FloatArray, low: FloatArray, high: FloatArray, correlation: FloatArray, whole: Any
) -> tuple[FloatArray, FloatArray]:
    """Distances (m, k) from a contrast to the ends of its interval.

    Parameters
    ----------
    weights : (m, g, k) of the bags.
    low, high : (m, g, k) distances from the estimates to the ends of their intervals.
    correlation : (m, g, g) of the errors, or (1, g, g) if it is the same for all; (1, k, g, g) if classes differ.
    whole : (m, g, k) bags that say nothing, whose distances are added instead of their squares.

    Examples
    --------
    The errors of two rates that share everything cancel; those of independent rates add up in squares:

    >>> difference, reach = np.array([[[1.0], [-1.0]]]), np.array([[[0.04], [0.03]]])
    >>> for shared in (1.0, 0.0):
    ...     both = np.array([[[1, shared], [shared, 1]]])
    ...     print(combined_reaches(difference, reach, reach, both, np.False_)[0].round(3))
    [[0.01]]
    [[0.05]]
    """
    reaches = []
    by_class = correlation if correlation.ndim == 4 else correlation[:, None]
    for down, up in ((low, high), (high, low)):
        signed = weights * np.where(weights > 0, down, up)
        part = np.swapaxes(np.where(whole, 0.0, signed), 1, 2)  # (m, k, g)
        squares = ((by_class @ part[..., None])[..., 0] * part).sum(axis=2)
        nothing = np.abs(np.where(whole, signed, 0.0)).sum(axis=1)
        reaches.append(np.sqrt(np.maximum(squares, 0.0)) + nothing)
    return reaches[0], reaches[1]


def p_values(
    excess: FloatArray, sampling: FloatArray, bias: FloatArray, level: float, quantile: float, degrees: float
) -> FloatArray:
    """p-values for which an interval, widened to another level, ends at 0.

    Parameters
    ----------
    excess : distance of the estimate from 0; p = 1 if it is not positive.
    sampling, bias : distances to the end of the interval at this level, from sampling and from drift.
    level : of the interval; sampling errors are normal.
    quantile, degrees : of the bias at this level, which has Student's t distribution.

    Examples
    --------
    >>> p_values(np.array([0.196, 0.1]), np.array([0.196, 0.196]), np.zeros(2), 0.95, 1.0, np.inf).round(3)
    array([0.05 , 0.317])
    """
    deviation, spread = sampling / stats.norm.ppf((1 + level) / 2), bias / quantile
    low, high = np.zeros(excess.shape), np.full(excess.shape, LARGEST_QUANTILE)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        tail = stats.norm.sf(middle)
        of_bias = stats.t.isf(np.maximum(tail, 1e-300), degrees) if np.isfinite(degrees) else middle
        beyond = np.hypot(middle * deviation, of_bias * spread) > excess
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return np.where(excess > 0, np.minimum(2 * stats.norm.sf(low), 1.0), 1.0)
