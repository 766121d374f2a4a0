"""Parts of the training data, and the bias on them."""

from types import SimpleNamespace

import numpy as np
import pytest

from quanet.drift.scale import bias_variance, draw_bags_of_part, find_parts
from quanet.errors import InvalidData


def blobs(n, parts=8):
    rng = np.random.default_rng(0)
    owner = np.arange(n) % parts
    codes = (np.arange(n) // parts) % 2
    centres = 10 * np.eye(parts)
    return centres[owner] + rng.normal(size=(n, parts)) + 3 * codes[:, None], codes, owner


def test_clusters_are_found_whatever_the_classes():
    descriptions, codes, owner = blobs(2400)
    parts = find_parts(descriptions, codes, 2, None, 10_000)
    assert parts.kind == "clusters"
    for cluster in range(8):
        assert len(set(owner[parts.members == cluster])) == 1
    for seen, held_out in parts.folds(codes, 2):
        assert not set(seen) & set(held_out)
        assert len(seen) + len(held_out) == 2400


def test_few_instances_have_no_parts_and_many_are_sampled():
    descriptions, codes, _ = blobs(2400)
    assert "900 training instances" in find_parts(descriptions[:900], codes[:900], 2, None, 10_000)
    assert len(find_parts(descriptions, codes, 2, None, 1200).used) == 1200


def test_named_groups_are_parts_the_largest_ones_if_there_are_many():
    descriptions, codes, owner = blobs(2400)
    parts = find_parts(descriptions, codes, 2, owner, 10_000)
    assert parts.kind == "groups"
    np.testing.assert_array_equal(parts.members, owner)
    many = find_parts(descriptions, codes, 2, np.arange(2400) % 40, 10_000)
    assert len(set(many.members.tolist()) - {-1}) == 8
    assert "one group only" in find_parts(descriptions, codes, 2, np.zeros(2400), 10_000)


def test_a_group_of_one_class_is_not_left_out():
    descriptions, codes, _ = blobs(2400)
    assert find_parts(descriptions, codes, 2, codes, 10_000).folds(codes, 2) == []


def test_a_wrong_number_of_groups_is_named():
    descriptions, codes, _ = blobs(2400)
    with pytest.raises(InvalidData, match=r"groups must have shape \(2400,\)"):
        find_parts(descriptions, codes, 2, ["a", "b"], 10_000)


def counting(offset):
    """A quantifier that counts one-hot rows and is off by a constant."""
    return SimpleNamespace(
        classes_=np.array([0, 1]), aggregate_quickly=lambda rows: rows.mean(axis=-2) + np.array([-offset, offset])
    )


def test_a_constant_bias_has_its_square_over_p_times_1_minus_p():
    codes = np.arange(400) % 2
    found = bias_variance(counting(0.1), np.eye(2)[codes], codes, np.random.default_rng(0))
    # Five prevalences, two classes: 5 * 2 * 0.01 / (2 * (.09 + .21 + .25 + .21 + .09))
    assert found == pytest.approx(0.1 / 1.7)


def test_noise_of_a_small_part_is_not_bias():
    rng = np.random.default_rng(0)
    noisy = SimpleNamespace(classes_=np.array([0, 1]), aggregate_quickly=lambda rows: rows.mean(axis=-2))
    found = []
    for _ in range(200):
        codes = np.arange(60) % 2
        # Each instance has an error of its own, common to all bags that contain it.
        error = rng.normal(0, 0.3, size=60)
        rows = np.column_stack([1 - codes - error, codes + error])
        found.append(bias_variance(noisy, rows, codes, rng))
    assert abs(np.mean(found)) < 3 * np.std(found) / 200**0.5


def test_bags_of_a_part_have_the_prevalences_of_the_classes_that_are_there():
    codes = np.repeat([0, 2], 50)
    positions, prevalences = draw_bags_of_part(codes, 3, np.random.default_rng(0))
    assert (prevalences[:, 1] == 0).all()
    counted = np.stack([(codes[positions] == c).mean(axis=1) for c in range(3)], axis=1)
    np.testing.assert_allclose(counted, prevalences)
