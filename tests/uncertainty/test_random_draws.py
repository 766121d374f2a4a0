"""Random draws of intervals depend on the content of the data, not on names of classes or the order of rows."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

import quanet
from quanet import Bags, Gaussians, predict_interval_bags
from quanet.uncertainty import conformal

SIZE = 45  # of each of two bags
CASES = [
    *(("conformal", name, k) for name in ("KDEyML", "PACC", "ACC") for k in (2, 3)),
    *(("conformal", name, 2) for name in ("DMy", "EDy")),
    *(("bootstrap", name, k) for name in ("CC", "PCC", "EMQ") for k in (2, 3)),
    *(("bayes", name, k) for name in ("EMQ", "ACC", "PCC") for k in (2, 3)),
    ("auto", "EMQ", 3),
]


class TruePosteriors(ClassifierMixin, BaseEstimator):
    """A fitted classifier with true posteriors; class i of the source has the name at place[i]."""

    def __init__(self, place=(0, 1)):
        self.place = place
        self.classes_ = np.array(["a", "b", "c"])[: len(place)]

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, X):
        k = len(self.place)
        return Gaussians(k=k, distance=1.5).posteriors(X, np.full(k, 1 / k))[:, np.argsort(self.place)]


def ends(method, name, k, target, *, place=None, rows=None, weights=None):
    """Lower and upper ends (2, b, k) of two bags, with other names of the classes or another order of the instances."""
    place = np.arange(k) if place is None else place
    rows = np.arange(2 * SIZE) if rows is None else rows
    shares = np.arange(1, k + 1) / np.arange(1, k + 1).sum()
    (X, codes), (pool, _) = (Gaussians(k=k, distance=1.5).draw(shares, n, rng=n) for n in (300, 2 * SIZE))
    classifier = TruePosteriors(tuple(place.tolist()))
    bags = Bags(np.arange(2 * SIZE).reshape(2, SIZE), weights=None if weights is None else weights[rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantifier = getattr(quanet, name)(FrozenEstimator(classifier)).fit(X, classifier.classes_[place[codes]])
        found = predict_interval_bags(quantifier, pool[rows], bags, method=method, target=target)
    return np.stack([found.lower, found.upper])[..., place]


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """The laws hold for any number of draws."""
    monkeypatch.setattr(conformal, "BAGS", 1000)


@pytest.mark.parametrize(("method", "name", "k"), CASES)
@pytest.mark.parametrize("target", ["bag", "source"])
def test_renamed_classes_have_the_same_ends(method, name, k, target):
    found = ends(method, name, k, target, place=np.roll(np.arange(k), 1))
    np.testing.assert_allclose(found, ends(method, name, k, target), atol=1e-9)


@pytest.mark.parametrize(("method", "name", "k"), CASES)
def test_bags_with_rows_in_another_order_have_the_same_ends(method, name, k):
    shuffled = np.random.default_rng(0).permutation(2 * SIZE)
    rows = np.r_[shuffled[shuffled < SIZE], shuffled[shuffled >= SIZE]]
    np.testing.assert_allclose(ends(method, name, k, "bag", rows=rows), ends(method, name, k, "bag"), atol=1e-9)


@pytest.mark.parametrize(("method", "name"), [("auto", "KDEyML"), ("bootstrap", "CC"), ("bayes", "EMQ")])
def test_names_and_order_change_no_ends_of_bags_with_weights(method, name):
    weights = np.random.default_rng(0).lognormal(0, 1, 2 * SIZE)
    rows = np.r_[np.arange(SIZE)[::-1], np.arange(SIZE, 2 * SIZE)]
    changed = ends(method, name, 3, "bag", weights=weights, rows=rows, place=np.array([1, 2, 0]))
    np.testing.assert_allclose(changed, ends(method, name, 3, "bag", weights=weights), atol=1e-8)


@pytest.mark.parametrize("k", [2, 3])
def test_names_of_classes_do_not_change_the_drift_scale(k):
    X, codes = Gaussians(k=k, distance=1.5).draw(np.full(k, 1 / k), 1200, rng=0)
    rates = []
    for place in (np.arange(k), np.roll(np.arange(k), 1)):
        classifier = TruePosteriors(tuple(place.tolist()))
        fitted = quanet.PACC(FrozenEstimator(classifier)).fit(X, classifier.classes_[place[codes]])
        assert fitted.drift_.kind == "clusters"
        rates.append(fitted.drift_.rate)
    assert rates[0] == pytest.approx(rates[1], abs=1e-9)
