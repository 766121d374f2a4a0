"""A few labels: estimates that drift cannot mislead, intervals that cover, plans that reach their width."""

from functools import cache

import numpy as np
import pytest

from quanet import CC, EMQ, SVMQ, Gaussians, plan_labels, refine
from quanet.errors import InvalidBags, InvalidData, InvalidSetting
from quanet.labels.prediction_powered import prediction_powered
from quanet.labels.refine import calibration_errors, fixed_label_em

SOURCE = Gaussians()


@cache
def fitted():
    return EMQ().fit(*SOURCE.draw([0.5, 0.5], 1000, rng=0))


X, Y = SOURCE.draw([0.7, 0.3], 1000, rng=1)
DRIFT = np.array([-0.4, 0.4])


def test_the_prediction_powered_estimate_by_hand():
    posteriors = np.array([[0.8, 0.2]] * 6 + [[0.2, 0.8]] * 4)
    known, codes = posteriors[[0, 1, 6, 7]], np.array([0, 0, 1, 1])
    found = prediction_powered(posteriors, known, codes)
    assert found.weight == 1.0  # cov(y, f) / var(f) = 0.15 / 0.09, cut at 1
    np.testing.assert_allclose(found.estimate, [0.56, 0.44])  # mean posterior, and residuals that cancel
    residual_variance = 0.2**2 * 4 / 3 / 4
    np.testing.assert_allclose(found.variance, residual_variance * 0.6)  # 4 of 10 are labelled
    np.testing.assert_allclose(found.effective, (0.56 * 0.44 * 4 / 3 + 1 / 4) / (residual_variance + 1 / 16) / 0.6)


def test_labels_of_all_the_bag_are_the_truth():
    for method in ("prediction-powered", "em"):
        found = refine(fitted(), X, X, Y, method=method)
        np.testing.assert_allclose(found.estimate, [0.7, 0.3], atol=1e-9)
        assert (found.upper - found.lower < 0.01).all()


def test_em_without_labels_is_maximum_likelihood():
    rows = fitted().represent(X)
    alone = fixed_label_em(rows / fitted().prior_, rows[:0], np.empty(0, dtype=np.intp))
    np.testing.assert_allclose(alone, fitted().aggregate(rows), atol=1e-4)


@pytest.mark.no_cover
@pytest.mark.parametrize("n", [20, 100])
def test_intervals_cover_under_drift_that_misleads_the_quantifier(n):
    rng = np.random.default_rng(0)
    bag = X + DRIFT
    assert abs(fitted().predict(bag)[1] - 0.3) > 0.15
    found = [refine(fitted(), bag, bag[part], Y[part]) for part in (rng.permutation(1000)[:n] for _ in range(60))]
    assert np.mean([one.lower[1] <= 0.3 <= one.upper[1] for one in found]) >= 0.9
    assert abs(np.mean([one.estimate[1] for one in found]) - 0.3) < 0.02


@pytest.mark.no_cover
def test_em_is_narrower_and_covers_under_prior_shift_whatever_the_training_set():
    hits, widths = [], []
    for seed in range(12):
        fitted = EMQ().fit(*SOURCE.draw([0.5, 0.5], 500, rng=100 + seed))
        for p in (0.03, 0.3):
            bag, labels = SOURCE.draw([1 - p, p], 1500, rng=seed)
            part = np.random.default_rng(seed).permutation(1500)[:50]
            by_em = refine(fitted, bag, bag[part], labels[part], method="em")
            powered = refine(fitted, bag, bag[part], labels[part])
            hits.append(by_em.lower[1] <= labels.mean() <= by_em.upper[1])
            widths.append((by_em.upper[1] - by_em.lower[1]) / (powered.upper[1] - powered.lower[1]))
    assert np.mean(hits) >= 0.83  # 24 bags; 50 to 80 % where the calibration is taken as exact
    assert np.mean(widths) < 0.8


def test_more_held_out_instances_leave_less_doubt_about_the_calibration():
    few, many = (EMQ().fit(*SOURCE.draw([0.5, 0.5], n, rng=0)) for n in (200, 5000))
    spread = [np.linalg.norm(calibration_errors(one)) for one in (few, many)]
    assert spread[0] > 3 * spread[1] > 0
    assert len(calibration_errors(CC().fit(*SOURCE.draw([0.5, 0.5], 200, rng=0)))) in (0, 1, 2)


def test_posteriors_help_and_random_ones_do_no_harm():
    rng = np.random.default_rng(0)
    part = rng.permutation(1000)[:200]
    helped = refine(fitted(), X, X[part], Y[part])
    assert helped.weight > 0.5
    noise = EMQ("precomputed", calibration=None).fit(np.tile([0.5, 0.5], (20, 1)), [0, 1] * 10)
    blind = np.tile([0.5, 0.5], (1000, 1))
    alone = refine(noise, blind, blind[part], Y[part])
    np.testing.assert_allclose(alone.estimate[1], Y[part].mean())
    assert helped.upper[1] - helped.lower[1] < alone.upper[1] - alone.lower[1]


