r"""Intervals that are quantiles of a distribution over a bag's prevalences: Bayesian intervals, and those of `QuaNet`.

*Bayesian* intervals have the posterior distribution, given the classifier's output. Two likelihoods are available. From
*labels* (Ziegler and Czyż 2024): the rates at which class j is predicted as i have Dirichlet posteriors from held-out
counts, and the distribution of a bag's predictions follows from them. From *posteriors* that are calibrated on held-out
instances: the likelihoods of an instance are its posteriors divided by the prior. For two classes the posterior is
exact, a probability for every possible number of instances of a class. For more classes it is sampled by Gibbs
sampling, for all bags at once.

A priori all rates are equally likely, and so are all prevalences of a class. With more than two classes this needs a
separate prior for every class: 1 for the class and 1 / (k - 1) for each of the others. With 1 for all of four classes,
a prevalence near 1 would be excluded before any instance was seen. What was learned from held-out posteriors is
uncertain, too: draws are shifted by as much as other held-out instances would have shifted the estimate
(`quanet.uncertainty.closed_form.learning_covariance`).

The *network* of `QuaNet` returns a distribution. It was trained on tasks whose held-out instances are few or many and
come from classifiers of folds. So its distributions include what was learned from held-out instances, and the gap
between the classifiers of the folds and the final one, and errors that no held-out instance has shown
(`unseen_errors`).
"""

from collections.abc import Callable

import numpy as np
from scipy.special import betaln, gammaln

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.data.duplicates import independent_size
from quanet.errors import InvalidSetting
from quanet.held_out import HeldOut
from quanet.nn.quanet import QuaNet
from quanet.nn.share_reader import ShareCurves
from quanet.simplex import count, orders_of_content
from quanet.uncertainty.closed_form import (
    closed_form_of,
    learning_covariance,
    multinomial_covariance,
    observed_covariance,
)
from quanet.uncertainty.relearning import Ends, IntervalRequest, Likelihoods

DRAWS = 1000  # from the exact posterior of two classes
GIBBS_DRAWS, BURN_IN = 500, 100  # per class, for more than two classes
TINY = 1e-300
MAX_RELATIVE_WIDTH = 1.05  # of an interval that starts at 0 or ends at 1, compared with the shortest interval
MAX_EXACT_SIZE = 4000  # instances in a bag up to which the exact posterior fits in memory
Draws = FloatArray  # (r, b, k)
MOST_KEPT = 50_000  # distributions that are kept at a time, 1.5 kB each


def beta_binomial(n: int, a: float, b: float) -> FloatArray:
    """Probability of j (column) successes in N (row) trials, if the rate has a Beta(a, b) prior: (n + 1, n + 1).

    Examples
    --------
    If all rates are equally likely, so are all numbers of successes:

    >>> beta_binomial(3, 1, 1)[3]
    array([0.25, 0.25, 0.25, 0.25])
    """
    trials, successes = np.arange(n + 1)[:, None], np.arange(n + 1)[None, :]
    possible = successes <= trials
    failures = np.where(possible, trials - successes, 0)
    logs = gammaln(trials + 1.0) - gammaln(successes + 1.0) - gammaln(failures + 1.0)
    logs = logs + betaln(successes + a, failures + b) - betaln(a, b)
    return np.where(possible, np.exp(np.where(possible, logs, 0.0)), 0.0)


def label_posterior(positives: IntArray, n: int, confusions: IntArray | FloatArray) -> FloatArray:
    """Probability of every number of instances of the second class, (b, n + 1), given the number predicted, (b,).

    Parameters
    ----------
    positives : number of instances of each bag that are predicted as the second class.
    n : number of instances in a bag.
    confusions : (2, 2) number of held-out instances of class j (column) that are predicted as i (row).

    Examples
    --------
    A classifier without an error on 1,000 held-out instances of each class is trusted:

    >>> label_posterior(np.array([2]), 3, np.array([[1000, 0], [0, 1000]])).round(2)
    array([[0., 0., 1., 0.]])
    """
    hits = beta_binomial(n, confusions[1, 1] + 1, confusions[0, 1] + 1)
    alarms = beta_binomial(n, confusions[1, 0] + 1, confusions[0, 0] + 1)[::-1]  # by the number of the second class
    chance = np.empty((len(positives), n + 1))
    for i, seen in enumerate(positives.tolist()):
        chance[i] = (hits[:, : seen + 1] * alarms[:, seen::-1]).sum(axis=1)
    return chance / chance.sum(axis=1, keepdims=True)


