import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quanet.errors import InvalidSetting
from quanet.metrics import (
    METRICS,
    absolute_error,
    bias,
    find_metric,
    kullback_leibler_divergence,
    match_distance,
    normalized_kullback_leibler_divergence,
    relative_absolute_error,
)
from tests.strategies import prevalences

REDUCING = [metric for metric in METRICS.values() if not metric.per_class]
NORMALISED = [METRICS[name] for name in ("nae", "nrae", "nkld")]


def value(metric, truth, estimate, eps=0.001):
    return metric.function(truth, estimate, **({"eps": eps} if metric.smoothed else {}))


@pytest.mark.parametrize("metric", REDUCING, ids=lambda metric: metric.name)
@given(data=st.data())
def test_an_error_is_zero_for_the_truth_and_not_below_for_anything_else(metric, data):
    k = data.draw(st.integers(2, 5))
    truth, estimate = data.draw(prevalences(k)), data.draw(prevalences(k))
    np.testing.assert_allclose(value(metric, truth, truth), 0, atol=1e-12)
    assert (value(metric, truth, estimate) >= 0).all()


@pytest.mark.parametrize("metric", REDUCING, ids=lambda metric: metric.name)
@given(data=st.data())
def test_a_stack_is_the_errors_of_its_bags(metric, data):
    truth, estimate = data.draw(prevalences(4)), data.draw(prevalences(4))
    alone = [value(metric, p, q) for p, q in zip(truth, estimate, strict=True)]
    np.testing.assert_allclose(value(metric, truth, estimate), alone, rtol=1e-12)


@pytest.mark.parametrize("metric", NORMALISED, ids=lambda metric: metric.name)
@given(data=st.data())
def test_a_normalised_error_is_at_most_one(metric, data):
    assert (value(metric, data.draw(prevalences(3)), data.draw(prevalences(3))) <= 1 + 1e-9).all()


@pytest.mark.parametrize("name", ["nae", "nrae"])
def test_all_on_the_rarest_class_is_the_worst_estimate(name):
    truth = np.array([0.1, 0.3, 0.6])
    assert value(METRICS[name], truth, np.array([1.0, 0.0, 0.0]), eps=0.0) == pytest.approx(1)


def test_relative_error_by_hand_with_smoothing():
    # eps = 1 / (2 * 500); p = (0.01 + eps) / (1 + 2 eps) = 0.011 / 1.002, likewise for the others
    truth, estimate = np.array([0.99, 0.01]), np.array([0.97, 0.03])
    by_hand = (0.02 / 0.991 + 0.02 / 0.011) / 2
    assert relative_absolute_error(truth, estimate, eps=0.001) == pytest.approx(by_hand)


def test_divergence_by_hand():
    # 0.25 ln(0.25 / 0.5) + 0.75 ln(0.75 / 0.5)
    by_hand = 0.25 * np.log(0.5) + 0.75 * np.log(1.5)
    p, q = np.array([0.25, 0.75]), np.array([0.5, 0.5])
    assert kullback_leibler_divergence(p, q, eps=0.0) == pytest.approx(by_hand)
    expected = 2 * np.exp(by_hand) / (1 + np.exp(by_hand)) - 1
    assert normalized_kullback_leibler_divergence(p, q, eps=0.0) == pytest.approx(expected)


def test_a_class_that_is_absent_adds_nothing_to_the_divergence():
    assert kullback_leibler_divergence(np.array([0.0, 1.0]), np.array([0.5, 0.5]), eps=0.0) == pytest.approx(np.log(2))


def test_match_distance_counts_the_steps_between_classes():
    truth = np.array([0.5, 0.5, 0.0])
    assert match_distance(truth, np.array([0.5, 0.0, 0.5])) == pytest.approx(0.5)
    assert match_distance(truth, np.array([0.0, 0.5, 0.5])) == pytest.approx(1.0)


@given(prevalences(4), prevalences(4))
def test_bias_sums_to_zero_and_its_size_is_the_absolute_error(truth, estimate):
    signed = bias(truth, estimate)
    np.testing.assert_allclose(signed.sum(axis=-1), 0, atol=1e-12)
    np.testing.assert_allclose(np.abs(signed).mean(axis=-1), absolute_error(truth, estimate))


def test_eps_may_differ_from_bag_to_bag():
    truth, estimate = np.array([[0.0, 1.0]] * 2), np.array([[0.1, 0.9]] * 2)
    both = relative_absolute_error(truth, estimate, eps=np.array([0.01, 0.1]))
    alone = [relative_absolute_error(truth[0], estimate[0], eps=eps) for eps in (0.01, 0.1)]
    np.testing.assert_allclose(both, alone)


def test_metrics_are_found_by_name_and_by_function():
    assert find_metric("rae") is find_metric(relative_absolute_error)

    def own(truth, estimate):
        return np.abs(estimate - truth).max(axis=-1)

    assert find_metric(own).function is own
    with pytest.raises(InvalidSetting, match=r"Unknown metric 'mse'.*ae, nae"):
        find_metric("mse")


# QuaPy 0.2.3: quapy.error.NAME(truth, estimate), with eps=1/200 where it has one.
QUAPY_TRUTH = np.array([[0.2, 0.3, 0.5], [0.0, 0.4, 0.6]])
QUAPY_ESTIMATE = np.array([[0.1, 0.3, 0.6], [0.2, 0.2, 0.6]])
QUAPY = {
    "ae": [0.066666666667, 0.133333333333],
    "nae": [0.125, 0.2],
    "se": [0.006666666667, 0.026666666667],
    "rae": [0.228608226676, 13.497942386831],
    "nrae": [0.1152410323, 0.198499152748],
    "kld": [0.045238235881, 0.253386561866],
    "nkld": [0.022615261232, 0.126019745818],
    "md": [0.2, 0.2],
}


@pytest.mark.parametrize("name", QUAPY)
def test_errors_are_quapys(name):
    metric = METRICS[name]
    eps = {"eps": 1 / 200} if metric.smoothed else {}
    np.testing.assert_allclose(metric.function(QUAPY_TRUTH, QUAPY_ESTIMATE, **eps), QUAPY[name], atol=1e-11)
