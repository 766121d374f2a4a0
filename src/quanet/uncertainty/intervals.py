"""Intervals for every quantifier: `predict_interval` for one bag, `predict_interval_bags` for many.

`policy` decides which kind of interval each bag gets, and its documentation lists where every part of an interval's
width is decided. Each kind is a module with one function from an `IntervalRequest` to the ends of its intervals
(`KINDS`). This module puts them together.
"""

from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm
from sklearn.utils.validation import _num_samples, check_is_fitted

from quanet.arrays import FloatArray, IntArray
from quanet.bags import CHUNK, Bags
from quanet.base import Quantifier
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.nn.quanet import expected
from quanet.uncertainty.bayes import bayes_intervals, kept_curves, network_intervals
from quanet.uncertainty.closed_form import closed_form_intervals, closed_form_of
from quanet.uncertainty.conformal import bootstrap_intervals, conformal_intervals
from quanet.uncertainty.control_variates import ControlVariates
from quanet.uncertainty.policy import NO_KIND, Method, Target, bootstrap_resamples, check_options, choose_kinds
from quanet.uncertainty.regions import Interval
from quanet.uncertainty.relearning import Ends, IntervalRequest, as_full_fit, cached, held_out_of, unshrunk
from quanet.uncertainty.sampling import BagEvidence, sampling_sizes
from quanet.uncertainty.unseen_errors import add_unseen, unseen_covariance, unseen_reach
from quanet.uncertainty.widening import add_variance, combine_ends, drift_covariance, measure_drift

KINDS = {
    "network": network_intervals,
    "conformal": conformal_intervals,
    "closed": closed_form_intervals,
    "bootstrap": bootstrap_intervals,
    "bayes": bayes_intervals,
}
COMBINED_KINDS = ("conformal", "bootstrap")  # of estimates combined with maximum likelihood (`control_variates`)


class IntervalOptions(TypedDict, total=False):
    """Options of `predict_interval`, which describes them."""

    method: Method
    target: Target
    held_out: tuple[Any, Any] | None
    resamples: int | None
    rng: int
    drift: bool
    clusters: ArrayLike | None


