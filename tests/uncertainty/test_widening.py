"""Intervals that include drift: ends, states, labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quanet import CC, EMQ, Bags, Gaussians, Inputs, predict_interval_bags
from quanet.drift.scale import NO_SCALE
from quanet.uncertainty.widening import SMALL_COST, drift_at, labels_needed, wilson

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


def test_the_same_source_is_not_widened_and_a_shifted_one_is(emq):
    same = predict_interval_bags(emq, POOL, BAGS)
    assert set(same.drift.state) == {"few rows"}  # two numbers of 200 rows show little
    assert same.width.mean() < 1.15 * same.without_drift.width.mean()
    moved = predict_interval_bags(emq, POOL + 0.4, BAGS)
    assert set(moved.drift.state) <= {"widened", "refused"}
    assert (moved.drift.cost > same.drift.cost).all()
    assert (moved.drift.labels > 0).all()
    assert (same.drift.labels > 0).all()


@pytest.mark.parametrize("training", [300, 1500])
def test_large_bags_without_drift_are_trusted_whatever_few_training_rows_hide(training):
    # The cost of drift that cannot be seen may exceed half of the sampling error; it is no reason to widen.
    rng = np.random.default_rng(0)
    centres = np.zeros((2, 30))
    centres[1, 0] = 2
    codes = np.arange(training) % 2
    quantifier = EMQ().fit(centres[codes] + rng.normal(size=(training, 30)), codes)
    pool = centres[np.arange(4000) % 2] + rng.normal(size=(4000, 30))
    found = predict_interval_bags(quantifier, pool, Bags(rng.permutation(4000).reshape(4, 1000)))
    assert set(found.drift.state) == {"trusted"}
    assert (found.drift.labels == 0).all()
    if training == 300:
        assert (found.drift.cost.max(axis=1) > SMALL_COST * found.without_drift.width.max(axis=1) / 2).all()


@pytest.mark.parametrize("aside", [0.0, 0.5])
@pytest.mark.parametrize("groups", [0, 200])
def test_few_rows_that_are_far_off_are_never_trusted(groups, aside):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        quantifier = EMQ().fit(*SOURCE.draw([0.5, 0.5], 1000, rng=rng))
        clean = [SOURCE.draw([1 - p, p], 30, rng=rng)[0] for p in rng.uniform(0.2, 0.8, groups)]
        drifted = SOURCE.draw([0.7, 0.3], 30, rng=rng)[0] + 0.43 * (SOURCE.centres[1] - SOURCE.centres[0]) + aside
        pool = np.concatenate([*clean, drifted])
        found = predict_interval_bags(quantifier, pool, Bags(np.arange(len(pool)).reshape(-1, 30)))
        assert found.drift.state[-1] in {"few rows", "refused"}
        assert found.drift.labels[-1] >= 20


def test_a_bag_has_few_rows_if_chance_may_hide_drift_that_leaves_it_worth_less_than_enough_labels(emq):
    # Sampling errors so large that no drift is seen: only the size of the bag decides.
    scale, half = emq.drift_, np.full((2, 2), 0.5)
    worth = (0.02 - 0.5 * (0.25 / scale.profile.counts).sum()) / scale.rate
    enough = scale.profile.noise / (worth / (1 - worth * scale.rate / 2)) ** (1 / 0.75)
    sizes = np.array([int(0.98 * enough), int(1.02 * enough)])
    found = drift_at(emq, np.zeros(2), half, (np.zeros((2, 2)), np.ones((2, 2))), sizes, 0.95)
    assert found.state.tolist() == ["few rows", "trusted"]
    assert found.labels.tolist() == [20, 0]
    own = np.array([0.0, 0.1]), sizes  # the second has a distance of its own, which sharing took for chance
    found = drift_at(emq, np.zeros(2), half, (np.zeros((2, 2)), np.ones((2, 2))), sizes, 0.95, own=own)
    assert set(found.state) == {"few rows"}


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
    assert table["state"].isin(["few rows"]).all()
    assert (table["drift"] > 0).all()
