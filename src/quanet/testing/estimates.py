"""Laws of the estimates themselves."""

import warnings

import numpy as np
from sklearn.base import clone

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.data.synthetic import Gaussians
from quanet.errors import QuanetWarning
from quanet.testing.case import CLOSE, ContractCase


def on_the_simplex(case: ContractCase) -> None:
    """Estimates are at least 0 and sum to 1."""
    bags = Bags([np.arange(n) for n in (1, 2, 5, len(case.pool))])
    estimate = case.fitted.predict_bags(case.pool, bags)
    assert estimate.shape == (4, len(case.names))
    assert (estimate >= 0).all()
    np.testing.assert_allclose(estimate.sum(axis=1), 1, atol=CLOSE)


def order_is_irrelevant(case: ContractCase) -> None:
    """The order of a bag's instances changes nothing."""
    fitted = case.fitted
    np.testing.assert_allclose(fitted.predict(case.pool[::-1]), fitted.predict(case.pool), atol=1e-7)


def training_order_is_irrelevant(case: ContractCase) -> None:
    """The same training instances in another order give the same estimates, to the last bit."""
    estimate = case.fitted.predict(case.pool)
    for order in (np.arange(len(case.X))[::-1], np.argsort(case.X[:, 0])):
        fitted = clone(case.quantifier).fit(case.X[order], case.y[order])
        np.testing.assert_array_equal(fitted.predict(case.pool), estimate)


def relabelling_permutes(case: ContractCase) -> None:
    """Other names for the classes give the same shares under the other names."""
    k = len(case.names)
    reverse = np.arange(k)[::-1]
    if case.reads_posteriors:
        source = Gaussians(k=k, distance=3.0)
        quantifier = clone(case.quantifier).set_params(classifier="precomputed")
        X, pool = (source.posteriors(part, np.full(k, 1 / k)) for part in (case.X, case.pool))
        reversed_X, reversed_pool = X[:, reverse], pool[:, reverse]
    else:
        quantifier = clone(case.quantifier)
        reversed_X, reversed_pool = X, pool = case.X, case.pool
    estimate = clone(quantifier).fit(X, case.y).predict(pool)
    renamed = clone(quantifier).fit(reversed_X, case.names[reverse][case.codes]).predict(reversed_pool)
    np.testing.assert_allclose(renamed[reverse], estimate, atol=1e-5)


def batch_equals_loop(case: ContractCase) -> None:
    """A bag's estimate never depends on its neighbours in the batch."""
    fitted = case.fitted
    rows = fitted.represent(case.pool)
    stack = rows[np.random.default_rng(0).integers(len(rows), size=(2, 3, 15))]
    alone = np.stack([[fitted.aggregate(bag) for bag in pair] for pair in stack])
    np.testing.assert_allclose(fitted.aggregate(stack), alone, atol=CLOSE)
    ragged = [np.arange(3), np.arange(5, 30), np.arange(3) + 7]
    together = fitted.predict_bags(case.pool, Bags(ragged))
    np.testing.assert_allclose(together, [fitted.aggregate(rows[bag]) for bag in ragged], atol=CLOSE)


def weights_repeat_instances(case: ContractCase) -> None:
    """Equal weights change nothing, and a whole weight counts an instance as often as it says."""
    fitted, pool = case.fitted, case.pool[:30]
    np.testing.assert_allclose(fitted.predict(pool, np.full(30, 0.7)), fitted.predict(pool), atol=CLOSE)
    weights = np.arange(30) % 3
    repeated = fitted.predict(np.repeat(pool, weights, axis=0))
    np.testing.assert_allclose(fitted.predict(pool, 5.0 * weights), repeated, atol=1e-7)


def perfect_classifier_is_exact(case: ContractCase) -> None:
    """With posteriors of 0 and 1 that are right, the estimate is the truth; in its order, if the method shrinks it."""
    if not case.reads_posteriors:
        return
    quantifier = clone(case.quantifier).set_params(classifier="precomputed")
    k = len(case.names)
    quantifier.fit(np.eye(k)[case.codes], case.y)
    bag = np.repeat(np.arange(k), np.arange(1, k + 1))
    truth = np.arange(1, k + 1) / len(bag)
    estimate = quantifier.predict(np.eye(k)[bag])
    if getattr(quantifier, "_exact", True):
        np.testing.assert_allclose(estimate, truth, atol=1e-6)
    else:
        assert (np.diff(estimate) > 0).all()


def degenerate_classifiers_give_shares(case: ContractCase) -> None:
    """Posteriors that are all equal, never name a class, are always wrong or are votes in tenths give valid shares."""
    name = {"classifier", "quantifier__classifier"} & set(case.quantifier.get_params())
    if not name or "grid" in case.quantifier.get_params():
        return
    quantifier = clone(case.quantifier).set_params(**{name.pop(): "precomputed"})
    k, codes = len(case.names), case.codes[::3]
    for kind, posteriors in _degenerate_posteriors(k, codes).items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", QuanetWarning)
            fitted = clone(quantifier).fit(posteriors, case.names[codes])
            stack = fitted.represent(posteriors)[np.random.default_rng(0).integers(len(codes), size=(3, 12))]
            together, alone = fitted.aggregate(stack), np.stack([fitted.aggregate(bag) for bag in stack])
            again = clone(quantifier).fit(posteriors, case.names[codes]).aggregate(stack)
        message = f"Posteriors: {kind}."
        assert not caught, f"{message} A warning was raised: {caught[0].message}"
        assert (together >= 0).all(), message  # nor is it NaN
        np.testing.assert_allclose(together.sum(axis=1), 1, atol=CLOSE, err_msg=message)
        np.testing.assert_allclose(together, alone, atol=1e-6, err_msg=message)
        np.testing.assert_array_equal(together, again, err_msg=message)


def _degenerate_posteriors(k: int, codes: IntArray) -> dict[str, FloatArray]:
    """Posteriors (n, k) as poor classifiers give them, by what is wrong with them."""
    mostly_right = 0.6 * np.eye(k)[codes] + 0.4 / k
    votes = np.random.default_rng(0).multinomial(10, mostly_right) / 10
    blind = np.column_stack([np.zeros(len(codes)), mostly_right[:, 1:]])
    return {
        "all equal": np.full((len(codes), k), 1 / k),
        "a class is never named": blind / blind.sum(axis=1, keepdims=True),
        "one class for all": np.eye(k)[np.zeros_like(codes)],
        "always wrong": np.eye(k)[(codes + 1) % k],
        "votes in tenths": votes,
    }