def predict_interval(
    quantifier: Quantifier,
    X: Any,
    level: float = 0.95,
    *,
    weights: ArrayLike | None = None,
    **options: Unpack[IntervalOptions],
) -> Interval:
    r"""Prevalences of one bag of instances X, with lower and upper ends.

    Use it instead of `predict` whenever someone acts on the estimate. An interval contains the prevalences p at which
    an error as large as that of the estimate is usual [1]_. For two classes and "closed",

    .. math:: (\hat p - p)^2 \le z^2 \sigma^2(p),

    with the variance :math:`\sigma^2(p)` of the error at p, from held-out instances; for "conformal" [2]_, the error
    lies between its quantiles in bags of held-out instances at p; for "bayes" [3]_, `level` is a posterior probability.
    Drift widens it: with the ends :math:`\hat p - s` of sampling and :math:`\hat p - d` of drift, the lower end is
    :math:`\hat p - \sqrt{s^2 + d^2}`.

    Parameters
    ----------
    quantifier : fitted.
    X : instances of the bag. The interval of a single instance is 0 to 1, because it does not show how instances vary.
    level : probability that the interval contains the true prevalence.
    weights : (n,) weights of the instances, such as views, for shares of the weight instead of shares of instances.
        The interval is as wide as that of `Bags.effective_sizes` instances: a few large weights make it wide.

    Other Parameters
    ----------------
    method : "auto" (the default) uses "network" for QuaNet. For others, it uses "closed" if a formula exists, except
        for bags of fewer than 20 instances, and "conformal" otherwise. With too few held-out instances for "conformal"
        it uses "closed" or, if no formula exists, "bootstrap". "network" returns quantiles of the distribution that the
        network of QuaNet returns. "conformal" is calibrated on bags of held-out instances and works for any quantifier.
        "closed" is a formula for CC, PCC, ACC, PACC, EMQ and QuaNet. "bootstrap" resamples the bag. "bayes" needs a
        quantifier that reads posteriors.
    target : "bag" (the default) for the prevalences of these instances, or "source" for those of the source from which
        they were drawn at random, which are less certain.
    held_out : (X, y), instances that the quantifier was not fitted to, and their labels. None (the default) uses what
        fit has kept. Methods that learn nothing from held-out instances, such as CC, keep none: their interval is a
        bootstrap of the bag alone, with a warning.
    resamples : of the bootstrap. None (the default) means 1,000 per bag, more for a level above 99.6 %; with "auto"
        and many bags fewer per bag, but at least 100.
    rng : seed; 0 by default.
    drift : whether the interval includes drift (the default): instances that differ from the training data within a
        class, too. How far they differ is measured, and how much that may cost is learned by `fit` from parts of the
        training data (`quanet.drift.scale`). False assumes that only prevalences have changed.
    clusters : (n,) names of the clusters of the instances, such as their authors. Instances of one cluster are no
        independent draws from the source, so with ``target="source"`` the interval is wider, by as much as they are
        alike in these data (`quanet.uncertainty.sampling`). With ``target="bag"`` it is not: these instances are all
        that is asked about, and their classification errors count as independent.

    Returns
    -------
    Interval
        arrays (k,), in the order of `classes_`.

    Notes
    -----
    `Interval.drift` has both parts of an interval: its ends without drift, and how many points drift may cost. It also
    has the state of each bag: "trusted", "few rows" (chance may hide drift), "widened", "refused" (with the number
    of rows to label) or "unknown". The bags of one call share information about their distance, because that of a small
    bag is mostly noise.
    Drift that does not show in the instances, such as a new meaning of the labels, is not included.

    Copies of an instance say what it says, and no more. They are found by content: texts that are equal up to case,
    white space and addresses, and rows of numbers with decimals (`quanet.data.copies`). The interval is that of the
    different instances; if that makes a difference, a note says so. Posteriors ("precomputed") do not identify
    instances, so copies among them are not seen.

    A bag at distance D from the training data has a bias with variance :math:`v\, p\, (1 - p)`, that of a share counted
    in 1 / v labels, so its ends are Wilson's, too. `fit` learns the rate r; :math:`n_c` are training instances:

    .. math:: v = \frac{r D^\gamma}{1 + r D^\gamma / 2} + \epsilon \sum_c \frac{p_c^2}{n_c},
              \qquad \gamma = 0.75, \quad \epsilon = 0.5

    `benchmarks/results/interval-simulation.md` shows the coverage of every kind, from a vertex of the simplex to its
    centre, and `docs/how-to/intervals.md` describes when not to use a kind. At true prevalences of 0 and 1, intervals
    contain the truth more often than `level`, because they end there.

    A classifier that was hardly ever wrong on few held-out instances may still be wrong. "network" was trained on such
    cases. All other kinds add errors that were never seen, about 2 / m of the instances of a class with m held-out ones
    (`unseen_errors`).

    If the bias of a method is known from held-out instances, as that of CC, the interval lies where the truth may be,
    and is extended to contain the estimate. The same happens if maximum likelihood on the same posteriors reveals part
    of the error of the estimate, and if the final classifier is better than the classifiers of the folds (`fold_gap`).
    If estimates are shrunk because the classifier is weak (`quanet.held_out`), the interval is that of the estimate
    before shrinkage; it is then extended towards 0 and 1 by the same fraction. A useless classifier has the interval 0
    to 1.

    References
    ----------
    .. [1] E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    .. [2] V. Vovk, "Conditional validity of inductive conformal predictors", 2012.
    .. [3] A. Ziegler and P. Czyż, "Bayesian quantification with black-box estimators", 2024.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> X, y = Gaussians().draw([0.5, 0.5], 1000, rng=0)
    >>> new, _ = Gaussians().draw([0.8, 0.2], 300, rng=1)
    >>> interval = predict_interval(EMQ().fit(X, y), new)
    >>> interval.lower.round(2), interval.upper.round(2)
    (array([0.71, 0.18]), array([0.82, 0.29]))
    """
    check_is_fitted(quantifier, "classes_")
    n = _num_samples(X)
    one_bag = Bags([np.arange(n)], labels=["all"], pool_size=n, weights=weights)
    return predict_interval_bags(quantifier, X, one_bag, level, **options).of_bag(0)


