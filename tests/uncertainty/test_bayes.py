import itertools
from math import comb

import numpy as np
import pytest
from scipy.stats import beta, betabinom

from quanet.uncertainty.bayes import (
    add_learning_error,
    beta_binomial,
    label_draws,
    label_posterior,
    likelihood_draws,
    likelihood_posterior,
    number_draws,
    shortest,
)


def test_beta_binomials_are_those_of_scipy():
    np.testing.assert_allclose(beta_binomial(6, 2.5, 4.0)[5, :6], betabinom(5, 2.5, 4.0).pmf(np.arange(6)))


def test_a_perfect_classifier_gives_the_beta_posterior_of_its_count():
    # 3 of 10 counted, all labels right: the source's share has a Beta(1 + 3, 1 + 7).
    chances = label_posterior(np.array([3]), 10, np.array([[10**7, 0], [0, 10**7]]))
    draws = number_draws(chances, target_is_bag=False, rng=np.random.default_rng(0))[:, 0, 1]
    assert draws.mean() == pytest.approx(beta(4, 8).mean(), abs=0.01)
    np.testing.assert_allclose(np.quantile(draws, [0.1, 0.5, 0.9]), beta(4, 8).ppf([0.1, 0.5, 0.9]), atol=0.02)


def test_the_posterior_of_labels_is_that_of_all_cases_added_up():
    # Two instances, one labelled positive; rates known as Beta(3, 2) and Beta(1, 4).
    confusions = np.array([[3, 1], [0, 2]])
    hit, alarm = 3 / 5, 1 / 5
    none = 2 * alarm * (1 - alarm) - 2 * (betavar := 1 * 4 / (25 * 6))
    both = 2 * hit * (1 - hit) - 2 * 3 * 2 / (25 * 6)
    one = hit * (1 - alarm) + alarm * (1 - hit)
    assert betavar > 0
    expected = np.array([none, one, both]) / (none + one + both)
    np.testing.assert_allclose(label_posterior(np.array([1]), 2, confusions)[0], expected)


def test_the_posterior_of_likelihoods_is_that_of_all_cases_added_up():
    rng = np.random.default_rng(0)
    values = rng.uniform(0.05, 1, size=(2, 5, 2))
    found = likelihood_posterior(values, np.array([[0.5, 0.5], [0.9, 0.1]]))
    for bag, chances in zip(values, found, strict=True):
        by_number = np.zeros(6)
        for labels in itertools.product([0, 1], repeat=5):
            by_number[sum(labels)] += np.prod([bag[i, c] for i, c in enumerate(labels)]) / comb(5, sum(labels))
        np.testing.assert_allclose(chances, by_number / by_number.sum())


def test_gibbs_draws_agree_with_the_exact_posterior():
    rng = np.random.default_rng(1)
    confusions = np.array([[80, 15], [20, 85]])
    exact = label_posterior(np.array([30]), 60, confusions) @ (np.arange(61) / 60)
    drawn = label_draws(np.array([[30, 30]]), confusions, weights=np.ones(2), target_is_bag=True, rng=rng)[
        :, 0, 1
    ].mean()
    assert drawn == pytest.approx(float(exact[0]), abs=0.03)
    values = np.repeat([[1.0, 0.2], [0.3, 1.0]], 20, axis=0)[None]
    exact = likelihood_posterior(values, np.array([[0.5, 0.5]])) @ (np.arange(41) / 40)
    drawn = likelihood_draws(values, np.array([[0.5, 0.5]]), weights=np.ones(2), target_is_bag=True, rng=rng)[
        :, 0, 1
    ].mean()
    assert drawn == pytest.approx(float(exact[0]), abs=0.03)


def test_the_shortest_interval_reaches_the_end_where_the_posterior_is_highest():
    draws = np.linspace(0, 1, 1001)[:, None, None] ** 3
    lower, upper = shortest(draws, 0.95)
    assert lower[0, 0] == 0
    assert upper[0, 0] == pytest.approx(0.95**3, abs=0.01)


def test_the_shortest_interval_reaches_the_end_though_no_draw_does():
    draws = np.random.default_rng(0).beta([1, 40], [40, 1], size=(1000, 2))[:, None, :]
    lower, upper = shortest(draws, 0.95)
    assert draws.min() > 0
    assert (lower[0, 0], upper[0, 1]) == (0, 1)
    assert upper[0, 0] == pytest.approx(beta(1, 40).ppf(0.95), rel=0.1)
    lower, upper = shortest(np.random.default_rng(0).beta(20, 20, size=(1000, 1, 1)), 0.95)
    assert 0 < lower[0, 0] < upper[0, 0] < 1


def test_draws_move_by_what_other_held_out_rows_would_change():
    covariance = 0.01 * np.array([[[1.0, -1.0], [-1.0, 1.0]]])
    moved = add_learning_error(np.full((4000, 1, 2), 0.5), covariance, rng=np.random.default_rng(0))
    np.testing.assert_allclose(moved.sum(axis=2), 1)
    np.testing.assert_allclose(moved.std(axis=0), 0.1, rtol=0.05)
