r"""Contrasts of the prevalences of bags, such as differences and trends, with the errors that bags share.

A difference and a trend are contrasts :math:`\sum_i w_i p_i` of the prevalences of bags. The interval of a contrast
combines the intervals of the bags (MOVER; Zou and Donner 2008; Newcombe 1998 for two bags): with the distances
:math:`r_i` from an estimate to that end of its interval that moves the contrast down,

.. math:: \Big(\sum_i w_i \hat p_i - L\Big)^2 = \sum_i w_i^2 r_i^2 (1 - \lambda_i)
          + z^2 \,\mathrm{var}\Big(\sum_i w_i e_i\Big)

and likewise for the upper end. So the interval of a contrast is as skewed as those of the bags, near 0 and 1. The last
term is the variance of what the bags share, the errors e that come from what the quantifier has learned from held-out
instances (`learned_errors`); :math:`\lambda` is its share of the variance of a bag. Drift is combined in the same way,
with correlations of the biases (`drift_correlation`), and added by the root of the sum of squares, as in `widening`.

The p-value is 1 minus the highest level at which the interval does not contain 0.

**What was learned.** The error of an estimate has a part that comes from its bag and a part that comes from what was
learned from held-out instances. The second part is the same function of the prevalences for all bags. So the errors of
two bags have the covariance

.. math:: \mathrm{cov}(e_A, e_B) = \sum_c \frac{p_{Ac}\, p_{Bc}}{m_c} \mathrm{cov}_c(\phi_A, \phi_B)

with the influence :math:`\phi` of a held-out instance of class c and the effective number :math:`m_c` of them, as in
the variances of `quanet.uncertainty.closed_form`. In the difference of two bags, the shared part has the factor
:math:`(p_A - p_B)_c^2` if the influence does not depend on p, and cancels if the prevalences are equal.

==========================================  ============================================================
closed form of counts                       influence on the adjusted count
closed form of maximum likelihood           influence on the score (sandwich)
network                                     the same, in the same proportion to the whole variance
other kinds                                 estimates of quantifiers relearned from resampled instances
errors that were never seen, every kind     a rate of errors of every class (`unseen_errors`)
==========================================  ============================================================

Bags with intervals of different kinds are treated as independent, and so are Bayesian intervals. This is too wide
rather than too narrow, because the covariance is hardly ever negative.

**Drift.** The bias of a bag depends on its displacement from the nearest mixture of the training classes, whose squared
length is its distance D (`quanet.drift.profile`), and on the classes of its instances. Two bags share their bias if
both agree. The correlation of their biases is

.. math:: \rho_{AB} = \Big(\frac{D_A + D_B - D_{AB}}{2 \sqrt{D_A D_B}}\Big)^\kappa
          \cdot \frac{p_A \cdot p_B}{\lVert p_A \rVert \lVert p_B \rVert}

with the squared distance :math:`D_{AB}` between the bags, beyond what their prevalences explain. The first factor is a
power of the cosine of the displacements, at least 0. The power :math:`\kappa` is `POWER`, so that bags that drifted
in different directions share hardly any bias (`benchmarks/natural_differences.py`). Drift that cannot be seen comes
from the means of the training classes, which both bags share: its correlation is the second factor, with the
prevalences divided by the root of the class counts.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.data.instances import Inputs
from quanet.drift.profile import BagMeans, share_between
from quanet.drift.scale import variance_at
from quanet.errors import QuanetWarning
from quanet.held_out import HeldOut
from quanet.simplex import smooth
from quanet.uncertainty.closed_form import (
    closed_form_of,
    constrained_inverse,
    count_bags,
    evenly_spaced,
    likelihoods_of,
)
from quanet.uncertainty.conformal import calibrations_of
from quanet.uncertainty.intervals import COMBINED_KINDS, predict_interval_bags, with_control_variates
from quanet.uncertainty.policy import Method, Target, choose_kinds
from quanet.uncertainty.regions import Interval
from quanet.uncertainty.relearning import IntervalRequest, as_full_fit, held_out_of, relearned_errors, unshrunk
from quanet.uncertainty.sampling import BagEvidence, sampling_sizes
from quanet.uncertainty.unseen_errors import unseen_covariance, unseen_parts, unseen_reach
from quanet.uncertainty.widening import Drift, described, measure_drift, wilson

BISECTIONS = 60
LARGEST_QUANTILE = 38.0  # of the normal distribution in double precision
MEMORY = 2**24  # numbers at a time
MAX_PER_CLASS = 2000  # held-out instances per class whose influence is computed
FEWEST_PER_CLASS = 50  # if there are many bags
MOST_LEARNED = 0.5  # share of the variance that was learned, up to which the rest is a precise difference
POWER = 8  # of the cosine of two displacements

_Reaches = tuple[FloatArray, FloatArray]  # distances (m, k) from contrasts to the lower and upper ends
_Parts = tuple[FloatArray, FloatArray, FloatArray]  # centres (b, k), learned parts (r, b, k), variances (b, k)


@dataclass(frozen=True, slots=True, eq=False)
class LearnedErrors:
    """What the errors of bags share.

    Attributes
    ----------
    centre : (b, k) estimates whose errors are described: without shrinkage, and combined with maximum likelihood where
        intervals are; they may be below 0 or above 1.
    parts : (r, b, k) of the errors; the sum over r of the products of two bags is the covariance of their errors.
    independent : (b, k) share of each bag's variance that comes from the bag alone.
    """

    centre: FloatArray
    parts: FloatArray
    independent: FloatArray


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


def learned_errors(
    quantifier: Quantifier,
    read: Inputs,
    bags: Bags,
    interval: Interval,
    *,
    method: str,
    target_is_bag: bool,
    held_out: tuple[Any, Any] | None,
    seed: int,
    clusters: ArrayLike | None = None,
) -> LearnedErrors:
    """The errors of bags that come from what was learned from held-out instances.

    Parameters
    ----------
    quantifier : fitted.
    read : the pool, as `Quantifier.read` returns it.
    bags, interval : b bags of the pool, and their intervals without drift.
    method, target_is_bag, held_out, seed, clusters : of the intervals, as in `predict_interval_bags`.
    """
    inputs, evidence = read.values, BagEvidence.of(read, bags, clusters, target_is_bag=target_is_bag)
    estimate, level = interval.estimate, interval.level
    total = np.maximum(np.diagonal(interval.covariance, axis1=1, axis2=2), 1e-300)
    total = total[:, [1, 1]] if total.shape[1] == 2 else total  # numerically, two classes may differ a little
    described = unshrunk(quantifier) if held_out is not None else as_full_fit(quantifier)
    known = held_out_of(described, held_out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuanetWarning)  # the interval has already warned
        choice = choose_kinds(quantifier, method, known, evidence, level)
    whole = IntervalRequest(
        quantifier=described,
        inputs=inputs,
        bags=bags,
        positions=np.arange(len(bags)),
        estimate=estimate if described is quantifier else described.aggregate_bags(described.rows(inputs), bags),
        sizes=bags.effective_sizes,
        held_out=choice.held_out,
        level=level,
        target_is_bag=target_is_bag,
        resamples=None,
        seed=seed,
        held_out_from_fit=held_out is None,
        evidence=evidence,
        hashes=read.hashes,
    )
    sizes = sampling_sizes(whole)
    parts, centre, independent = [], estimate.copy(), np.ones_like(estimate)
    for kind in sorted(set(choice.kinds.tolist()) & {"closed", "network", *COMBINED_KINDS}):
        positions = np.flatnonzero(choice.kinds == kind)
        request = replace(
            whole,
            bags=bags if len(positions) == len(bags) else bags.take(positions),
            positions=positions,
            estimate=whole.estimate[positions],
            sizes=sizes[positions],
        )
        centre[positions], found, random = _with_unseen(kind, request, total[positions])
        part = np.zeros((len(found), *estimate.shape))
        part[:, positions] = found
        parts.append(part)
        learned = (found**2).sum(axis=0) / total[positions]
        # What remains of the variance is another estimate of the random part, precise if little was learned.
        rest = np.where(learned < MOST_LEARNED, 1 - learned, 0.0)
        independent[positions] = np.clip(np.maximum(random / total[positions], rest), 0.0, 1.0)
    return LearnedErrors(centre, np.concatenate(parts) if parts else np.zeros((0, *estimate.shape)), independent)


def _with_unseen(kind: str, request: IntervalRequest, total: FloatArray) -> _Parts:
    """As `_of_kind`, with errors that the held-out instances have not shown; a network includes them."""
    if request.held_out is None or kind == "network":
        return _of_kind(kind, request, total)
    whole, learned = unseen_reach(request.estimate, request.sizes, request.held_out, request.level)
    unseen = np.diagonal(unseen_covariance(whole, request.level), axis1=1, axis2=2)
    centre, parts, random = _of_kind(kind, request, np.maximum(total - unseen, 0.0))
    shared = unseen_parts(learned, request.level)
    return centre, np.concatenate([parts, shared]), random + unseen - (shared**2).sum(axis=0)


def _random_share(combined: IntervalRequest) -> FloatArray:
    """Share (b, k) of the variance of conformal intervals that comes from the bag."""
    calibrations, sizes = calibrations_of(combined), combined.sizes
    shares = np.zeros_like(combined.estimate)
    for n in np.unique(sizes).tolist():
        by_class, _, ratio = calibrations.of_size(combined.quantifier, n)
        learned = np.array([errors.learned_share for errors in by_class])
        random = (1 - learned) * ratio
        shares[sizes == n] = random / np.maximum(learned + random, 1e-300)
    return shares


def _of_kind(kind: str, request: IntervalRequest, total: FloatArray) -> _Parts:
    """Centres, learned parts and variances from the bag alone, of bags whose intervals are of one kind.

    `total` (b, k) are the variances of the intervals.
    """
    estimate, held_out, form = request.estimate, request.held_out, closed_form_of(request.quantifier)
    if held_out is None:
        return estimate, np.zeros((0, *estimate.shape)), total
    if kind == "closed" and form != "likelihood":
        return _counting_errors(request, held_out, predicted=form == "labels")
    if kind == "closed":
        return _likelihood_errors(request, held_out)
    if kind == "network":
        centre, parts, random = _likelihood_errors(request, held_out)
        scale = total / np.maximum((parts**2).sum(axis=0) + random, 1e-300)
        return centre, parts * np.sqrt(scale), random * scale
    combined = with_control_variates(request)
    learned = relearned_errors(combined.quantifier, request.inputs, request.bags)
    # Total and learned part have different noise.
    least = _random_share(combined) * total if kind == "conformal" else _variance_of_source(request, estimate)
    return combined.estimate, learned, np.maximum(total - (learned**2).sum(axis=0), least)


def _counting_errors(request: IntervalRequest, held_out: HeldOut, *, predicted: bool) -> _Parts:
    """Adjusted counts, which two classes combine with maximum likelihood."""
    found = count_bags(request, held_out, predicted=predicted)
    centre, control = found.centre(request.sizes), found.control
    p = _smoothed(request, centre)
    sizes, most, members = held_out.learning_sizes, _most_per_class(p), held_out.by_class()
    if control is None:
        influence = found.scores @ np.linalg.pinv(found.rates).T
        parts = [evenly_spaced(influence[part], most)[None] for part in members]
        return centre, *_from_influences(request, parts, p, sizes)
    false_positive, true_positive = found.rates[1]
    counted = (found.scores[:, 1] - false_positive) / (true_positive - false_positive)
    likelihoods = request.likelihoods()(held_out.inputs)
    contrast = (likelihoods[:, 1] - likelihoods[:, 0]) / likelihoods.sum(axis=1)
    weight = control.mean_weights(request.sizes)[:, None]
    of_class = [evenly_spaced(np.column_stack([counted, contrast])[part], most).T for part in members]
    scores = [2 * one[1] / (1 + (2 * p[:, 1:] - 1) * one[1] * (1 - 1e-12)) for one in of_class]
    information = sum(p[:, c] * (score**2).mean(axis=1) for c, score in enumerate(scores))
    parts = [
        (1 - weight) * one[0] + weight * score / np.maximum(information, 1e-300)[:, None]
        for one, score in zip(of_class, scores, strict=True)
    ]
    return centre, *_from_influences(request, [np.stack([-part, part], axis=2) for part in parts], p, sizes)


def _likelihood_errors(request: IntervalRequest, held_out: HeldOut) -> _Parts:
    """Maximum likelihood estimates: the influence of every held-out instance on the score."""
    quantifier, k, p = request.quantifier, held_out.k, _smoothed(request, request.estimate)
    likelihoods = likelihoods_of(quantifier, quantifier.rows(held_out.inputs))
    most, information, scores = _most_per_class(p), np.zeros((len(p), k, k)), []
    for c, members in enumerate(held_out.by_class()):
        part = evenly_spaced(likelihoods[members], most)
        scores.append(part / (p @ part.T)[:, :, None])  # (b, m, k)
        information += p[:, c, None, None] * (np.swapaxes(scores[c], 1, 2) @ scores[c]) / len(part)
    slope = constrained_inverse(information)
    return request.estimate, *_from_influences(request, [part @ slope for part in scores], p, held_out.learning_sizes)


def _from_influences(
    request: IntervalRequest, parts: list[FloatArray], prevalences: FloatArray, sizes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Learned parts (r, b, k) and variances (b, k) from the bag alone.

    Both follow from the influences (b or 1, m, k) of the instances of every class: an instance of a bag changes its
    estimate as a held-out instance does.
    """
    found, n = [], request.sizes[:, None]
    random = np.zeros(prevalences.shape) if request.target_is_bag else _variance_of_source(request, prevalences)
    for c, part in enumerate(parts):
        centred = part - part.mean(axis=1, keepdims=True)
        count = max(1, part.shape[1] - 1)
        random = random + prevalences[:, c, None] / n * (centred**2).sum(axis=1) / count
        found.append(np.moveaxis(centred * (prevalences[:, c] / np.sqrt(sizes[c] * count))[:, None, None], 1, 0))
    return np.concatenate(found), random


