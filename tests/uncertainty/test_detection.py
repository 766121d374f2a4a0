"""The smallest share of a class that can be told from 0."""

from functools import cache

import numpy as np
import pytest

from quanet import ACC, CC, EMQ, PACC, Bags, Gaussians, KDEyML, predict_interval_bags
from quanet.errors import InvalidSetting


@cache
def fitted(kind, k, seed=0, rare=0.1, distance=2.0, m=1000):
    shares = np.append(np.full(k - 1, (1 - rare) / (k - 1)), rare)
    return kind().fit(*Gaussians(k=k, distance=distance).draw(shares, m, rng=seed))


def detected(quantifier, c, share, n, *, seed, distance=2.0):
    """Part of 20 bags at this share of class c whose interval excludes 0."""
    rest = quantifier.prior_.copy()
    rest[c] = 0
    shares = (1 - share) * rest / rest.sum()
    shares[c] = share
    source = Gaussians(k=len(shares), distance=distance)
    X = np.concatenate([source.draw(shares, n, rng=1000 * seed + b)[0] for b in range(20)])
    interval = predict_interval_bags(quantifier, X, Bags(np.arange(20 * n).reshape(20, n)), drift=False)
    return np.mean(interval.lower[:, c] > 0)


@pytest.mark.parametrize(("kind", "k"), [(EMQ, 2), (PACC, 2), (EMQ, 3)])
def test_at_the_limit_most_intervals_exclude_0_and_at_a_third_of_it_few(kind, k):
    at, below = [], []
    for seed in range(6):  # what was learned differs
        quantifier = fitted(kind, k, seed)
        (limit,) = quantifier.detection_limits([500])
        at.append(detected(quantifier, k - 1, limit[-1], 500, seed=seed))
        below.append(detected(quantifier, k - 1, limit[-1] / 3, 500, seed=seed))
    assert 0.6 <= np.mean(at) <= 0.97
    assert np.mean(below) <= 0.4


def test_larger_bags_and_better_classifiers_have_lower_limits():
    limits = fitted(EMQ, 2).detection_limits([100, 500, 5000])
    assert (np.diff(limits, axis=0) < 0).all()
    clearer = fitted(EMQ, 2, distance=4.0).detection_limits([100, 500, 5000])
    assert (clearer < limits).all()
    assert (clearer >= 1 / np.array([[100], [500], [5000]])).all()  # one instance


def test_the_order_of_the_classes_does_not_matter():
    X, y = Gaussians(k=3).draw([0.2, 0.3, 0.5], 600, rng=0)
    one, other = (EMQ().fit(X, labels).detection_limits([500])[0] for labels in (y, 2 - y))
    np.testing.assert_allclose(one, other[::-1], rtol=0.15)  # folds differ


def test_a_method_without_a_formula_has_the_limits_of_maximum_likelihood():
    own, likely = (fitted(kind, 2).detection_limits()[:, 1] for kind in (KDEyML, EMQ))
    np.testing.assert_allclose(own, likely, rtol=0.3)


def test_a_classifier_that_knows_nothing_can_see_no_share():
    rng = np.random.default_rng(0)
    with pytest.warns(UserWarning, match="separate"):
        quantifier = EMQ().fit(rng.normal(size=(400, 2)), rng.integers(2, size=400))
    assert quantifier.shrinkage_ == 1
    assert (quantifier.detection_limits() == 1).all()


def test_without_enough_held_out_posteriors_limits_are_unknown():
    assert np.isnan(fitted(CC, 2).detection_limits()).all()
    few = EMQ().fit(*Gaussians().draw([0.95, 0.05], 120, rng=0))
    assert few.held_out_.counts.min() < 10
    assert np.isnan(few.detection_limits()).all()


def test_sizes_are_whole_numbers():
    with pytest.raises(InvalidSetting, match="sizes"):
        fitted(ACC, 2).detection_limits([0.5])
