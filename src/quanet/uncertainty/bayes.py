r"""Bayesian intervals: what a bag's shares may be, given what the classifier said and how it errs.

Two likelihoods are known. From *labels*, after Ziegler and Czyż (2024): rates at which class j is taken for i have
Dirichlet posteriors from held-out counts, and a bag's predictions follow from them. From *posteriors*, calibrated on
held-out ones: an instance's likelihoods are its posteriors divided by the prior. For two classes the posterior is
exact, a probability for every possible number of instances of a class; for more it is drawn from by Gibbs's method, all
bags at once.

All rates are equally likely beforehand, and so are all shares of a class. With more than two classes this needs a prior
of its own for every class: 1 for the class and 1 / (k - 1) for each of the others. With 1 for all, four classes would
rule out a share near 1 before any instance was seen. What was learnt from held-out posteriors is uncertain too: draws
are moved by as much as other held-out rows would have moved the estimate (`quanet.uncertainty.learning`).
"""

from collections.abc import Callable

import numpy as np
from scipy.special import betaln, gammaln

from quanet.arrays import FloatArray, IntArray
from quanet.duplicates import independent_size
from quanet.simplex import count
from quanet.uncertainty.held import Held, Likelihoods

DRAWS, BURN_IN = 1000, 100
TINY = 1e-300
GIBBS = 500  # draws for each class, of more than two
NEAR = 1.05  # an interval that reaches 0 or 1 may be so many times as wide as the shortest
LARGEST_TABLE = 4000  # instances in a bag whose exact table is still small
Draws = FloatArray  # (r, b, k)


def beta_binomial(n: int, a: float, b: float) -> FloatArray:
    """Probability of j (column) successes in N (row) trials, if their rate has a Beta(a, b): (n + 1, n + 1).

    Examples
    --------
    A rate that may be anything makes every number of successes as likely:

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
    """Probability of every number of instances of the second class, (b, n + 1), given how many were so labelled, (b,).

    Parameters
    ----------
    positives : instances of a bag that the classifier takes for the second class.
    n : instances in a bag.
    confusions : (2, 2) held-out instances of class j (column) that were taken for i (row).

    Examples
    --------
    A classifier that was right on 1,000 held-out instances of each class is believed:

    >>> label_posterior(np.array([2]), 3, np.array([[1000, 0], [0, 1000]])).round(2)
    array([[0., 0., 1., 0.]])
    """
    hits = beta_binomial(n, confusions[1, 1] + 1, confusions[0, 1] + 1)
    alarms = beta_binomial(n, confusions[1, 0] + 1, confusions[0, 0] + 1)[::-1]  # by the number of the second class
    found = np.empty((len(positives), n + 1))
    for i, seen in enumerate(positives.tolist()):
        found[i] = (hits[:, : seen + 1] * alarms[:, seen::-1]).sum(axis=1)
    return found / found.sum(axis=1, keepdims=True)


def likelihood_posterior(likelihoods: FloatArray, prevalences: FloatArray) -> FloatArray:
    r"""Probability of every number N of instances of the second class: (b, n, 2), (b, 2) -> (b, n + 1).

    .. math:: P(N \mid x) \propto e_N(r_1, \dots, r_n) / \binom nN

    where the elementary symmetric polynomial :math:`e_N` sums over who the N may be. It is found by adding one instance
    after another, at prevalences near the likeliest, (b, 2), so that no number leaves the range of floats.
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
    seen = chance > 1e-290  # below, floats have lost their digits
    logs = np.where(seen, np.log(np.where(seen, chance, 1.0)) + number * odds - ways, -np.inf)
    found = np.exp(logs - logs.max(axis=1, keepdims=True))
    return found / found.sum(axis=1, keepdims=True)


def label_draws(
    counted: IntArray, confusions: IntArray | FloatArray, *, weights: FloatArray, own: bool, rng: np.random.Generator
) -> Draws:
    """Shares drawn from their posterior, given a bag's labels (b, k), held-out confusions (k, k), a prior's weights."""
    b, k = counted.shape
    prevalences = np.full((b, k), 1 / k)
    rates = np.broadcast_to((confusions + 1.0) / (confusions + 1.0).sum(axis=0), (b, k, k))
    kept = np.empty((GIBBS, b, k))
    for step in range(BURN_IN + GIBBS):
        joint = rates * prevalences[:, None, :]
        latent = rng.multinomial(counted, joint / joint.sum(axis=2, keepdims=True))  # (b, i, j)
        gammas = rng.standard_gamma(confusions + 1.0 + latent)
        rates = gammas / gammas.sum(axis=1, keepdims=True)
        totals = latent.sum(axis=1)
        prevalences = _dirichlet(totals + weights, rng)
        if step >= BURN_IN:
            kept[step - BURN_IN] = totals / totals.sum(axis=1, keepdims=True) if own else prevalences
    return kept


