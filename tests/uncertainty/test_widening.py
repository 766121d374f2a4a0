"""Intervals that include drift: ends, states, labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quanet import CC, EMQ, Bags, Gaussians, Inputs, predict_interval_bags
from quanet.drift.scale import NO_SCALE
from quanet.uncertainty.widening import labels_needed, wilson

SOURCE = Gaussians(distance=2)
X, Y = SOURCE.draw([0.5, 0.5], 1500, rng=0)
POOL, LABELS = SOURCE.draw([0.5, 0.5], 4000, rng=1)
BAGS = Bags(np.arange(4000).reshape(20, 200))


@pytest.fixture(scope="module")
def emq():
    return EMQ().fit(X, Y)


@given(st.floats(0, 1), st.floats(0, 2), st.floats(0.5, 4))
def test_wilson_solves_its_quadratic(share, variance, quantile):
    low, high = wilson(np.array(share), np.array(variance), quantile)
    for end in (low, high):
        if 0 < end < 1 and end != share:
            assert (share - end) ** 2 == pytest.approx(quantile**2 * variance * end * (1 - end), abs=1e-9)
    assert low + 1e-12 >= 0
    assert high - 1e-12 <= 1


def test_both_parts_are_reported_and_combined_by_squares(emq):
    found = predict_interval_bags(emq, POOL, BAGS)
    plain = predict_interval_bags(emq, POOL, BAGS, drift=False)
    np.testing.assert_array_equal(found.without_drift.lower, plain.lower)
    np.testing.assert_array_equal(found.drift.upper, plain.upper)
    assert plain.drift is None
    low, high = wilson(found.estimate, found.drift.variance[:, None], emq.drift_.quantile(0.95))
    np.testing.assert_allclose(found.drift.cost, (high - low) / 2)
    expected = found.estimate + np.hypot(plain.upper - found.estimate, high - found.estimate)
    np.testing.assert_allclose(found.upper, np.minimum(expected, 1))
    assert (found.covariance[:, 0, 0] > plain.covariance[:, 0, 0]).all()


def test_the_same_source_is_trusted_and_a_shifted_one_is_not(emq):
    same = predict_interval_bags(emq, POOL, BAGS)
    assert (same.drift.state == "trusted").mean() >= 0.9
    assert same.width.mean() < 1.15 * same.without_drift.width.mean()
    moved = predict_interval_bags(emq, POOL + 0.4, BAGS)
    assert set(moved.drift.state) <= {"widened", "refused"}
    assert (moved.drift.cost > same.drift.cost).all()
    assert (moved.drift.labels > 0).all()
    assert (same.drift.labels[same.drift.state == "trusted"] == 0).all()


def test_coverage_is_kept_where_plain_intervals_lose_it(emq):
    truth = BAGS.shares(LABELS, 2)
    towards = X[Y == 1].mean(axis=0) - X[Y == 0].mean(axis=0)
    # All instances look more like the second class, which no one can see, and also different, which shows.
    moved = predict_interval_bags(emq, POOL + 0.1 * towards + 0.2 * towards[::-1] * [1, -1], BAGS)
    assert moved.without_drift.contains(truth).mean() < 0.5
    assert moved.contains(truth).mean() > 0.9


def test_a_model_of_an_older_version_has_todays_interval_and_says_what_is_unknown(emq):
    old = EMQ().fit(X, Y)
    old.drift_ = None
    found = predict_interval_bags(old, POOL, BAGS)
    np.testing.assert_array_equal(found.lower, predict_interval_bags(emq, POOL, BAGS, drift=False).lower)
    assert set(found.drift.state) == {"unknown"}
    assert found.drift.source == NO_SCALE
    assert np.isnan(found.drift.cost).all()


def test_inputs_without_descriptions_are_unknown_unless_their_values_are_described(emq):
    bare = Inputs(emq.read(POOL).values)
    assert set(predict_interval_bags(emq, bare, BAGS).drift.state) == {"unknown"}
    given = EMQ("precomputed").fit(emq.read(X).values, Y)
    assert "unknown" not in predict_interval_bags(given, bare, BAGS).drift.state


def test_one_instance_is_unknown_and_its_interval_is_everything(emq):
    found = emq.predict_interval(POOL[:1])
    assert found.drift.state == "unknown"
    assert found.lower.tolist() == [0, 0]
    assert found.upper.tolist() == [1, 1]


def test_methods_without_held_out_instances_include_drift():
    quantifier = CC().fit(X, Y)
    with pytest.warns(UserWarning, match="no held-out instances"):
        moved = quantifier.predict_interval(POOL[:300] + 0.5)
    assert moved.drift.state in {"widened", "refused"}
    assert "typical of other datasets" in moved.drift.source


def test_labels_are_those_of_a_random_sample_less_what_the_estimate_is_worth():
    # 1.96^2 * 0.25 / 0.05^2 = 384 labels; the estimate is worth 100 of them.
    found = labels_needed(np.array([[0.5, 0.5]]), np.array([0.02]), np.array([0.01]), np.array([5000]), 0.95)
    assert found.tolist() == [285]
    assert labels_needed(np.array([[0.5, 0.5]]), np.array([0.02]), np.array([0.01]), np.array([60]), 0.95) == [60]


def test_the_table_has_points_and_states(emq):
    table = predict_interval_bags(emq, POOL, BAGS).frame()
    assert table["state"].isin(["trusted", "widened"]).all()
    assert (table["drift"] > 0).all()
