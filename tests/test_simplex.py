import math

import numpy as np
import pandas as pd
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

from quanet.errors import InvalidBags, InvalidData
from quanet.simplex import (
    check_prevalences,
    classes_of,
    count,
    draw_uniformly,
    encode,
    grid,
    grid_size,
    log_softmax,
    prevalence_of,
    project,
    smooth,
    to_counts,
)
from tests.strategies import SEEDS, prevalences


@given(prevalences(), st.integers(1, 2000))
def test_counts_sum_to_the_bag_size_and_are_the_nearest_whole_numbers(points, n):
    counts = to_counts(points, n)
    assert (counts.sum(axis=-1) == n).all()
    assert (counts >= 0).all()
    assert (np.abs(counts - n * points) < 1).all()


def test_the_papers_prevalences_are_whole_numbers_of_500():
    positive = np.array([0.01, *(np.arange(1, 20) / 20), 0.99])
    counts = to_counts(np.column_stack([1 - positive, positive]), 500)
    assert counts[:, 1].tolist() == [5, *range(25, 500, 25), 495]


def test_a_class_of_prevalence_zero_gets_no_instance():
    assert to_counts(np.array([0.0, 1 / 3, 2 / 3]), 10)[0] == 0


@given(prevalences())
def test_projection_leaves_the_simplex_alone(points):
    np.testing.assert_allclose(project(points), points, atol=1e-12)


@given(SEEDS)
def test_projection_is_nearer_than_any_other_point_of_the_simplex(seed):
    rng = np.random.default_rng(seed)
    outside = rng.normal(size=(3, 4)) * 2
    nearest = project(outside)
    check_prevalences(nearest)
    others = draw_uniformly(200, 4, rng=rng)
    for point, best in zip(outside, nearest, strict=True):
        assert np.linalg.norm(point - best) <= np.linalg.norm(point - others, axis=1).min() + 1e-12


@given(st.integers(2, 5), st.integers(1, 6))
def test_a_grid_has_every_composition_once(k, steps):
    points = grid(k, steps)
    assert len(points) == grid_size(k, steps) == math.comb(steps + k - 1, k - 1)
    assert len(np.unique(np.rint(points * steps), axis=0)) == len(points)
    check_prevalences(points)


@given(prevalences(), st.floats(1e-6, 0.5))
def test_smoothing_stays_on_the_simplex_and_off_its_edges(points, eps):
    smoothed = smooth(points, eps)
    np.testing.assert_allclose(smoothed.sum(axis=-1), 1)
    assert (smoothed > 0).all()


def test_smoothing_takes_one_value_a_bag():
    both = smooth(np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([0.0, 0.125]))
    np.testing.assert_allclose(both, [[0, 1], [0.1, 0.9]])


def test_uniform_draws_have_the_uniform_distributions_moments():
    points = draw_uniformly(20_000, 3, rng=np.random.default_rng(0))
    np.testing.assert_allclose(points.mean(axis=0), 1 / 3, atol=0.01)
    np.testing.assert_allclose(points.var(axis=0), 1 / 18, atol=0.005)  # of Dirichlet(1, 1, 1)


def test_counting_works_on_any_stack():
    codes = np.array([[[0, 1, 1], [2, 2, 2]]])
    assert count(codes, 3).tolist() == [[[1, 2, 0], [0, 0, 3]]]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [(["b", "a", "b"], ["a", "b"]), ([2, 1, 2], [1, 2]), ([True, False, True], [False, True])],
)
def test_labels_of_any_type_are_counted(labels, classes):
    np.testing.assert_allclose(prevalence_of(labels, classes), [1 / 3, 2 / 3])
    assert classes_of(labels).tolist() == classes


def test_objects_and_strings_are_the_same_labels():
    assert encode(np.array(["b", "a"], dtype=object), np.array(["a", "b"])).tolist() == [1, 0]


@pytest.mark.parametrize(("labels", "found"), [(["c"], "'c'"), ([7, 1], "7")])
def test_an_unknown_label_is_named(labels, found):
    classes = np.array(["a", "b"]) if isinstance(labels[0], str) else np.array([1, 2])
    with pytest.raises(InvalidData, match=f"Label {found} is not one of"):
        encode(labels, classes)


def test_labels_of_two_types_are_refused():
    with pytest.raises(InvalidData, match="mix int and str"):
        classes_of(np.array([1, "a"], dtype=object))


def test_an_empty_bag_has_no_prevalence():
    with pytest.raises(InvalidBags, match="without instances"):
        prevalence_of([], ["a", "b"])


@pytest.mark.parametrize("wrong", [[0.5, 0.6], [-0.1, 1.1], [np.nan, 1.0]])
def test_what_is_off_the_simplex_is_shown(wrong):
    with pytest.raises(InvalidData, match="not a prevalence vector"):
        check_prevalences([[0.5, 0.5], wrong])


def test_the_number_of_classes_is_checked():
    with pytest.raises(InvalidData, match="must have 3 classes"):
        check_prevalences([0.5, 0.5], k=3)


def test_the_coarsest_grid_has_every_class_alone_in_the_order_of_finer_ones():
    np.testing.assert_array_equal(grid(3, 1), [[0, 0, 1], [0, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(grid(3, 2)[(grid(3, 2) == 1).any(axis=1)], grid(3, 1))


def test_bags_without_instances_count_nothing():
    assert count(np.empty(0, dtype=int), 2).tolist() == [0, 0]
    assert count(np.empty((3, 0), dtype=int), 2).tolist() == [[0, 0]] * 3
    assert count(np.empty((0, 4), dtype=int), 2).shape == (0, 2)


def test_labels_that_are_lists_are_refused():
    labels = np.array([None, None], dtype=object)
    labels[:] = [["good"], ["bad"]]
    with pytest.raises(InvalidData, match=r"Label .* is a list. Labels must be names, numbers or booleans"):
        classes_of(labels)


@given(st.lists(st.lists(st.floats(-800, 800), min_size=3, max_size=3), min_size=1, max_size=5))
def test_logarithms_of_a_softmax_are_those_of_scipy_to_the_last_bit(logits):
    found = log_softmax(np.array(logits))
    np.testing.assert_array_equal(found, scipy.special.log_softmax(logits, axis=-1))


@pytest.mark.parametrize(
    ("labels", "classes", "dtype"),
    [
        (np.array([2, 1, 2], dtype=object), [1, 2], "i"),
        (np.array([True, False], dtype=object), [False, True], "b"),
        (np.array([2.0, 1.0], dtype=object), [1, 2], "f"),
        (pd.Series([2, 1], dtype="Int64"), [1, 2], "i"),
        (np.array(["b", "a"], dtype=object), ["a", "b"], "O"),
        ([2, 1.0], [1, 2], "f"),
        (["b", "a"], ["a", "b"], "U"),
    ],
)
def test_labels_have_their_natural_type(labels, classes, dtype):
    found = classes_of(labels)
    assert (found.tolist(), found.dtype.kind) == (classes, dtype)
    assert found[encode(labels, found)].tolist() == list(labels)


@pytest.mark.parametrize("labels", [[1, "b"], ["b", 1, "b"], (1, "1"), [b"a", 1], [True, "True"]])
def test_numbers_and_strings_in_a_list_are_not_one_type(labels):
    with pytest.raises(
        InvalidData, match=r"The labels mix \w+ and \w+, which have no common order. Convert them to one"
    ):
        classes_of(labels)
    assert encode([1, "1", 1], np.array([1, "1"], dtype=object)).tolist() == [0, 1, 0]
