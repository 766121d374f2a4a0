"""Errors that few held-out instances have not shown."""

import numpy as np
import pytest
from scipy.special import betaincinv, betaln, gammaln
from scipy.stats import norm

from quanet import EMQ, PACC, Bags, Gaussians, predict_interval_bags
from quanet.drift.scale import without_drift
from quanet.held_out import HeldOut
from quanet.uncertainty.contrasts import read_sides
from quanet.uncertainty.control_variates import ControlledCount
from quanet.uncertainty.relearning import Likelihoods
from quanet.uncertainty.unseen_errors import PRIOR, add_unseen, unseen_covariance, unseen_parts, unseen_reach

KINDS = ("closed", "conformal", "bootstrap", "bayes")
PERFECT = np.array([[0.999, 0.001], [0.001, 0.999]])


def held_out(*sizes):
    return HeldOut(np.full((sum(sizes), len(sizes)), 0.5), np.repeat(np.arange(len(sizes)), sizes), len(sizes))


def perfect(method, m, share, n):
    """Intervals' quantifier and pool of a classifier that has never been wrong, fitted to m instances a class."""
    with without_drift():
        quantifier = method("precomputed").fit(PERFECT[np.repeat([0, 1], m)], np.repeat([0, 1], m))
    return quantifier, PERFECT[(np.arange(n) < share * n).astype(int)]


def test_the_number_of_unseen_errors_is_a_quantile_of_its_predictive_distribution():
    # Neutral prior, no error among 150: the number among 45 has a beta-binomial distribution.
    j, known, new = np.arange(46), 150, 45
    logs = gammaln(new + 1) - gammaln(j + 1) - gammaln(new - j + 1) + betaln(j + PRIOR, new - j + known + PRIOR)
    chance = np.exp(logs - betaln(PRIOR, known + PRIOR))
    exact = int(np.searchsorted(np.cumsum(chance), 0.975))
    reach, _ = unseen_reach(np.array([[0.9, 0.1]]), np.array([50]), held_out(150, 150), 0.95)
    assert exact == 1
    assert exact <= 50 * reach[0, 0] < exact + 1  # at one instance more than the estimate says


def test_in_large_bags_the_reach_is_the_bound_of_an_error_rate():
    # The quantile of Gamma(1 / 3), which Beta(1 / 3, m) approaches: a rate of about 2.01 / 150.
    assert betaincinv(PRIOR, 150, 0.975) == pytest.approx(2.014 / 150, rel=0.02)
    whole, learned = unseen_reach(np.array([[0.8, 0.2]]), np.array([10**7]), held_out(150, 150), 0.95)
    np.testing.assert_allclose(whole, [[0.8 * 2.014 / 150, 0.2 * 2.014 / 150]], rtol=1e-3)
    np.testing.assert_allclose(learned, whole, rtol=1e-3)


def test_many_held_out_instances_leave_nothing_unseen():
    found = [unseen_reach(np.array([[0.5, 0.5]]), np.array([100]), held_out(m, m), 0.95)[0] for m in (10**3, 10**5)]
    assert found[1].max() < 0.001 < found[0].max() < 0.01