def likelihood_posterior(likelihoods: FloatArray, prevalences: FloatArray) -> FloatArray:
    r"""Probability of every number N of instances of the second class: (b, n, 2), (b, 2) -> (b, n + 1).

    .. math:: P(N \mid x) \propto e_N(r_1, \dots, r_n) / \binom nN

    where the elementary symmetric polynomial :math:`e_N` sums over all sets of N instances. It is computed by adding
    one instance after another, at prevalences near the most likely ones, (b, 2), so that no number overflows.
    """
    b, n, _ = likelihoods.shape
    joint = likelihoods * prevalences[:, None, :]
    share = joint[..., 1] / joint.sum(axis=2)
    chance = np.zeros((b, n + 1))
    chance[:, 0] = 1.0
    for i in range(n):
        belongs = share[:, i, None]
        moved = chance[:, : i + 1] * belongs
        chance[:, : i + 1] *= 1 - belongs
        chance[:, 1 : i + 2] += moved
    number = np.arange(n + 1)
    odds = np.log(prevalences[:, :1] / prevalences[:, 1:])
    ways = gammaln(n + 1.0) - gammaln(number + 1.0) - gammaln(n - number + 1.0)
    precise = chance > 1e-290  # smaller floats have lost their digits
    logs = np.where(precise, np.log(np.where(precise, chance, 1.0)) + number * odds - ways, -np.inf)
    values = np.exp(logs - logs.max(axis=1, keepdims=True))
    return values / values.sum(axis=1, keepdims=True)


def label_draws(
    counted: IntArray,
    confusions: IntArray | FloatArray,
    *,
    weights: FloatArray,
    target_is_bag: bool,
    rng: np.random.Generator,
) -> Draws:
    """Draws from the posterior of the prevalences, given predicted labels (b, k) and held-out confusions (k, k).

    `weights` (k,) are those of the Dirichlet prior.
    """
    b, k = counted.shape
    prevalences = np.full((b, k), 1 / k)
    rates = np.broadcast_to((confusions + 1.0) / (confusions + 1.0).sum(axis=0), (b, k, k))
    draws = np.empty((GIBBS_DRAWS, b, k))
    for step in range(BURN_IN + GIBBS_DRAWS):
        joint = rates * prevalences[:, None, :]
        latent = rng.multinomial(counted, joint / joint.sum(axis=2, keepdims=True))  # (b, i, j)
        gammas = rng.standard_gamma(confusions + 1.0 + latent)
        rates = gammas / gammas.sum(axis=1, keepdims=True)
        totals = latent.sum(axis=1)
        prevalences = _dirichlet(totals + weights, rng)
        if step >= BURN_IN:
            draws[step - BURN_IN] = totals / totals.sum(axis=1, keepdims=True) if target_is_bag else prevalences
    return draws


def likelihood_draws(
    likelihoods: FloatArray,
    prevalences: FloatArray,
    *,
    weights: FloatArray,
    target_is_bag: bool,
    rng: np.random.Generator,
) -> Draws:
    """Draws from the posterior of the prevalences, given likelihoods (b, n, k), starting at prevalences (b, k)."""
    b, n, k = likelihoods.shape
    draws = np.empty((GIBBS_DRAWS, b, k))
    for step in range(BURN_IN + GIBBS_DRAWS):
        joint = np.cumsum(likelihoods * prevalences[:, None, :], axis=2)
        labels = (rng.random((b, n, 1)) * joint[..., -1:] > joint[..., :-1]).sum(axis=2)
        totals = count(labels, k)
        prevalences = _dirichlet(totals + weights, rng)
        if step >= BURN_IN:
            draws[step - BURN_IN] = totals / n if target_is_bag else prevalences
    return draws


