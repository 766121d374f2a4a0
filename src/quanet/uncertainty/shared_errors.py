r"""Errors that the estimates of several bags share, because one quantifier has learned from the same instances.

The error of an estimate has a part that comes from its bag and a part that comes from what was learned from held-out
instances. The second part is the same function of the prevalences for all bags. So the errors of two bags have the
covariance

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
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.data.instances import Inputs
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
from quanet.uncertainty.intervals import COMBINED_KINDS, with_control_variates
from quanet.uncertainty.policy import choose_kinds
from quanet.uncertainty.regions import Interval
from quanet.uncertainty.relearning import (
    IntervalRequest,
    as_full_fit,
    held_out_of,
    relearned_errors,
    unshrunk,
)
from quanet.uncertainty.sampling import BagEvidence, sampling_sizes
from quanet.uncertainty.unseen_errors import unseen_covariance, unseen_parts, unseen_reach

MAX_PER_CLASS = 2000  # held-out instances per class whose influence is computed
FEWEST_PER_CLASS = 50  # if there are many bags
MEMORY = 2**24  # numbers
MOST_LEARNED = 0.5  # share of the variance that was learned, up to which the rest is a precise difference

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
