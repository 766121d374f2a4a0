import numpy as np
import pytest
from scipy.stats import norm

from quanet import ACC, CC, EMQ, PACC, PCC, TrainPrevalence
from quanet.errors import InvalidSetting
from quanet.held_out import HeldOut
from quanet.uncertainty.closed_form import closed_form_of, counting_interval, observed_covariance, secant_ends

Z = float(norm.ppf(0.975))


def held_labels(tp, fn, fp, tn):
    """Held-out labels of a classifier with these counts, as one-hot inputs, in an order that shows no likeness."""
    labels = np.repeat([1, 0, 1, 0], [tp, fn, fp, tn])
    codes = np.repeat([1, 1, 0, 0], [tp, fn, fp, tn])
    # Evenly spread: neighbouring blocks then differ by less than chance.
    places = np.concatenate([np.linspace(0, 1, size) for size in (tp, fn, fp, tn)]).argsort(kind="stable")
    return HeldOut(np.eye(2)[labels[places]], codes[places], 2)


def test_the_delta_method_of_counting_by_hand():
    # tpr .8 of 500, fpr .1 of 1000; 200 of 400 counted, so p = (.5 - .1) / .7.
    held = held_labels(400, 100, 100, 900)
    lower, upper, covariance = counting_interval(
        np.array([[0.5, 0.5]]), held.inputs, held, np.array([400]), z=Z, target_is_bag=True
    )
    p = 0.4 / 0.7
    s1, s0 = 0.8 * 0.2 * 500 / 499, 0.1 * 0.9 * 1000 / 999
    m1, m0 = 500 * 497 / 499, 1000 * 997 / 999  # a mean of few instances has a t distribution
    smoothed = (p + 1 / 800) / (1 + 2 / 800)
    variance = s1 * (smoothed / 400 + smoothed**2 / m1) + s0 * ((1 - smoothed) / 400 + (1 - smoothed) ** 2 / m0)
    np.testing.assert_allclose(covariance[0, 1, 1], variance / 0.7**2, rtol=1e-9)
    # Each end solves the equation that defines it.
    for end in (lower[0, 1], upper[0, 1]):
        spread = s1 * (end / 400 + end**2 / m1) + s0 * ((1 - end) / 400 + (1 - end) ** 2 / m0)
        assert abs(0.5 - 0.1 - 0.7 * end) == pytest.approx(Z * np.sqrt(spread))
    assert lower[0, 1] < p < upper[0, 1]
    np.testing.assert_allclose(lower[0] + upper[0, ::-1], 1)


def test_a_perfect_classifier_that_is_known_well_gives_wilsons_interval_for_the_source():
    # With tpr 1 and fpr 0 for sure, what is left is a binomial share: 20 of 100.
    held = held_labels(10**6, 0, 0, 10**6)
    lower, upper, _ = counting_interval(
        np.array([[0.8, 0.2]]), held.inputs, held, np.array([100]), z=Z, target_is_bag=False
    )
    centre = (0.2 + Z**2 / 200) / (1 + Z**2 / 100)
    reach = Z / (1 + Z**2 / 100) * np.sqrt(0.2 * 0.8 / 100 + Z**2 / 40000)
    np.testing.assert_allclose([lower[0, 1], upper[0, 1]], [centre - reach, centre + reach], rtol=1e-9)


def test_counts_of_three_classes_have_wilsons_intervals_too():
    codes = np.repeat([0, 1, 2], 10**5)
    held = HeldOut(np.eye(3)[codes], codes, 3)
    counted = np.array([[0.7, 0.3, 0.0]])
    lower, upper, _ = counting_interval(counted, held.inputs, held, np.array([100]), z=Z, target_is_bag=False)
    centre = (counted + Z**2 / 200) / (1 + Z**2 / 100)
    reach = Z / (1 + Z**2 / 100) * np.sqrt(counted * (1 - counted) / 100 + Z**2 / 40000)
    np.testing.assert_allclose([lower, upper], [centre - reach, centre + reach], atol=1e-9)


