"""Clusters, joint covariance, differences and several judges, against formulas and limits."""

import numpy as np
import pytest
from scipy import optimize, stats

from quanet.labels.judge_covariance import JointSpread, JudgedUnits, contrast_limits, contrast_rates, joint_spread
from quanet.labels.judge_groups import cluster_effect, compare_errors
from quanet.labels.judges import agreement, combine_labels, correct_counts

TABLE = np.array([[900, 100], [200, 800]])  # finds 80 %, errs on 10 %
BAGS = np.array([[5500, 4500], [7000, 3000]])

# epiR 2.0.57, R 4.2.2: epi.prev(pos, tested, se, sp, method = "wilson", units = 1)$tp$est
EPIR = [
    (450, 1000, 0.80, 0.90, 0.5),
    (20, 1000, 0.95, 0.99, 0.0106382978723404),
    (150, 1500, 0.70, 0.95, 0.076923076923077),
    (967, 1000, 0.97, 0.55, 0.994230769230769),
    (5, 1000, 0.80, 0.90, 0.0),  # -0.1357 in epiR, with a warning that it is invalid
]


@pytest.mark.parametrize(("positive", "tested", "se", "sp", "expected"), EPIR)
def test_the_estimate_is_that_of_epir(positive, tested, se, sp, expected):
    m = 10_000
    table = np.array([[round(sp * m), round((1 - sp) * m)], [round((1 - se) * m), round(se * m)]])
    bag = np.array([[tested - positive, positive]])
    estimate, lower, upper = correct_counts(bag, table[None], np.zeros((1, 2), dtype=int), level=0.95)
    assert estimate[0, 1] == pytest.approx(expected, abs=1e-8)
    assert lower[0, 1] <= expected <= upper[0, 1]


def test_with_known_errors_the_interval_is_that_of_the_binomial_likelihood_transformed_as_epir_does():
    # epiR transforms the ends of the interval of the apparent rate: (q + sp - 1) / (se + sp - 1).
    x, n, se, sp = 450, 1000, 0.8, 0.9
    m = 10**8
    table = np.array([[[sp * m, (1 - sp) * m], [(1 - se) * m, se * m]]]).round()
    _, lower, upper = correct_counts(np.array([[n - x, x]]), table, np.zeros((1, 2)), level=0.95)

    def beyond(q):
        ratio = stats.binom.logpmf(x, n, x / n) - stats.binom.logpmf(x, n, q)
        return 2 * ratio - stats.chi2.ppf(0.95, 1)

    ends = [optimize.brentq(beyond, *side, xtol=1e-12) for side in ((0.3, x / n), (x / n, 0.6))]
    np.testing.assert_allclose([lower[0, 1], upper[0, 1]], [(q + sp - 1) / (se + sp - 1) for q in ends], atol=1e-5)


def rows_of(bags, table, unit=None):
    """Rows with these counts by group, and human-labelled rows from elsewhere."""
    parts = [(g, -1, j, n) for g, bag in enumerate(bags) for j, n in enumerate(bag)]
    parts += [(-1, c, j, n) for c, line in enumerate(table) for j, n in enumerate(line)]
    group, human, cell = (np.repeat([one[at] for one in parts], [one[3] for one in parts]) for at in range(3))
    unit = np.arange(len(group)) if unit is None else unit
    return JudgedUnits(unit, group, human, cell, group >= 0, np.zeros(len(group), dtype=bool))


def spread_of(rows, bags=BAGS, table=TABLE):
    every = np.vstack([bags, bags.sum(axis=0)])
    tables, own = np.stack([table] * len(every)), np.zeros((len(every), 2), dtype=int)
    estimate, *_ = correct_counts(every, tables, own, level=0.95)
    return joint_spread(rows, every, tables, own, estimate, np.ones(len(every), dtype=bool))