def test_an_absent_class_is_underestimated_by_one_instance_at_most():
    ends = np.array([[1.0, 0.0]])
    reach, _ = unseen_reach(ends, np.array([100]), held_out(50, 50), 0.95)
    assert 0 < reach[0, 1] <= 0.01
    lower, upper = add_unseen(ends, ends, ends, reach)
    np.testing.assert_allclose(upper - ends, reach, atol=1e-12)
    np.testing.assert_allclose(ends - lower, reach[:, ::-1], atol=1e-12)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_parts_have_the_variances_of_the_covariance(k):
    reach = np.random.default_rng(0).dirichlet(np.ones(k), size=4) / 10
    covariance, parts = unseen_covariance(reach, 0.95), unseen_parts(reach, 0.95)
    np.testing.assert_allclose((parts**2).sum(axis=0), np.diagonal(covariance, axis1=1, axis2=2))
    np.testing.assert_allclose(covariance.sum(axis=2), 0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", [EMQ, PACC])
def test_a_classifier_that_was_never_wrong_on_few_instances_is_not_certain(method, kind):
    quantifier, pool = perfect(method, 150, 0.54, 1000)
    interval = quantifier.predict_interval(pool, method=kind, drift=False)
    np.testing.assert_allclose(interval.estimate[1], 0.54, atol=1e-6)  # the estimate stays exact
    unseen = 2.01 / 150
    assert interval.lower[1] <= 0.54 - 0.46 * unseen
    assert interval.upper[1] >= 0.54 + 0.54 * unseen
    assert interval.width[1] < 0.03


@pytest.mark.parametrize("method", [EMQ, PACC])
def test_a_classifier_that_was_never_wrong_on_many_instances_is_certain(method):
    quantifier, pool = perfect(method, 100_000, 0.54, 1000)
    assert quantifier.predict_interval(pool, drift=False).width[1] < 0.004


def test_unseen_errors_are_shared_by_bags_and_cancel_in_differences():
    quantifier, pool = perfect(PACC, 150, 0.5, 20_000)
    order = np.random.default_rng(0).permutation(20_000)
    sides = read_sides(quantifier, pool[order], Bags(np.arange(20_000).reshape(2, -1)), drift=False, level=0.95)
    variance = np.diagonal(sides.interval.covariance, axis1=1, axis2=2)
    shared = (sides.learned.parts**2).sum(axis=0)
    assert (shared > 0.4 * variance).all()
    assert (shared <= variance + 1e-12).all()
    difference = sides.learned.parts[:, 0] - sides.learned.parts[:, 1]
    assert (difference**2).sum() < 0.01 * shared.sum()


def test_intervals_of_good_classifiers_contain_the_truth():
    inside = []
    for seed in range(1000, 1020):
        world = Gaussians(distance=5.0)
        X, y = world.draw([0.5, 0.5], 300, rng=seed)
        pool = np.concatenate([world.draw([0.9, 0.1], 1000, rng=10 * seed + i)[0] for i in range(3)])
        for method in (EMQ, PACC):
            with without_drift():
                quantifier = method().fit(X, y)
            found = predict_interval_bags(quantifier, pool, Bags(np.arange(3000).reshape(3, -1)), drift=False)
            inside.append((found.lower[:, 1] <= 0.1) & (found.upper[:, 1] >= 0.1))
    assert np.mean(inside) >= 0.93  # without unseen errors .73


def test_an_end_of_a_count_is_compared_with_the_variance_of_the_same_estimate():
    X, y = Gaussians(distance=3.0).draw([0.5, 0.5], 300, rng=np.random.default_rng([1016]))
    with without_drift():
        pacc = PACC().fit(X, y)
    held = pacc.held_out_.doubles()
    control = ControlledCount.fit(held.inputs, Likelihoods(held, pacc.prior_)(held.inputs), held)
    counted, likely, sizes = np.array([-0.007, 0.0, 0.01]), np.array([0.016, 0.02, 0.0]), np.full(3, 1000)
    lower, upper, _ = control.ends(counted, likely, sizes, z=float(norm.ppf(0.975)), target_is_bag=True)
    combined = np.clip(control.combine(counted, likely, sizes), 0, 1)
    assert (lower <= combined + 1e-3).all()
    assert (combined <= upper + 1e-3).all()


def test_a_bag_shows_that_a_class_is_absent():
    world = Gaussians(k=4, distance=5.0)
    with without_drift():
        emq = EMQ().fit(*world.draw(np.full(4, 0.25), 1000, rng=0))
    bag, _ = world.draw([0.5, 0.5, 0.0, 0.0], 50, rng=1)
    interval = emq.predict_interval(bag, drift=False)
    assert (interval.upper[2:] < 0.1).all()  # .3 from the observed information alone


def test_learned_means_of_few_instances_have_the_variance_of_students_distribution():
    # t with 9 degrees of freedom has a variance of 9 / 7.
    np.testing.assert_allclose(held_out(10, 1000).learning_sizes, [10 * 7 / 9, 1000 * 997 / 999])
    assert (held_out(2, 3).learning_sizes > 0).all()