def test_rates_of_three_classes_that_tell_nothing_rule_no_share_out():
    codes = np.repeat([0, 1, 2], 20)
    scores = np.array([[0.8, 0.1, 0.1], [0.1, 0.45, 0.45], [0.1, 0.45, 0.45]])[codes]
    held = HeldOut(scores, codes, 3)
    lower, upper, _ = counting_interval(scores[:1], scores, held, np.array([50]), z=Z, target_is_bag=True)
    np.testing.assert_array_equal([lower[0], upper[0]], [np.zeros(3), np.ones(3)])


def test_the_bags_own_share_is_certain_where_the_classifier_is():
    held = held_labels(10**6, 0, 0, 10**6)
    lower, upper, _ = counting_interval(
        np.array([[0.8, 0.2]]), held.inputs, held, np.array([100]), z=Z, target_is_bag=True
    )
    np.testing.assert_allclose([lower[0, 1], upper[0, 1]], [0.2, 0.2], atol=1e-9)


def test_rates_that_tell_nothing_rule_no_share_out():
    held = held_labels(5, 5, 5, 5)
    lower, upper, _ = counting_interval(
        np.array([[0.5, 0.5]]), held.inputs, held, np.array([50]), z=Z, target_is_bag=True
    )
    np.testing.assert_array_equal([lower[0], upper[0]], [[0, 0], [1, 1]])


def test_the_observed_information_by_hand():
    # Labels of a classifier that is right 9 times of 10: variance .09 / (.8^2 n) for the bag's own share.
    bag = np.repeat([[0.9, 0.1], [0.1, 0.9]], [250, 250], axis=0)[None]
    own = observed_covariance(bag, np.array([[0.5, 0.5]]), np.array([500]), target_is_bag=True)
    source = observed_covariance(bag, np.array([[0.5, 0.5]]), np.array([500]), target_is_bag=False)
    np.testing.assert_allclose(own[0], 0.09 / 0.64 / 500 * np.array([[1, -1], [-1, 1]]), atol=1e-12)
    np.testing.assert_allclose(source[0, 0, 0], 0.25 / 0.64 / 500)


def test_ends_of_maximum_likelihood_solve_their_equation():
    bag = np.repeat([[0.9, 0.1], [0.1, 0.9]], [250, 250], axis=0)[None]
    lower, upper = secant_ends(bag, np.array([0.5]), np.array([1e-4]), np.array([500]), z=Z, target_is_bag=True)
    # For labels alone the information at p is .64 / (c (1 - c)) with c the share counted, .1 + .8 p.
    for end in (lower[0], upper[0]):
        counted = 0.1 + 0.8 * end
        slopes = [[(r - 1) / (1 - p + p * r) for p in (end, 0.5)] for r in (1 / 9, 9)]
        curvature = np.mean([a * b for a, b in slopes])
        assert (end - 0.5) ** 2 == pytest.approx(Z**2 * (1 / (500 * curvature) - end * (1 - end) / 500 + 1e-4))
        assert curvature == pytest.approx(0.64 / (counted * (1 - counted)), rel=0.1)


def test_an_estimate_at_the_end_has_an_interval_beyond_it():
    bag = np.repeat([[0.9, 0.1]], 50, axis=0)[None]
    lower, upper = secant_ends(bag, np.array([0.0]), np.zeros(1), np.array([50]), z=Z, target_is_bag=True)
    assert lower[0] == 0.0
    assert 0.1 < upper[0] < 0.3


def test_which_quantifiers_have_a_formula():
    forms = {CC: "labels", ACC: "labels", PCC: "posteriors", PACC: "posteriors", EMQ: "likelihood"}
    assert {kind: closed_form_of(kind()) for kind in forms} == forms
    assert closed_form_of(TrainPrevalence()) is None
    posteriors, labels = np.repeat([[0.9, 0.1], [0.1, 0.9]], 20, axis=0), np.repeat([0, 1], 20)
    fitted = TrainPrevalence().fit(posteriors, labels)
    with pytest.raises(InvalidSetting, match=r"TrainPrevalence has no closed-form interval\. Use method='conformal'"):
        fitted.predict_interval(posteriors, method="closed", held_out=(posteriors, labels))