def _variance_of_source(request: IntervalRequest, prevalences: FloatArray) -> FloatArray:
    """Variance (b, k) of the prevalences of a bag around those of its source; 0 if they are those of the bag."""
    smoothed = _smoothed(request, prevalences)
    variance = smoothed * (1 - smoothed) / request.sizes[:, None]
    return np.zeros_like(variance) if request.target_is_bag else variance


def _smoothed(request: IntervalRequest, prevalences: FloatArray) -> FloatArray:
    """Prevalences (b, k) above 0, near these, which may be outside the simplex."""
    return smooth(np.clip(prevalences, 0, 1), 1 / (2 * request.sizes))


def _most_per_class(prevalences: FloatArray) -> int:
    b, k = prevalences.shape
    return int(np.clip(MEMORY // (b * k * k), FEWEST_PER_CLASS, MAX_PER_CLASS))


def drift_correlation(
    quantifier: Quantifier, inputs: Inputs, bags: Bags, estimate: FloatArray, drift: Drift, members: IntArray
) -> FloatArray:
    """Correlation (m, g, g) of the biases of the bags at positions (m, g); 0 where drift is unknown.

    Parameters
    ----------
    quantifier : fitted, with a drift scale.
    inputs, bags : b bags of the inputs.
    estimate, drift : of these bags.
    members : bags whose biases are compared with each other.
    """
    m, g = members.shape
    correlation = np.broadcast_to(np.eye(g), (m, g, g)).copy()
    scale, descriptions = quantifier.drift_, described(quantifier, inputs)
    if scale is None or scale.profile is None or descriptions is None:
        return correlation
    rows, columns = np.triu_indices(g, 1)
    first, second = members[:, rows].ravel(), members[:, columns].ravel()
    means = BagMeans.of(descriptions, bags, inputs.hashes)
    found = scale.profile.compare_pairs(means, first, second)
    least = scale.profile.compare(BagMeans.of(descriptions, Bags([bags.flat]), inputs.hashes)).deviations[0]
    apart = share_between(found.distances, found.deviations, float(least))
    known = np.isfinite(drift.variance)
    total, distances = (np.where(known, values, 0.0) for values in (drift.variance, drift.distance))
    seen = np.sqrt(np.minimum(variance_at(distances, scale.rate), total))
    lengths = np.maximum(2 * np.sqrt(distances[first] * distances[second]), 1e-300)
    cosine = np.clip((distances[first] + distances[second] - apart) / lengths, 0, 1)
    classes = _unit(estimate)
    unseen = np.sqrt(total - seen**2)[:, None] * _unit(estimate / np.sqrt(scale.profile.counts))
    covariance = seen[first] * seen[second] * cosine**POWER * (classes[first] * classes[second]).sum(axis=1)
    covariance += (unseen[first] * unseen[second]).sum(axis=1)
    values = covariance / np.maximum(np.sqrt(total[first] * total[second]), 1e-300)
    values = np.where(known[first] & known[second], np.clip(values, -1, 1), 0.0).reshape(m, -1)
    correlation[:, rows, columns] = values
    correlation[:, columns, rows] = values
    return correlation


def _unit(rows: FloatArray) -> FloatArray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
