"""Estimates combined with maximum likelihood, and their intervals."""

import numpy as np
import pytest

import quanet
from quanet import ACC, APP, CC, EMQ, PACC, Gaussians
from quanet.held_out import HeldOut
from quanet.uncertainty.control_variates import ControlledCount, ControlVariates
from quanet.uncertainty.relearning import Likelihoods


def draw(p, n, rng):
    return Gaussians(distance=2.5).draw([1 - p, p], n, rng=rng)


@pytest.fixture(scope="module")
def pacc():
    return PACC().fit(*draw(0.5, 1500, 0))


def held_out_of(quantifier):
    return HeldOut(quantifier.held_out_.inputs.astype(float), quantifier.held_out_.codes.astype(np.intp), 2)


def test_the_likelihood_gets_most_of_the_weight_next_to_a_mean_posterior(pacc):
    combined = ControlVariates.from_fitted(pacc, held_out_of(pacc))
    assert 0.5 < combined.weight_ <= 1
    bag, _ = draw(0.3, 200, 1)
    own, likely = (pacc.predict(bag)[1], EMQ().fit(*draw(0.5, 1500, 0)).predict(bag)[1])
    found = combined.aggregate(combined.rows(combined.read(bag).values))
    assert found.sum() == pytest.approx(1)
    assert min(own, likely) - 0.01 <= found[1] <= max(own, likely) + 0.01


def test_a_combined_quantifier_has_a_smaller_error():
    pacc, (pool, labels) = PACC().fit(*draw(0.5, 1500, 0)), draw(0.5, 4000, 2)
    combined = ControlVariates.from_fitted(pacc, held_out_of(pacc))
    bags = APP(bag_size=100, repeats=20).draw(labels, rng=3)
    errors = [np.abs(quantifier.predict_bags(pool, bags) - bags.prevalences).mean() for quantifier in (pacc, combined)]
    assert errors[1] < errors[0]


@pytest.mark.same_lines
@pytest.mark.parametrize("method", ["closed", "conformal", "bootstrap"])
def test_pacc_has_about_the_width_of_maximum_likelihood(method):
    X, y = draw(0.5, 1500, 0)
    pool, labels = draw(0.5, 3000, 2)
    bags = APP(bag_size=100, repeats=2, prevalences=[0.1, 0.3, 0.5, 0.7]).draw(labels, rng=3)
    widths = [
        quanet.predict_interval_bags(kind().fit(X, y), pool, bags, method=method, resamples=200).width.mean()
        for kind in (PACC, EMQ)
    ]
    assert 0.9 < widths[0] / widths[1] < 1.3


def test_the_control_variate_never_adds_variance_and_labels_have_none(pacc):
    held = held_out_of(pacc)
    likelihoods = Likelihoods(held, pacc.prior_)(held.inputs)
    control = ControlledCount.fit(held.inputs, likelihoods, held)
    counted = likely = np.array([0.2, 0.6])
    sizes = np.array([100, 400])
    _, _, variance = control.ends(counted, likely, sizes, z=1.96, target_is_bag=True)
    alone = [
        np.interp(p, control.shares, control.per_instance[:, 0, 0] / n + control.learned[:, 0, 0])
        for p, n in ((0.2, 100), (0.6, 400))
    ]
    assert (variance <= np.array(alone) + 1e-12).all()
    _, _, wider = control.ends(counted, likely, sizes, z=1.96, target_is_bag=False)
    np.testing.assert_allclose(wider - variance, np.array([0.16, 0.24]) / sizes, atol=1e-4)


def test_labels_alone_give_the_delta_method_back():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 1000)
    labels = np.where(rng.random(2000) < 0.85, codes, 1 - codes)
    acc = ACC("precomputed").fit(np.eye(2)[labels], codes)
    held = held_out_of(acc)
    control = ControlledCount.fit(held.inputs, Likelihoods(held, acc.prior_)(held.inputs), held)
    lower, upper, _ = control.ends(np.array([0.4]), np.array([0.4]), np.array([300]), z=1.96, target_is_bag=True)
    from quanet.uncertainty.closed_form import counting_interval

    rates = acc.rates_[1]
    counted = rates[0] + 0.4 * (rates[1] - rates[0])
    low, high, _ = counting_interval(
        np.array([[1 - counted, counted]]), held.inputs, held, np.array([300]), z=1.96, target_is_bag=True
    )
    np.testing.assert_allclose([lower[0], upper[0]], [low[0, 1], high[0, 1]], atol=2e-3)


def test_scores_that_do_not_separate_classes_have_no_control_variate():
    rows, codes = np.full((40, 2), 0.5), np.repeat([0, 1], 20)
    assert ControlledCount.fit(rows, rows, HeldOut(rows, codes, 2)) is None


def test_held_out_instances_of_the_caller_give_a_count_an_interval():
    cc = CC().fit(*draw(0.5, 600, 0))
    bag, _ = draw(0.8, 200, 1)
    found = cc.predict_interval(bag, held_out=draw(0.5, 600, 4), method="closed")
    assert found.lower[1] <= 0.8 <= found.upper[1]
    assert found.lower[1] <= found.estimate[1] <= found.upper[1]
