import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quanet import ACC, CC, CDE, PACC, PCC, Bags, DeBias, Friedman, Gaussians, TrainPrevalence
from quanet.errors import InvalidSetting, QuanetWarning
from quanet.methods.counting import (
    adjust,
    classify_and_count,
    hard_rates,
    is_singular,
    iterate_counts,
    mean_posterior,
    share_above,
    soft_rates,
)
from quanet.simplex import check_prevalences
from tests.strategies import fixed_posteriors, posteriors, prevalences

# Eight instances, four of each class: hits and misses by eye.
POSTERIORS = np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7], [0.4, 0.6], [0.2, 0.8], [0.1, 0.9], [0.7, 0.3]])
CODES = np.repeat([0, 1], 4)


def test_the_papers_equations_by_hand():
    bag = POSTERIORS[[0, 3, 4, 5, 6]]
    assert classify_and_count(bag)[1] == pytest.approx(4 / 5)  # (1)
    assert mean_posterior(bag)[1] == pytest.approx((0.1 + 0.7 + 0.6 + 0.8 + 0.9) / 5)  # (4)
    tpr_b, fpr_b = 3 / 4, 1 / 4
    tpr_s, fpr_s = (0.6 + 0.8 + 0.9 + 0.3) / 4, (0.1 + 0.2 + 0.4 + 0.7) / 4
    np.testing.assert_allclose(hard_rates(POSTERIORS, CODES)[1], [fpr_b, tpr_b])
    np.testing.assert_allclose(soft_rates(POSTERIORS, CODES)[1], [fpr_s, tpr_s])
    acc = ACC("precomputed").fit(POSTERIORS, CODES).predict(bag)
    pacc = PACC("precomputed").fit(POSTERIORS, CODES).predict(bag)
    assert acc[1] == pytest.approx(min(1, (0.8 - fpr_b) / (tpr_b - fpr_b)))  # (3)
    assert pacc[1] == pytest.approx((0.62 - fpr_s) / (tpr_s - fpr_s))  # (5)


@given(posteriors())
def test_counts_are_the_shares_of_the_largest_posterior(stack):
    k = stack.shape[-1]
    by_hand = (stack.argmax(axis=-1)[..., None] == np.arange(k)).mean(axis=-2)
    np.testing.assert_allclose(classify_and_count(stack), by_hand)
    np.testing.assert_allclose(mean_posterior(stack), stack.mean(axis=-2), atol=1e-12)


@given(data=st.data())
def test_adjustment_inverts_what_the_rates_did(data):
    k = data.draw(st.integers(2, 5))
    truth = data.draw(prevalences(k))
    rates = data.draw(prevalences(k, b=k)).T * 0.4 + 0.6 * np.eye(k)  # diagonally dominant, so never singular
    np.testing.assert_allclose(adjust(truth @ rates.T, rates), truth, atol=1e-8)


@given(data=st.data())
def test_adjustment_stays_on_the_simplex(data):
    k = data.draw(st.integers(2, 5))
    rates = data.draw(prevalences(k, b=k)).T * 0.7 + 0.3 * np.eye(k)
    check_prevalences(adjust(data.draw(prevalences(k)), rates))


def test_two_classes_by_the_formula_and_by_least_squares_are_the_same():
    rates, counted = np.array([[0.8, 0.3], [0.2, 0.7]]), np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    grid = np.linspace(0, 1, 100_001)
    expected = np.stack([1 - grid, grid], axis=1) @ rates.T
    nearest = [grid[np.square(expected - c).sum(axis=1).argmin()] for c in counted]
    np.testing.assert_allclose(adjust(counted, rates)[:, 1], nearest, atol=1e-5)


@pytest.mark.parametrize("method", [ACC, PACC])
def test_equal_rates_fall_back_to_the_plain_count_with_a_warning(method):
    useless = np.tile([[0.3, 0.7]], (10, 1))
    with pytest.warns(QuanetWarning, match=rf"{method.__name__} cannot separate .*tpr = fpr"):
        quantifier = method("precomputed").fit(useless, [0, 1] * 5)
    bag = [[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]]
    plain = {ACC: CC, PACC: PCC}[method]("precomputed").fit(useless, [0, 1] * 5)
    np.testing.assert_allclose(quantifier.predict(bag), plain.predict(bag))


