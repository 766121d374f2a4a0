import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from quanet.errors import InvalidData, InvalidSetting
from quanet.evaluation.significance import (
    alike,
    coverage_test,
    critical_distance,
    friedman_test,
    least_wilcoxon,
    paired_t_test,
    runs_for_wilcoxon,
    wilcoxon_test,
)
from tests.strategies import SEEDS

# Demšar (JMLR 2006), Table 6: AUC of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf on 14 datasets. The fourth decimals of one row
# stand for digits that the paper rounds away: it ranks the two .975 as 2 and 3.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.9749],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def errors(seed, *shape):
    return np.random.default_rng(seed).random(shape)


def test_friedmans_test_gives_demsars_figures():
    found = friedman_test(1 - DEMSAR)
    np.testing.assert_allclose(found.ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    # The paper has 9.28 and 3.69, which ignore ties. All methods are tied in one of 14 blocks, two of them in three:
    # the sum of t^3 - t is 60 + 3 * 6, so the variance of the ranks has the factor 1 - 78 / (14 * 60).
    factor = 1 - 78 / 840
    assert found.statistic * factor == pytest.approx(9.28, abs=5e-3)
    assert found.f_statistic == pytest.approx(13 * found.statistic / (14 * 3 - found.statistic))
    assert found.blocks == 14
    assert found.f_p < 0.05  # the critical value of F(3, 39) is 2.85
    assert stats.f.isf(0.05, 3, 39) == pytest.approx(2.85, abs=0.01)


@pytest.mark.parametrize(
    ("methods", "q05", "q10"),  # Demšar's Table 5 (a)
    [(2, 1.960, 1.645), (3, 2.343, 2.052), (4, 2.569, 2.291), (5, 2.728, 2.459), (10, 3.164, 2.920)],
)
def test_critical_distances_are_demsars(methods, q05, q10):
    scale = np.sqrt(methods * (methods + 1) / (6 * 14))
    assert critical_distance(methods, 14) == pytest.approx(q05 * scale, abs=2e-3)
    assert critical_distance(methods, 14, alpha=0.10) == pytest.approx(q10 * scale, abs=2e-3)


def test_nemenyis_groups_are_demsars():
    ranks = friedman_test(1 - DEMSAR).ranks
    assert round(critical_distance(4, 14), 2) == 1.25
    assert [sorted(group.tolist()) for group in alike(ranks, critical_distance(4, 14))] == [[0, 1, 2, 3]]
    # At .10, with a distance of 1.12, C4.5 is significantly worse than C4.5+m and C4.5+m+cf.
    weaker = critical_distance(4, 14, alpha=0.10)
    assert round(weaker, 2) == 1.12
    assert [sorted(group.tolist()) for group in alike(ranks, weaker)] == [[1, 2, 3], [0, 2]]


def test_the_wilcoxon_test_gives_demsars_decision():
    # Rank sums 93 and 12 of 14 pairs; z = -2.54.
    p = wilcoxon_test(DEMSAR[:, 0], DEMSAR[:, 1])
    assert p == pytest.approx(2 * stats.norm.sf(2.54), abs=3e-3)


def test_the_t_test_by_hand():
    # Differences 1, 2, 3: mean 2, deviation 1, t = 2 sqrt(3); two degrees of freedom have P = 1 - t / sqrt(2 + t^2).
    t = 2 * np.sqrt(3)
    assert float(paired_t_test([2, 4, 6], [1, 2, 3])) == pytest.approx(1 - t / np.sqrt(2 + t**2))


@given(SEEDS)
def test_the_t_test_is_scipys_in_stacks_and_symmetric(seed):
    first, second = errors(seed, 2, 5, 7)
    np.testing.assert_allclose(paired_t_test(first, second), stats.ttest_rel(first, second, axis=-1).pvalue)
    np.testing.assert_allclose(paired_t_test(first, second), paired_t_test(second, first))


def test_equal_errors_are_no_difference_and_constant_ones_are_certain():
    same = np.array([0.25, 0.5, 0.75])
    assert float(paired_t_test(same, same)) == 1.0
    assert float(paired_t_test(same, same + 0.25)) == 0.0
    assert wilcoxon_test(same, same) == 1.0


def test_a_level_is_kept_when_there_is_no_difference():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 20_000, 10))
    assert (paired_t_test(first, second) < 0.05).mean() == pytest.approx(0.05, abs=0.005)


@given(SEEDS, st.integers(2, 8), st.integers(2, 12))
def test_mean_ranks_sum_to_what_ranks_sum_to_and_scales_do_not_matter(seed, methods, blocks):
    values = errors(seed, blocks, methods)
    found = friedman_test(values)
    assert found.ranks.sum() == pytest.approx(methods * (methods + 1) / 2)
    again = friedman_test(np.exp(values) * np.arange(1, blocks + 1)[:, None])
    np.testing.assert_allclose(again.ranks, found.ranks)
    assert 0 <= found.p <= 1
    assert 0 <= found.f_p <= 1
    if methods > 2:
        assert found.statistic == pytest.approx(stats.friedmanchisquare(*values.T).statistic, abs=1e-9)


