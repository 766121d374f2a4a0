"""Distances of bags from the nearest mixture of the training classes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quanet import Bags
from quanet.drift.profile import BagMeans, Profile, membership, share_between


def draw(n, p, rng, shift=0.0, dimensions=20):
    codes = (rng.random(n) < p).astype(int)
    values = rng.normal(size=(n, dimensions))
    values[:, 0] += 2 * codes
    values[:, 1] += shift
    return values, codes


@pytest.fixture(scope="module")
def profile():
    return Profile.fit(*draw(4000, 0.4, np.random.default_rng(0)), 2)


def distances_of(profile, bags, **options):
    rng = np.random.default_rng(1)
    pools = [draw(200, rng.random(), rng, **options)[0] for _ in range(bags)]
    return profile.compare(BagMeans.of(np.concatenate(pools), Bags(np.arange(200 * bags).reshape(bags, 200))))


def test_mixtures_of_the_training_classes_have_distance_0_on_average(profile):
    found = distances_of(profile, 300)
    assert abs(found.distances.mean()) < 3 * found.distances.std() / 300**0.5
    assert 0.8 < found.distances.std() / found.deviations.mean() < 1.25


def test_a_shift_has_the_distance_of_its_square_over_the_variance_within_classes(profile):
    # 0.5 along one of 20 dimensions of variance 1.
    found = distances_of(profile, 300, shift=0.5)
    assert found.distances.mean() == pytest.approx(0.25 / 20, rel=0.05)
    np.testing.assert_allclose(found.excesses.mean(axis=0)[1], 0.5, atol=0.05)


def test_repeated_instances_do_not_look_like_drift(profile):
    rng = np.random.default_rng(2)
    values, _ = draw(100_000, 0.5, rng)
    twice = np.concatenate([np.arange(50_000).reshape(500, 100)] * 2, axis=1)
    found = profile.compare(BagMeans.of(values, Bags(twice)))
    assert abs(found.distances.mean()) < 3 * found.distances.std() / 500**0.5


def test_shares_of_a_bag_add_up_and_repeats_count():
    member = membership(Bags([[0, 1, 1, 3], [2]]), 5)
    np.testing.assert_allclose(member.toarray(), [[0.25, 0.5, 0, 0.25, 0], [0, 0, 1, 0, 0]])


def test_too_few_instances_of_a_class_and_equal_instances_give_no_profile():
    rng = np.random.default_rng(0)
    assert Profile.fit(rng.normal(size=(30, 3)), np.array([0] * 25 + [1] * 5), 2) is None
    assert Profile.fit(np.ones((40, 3)), np.arange(40) % 2, 2) is None


@given(st.lists(st.floats(-0.01, 0.1), min_size=1, max_size=20), st.floats(1e-6, 0.05))
def test_shared_distances_stay_between_0_and_the_largest(distances, deviation):
    measured = np.array(distances)
    found = share_between(measured, np.full(len(measured), deviation))
    assert (found >= 0).all()
    assert (found <= max(0.0, measured.max()) + 1e-12).all()


def test_a_small_group_is_not_moved_by_chance():
    # 50 groups without drift: none gets a distance, though the noise of the smallest is large.
    rng = np.random.default_rng(0)
    deviations = np.r_[np.full(45, 0.001), np.full(5, 0.02)]
    assert share_between(rng.normal(0, deviations), deviations, least=0.0005).max() < 0.001


def test_groups_that_differ_keep_their_own_distances():
    found = share_between(np.array([0.0, 0.0, 0.05]), np.full(3, 0.002))
    assert found[2] > 0.04
    assert found[0] < 0.005


def corners(k, dimensions):
    """Classes with unit variance, 6 apart, at the corners of a simplex; the profile of 300 instances of each."""
    centres = np.eye(k, dimensions) * 6 / 2**0.5
    codes = np.repeat(np.arange(k), 300)
    values = centres[codes] + np.random.default_rng(0).normal(size=(len(codes), dimensions))
    return centres, Profile.fit(values, codes, k)


def test_a_mixture_that_lacks_classes_has_more_directions_across():
    profile = Profile(np.eye(3, 4), np.eye(4), np.full(3, 4.0), np.full(3, 10))
    # Of 4 directions of variance 1, the mixtures of 3, 2 and 1 classes span 2, 1 and none.
    across, noise = profile._remaining(np.array([[True] * 3, [True, False, True], [False, False, True]]))
    np.testing.assert_allclose(across, [2 / 4, 3 / 4, 1])
    np.testing.assert_allclose(noise, np.sqrt([2 * 2, 2 * 3, 2 * 4]) / 4)
    assert profile.noise == pytest.approx(0.5)


@pytest.mark.parametrize("k", [2, 5, 10])
def test_bags_of_one_class_have_distance_0_on_average(k):
    # Their nearest mixture often lacks the other classes: chance in these directions looks like distance.
    rng = np.random.default_rng(1)
    centres, profile = corners(k, k)
    bags, n = 600, 30
    values = centres[0] + rng.normal(size=(bags * n, k))
    found = profile.compare(BagMeans.of(values, Bags(np.arange(bags * n).reshape(bags, n))))
    assert abs(found.distances.mean()) < 0.25 * found.deviations.mean()
    assert 0.7 < found.distances.std() / found.deviations.mean() < 1.25


def test_pairs_of_bags_of_one_class_are_not_apart_on_average():
    rng = np.random.default_rng(2)
    centres, profile = corners(6, 6)
    bags, n = 600, 30
    values = centres[0] + rng.normal(size=(bags * n, 6))
    means = BagMeans.of(values, Bags(np.arange(bags * n).reshape(bags, n)))
    found = profile.compare_pairs(means, np.arange(0, bags, 2), np.arange(1, bags, 2))
    assert abs(found.distances.mean()) < 0.25 * found.deviations.mean()