def test_a_class_that_is_never_predicted_leaves_the_others_adjusted():
    # Class 2 is always taken for class 1, so only the sum of the two is known.
    codes = np.repeat([0, 1, 2], 10)
    hits = np.eye(3)[np.where(codes == 0, 0, 1)]
    with pytest.warns(QuanetWarning, match="linearly dependent"):
        quantifier = ACC("precomputed").fit(hits, codes)
    assert is_singular(quantifier.rates_)
    estimate = quantifier.predict(np.eye(3)[[0, 0, 0, 1]])
    assert estimate[0] == pytest.approx(0.75, abs=1e-5)
    check_prevalences(estimate)


QUAPY = {  # QuaPy 0.2.3; ACC and PACC with solver="exact-raise", norm="clip" for two classes, its defaults for three
    (2, CC): [0.444444444444, 0.555555555556],
    (2, PCC): [0.438923248264, 0.561076751736],
    (2, ACC): [0.217391304348, 0.782608695652],
    (2, PACC): [0.2744189713, 0.7255810287],
    (3, CC): [0.185185185185, 0.259259259259, 0.555555555556],
    (3, PCC): [0.201678052426, 0.320105200296, 0.478216747278],
    (3, ACC): [0.0, 0.562513363272, 0.437486636728],
    (3, PACC): [0.0, 0.607162517651, 0.392837482349],
}


def fixed_bag(k):
    bag, classes = fixed_posteriors(45, k, 0.7)
    return bag[classes != 0] if k == 3 else bag[(classes == 1) | (np.arange(45) % 3 == 0)]


@pytest.mark.parametrize(("k", "method"), QUAPY)
def test_estimates_are_quapys(k, method):
    held, y = fixed_posteriors(60, k, 0.0)
    quantifier = method("precomputed").fit(held, y)
    estimate = quantifier.predict(fixed_bag(k))
    # QuaPy's general optimiser stops some 1e-5 from the optimum; where it has a closed form the digits are the same.
    iterated = k == 3 and method in (ACC, PACC)
    np.testing.assert_allclose(estimate, QUAPY[k, method], atol=5e-5 if iterated else 1e-11)
    if iterated:
        counted = (classify_and_count if method is ACC else mean_posterior)(fixed_bag(k))
        theirs, ours = (np.linalg.norm(quantifier.rates_ @ p - counted) for p in (QUAPY[k, method], estimate))
        assert ours < theirs


def test_a_class_that_is_never_predicted_gives_the_same_estimate_alone_and_in_a_batch():
    # The direction that rates leave open must not be decided by rounding.
    rng = np.random.default_rng(0)
    posteriors, codes = rng.dirichlet(np.ones(3), size=60), np.repeat([0, 1, 2], 20)
    posteriors[:, 0] = 0
    posteriors /= posteriors.sum(axis=1, keepdims=True)
    with pytest.warns(QuanetWarning):
        quantifier = PACC("precomputed").fit(posteriors, codes)
    mixed = rng.permuted(np.tile(np.arange(60), (20, 1)), axis=1)
    found = quantifier.aggregate(posteriors[mixed])
    np.testing.assert_allclose(found, np.tile(found[0], (20, 1)), atol=1e-7)


QUANTIFICATIONLIB = {  # quantificationlib 0.1.2: FriedmanME with distance="L2", DeBias
    (2, Friedman): [0.111111111111, 0.888888888889],
    (3, Friedman): [0.203256090315, 0.375900178253, 0.420843731432],
    (2, DeBias): [0.331723954132, 0.668276045868],
}