@given(SEEDS, st.integers(3, 6), st.integers(2, 12))
def test_friedmans_statistic_is_scipys_with_ties(seed, methods, blocks):
    values = np.random.default_rng(seed).integers(3, size=(blocks, methods)).astype(float)
    values[0] = np.arange(methods)  # not all are equal
    found, expected = friedman_test(values), stats.friedmanchisquare(*values.T)
    assert found.statistic == pytest.approx(expected.statistic, abs=1e-9)
    assert found.p == pytest.approx(expected.pvalue, abs=1e-9)


def test_friedmans_statistic_with_ties_by_hand():
    # Ranks 1.5, 1.5, 3 twice and 1, 2, 3: sums 4, 5, 9 around 6, squares 4 + 1 + 9 = 14. Without ties the statistic is
    # 12 / (3 * 3 * 4) * 14 = 14 / 3; two pairs are tied, so it is divided by 1 - 12 / (3 * 24) = 5 / 6.
    found = friedman_test([[1, 1, 2], [1, 1, 2], [1, 2, 3]])
    assert found.statistic == pytest.approx(14 / 3 * 6 / 5)


def test_methods_with_equal_errors_do_not_differ():
    found = friedman_test(np.ones((4, 3)))
    assert (found.statistic, found.p, found.f_statistic, found.f_p) == (0.0, 1.0, 0.0, 1.0)
    np.testing.assert_array_equal(found.ranks, 2)


@given(SEEDS, st.integers(2, 10))
def test_the_wilcoxon_test_counts_equal_differences_and_zeros(seed, pairs):
    differences = np.random.default_rng(seed).integers(-2, 3, size=pairs).astype(float)
    ranks = stats.rankdata(np.abs(differences)) * (differences != 0)
    signs = np.array(np.meshgrid(*[[-1, 1]] * pairs)).reshape(pairs, -1).T
    # All signs are equally likely: how often the rank sums differ at least as much.
    p = (np.abs(signs @ ranks) >= abs(np.sign(differences) @ ranks) - 1e-9).mean()
    assert wilcoxon_test(differences, np.zeros(pairs)) == pytest.approx(p)


def test_blocks_that_all_agree_leave_no_doubt():
    found = friedman_test(np.tile([0.1, 0.2, 0.3], (6, 1)))
    assert (found.f_statistic, found.f_p) == (np.inf, 0.0)


@given(SEEDS, st.integers(1, 12), st.floats(0.1, 5))
def test_two_methods_share_a_group_if_and_only_if_they_are_near(seed, methods, distance):
    ranks = 1 + (methods - 1) * errors(seed, methods)
    groups = [set(group.tolist()) for group in alike(ranks, distance)]
    for one in range(methods):
        for other in range(one):
            together = any({one, other} <= group for group in groups)
            assert together == (abs(ranks[one] - ranks[other]) < distance)
    assert not any(a < b for a in groups for b in groups)


def test_what_cannot_be_tested_says_why():
    with pytest.raises(InvalidData, match="at least two runs; found 1"):
        paired_t_test([0.1], [0.2])
    with pytest.raises(InvalidData, match=r"shapes are \(3,\) and \(2,\)"):
        wilcoxon_test([1, 2, 3], [1, 2])
    with pytest.raises(InvalidData, match="at least 2 blocks by 2 methods"):
        friedman_test([[0.1, 0.2]])
    with pytest.raises(InvalidData, match="some are missing"):
        friedman_test([[0.1, np.nan], [0.1, 0.2]])
    with pytest.raises(InvalidSetting, match="methods must be a whole number of at least 2; got 1"):
        critical_distance(1, 5)


@pytest.mark.parametrize("runs", [2, 5, 8])
def test_the_least_p_of_wilcoxon_is_that_of_differences_of_one_sign(runs):
    errors = np.arange(1.0, runs + 1)
    assert wilcoxon_test(2 * errors, errors) == pytest.approx(least_wilcoxon(runs))


@pytest.mark.parametrize("tests", [1, 3, 9])
def test_so_many_runs_are_needed_and_no_fewer(tests):
    runs = runs_for_wilcoxon(0.05, tests)
    assert least_wilcoxon(runs, tests) < 0.05 <= least_wilcoxon(runs - 1, tests)


def test_coverage_of_one_class_of_many_is_tested_with_correction():
    covered = np.ones((60, 4), dtype=bool)
    covered[:12, 2] = False
    p, direction = coverage_test(covered, 0.95)
    assert direction == -1
    assert p == pytest.approx(4 * stats.binomtest(48, 60, 0.95).pvalue)
