"""Whether a judge errs alike in all groups: the test's level and power, and whose labels are used."""

import numpy as np
import pytest

from quanet.labels.judge_groups import compare_errors, uses_own_labels


def drawn(rates, m, rng):
    """Groups of m human labels a class, by the judge's rates of finding either class: (g, 2, 2)."""
    tables = []
    for tnr, tpr in rates:
        right = rng.binomial(m, [tnr, tpr])
        tables.append([[right[0], m - right[0]], [m - right[1], right[1]]])
    return np.array(tables)


@pytest.mark.no_cover
def test_equal_errors_are_seldom_found_to_differ():
    rng = np.random.default_rng(0)
    found = [compare_errors(drawn([(0.95, 0.8)] * 4, 12, rng), random_state=seed).differ for seed in range(25)]
    assert np.sum(found) <= 4  # of 25; more has probability 0.007 at 5 %


@pytest.mark.no_cover
def test_one_group_that_differs_is_found_among_many():
    rng = np.random.default_rng(0)
    rates = [(0.95, 0.85)] * 11 + [(0.95, 0.45)]
    found = [compare_errors(drawn(rates, 40, rng), random_state=seed) for seed in range(10)]
    assert np.mean([one.differ for one in found]) >= 0.9
    assert np.mean([one.p_values.argmin() == 11 for one in found]) >= 0.9


def test_few_labels_cannot_be_tested():
    assert not compare_errors(np.array([[[3, 1], [1, 3]]] * 5)).tested
    assert not compare_errors(np.array([[[30, 10], [10, 30]]])).tested  # a single group


def test_a_group_needs_more_labels_of_its_own_where_no_difference_is_known():
    tables = np.array([[[20, 5], [5, 20]], [[5, 1], [1, 5]], [[2, 1], [1, 2]]])
    assert uses_own_labels(tables, differ=False).tolist() == [True, False, False]
    assert uses_own_labels(tables, differ=True).tolist() == [True, True, False]


def test_the_order_of_groups_does_not_matter():
    tables = drawn([(0.9, 0.8), (0.9, 0.5), (0.8, 0.8)], 30, np.random.default_rng(0))
    forth, back = compare_errors(tables), compare_errors(tables[::-1])
    np.testing.assert_allclose(forth.p_values, back.p_values[::-1], atol=0.05)