def delta_method(p, other=None, n=10_000):
    """Rogan and Gladen 1978: variance of a corrected rate; covariance of two that share the labels."""
    se, sp, m, j = 0.8, 0.9, 1000, 0.7
    if other is not None:
        return (p * other * se * (1 - se) / m + (1 - p) * (1 - other) * sp * (1 - sp) / m) / j**2
    q = p * se + (1 - p) * (1 - sp)
    return q * (1 - q) / n / j**2 + delta_method(p, p)


def test_without_clusters_the_covariance_is_that_of_rogan_and_gladen():
    found = spread_of(rows_of(BAGS, TABLE).without_clusters())
    p = [0.5, 2 / 7]
    expected = [[delta_method(a, None if a == b else b) for b in p] for a in p]
    np.testing.assert_allclose(found.covariance[1, :2, :2], expected, rtol=2e-3)
    np.testing.assert_allclose(found.effect, 1, rtol=1e-9)
    np.testing.assert_allclose(found.covariance[0], found.covariance[1], rtol=1e-9)


def test_rows_as_units_are_rows_with_weights():
    rows = rows_of(BAGS // 100, TABLE // 10)
    one, other = (spread_of(units, BAGS // 100, TABLE // 10) for units in (rows, rows.without_clusters()))
    np.testing.assert_allclose(one.covariance, other.covariance, rtol=1e-9)
    np.testing.assert_allclose(one.clusters, other.clusters, rtol=1e-9)


def test_clusters_of_equal_copies_multiply_the_variance_by_their_size():
    once, table = BAGS // 10, TABLE // 10
    single = rows_of(once, table)
    four = rows_of(4 * once, 4 * table)
    order = np.lexsort([four.cell, four.human, four.group])
    unit = np.empty(len(order), dtype=int)
    unit[order] = np.arange(len(order)) // 4  # equal rows, four by four
    copied = spread_of(
        JudgedUnits(unit, *(getattr(four, name) for name in ("group", "human", "cell", "judged", "direct"))),
        4 * once,
        4 * table,
    )
    np.testing.assert_allclose(copied.effect, 4, rtol=1e-6)
    np.testing.assert_allclose(copied.covariance, spread_of(single, once, table).covariance, rtol=0.02)


def test_few_clusters_widen_by_t_and_never_narrow():
    spread = JointSpread(np.ones((1, 1, 1)), np.array([[0.5]]), np.array([[11.0]]), np.array([[10.0]]))
    assert spread.stretch(0.95)[0, 0] == pytest.approx(1.1 * stats.t.ppf(0.975, 10) ** 2 / stats.chi2.ppf(0.95, 1))
    many = JointSpread(np.ones((1, 1, 1)), np.array([[2.0]]), np.array([[1e9]]), np.array([[1e9]]))
    assert many.stretch(0.95)[0, 0] == pytest.approx(2)


def test_a_design_effect_widens_the_interval_as_fewer_rows_do():
    own = np.zeros((1, 2), dtype=int)
    _, lower, upper = correct_counts(BAGS[:1], TABLE[None], own, level=0.95, stretch=np.full((1, 2), 4.0))
    _, low, high = correct_counts(BAGS[:1] // 4, TABLE[None] // 4, own, level=0.95)
    assert upper[0, 1] - lower[0, 1] == pytest.approx(high[0, 1] - low[0, 1], rel=0.01)


def test_shared_human_labels_cancel_as_theory_says():
    spread = spread_of(rows_of(BAGS, TABLE).without_clusters()).of_groups()
    rates = correct_counts(BAGS, np.stack([TABLE] * 2), np.zeros((2, 2), dtype=int), level=0.95)
    found = contrast_rates(np.array([[-1.0, 1.0]]), (["a"], ["b"]), rates, spread, level=0.95, classes=np.array([0, 1]))
    a, b = 0.5, 2 / 7
    expected = np.sqrt(delta_method(a) + delta_method(b) - 2 * delta_method(a, b))
    assert (found.upper - found.lower)[0, 1] == pytest.approx(2 * stats.norm.ppf(0.975) * expected, rel=0.01)
    apart = np.sqrt(delta_method(a) + delta_method(b))
    assert found.relative_width[0, 1] == pytest.approx(expected / apart, rel=0.01)
    np.testing.assert_allclose(found.estimate, [[a - b, b - a]], atol=1e-9)
    np.testing.assert_allclose([found.first_estimate[0, 1], found.second_estimate[0, 1]], [a, b], atol=1e-9)


def test_the_p_value_is_one_minus_the_level_where_the_interval_ends_at_zero():
    spread = JointSpread(np.eye(2)[None], np.ones((2, 1)), np.full((2, 1), 1e9), np.full((2, 1), 1e9))
    for gap in (0.05, 0.1):
        rates = np.array([[0.4], [0.4 + gap]])
        reach = 0.05 / np.sqrt(2)
        found = contrast_rates(
            np.array([[-1.0, 1.0]]),
            (["a"], ["b"]),
            (rates, rates - reach, rates + reach),
            spread,
            level=0.9,
            classes=["x"],
        )
        assert found.p_value[0, 0] == pytest.approx(2 * stats.norm.sf(gap / 0.05 * stats.norm.ppf(0.95)), abs=1e-9)


def test_limits_of_a_sum_are_those_of_its_parts():
    rates, low, high = (np.array(one)[:, None] for one in ([0.1, 0.3], [0.0, 0.25], [0.3, 0.4]))
    total, lower, upper = contrast_limits(np.array([[1.0, 0.0], [0.0, -1.0]]), rates, low, high, np.eye(2)[None])
    np.testing.assert_allclose(np.hstack([total, lower, upper]), [[0.1, 0.0, 0.3], [-0.3, -0.4, -0.25]])


def test_errors_within_clusters_do_not_count_as_differences_between_groups():
    table = np.array([[[90, 10], [20, 80]], [[90, 10], [45, 55]]])
    assert compare_errors(table).differ
    assert not compare_errors(table, design_effect=10.0).differ
    cells, group = np.tile([0, 1, 2, 3], 50), np.repeat([0, 1], 100)
    tables = np.full((2, 2, 2), 25)
    assert cluster_effect(tables, group, cells, np.arange(200)) == pytest.approx(1)
    by_cell = np.arange(200) // 20 * 4 + cells  # five equal rows each
    assert cluster_effect(tables, group, cells, by_cell) == pytest.approx(5)


def test_rare_combinations_of_labels_are_merged_by_the_majority():
    on_human = np.repeat([[0, 1, 0], [0, 1, 0], [0, 1, 1]], [30, 30, 3], axis=1)
    judged = np.array([[0, 1, 0, 1, 1], [0, 1, 0, 1, 0], [0, 1, 1, 0, 0]])
    cells, cells_on_human = combine_labels(judged, on_human, 2)
    assert cells.tolist() == [0, 1, 2, 3, 2]  # (0, 0, 1) and (1, 0, 0) are rare, most say 0; (1, 1, 0): most say 1
    assert np.bincount(cells_on_human).tolist() == [30, 30, 3]


def test_kappa_is_1_for_equal_judges_and_0_for_unrelated_ones():
    labels = np.array([[0, 0, 1, 1] * 5, [0, 0, 1, 1] * 5, [0, 1, 0, 1] * 5])
    np.testing.assert_allclose(agreement(labels, 2), [[1, 1, 0], [1, 1, 0], [0, 0, 1]], atol=1e-12)
    labels[0, :4] = -1
    assert agreement(labels, 2)[0, 1] == 1


def test_clusters_that_dominate_leave_few_degrees_of_freedom():
    bags, table = BAGS // 100, TABLE // 10
    rows = rows_of(bags, table)
    n = len(rows.group)
    even = spread_of(rows_of(bags, table, np.random.default_rng(0).permutation(n) // 4), bags, table)
    alike = np.where(rows.human == 1, rows.cell, 2 + np.arange(n) // 4)  # two clusters have all labels of class 1
    uneven = spread_of(rows_of(bags, table, np.unique(alike, return_inverse=True)[1]), bags, table)
    assert (even.freedom > 20).all()
    assert (uneven.freedom < even.freedom / 2 + 1).all()