@pytest.mark.parametrize(("k", "method"), QUANTIFICATIONLIB)
def test_estimates_are_quantificationlibs(k, method):
    held, y = fixed_posteriors(60, k, 0.0)
    estimate = method("precomputed").fit(held, y).predict(fixed_bag(k))
    np.testing.assert_allclose(estimate, QUANTIFICATIONLIB[k, method], atol=1e-9)


def test_rates_are_shares_above_the_prior():
    held, y = fixed_posteriors(60, 3, 0.0)
    fitted = Friedman("precomputed").fit(held, y)
    prior = np.bincount(y) / 60
    assert fitted.rates_[1, 2] == pytest.approx((held[y == 2][:, 1] >= prior[1]).mean())
    np.testing.assert_allclose(share_above(held, prior), fitted.rates_ @ prior)


@pytest.mark.parametrize("method", [Friedman, DeBias])
def test_true_posteriors_give_estimates_near_the_truth(method):
    source = Gaussians(distance=2.0)
    (X, y), (new, _) = source.draw([0.7, 0.3], 5000, rng=0), source.draw([0.2, 0.8], 20_000, rng=1)
    held, rows = source.posteriors(X, [0.7, 0.3]), source.posteriors(new, [0.7, 0.3])
    np.testing.assert_allclose(method("precomputed").fit(held, y).predict(rows), [0.2, 0.8], atol=0.03)


def test_posteriors_that_say_nothing_leave_their_mean_with_a_warning():
    useless = np.tile([[0.5, 0.5]], (10, 1))
    with pytest.warns(QuanetWarning, match="DeBias cannot separate the classes"):
        quantifier = DeBias("precomputed").fit(useless, [0, 1] * 5)
    bag = [[0.9, 0.1], [0.8, 0.2]]
    np.testing.assert_allclose(quantifier.predict(bag), PCC("precomputed").fit(useless, [0, 1] * 5).predict(bag))


def test_singular_rates_leave_the_training_prevalences_with_a_warning():
    useless = np.tile([[0.2, 0.3, 0.5]], (12, 1))
    with pytest.warns(QuanetWarning, match="Friedman cannot separate all classes"):
        quantifier = Friedman("precomputed").fit(useless, [0, 1, 2, 2] * 3)
    np.testing.assert_allclose(quantifier.predict(useless), [0.25, 0.25, 0.5], atol=1e-6)


def test_estimates_are_mlquantifys():
    held, y = fixed_posteriors(60, 2, 0.0)
    estimate = CDE("precomputed").fit(held, y).predict(fixed_bag(2))
    np.testing.assert_allclose(estimate, [0.407407407407, 0.592592592593], atol=1e-11)  # mlquantify 0.5.1


@given(stack=posteriors(2))
def test_the_answer_is_the_count_at_the_threshold_that_it_implies(stack):
    scores, prior = stack[..., 1], 0.3
    share = iterate_counts(scores, prior, tol=1e-9, max_iter=1000)
    cost = prior / (1 - prior) * np.maximum(1 - share, 1e-12) / np.maximum(share, 1e-12)
    np.testing.assert_allclose((scores > (cost / (1 + cost))[:, None]).mean(axis=1), share)


def test_one_round_is_classify_and_count():
    held, y = fixed_posteriors(60, 2, 0.0)
    once = CDE("precomputed", max_iter=1).fit(held, y).predict(fixed_bag(2))
    assert once[1] == pytest.approx((fixed_bag(2)[:, 1] > 0.5).mean())


def test_no_rounds_are_refused():
    held, y = fixed_posteriors(60, 2, 0.0)
    with pytest.raises(InvalidSetting, match="max_iter must be a whole number of at least 1; got 0"):
        CDE("precomputed", max_iter=0).fit(held, y)


def test_every_bag_gets_the_training_prevalence():
    quantifier = TrainPrevalence().fit(["a", "b", "c", "d"], [1, 2, 2, 2])
    estimate = quantifier.predict_bags(["x", "y", "z"], Bags([[0], [1, 2]]))
    np.testing.assert_array_equal(estimate, [[0.25, 0.75]] * 2)
