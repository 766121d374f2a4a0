import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quanet import ACC, Gaussians
from quanet.simplex import count
from quanet.uncertainty import conformal
from quanet.uncertainty.conformal import Calibrations, Errors, calibrate_errors, draw_bags, least_held
from quanet.uncertainty.held import Held, invert, towards_the_ends

SHARES = towards_the_ends(21)


def normal_errors(spread, seed=0):
    return Errors(SHARES, np.random.default_rng(seed).normal(size=(21, 400)) * spread[:, None])


@given(st.floats(0, 1), st.floats(0.5, 0.9), st.floats(0.91, 0.99))
def test_intervals_are_wider_at_a_higher_level(estimate, low, high):
    errors = normal_errors(0.02 + 0.1 * SHARES * (1 - SHARES))
    narrow, wide = (errors.ends(np.array([estimate]), level, 1.0) for level in (low, high))
    assert wide[0] <= narrow[0]
    assert wide[1] >= narrow[1]


def test_normal_errors_give_about_the_normal_interval():
    lower, upper, spread = normal_errors(np.full(21, 0.05)).ends(np.array([0.5]), 0.95, 1.0)
    np.testing.assert_allclose([lower[0], upper[0]], [0.4, 0.6], atol=0.02)
    np.testing.assert_allclose(spread, 0.05, atol=0.005)


def test_errors_of_larger_bags_are_smaller():
    errors = normal_errors(np.full(21, 0.05))
    whole, half = (errors.ends(np.array([0.5]), 0.95, shrink) for shrink in (1.0, 0.5))
    np.testing.assert_allclose(half[1] - half[0], (whole[1] - whole[0]) / 2, rtol=0.02)


def test_a_share_of_nothing_can_be_true():
    lower, upper, _ = normal_errors(np.full(21, 0.05)).ends(np.array([0.0, 0.05, 0.95, 1.0]), 0.95, 1.0)
    np.testing.assert_array_equal(lower[:2], 0)
    np.testing.assert_array_equal(upper[2:], 1)
    assert 0.05 < upper[0] < 0.15


def test_a_bias_that_is_known_moves_the_interval():
    lower, upper = invert(np.array([0.5]), np.array([0.0, 1.0]), np.array([0.1, 0.1]), np.array([0.2, 0.2]))
    np.testing.assert_allclose([lower[0], upper[0]], [0.3, 0.4], atol=1e-3)


def test_bags_have_the_counts_asked_for():
    held = Held(np.zeros((6, 2)), np.array([0, 1, 2, 1, 0, 1]), 3)
    counts = np.array([[4, 0, 3], [0, 7, 0], [2, 3, 2]])
    drawn = draw_bags(held, counts, np.random.default_rng(0))
    np.testing.assert_array_equal(count(held.codes[drawn], 3), counts)


def test_the_fewest_held_out_instances():
    assert [least_held(level) for level in (0.5, 0.9, 0.95, 0.99)] == [3, 19, 39, 199]


def test_bags_larger_than_any_calibrated_on_are_taken_to_be_as_uncertain_as_those(monkeypatch):
    monkeypatch.setattr(conformal, "LARGEST", 64)
    X, y = Gaussians().draw([0.5, 0.5], 400, rng=0)
    quantifier = ACC().fit(X, y)
    held = Held(quantifier.held_rows_.astype(float), quantifier.held_codes_.astype(np.intp), 2)
    calibrations = Calibrations(held, own=True, seed=0)
    errors, _, shrink = calibrations.of_size(quantifier, 64)
    for n in (100, 10**7):
        found, _, factor = calibrations.of_size(quantifier, n)
        assert found is errors
        assert factor == shrink == 1.0
    assert calibrations.of_size(quantifier, 60)[2] > 1


def test_few_bags_at_a_time_are_the_same_bags(monkeypatch):
    X, y = Gaussians().draw([0.5, 0.5], 200, rng=0)
    quantifier = ACC().fit(X, y)
    held = Held(quantifier.held_rows_.astype(float), quantifier.held_codes_.astype(np.intp), 2)
    errors = []
    for together in (2**21, 1000):
        monkeypatch.setattr(conformal, "AT_A_TIME", together)
        found, _ = calibrate_errors(quantifier, held, size=10, own=True, rng=np.random.default_rng(0))
        errors.append(found[1].errors)
    np.testing.assert_array_equal(*errors)