def test_a_class_without_a_label_keeps_an_interval():
    part = np.flatnonzero(Y == 0)[:30]
    found = refine(fitted(), X[:400], X[part], Y[part])
    assert found.upper[1] - found.lower[1] > 0.02


@pytest.mark.no_cover
@pytest.mark.parametrize("design", ["random", "stratified"])
def test_a_plan_reaches_its_width_and_its_weights_keep_the_estimate_right(design):
    found = []
    for seed in range(30):
        plan = plan_labels(fitted(), X + DRIFT, 0.15, design=design, random_state=seed)
        assert plan.width <= 0.15
        assert len(set(plan.indices.tolist())) == plan.n == len(plan.design_weights)
        bag = X + DRIFT
        found.append(
            refine(
                fitted(),
                bag,
                bag[plan.indices],
                Y[plan.indices],
                design_weights=plan.design_weights,
                strata=plan.strata,
            )
        )
    assert np.mean([one.lower[1] <= 0.3 <= one.upper[1] for one in found]) >= 0.86
    assert abs(np.mean([one.estimate[1] for one in found]) - 0.3) < 0.03
    assert np.mean([one.upper[1] - one.lower[1] for one in found]) < 0.25


def test_narrower_needs_more_and_nothing_needs_more_than_all():
    sizes = [plan_labels(fitted(), X, width, design="random").n for width in (0.3, 0.1, 0.05, 1e-9)]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 1000


def test_more_classes_will_do():
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=800)
    posteriors = 0.2 * rng.dirichlet(np.ones(4), size=800) + 0.8 * np.eye(4)[labels]
    quantifier = EMQ("precomputed").fit(posteriors[:400], labels[:400])
    plan = plan_labels(quantifier, posteriors[400:], 0.2)
    for method, weights in (("prediction-powered", plan.design_weights), ("em", None)):
        part = 400 + plan.indices
        found = refine(
            quantifier, posteriors[400:], posteriors[part], labels[part], design_weights=weights, method=method
        )
        np.testing.assert_allclose(found.estimate.sum(), 1)
        assert (found.lower <= found.estimate + 1e-9).all()
        assert (found.estimate <= found.upper + 1e-9).all()
    assert "0: " in str(found)


def test_a_method_that_keeps_nothing_can_be_refined_too():
    found = refine(CC().fit(*SOURCE.draw([0.5, 0.5], 500, rng=0)), X, X[:100], Y[:100])
    assert found.lower[1] <= 0.3 <= found.upper[1] or found.weight >= 0


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"level": 0.0}, InvalidSetting, "level must be a number from 0"),
        ({"method": "magic"}, InvalidSetting, "'prediction-powered' or 'em'"),
        ({"X_labelled": X[:3], "y_labelled": Y[:3]}, InvalidData, "3 labels are too few"),
        ({"y_labelled": ["no"] * 20}, InvalidData, "Label 'no'"),
        ({"y_labelled": Y[:19]}, InvalidData, "20 instances but y has 19"),
        ({"X": X[:1]}, InvalidData, "fewer than the 20 labelled"),
        ({"X": X[:0]}, InvalidBags, "no instances"),
        ({"design_weights": [1.0]}, InvalidData, "one number above 0"),
        ({"design_weights": [0.0] * 20}, InvalidData, "one number above 0"),
        ({"strata": [1] * 20, "method": "em"}, InvalidSetting, "simple random part"),
        ({"weights": np.ones(len(X))}, InvalidData, "belong together"),
        ({"strata": [0.5] * 20}, InvalidData, "one integer"),
    ],
)
def test_bad_input_of_refine_is_named(change, error, words):
    given = {"quantifier": fitted(), "X": X, "X_labelled": X[:20], "y_labelled": Y[:20]} | change
    with pytest.raises(error, match=words):
        refine(**given)


def test_a_method_without_posteriors_is_refused():
    with pytest.raises(InvalidSetting, match="does not use posteriors"):
        refine(SVMQ().fit(X[:200], Y[:200]), X, X[:20], Y[:20])


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"level": 2}, InvalidSetting, "level must be a number from 0"),
        ({"width": 0.0}, InvalidSetting, "between 0 and 1"),
        ({"design": "clever"}, InvalidSetting, "'stratified' or 'random'"),
        ({"X": X[:1]}, InvalidBags, "Label them all"),
        ({"n": 50}, InvalidSetting, "either the wanted width or"),
        ({"width": None, "n": 5}, InvalidSetting, "at least 10"),
        ({"groups": [1, 2]}, InvalidData, "groups has 2"),
    ],
)
def test_bad_input_of_plans_is_named(change, error, words):
    with pytest.raises(error, match=words):
        plan_labels(**{"quantifier": fitted(), "X": X, "width": 0.1} | change)
