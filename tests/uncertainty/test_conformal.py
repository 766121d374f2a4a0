from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quanet import ACC, Gaussians
from quanet.held_out import HeldOut
from quanet.simplex import count, draw_bags, invert, share_grid
from quanet.uncertainty import conformal
from quanet.uncertainty.conformal import Calibrations, Errors, _learned_share, calibrate_errors, min_held_out

SHARES = share_grid(21)


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


def test_errors_of_larger_bags_are_smaller_as_far_as_they_are_chance():
    errors = normal_errors(np.full(21, 0.05))
    whole, half = (errors.ends(np.array([0.5]), 0.95, ratio) for ratio in (1.0, 0.25))
    np.testing.assert_allclose(half[1] - half[0], (whole[1] - whole[0]) / 2, rtol=0.02)
    learned = replace(errors, learned_share=1.0).ends(np.array([0.5]), 0.95, 0.25)
    np.testing.assert_allclose(learned[:2], whole[:2])


def test_a_tiny_bias_without_any_spread_at_an_end_does_not_widen_its_neighbours():
    errors = normal_errors(np.full(21, 0.01)).errors
    errors[-1] = -1e-4
    lower, upper, _ = Errors(SHARES, errors).ends(np.array([0.5]), 0.95, 1.0)
    np.testing.assert_allclose([lower[0], upper[0]], [0.48, 0.52], atol=0.004)


def test_the_variance_of_what_was_learned_is_separated_from_chance():
    rng = np.random.default_rng(0)
    others = np.tile([-1.0, 1.0] * 16, 41 * 12).reshape(41, 384)
    errors = 0.6 * others + 0.8 * rng.normal(size=(41, 384))
    np.testing.assert_allclose(_learned_share(errors, 32), 0.36, atol=0.02)
    np.testing.assert_allclose(_learned_share(rng.normal(size=(41, 384)), 32), 0, atol=0.02)
    assert _learned_share(errors, 1) == 0


def test_the_interval_can_contain_0_and_1():
    lower, upper, _ = normal_errors(np.full(21, 0.05)).ends(np.array([0.0, 0.05, 0.95, 1.0]), 0.95, 1.0)
    np.testing.assert_array_equal(lower[:2], 0)
    np.testing.assert_array_equal(upper[2:], 1)
    assert 0.05 < upper[0] < 0.15


def test_a_bias_that_is_known_moves_the_interval():
    lower, upper = invert(np.array([0.5]), np.array([0.0, 1.0]), np.array([0.1, 0.1]), np.array([0.2, 0.2]))
    np.testing.assert_allclose([lower[0], upper[0]], [0.3, 0.4], atol=1e-3)


def test_bags_have_the_counts_asked_for():
    held = HeldOut(np.zeros((6, 2)), np.array([0, 1, 2, 1, 0, 1]), 3)
    counts = np.array([[4, 0, 3], [0, 7, 0], [2, 3, 2]])
    drawn = draw_bags(held.codes, counts, np.random.default_rng(0))
    np.testing.assert_array_equal(count(held.codes[drawn], 3), counts)


def test_the_fewest_held_out_instances():
    assert [min_held_out(level) for level in (0.5, 0.9, 0.95, 0.99)] == [3, 19, 39, 199]


def test_errors_of_bags_larger_than_all_calibration_bags_are_extrapolated(monkeypatch):
    monkeypatch.setattr(conformal, "MAX_SIZE", 64)
    X, y = Gaussians().draw([0.5, 0.5], 400, rng=0)
    quantifier = ACC().fit(X, y)
    held = HeldOut(quantifier.held_out_.inputs.astype(float), quantifier.held_out_.codes.astype(np.intp), 2)
    calibrations = Calibrations(held, target_is_bag=True, seed=0)
    errors, _, ratio = calibrations.of_size(quantifier, 64)
    assert ratio == 1
    assert 0 < errors[1].learned_share < 0.5  # by resamples of 400 rows, of errors in bags of 64
    for n in (640, 64 * 10**5):
        found, _, ratio = calibrations.of_size(quantifier, n)
        assert found is errors
        assert ratio == 64 / n
    least = errors[1].spread() * np.sqrt(errors[1].learned_share)
    np.testing.assert_allclose(errors[1].spread(1e-9), least, rtol=1e-6)


def test_few_bags_at_a_time_are_the_same_bags(monkeypatch):
    X, y = Gaussians().draw([0.5, 0.5], 200, rng=0)
    quantifier = ACC().fit(X, y)
    held = HeldOut(quantifier.held_out_.inputs.astype(float), quantifier.held_out_.codes.astype(np.intp), 2)
    errors = []
    for together in (2**21, 1000):
        monkeypatch.setattr(conformal, "BATCH", together)
        found, _ = calibrate_errors(quantifier, held, size=10, target_is_bag=True, rng=np.random.default_rng(0))
        errors.append(found[1].errors)
    np.testing.assert_array_equal(*errors)


class Slow(ACC):
    """A method whose estimates take milliseconds."""

    calibration_share = 0.5


def test_a_slow_method_is_calibrated_on_fewer_bags_with_intervals_that_are_not_narrower():
    X, y = Gaussians().draw([0.5, 0.5], 400, rng=0)
    widths, bags = [], []
    for make in (ACC, Slow):
        quantifier = make(cv=3).fit(X, y)
        rng = np.random.default_rng(0)
        by_class, _ = calibrate_errors(quantifier, quantifier.held_out_, size=100, target_is_bag=True, rng=rng)
        bags.append(by_class[1].errors.size)
        lower, upper, _ = by_class[1].ends(np.linspace(0, 1, 21), 0.99, 1.0)
        widths.append(upper - lower)
    assert bags == [41 * (16_000 // 41), 41 * (8_000 // 41)]
    assert widths[0].mean() < widths[1].mean() < 1.1 * widths[0].mean()