def _dirichlet(weights: FloatArray, rng: np.random.Generator) -> FloatArray:
    gammas = np.maximum(rng.standard_gamma(weights), TINY)
    return gammas / gammas.sum(axis=1, keepdims=True)


def _class_by_class(draw: Callable[[FloatArray], Draws], k: int) -> Draws:
    """Draws for every class, with the prior under which all prevalences of that class are equally likely."""
    drawn = []
    for c in range(k):
        weights = np.full(k, 1 / (k - 1))
        weights[c] = 1.0
        drawn.append(draw(weights)[..., c])
    return np.stack(drawn, axis=-1)


def number_draws(probabilities: FloatArray, *, target_is_bag: bool, rng: np.random.Generator) -> Draws:
    """Draws for two classes, from the probability of every number of the second: (b, n + 1) -> (r, b, 2)."""
    b, n = len(probabilities), probabilities.shape[1] - 1
    levels = (np.arange(DRAWS) + 0.5) / DRAWS  # evenly spaced instead of random
    numbers = np.stack([np.searchsorted(np.cumsum(bag), levels * (1 - 1e-12)) for bag in probabilities], axis=1)
    numbers = np.minimum(numbers, n)
    second = numbers / n if target_is_bag else rng.beta(numbers + 1.0, n - numbers + 1.0)
    return np.stack([1 - second, second], axis=2).reshape(DRAWS, b, 2)


def confusions_of(held_out: HeldOut) -> IntArray | FloatArray:
    """Number of held-out instances of class j (column) that are predicted as i (row), (k, k); copies count once."""
    k = held_out.k
    labels = held_out.inputs[:, :k].argmax(axis=1)
    counts = np.bincount(labels * k + held_out.codes, minlength=k**2).reshape(k, k)
    if held_out.groups is None:
        return counts
    return counts * [independent_size(held_out.groups[part]) / len(part) for part in held_out.by_class()]


def posterior_draws(
    request: IntervalRequest,
    stack: FloatArray,
    likelihoods: Likelihoods,
    *,
    labels: bool,
    order: IntArray,
    rng: np.random.Generator,
) -> Draws:
    """Draws from the posterior of the prevalences of bags of inputs (b, n, d), classes in this order: (r, b, k)."""
    b, n, _ = stack.shape
    k, target_is_bag = len(likelihoods.prior), request.target_is_bag
    if labels and request.held_out is not None:
        counted = count(stack[..., :k].argmax(axis=2), k)[:, order]
        confusions = confusions_of(request.held_out)[np.ix_(order, order)]
        if k == 2 and n <= MAX_EXACT_SIZE:
            return number_draws(label_posterior(counted[:, 1], n, confusions), target_is_bag=target_is_bag, rng=rng)
        return _class_by_class(
            lambda w: label_draws(counted, confusions, weights=w, target_is_bag=target_is_bag, rng=rng), k
        )
    values = likelihoods(stack.reshape(b * n, -1)).reshape(b, n, k)[..., order]
    # Sorted, so that the order of the instances decides no draw.
    values = np.take_along_axis(values, np.lexsort(np.moveaxis(values, -1, 0))[..., None], axis=1)
    start = likelihoods.prevalences(values)
    if k == 2 and n <= MAX_EXACT_SIZE:
        return number_draws(likelihood_posterior(values, start), target_is_bag=target_is_bag, rng=rng)
    return _class_by_class(
        lambda w: likelihood_draws(values, start, weights=w, target_is_bag=target_is_bag, rng=rng), k
    )