def predict_interval_bags(
    quantifier: Quantifier,
    X: Any,
    bags: Bags,
    level: float = 0.95,
    *,
    method: Method = "auto",
    target: Target = "bag",
    held_out: tuple[Any, Any] | None = None,
    resamples: int | None = None,
    rng: int = 0,
    drift: bool = True,
    clusters: ArrayLike | None = None,
) -> Interval:
    """Prevalences of bags of a pool X, with lower and upper ends.

    Use it for many bags, such as months or products: the classifier reads the pool once, and bags share what is known
    about their distance from the training data.

    Parameters
    ----------
    quantifier : fitted.
    X : the pool, or what `Quantifier.read` returns for it.
    bags : bags of the pool, with weights if instances have weights.
    level : probability that an interval contains the true prevalence.
    method, target, held_out, resamples, rng, drift : as in `predict_interval`.
    clusters : of the instances of the pool, as in `predict_interval`.

    Returns
    -------
    Interval
        arrays (b, k).

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> X, y = Gaussians().draw([0.5, 0.5], 1000, rng=0)
    >>> new, _ = Gaussians().draw([0.8, 0.2], 600, rng=1)
    >>> months = Bags(np.arange(600).reshape(2, 300), labels=["May", "June"])
    >>> interval = predict_interval_bags(EMQ().fit(X, y), new, months)
    >>> interval.groups.tolist(), interval.lower[:, 1].round(2), interval.upper[:, 1].round(2)
    (['May', 'June'], array([0.1, 0.1]), array([0.2, 0.2]))
    """
    check_is_fitted(quantifier, "classes_")
    quantifier = quantifier.chosen()
    check_options(level, method, target)
    # The quantifier whose errors the intervals describe.
    described = unshrunk(quantifier) if held_out is not None else as_full_fit(quantifier)
    read, k = quantifier.read(X), len(quantifier.classes_)
    evidence = BagEvidence.of(read, bags, clusters, target_is_bag=target == "bag")
    choice = choose_kinds(quantifier, method, held_out_of(described, held_out), evidence, level)
    inputs, curves = read.values, None
    rows = quantifier.rows(inputs)
    if "network" in choice.kinds:
        curves = kept_curves(quantifier, rows, bags)
    estimate = quantifier.aggregate_bags(rows, bags) if curves is None else expected(curves)
    request = IntervalRequest(
        quantifier=quantifier,
        inputs=inputs,
        bags=bags,
        positions=np.arange(len(bags)),
        estimate=estimate,
        sizes=evidence.sizes,
        held_out=choice.held_out,
        level=level,
        target_is_bag=target == "bag",
        resamples=resamples,
        seed=rng,
        held_out_from_fit=held_out is None,
        evidence=evidence,
        hashes=read.hashes,
        curves=curves,
    )
    request = replace(request, sizes=sampling_sizes(replace(request, quantifier=described)))
    lower, upper = np.zeros_like(estimate), np.ones_like(estimate)
    covariance = np.broadcast_to(np.eye(k) / 4, (len(bags), k, k)).copy()
    for kind in sorted(set(choice.kinds.tolist()) - {NO_KIND}):
        positions = np.flatnonzero(choice.kinds == kind)
        # The network was trained to allow for the gap between the final classifier and those of the folds.
        part = _select(request, positions, quantifier if kind == "network" else described)
        if kind == "bootstrap":
            part = replace(part, resamples=bootstrap_resamples(resamples, level, len(bags) if method == "auto" else 1))
        if kind in COMBINED_KINDS:
            part = with_control_variates(part)
        lower[positions], upper[positions], covariance[positions] = _with_unseen(kind, part)
    lower, upper = _limit(lower, upper, estimate, quantifier.shrinkage_)
    if bags.noise.any():
        lower, upper = add_variance(estimate, lower, upper, bags.noise, norm.ppf((1 + level) / 2))
        covariance = covariance + drift_covariance(estimate, bags.noise)
    found = measure_drift(quantifier, read, bags, estimate, (lower, upper), level) if drift else None
    if found is not None and quantifier.drift_ is not None:
        lower, upper = combine_ends(estimate, lower, upper, found, quantifier.drift_.quantile(level))
        covariance = covariance + drift_covariance(estimate, found.variance)
    return Interval(
        estimate=estimate,
        lower=lower,
        upper=upper,
        covariance=covariance,
        sizes=bags.sizes,
        effective_sizes=None if bags.exposure is None else bags.effective_sizes,
        level=level,
        method=choice.name,
        classes=quantifier.classes_,
        groups=bags.labels,
        counted=bags.shares(_predicted(inputs, k), k) if quantifier.reads_posteriors else None,
        notes=choice.notes,
        drift=found,
    )


