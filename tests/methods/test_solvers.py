import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from quanet.methods.solvers import mixture_weights, simplex_least_squares
from quanet.simplex import check_prevalences, draw_uniformly
from tests.strategies import SEEDS, posteriors


def mean_log_likelihood(likelihoods, weights):
    with np.errstate(divide="ignore"):
        return np.log(likelihoods @ weights).mean()


@given(SEEDS, st.integers(2, 7))
def test_least_squares_meets_the_conditions_of_an_optimum(seed, k):
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.ones(k), size=k).T + 0.5 * np.eye(k)
    targets = rng.dirichlet(np.full(k, 0.3), size=20) * rng.uniform(0.8, 1.2)
    found = simplex_least_squares(matrix, targets)
    check_prevalences(found)
    slope = (found @ matrix.T - targets) @ matrix
    # On the support every slope is the same, and no slope off it is lower.
    lowest = slope.min(axis=1)
    np.testing.assert_allclose((found * (slope - lowest[:, None])).sum(axis=1), 0, atol=1e-10)


def test_least_squares_agrees_with_scipys_general_solver():
    rng = np.random.default_rng(0)
    matrix, target = rng.dirichlet(np.ones(5), size=5).T, rng.dirichlet(np.full(5, 0.2))
    reference = minimize(
        lambda p: np.square(matrix @ p - target).sum(),
        np.full(5, 0.2),
        method="SLSQP",
        bounds=[(0, 1)] * 5,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(simplex_least_squares(matrix, target), reference.x, atol=1e-5)


@given(SEEDS)
def test_least_squares_recovers_what_the_matrix_was_given(seed):
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.ones(4), size=4).T + np.eye(4)
    truth = rng.dirichlet(np.full(4, 0.3), size=(2, 3))
    np.testing.assert_allclose(simplex_least_squares(matrix, truth @ matrix.T), truth, atol=1e-9)


@given(posteriors())
def test_the_mixture_found_is_likelier_than_any_other(stack):
    k = stack.shape[-1]
    weights, unsettled = mixture_weights(stack, np.full(k, 1 / k))
    assert unsettled == 0
    check_prevalences(weights)
    others = np.vstack([draw_uniformly(100, k, rng=np.random.default_rng(0)), np.eye(k)])
    for bag, found in zip(stack, weights, strict=True):
        best = max(mean_log_likelihood(bag, other) for other in others)
        assert mean_log_likelihood(bag, found) >= best - 1e-9


@given(posteriors())
def test_the_gap_to_the_best_likelihood_is_closed(stack):
    k = stack.shape[-1]
    weights, _ = mixture_weights(stack, np.full(k, 1 / k))
    # The mean of L_c / (L w) is at most 1 for every class at the optimum, and bounds the distance from it.
    slopes = (stack / (stack @ weights[..., None])).mean(axis=-2)
    assert slopes.max() <= 1 + 1e-5


@pytest.mark.parametrize("k", [2, 3])
def test_more_classes_than_instances_and_equal_classes_are_no_obstacle(k):
    twins = np.tile(np.array([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])[:, :k], (1, 1))
    weights, unsettled = mixture_weights(twins, np.full(k, 1 / k))
    assert unsettled == 0
    np.testing.assert_allclose(weights[0], weights[1], atol=1e-6)


def test_an_impossible_class_is_left_out_for_good():
    stack = np.array([[0.9, 0.1, 0.0], [0.4, 0.6, 0.0]])
    weights, _ = mixture_weights(stack, np.full(3, 1 / 3))
    assert weights[2] == 0


def test_bags_that_do_not_settle_are_counted():
    rng = np.random.default_rng(0)
    for k in (2, 3):
        _, unsettled = mixture_weights(rng.dirichlet(np.ones(k), size=(4, 30)), np.full(k, 1 / k), max_iter=1)
        assert unsettled == 4
