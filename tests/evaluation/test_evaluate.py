from functools import cache

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from quanet import ACC, APP, CC, EMQ, NPP, PCC, ByGroup, Gaussians, Results, evaluate
from quanet.errors import InvalidBags, InvalidData
from quanet.evaluation.evaluate import fit_for_estimates
from quanet.metrics import absolute_error, kullback_leibler_divergence

SOURCE = Gaussians(k=3, distance=3.0)
NAMES = np.array(["a", "b", "c"])
X, CODES = SOURCE.draw([0.5, 0.3, 0.2], 300, rng=0)
POOL, POOL_CODES = SOURCE.draw([0.3, 0.3, 0.4], 600, rng=1)


@cache
def quantifier():
    return PCC().fit(X, NAMES[CODES])


def test_an_evaluation_is_a_prediction_for_every_bag():
    protocol = NPP(bag_size=30, repeats=20)
    results = evaluate(quantifier(), POOL, NAMES[POOL_CODES], protocol, rng=5)
    bags = protocol.draw(NAMES[POOL_CODES], rng=5)
    np.testing.assert_array_equal(results.truth, bags.prevalences)
    alone = np.stack([quantifier().predict(POOL[bag]) for bag in bags.indices])
    np.testing.assert_allclose(results.estimate, alone, atol=1e-12)
    np.testing.assert_allclose(results.error(), absolute_error(results.truth, alone), atol=1e-12)
    assert len(results) == 20


def test_methods_with_one_seed_meet_the_same_bags():
    truths = [
        evaluate(method().fit(X, NAMES[CODES]), POOL, NAMES[POOL_CODES], APP(bag_size=20, repeats=1), rng=9).truth
        for method in (CC, ACC)
    ]
    np.testing.assert_array_equal(*truths)


def test_smoothed_errors_take_every_bags_own_size():
    groups = np.repeat(["long", "short"], [500, 100])
    results = evaluate(quantifier(), POOL, NAMES[POOL_CODES], ByGroup(groups=groups), rng=0)
    assert results.labels.tolist() == ["long", "short"]
    by_hand = [
        kullback_leibler_divergence(t, e, eps=1 / (2 * n))
        for t, e, n in zip(results.truth, results.estimate, [500, 100], strict=True)
    ]
    np.testing.assert_allclose(results.error("kld"), by_hand)
    assert (results.error("kld", eps=0.5) < results.error("kld")).all()


def test_the_frame_is_tidy():
    frame = evaluate(quantifier(), POOL, NAMES[POOL_CODES], NPP(bag_size=10, repeats=2), rng=0).frame()
    assert frame.columns.tolist() == ["label", "size", "class", "truth", "estimate"]
    assert frame["class"].tolist() == ["a", "b", "c"] * 2
    np.testing.assert_allclose(frame.groupby("label")[["truth", "estimate"]].sum(), 1)


def test_a_label_that_was_not_learnt_is_named():
    with pytest.raises(InvalidData, match="Label 'd' is not one of the classes"):
        evaluate(quantifier(), POOL, np.array(["a", "b", "c", "d"])[np.arange(600) % 4], NPP(), rng=0)


def test_a_pool_that_lacks_a_class_is_refused_where_bags_need_it():
    without = POOL_CODES != 2
    with pytest.raises(InvalidBags, match="class 'c' has none"):
        evaluate(quantifier(), POOL[without], NAMES[POOL_CODES[without]], APP(), rng=0)
    found = evaluate(quantifier(), POOL[without], NAMES[POOL_CODES[without]], NPP(bag_size=100), rng=0)
    assert (found.truth[:, 2] == 0).all()


def test_lengths_and_fitting_are_checked():
    with pytest.raises(InvalidData, match="600 instances but y has 10 labels"):
        evaluate(quantifier(), POOL, NAMES[POOL_CODES[:10]], NPP(), rng=0)
    with pytest.raises(NotFittedError):
        evaluate(PCC(), POOL, NAMES[POOL_CODES], NPP(), rng=0)


def test_an_error_of_ones_own_is_taken_as_it_is():
    results = Results(np.array([[0.5, 0.5]]), np.array([[0.2, 0.8]]), NAMES[:2], np.array([10]), np.array([0]))
    np.testing.assert_allclose(results.error(lambda truth, estimate: np.abs(truth - estimate).max(axis=-1)), [0.3])


def test_the_match_distance_of_names_needs_their_order():
    truth, estimate = np.array([[0.5, 0.0, 0.5]]), np.array([[0.5, 0.5, 0.0]])
    names = np.array(["bad", "good", "ok"])
    results = Results(truth, estimate, names, np.array([10]), np.array([0]))
    with pytest.raises(InvalidData, match=r"md needs ordered classes.*Results\.error\('md', order="):
        results.error("md")
    np.testing.assert_allclose(results.error("md", order=["bad", "ok", "good"]), [0.5])
    np.testing.assert_allclose(results.error("md", order=["ok", "bad", "good"]), [1.0])
    numbers = Results(truth, estimate, np.array([1, 2, 3]), np.array([10]), np.array([0]))
    np.testing.assert_allclose(numbers.error("md"), [0.5])
    two = Results(truth[:, ::2], np.array([[0.2, 0.8]]), names[:2], np.array([10]), np.array([0]))
    np.testing.assert_allclose(two.error("md"), [0.3])


def test_a_fit_for_estimates_has_no_drift_scale_and_the_same_estimates():
    X, y = Gaussians().draw([0.5, 0.5], 1200, rng=0)
    quick, full = fit_for_estimates(EMQ(), X, y), EMQ().fit(X, y)
    assert quick.drift_ is None
    assert full.drift_ is not None
    np.testing.assert_array_equal(quick.predict(X[:100]), full.predict(X[:100]))