def likelihood_draws(
    likelihoods: FloatArray, prevalences: FloatArray, *, weights: FloatArray, own: bool, rng: np.random.Generator
) -> Draws:
    """Shares drawn from their posterior, given likelihoods (b, n, k), likely prevalences (b, k), a prior's weights."""
    b, n, k = likelihoods.shape
    kept = np.empty((GIBBS, b, k))
    for step in range(BURN_IN + GIBBS):
        joint = np.cumsum(likelihoods * prevalences[:, None, :], axis=2)
        labels = (rng.random((b, n, 1)) * joint[..., -1:] > joint[..., :-1]).sum(axis=2)
        totals = count(labels, k)
        prevalences = _dirichlet(totals + weights, rng)
        if step >= BURN_IN:
            kept[step - BURN_IN] = totals / n if own else prevalences
    return kept


def _dirichlet(weights: FloatArray, rng: np.random.Generator) -> FloatArray:
    gammas = np.maximum(rng.standard_gamma(weights), TINY)
    return gammas / gammas.sum(axis=1, keepdims=True)


def _class_by_class(draw: Callable[[FloatArray], Draws], k: int) -> Draws:
    """Shares of every class, drawn with the prior under which all shares of that class are equally likely."""
    drawn = []
    for c in range(k):
        weights = np.full(k, 1 / (k - 1))
        weights[c] = 1.0
        drawn.append(draw(weights)[..., c])
    return np.stack(drawn, axis=-1)


def number_draws(probabilities: FloatArray, *, own: bool, rng: np.random.Generator) -> Draws:
    """Shares of two classes drawn by the probability of every number of the second: (b, n + 1) -> (r, b, 2)."""
    b, n = len(probabilities), probabilities.shape[1] - 1
    levels = (np.arange(DRAWS) + 0.5) / DRAWS  # evenly, so that nothing is left to chance
    numbers = np.stack([np.searchsorted(np.cumsum(one), levels * (1 - 1e-12)) for one in probabilities], axis=1)
    numbers = np.minimum(numbers, n)
    second = numbers / n if own else rng.beta(numbers + 1.0, n - numbers + 1.0)
    return np.stack([1 - second, second], axis=2).reshape(DRAWS, b, 2)


def confusions_of(held: Held) -> IntArray | FloatArray:
    """Held-out instances of class j (column) that the classifier takes for i (row), (k, k); copies count once."""
    labels = held.inputs[:, : held.k].argmax(axis=1)
    counts = np.bincount(labels * held.k + held.codes, minlength=held.k**2).reshape(held.k, held.k)
    if held.groups is None:
        return counts
    return counts * [independent_size(held.groups[part]) / len(part) for part in held.by_class()]


def posterior_draws(
    stack: FloatArray, held: Held | None, likelihoods: Likelihoods, *, labels: bool, own: bool, rng: np.random.Generator
) -> Draws:
    """Shares of bags of inputs (b, n, d), drawn from their posterior: (r, b, k)."""
    b, n, _ = stack.shape
    k = len(likelihoods.prior)
    if labels and held is not None:
        counted, confusions = count(stack[..., :k].argmax(axis=2), k), confusions_of(held)
        if k == 2 and n <= LARGEST_TABLE:
            return number_draws(label_posterior(counted[:, 1], n, confusions), own=own, rng=rng)
        return _class_by_class(lambda w: label_draws(counted, confusions, weights=w, own=own, rng=rng), k)
    values = likelihoods(stack.reshape(b * n, -1)).reshape(b, n, k)
    start = likelihoods.prevalences(values)
    if k == 2 and n <= LARGEST_TABLE:
        return number_draws(likelihood_posterior(values, start), own=own, rng=rng)
    return _class_by_class(lambda w: likelihood_draws(values, start, weights=w, own=own, rng=rng), k)


def with_learning(draws: Draws, covariance: FloatArray, *, rng: np.random.Generator) -> Draws:
    """Draws (r, b, k) moved by what other held-out rows would have changed, of covariances (b, k, k)."""
    r, _, k = draws.shape
    values, vectors = np.linalg.eigh(covariance)
    roots = vectors * np.sqrt(np.maximum(values, 0))[:, None, :]
    # The same numbers for all bags, so that none depends on its neighbours.
    return np.clip(draws + np.einsum("bcd,rd->rbc", roots, rng.standard_normal((r, k))), 0, 1)


def shortest(draws: Draws, level: float) -> tuple[FloatArray, FloatArray]:
    """Ends (b, k) of the shortest intervals that hold a share `level` of the draws (r, b, k).

    Unlike those between quantiles they reach 0 or 1 when the posterior is highest there. No draw is ever 0 or 1, so
    that an interval from the end on is taken where it is hardly wider.

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
    most = NEAR * (upper - lower)
    low, high = from_zero <= np.minimum(most, to_one), to_one <= np.minimum(most, from_zero)
    lower, upper = np.where(low, 0.0, lower), np.where(low, from_zero, upper)
    return np.where(high & ~low, 1 - to_one, lower), np.where(high & ~low, 1.0, upper)