def _with_unseen(kind: str, request: IntervalRequest) -> Ends:
    """The ends and covariances of a kind of interval, with errors that the held-out instances have not shown."""
    lower, upper, covariance = KINDS[kind](request)
    # A network includes them, and so does a posterior from labels: a priori, all error rates are equally likely.
    included = kind == "network" or (kind == "bayes" and closed_form_of(request.quantifier) == "labels")
    if request.held_out is None or included:
        return lower, upper, covariance
    reach = unseen_reach(request.estimate, request.sizes, request.held_out, request.level)[0]
    lower, upper = add_unseen(request.estimate, lower, upper, reach)
    return lower, upper, covariance + unseen_covariance(reach, request.level)


def _predicted(inputs: FloatArray, k: int) -> Any:
    """The most probable class (n,) of inputs that begin with posteriors, in few bytes."""
    found = np.empty(len(inputs), dtype=np.min_scalar_type(k))
    for start in range(0, len(inputs), CHUNK):
        found[start : start + CHUNK] = inputs[start : start + CHUNK, :k].argmax(axis=1)
    return found


def _select(request: IntervalRequest, positions: IntArray, described: Quantifier) -> IntervalRequest:
    """The request for the bags at these positions, with the estimates of the described quantifier."""
    bags = request.bags if len(positions) == len(request.bags) else request.bags.take(positions)
    if described is request.quantifier:
        estimate = request.estimate[positions]
    else:
        estimate = described.aggregate_bags(described.rows(request.inputs), bags)
    sizes = request.sizes[positions]
    curves = None if request.curves is None else [curve.take(positions) for curve in request.curves]
    return replace(
        request,
        quantifier=described,
        bags=bags,
        positions=positions,
        estimate=estimate,
        sizes=sizes,
        curves=curves,
    )


def with_control_variates(request: IntervalRequest) -> IntervalRequest:
    """The request with estimates that are combined with maximum likelihood, if that is possible and useful."""
    quantifier, held_out = request.quantifier, request.held_out
    # Possible if rows are made of posteriors alone; useless if the estimate is already maximum likelihood.
    useful = isinstance(quantifier, AggregativeQuantifier) and closed_form_of(quantifier) != "likelihood"
    if held_out is None or not request.held_out_from_fit or not useful:
        return request
    combined = cached(quantifier, "control variates", lambda: ControlVariates.from_fitted(quantifier, held_out))
    estimate = combined.combine(request.estimate, request.inputs, request.bags, request.sizes)
    return replace(request, quantifier=combined, estimate=estimate)


def _limit(
    lower: FloatArray, upper: FloatArray, estimate: FloatArray, shrinkage: float
) -> tuple[FloatArray, FloatArray]:
    """Ends between 0 and 1 that contain the estimate, extended towards 0 and 1 by the shrinkage."""
    lower = np.minimum(np.clip(lower, 0, 1), estimate)
    upper = np.maximum(np.clip(upper, 0, 1), estimate)
    # If the classifier is not trusted, its errors on held-out instances are not trusted either.
    return lower - shrinkage * lower, upper + shrinkage * (1 - upper)