def add_learning_error(draws: Draws, covariance: FloatArray, *, rng: np.random.Generator) -> Draws:
    """Draws (r, b, k), shifted by random errors with the covariances (b, k, k) of what was learned."""
    r, _, k = draws.shape
    values, vectors = np.linalg.eigh(covariance)
    # The symmetric root, because the signs of eigenvectors are arbitrary.
    roots = (vectors * np.sqrt(np.maximum(values, 0))[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    # The same random numbers for all bags, so that no bag depends on the others.
    return np.clip(draws + np.einsum("bcd,rd->rbc", roots, rng.standard_normal((r, k))), 0, 1)


def shortest(draws: Draws, level: float) -> tuple[FloatArray, FloatArray]:
    """Ends (b, k) of the shortest intervals that contain a fraction `level` of the draws (r, b, k).

    Unlike intervals between quantiles, they reach 0 or 1 if the posterior is highest there. No draw is exactly 0 or 1,
    so an interval that starts at 0 or ends at 1 is preferred if it is hardly wider (`MAX_RELATIVE_WIDTH`).

    Examples
    --------
    >>> shortest(np.array([0.0, 0.0, 0.1, 0.5]).reshape(4, 1, 1), 0.7)
    (array([[0.]]), array([[0.1]]))
    """
    ordered = np.sort(draws, axis=0)
    inside = int(np.ceil(level * len(draws)))
    widths = ordered[inside - 1 :] - ordered[: len(draws) - inside + 1]
    best = widths.argmin(axis=0)[None]
    lower = np.take_along_axis(ordered, best, axis=0)[0]
    upper = np.take_along_axis(ordered, best + inside - 1, axis=0)[0]
    from_zero, to_one = ordered[inside - 1], 1 - ordered[len(draws) - inside]
    most = MAX_RELATIVE_WIDTH * (upper - lower)
    low, high = from_zero <= np.minimum(most, to_one), to_one <= np.minimum(most, from_zero)
    lower, upper = np.where(low, 0.0, lower), np.where(low, from_zero, upper)
    return np.where(high & ~low, 1 - to_one, lower), np.where(high & ~low, 1.0, upper)


def bayes_intervals(request: IntervalRequest) -> Ends:
    """Bayesian intervals of the requested bags."""
    likelihoods = request.likelihoods()
    lower, upper = np.empty_like(request.estimate), np.empty_like(request.estimate)
    labels = closed_form_of(request.quantifier) == "labels"
    covariance = np.zeros((*lower.shape, lower.shape[1]))
    if not labels and request.held_out is not None:
        likely = np.empty_like(request.estimate)
        for positions, stack in request.bags.gather(likelihoods(request.inputs)):
            likely[positions] = likelihoods.prevalences(stack, request.sizes[positions])
        covariance = learning_covariance(likelihoods(request.held_out.inputs), request.held_out, likely)
    rng = np.random.default_rng(request.seed)
    bags = request.bags
    if bags.weights is not None or (request.sizes != bags.sizes).any():
        # A posterior counts whole instances: as many as the effective size says.
        bags = bags.unweighted(request.inputs, request.sizes)
    k, held_out = len(likelihoods.prior), request.held_out
    # Draws are made for classes in an order that does not depend on their names.
    order = orders_of_content(request.inputs[:, :k], k)[0] if held_out is None else held_out.class_order
    for positions, stack in bags.gather(request.inputs):
        draws = posterior_draws(request, stack, likelihoods, labels=labels, order=order, rng=rng)
        shift = np.random.default_rng([request.seed, len(draws)])
        learned = covariance[positions][:, order[:, None], order]
        draws = add_learning_error(draws, learned, rng=shift)[..., order.argsort()]
        lower[positions], upper[positions] = shortest(draws, request.level)
        centred = draws - draws.mean(axis=0)
        covariance[positions] = np.einsum("rbc,rbd->bcd", centred, centred) / (len(draws) - 1)
    return lower, upper, covariance


def network_intervals(request: IntervalRequest) -> Ends:
    """Intervals of the requested bags from the network's distributions."""
    quantifier, bags = request.quantifier, request.bags
    if not isinstance(quantifier, QuaNet):
        raise InvalidSetting(f"{type(quantifier).__name__} has no network; method='network' is for QuaNet.")
    if request.held_out is not None and not request.held_out_from_fit:
        learned = quantifier.relearn(request.held_out.inputs, request.held_out.codes)
        assert isinstance(learned, QuaNet)
        quantifier = learned
    k, tail = len(quantifier.classes_), (1 - request.level) / 2
    lower, upper = np.empty((len(bags), k)), np.empty((len(bags), k))
    covariance = np.empty((len(bags), k, k))
    for positions, stack in bags.gather(quantifier.rows(request.inputs)):
        sizes, estimate = request.sizes[positions], request.estimate[positions]
        variance = np.empty_like(estimate)
        if request.curves is not None and quantifier is request.quantifier and (sizes == stack.shape[1]).all():
            curves = [curve.take(positions) for curve in request.curves]
        else:
            curves = quantifier.share_curves(stack, sizes)
        for c, curve in enumerate(curves):
            lower[positions, c], upper[positions, c] = curve.quantile(tail), curve.quantile(1 - tail)
            variance[:, c] = curve.variance
        smoothed = (estimate + 1 / sizes[:, None]) / (1 + k / sizes[:, None])
        covariance[positions] = _covariance(stack / quantifier.prior_, smoothed, sizes, variance)
    if not request.target_is_bag:
        lower, upper = add_sampling(request.estimate, lower, upper, request.sizes, request.z)
        covariance = covariance + multinomial_covariance(request.estimate, request.sizes)
    return lower, upper, covariance


def kept_curves(quantifier: Quantifier, rows: FloatArray, bags: Bags) -> list[ShareCurves] | None:
    """The network's distributions of every class in bags of rows (n, k), whose means are the estimates.

    None for weighted bags, which are read as other instances, and for bags that are too many to keep them.
    """
    k = len(quantifier.classes_)
    if not isinstance(quantifier, QuaNet) or bags.weights is not None or k * len(bags) > MOST_KEPT:
        return None
    places, parts = zip(
        *((positions, quantifier.share_curves(stack)) for positions, stack in bags.gather(rows)), strict=True
    )
    order = np.concatenate(places).argsort()
    return [ShareCurves.joined([part[c] for part in parts]).take(order) for c in range(k)]


def _covariance(likelihoods: FloatArray, estimate: FloatArray, sizes: IntArray, variance: FloatArray) -> FloatArray:
    """Covariances (b, k, k) with about these variances (b, k), correlated as maximum likelihood estimates are."""
    if variance.shape[1] == 2:
        return variance[:, :, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    observed = observed_covariance(likelihoods, estimate, sizes, target_is_bag=False)
    scale = np.sqrt(variance / np.maximum(np.diagonal(observed, axis1=1, axis2=2), 1e-12))
    scaled = observed * scale[:, :, None] * scale[:, None, :]
    # Shares sum to 1, so their errors sum to 0.
    k = estimate.shape[1]
    centring = np.eye(k) - 1 / k
    return centring @ scaled @ centring


def add_sampling(
    estimate: FloatArray, lower: FloatArray, upper: FloatArray, sizes: IntArray, z: float
) -> tuple[FloatArray, FloatArray]:
    """Ends (b, k) for the source of bags of these sizes (b,), from those for the bags themselves.

    Wilson's interval, as if all classes were known, is added as the root of the sum of squares.

    Examples
    --------
    >>> share, half = np.array([[0.5]]), np.array([100])
    >>> [end.round(2) for end in add_sampling(share, share, share, half, 1.96)]
    [array([[0.4]]), array([[0.6]])]
    """
    n = np.asarray(sizes, dtype=float)[:, None]
    centre = (estimate + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z * np.sqrt(estimate * (1 - estimate) / n + (z / (2 * n)) ** 2) / (1 + z**2 / n)
    below = np.hypot(estimate - np.minimum(lower, estimate), np.maximum(estimate - centre + reach, 0))
    above = np.hypot(np.maximum(upper, estimate) - estimate, np.maximum(centre + reach - estimate, 0))
    return estimate - below, estimate + above
