"""Significance tests for the errors of methods, paired by runs or blocks."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from quanet.arrays import FloatArray, IntArray
from quanet.errors import InvalidData
from quanet.parameters import between, whole
from quanet.uncertainty.differences import holm


def paired_t_test(first: ArrayLike, second: ArrayLike) -> FloatArray:
    r"""Paired t-test, two-tailed: the p-value of a difference between two methods, (..., r), (..., r) -> (...).

    .. math:: t = \frac{\bar d}{s_d / \sqrt r}

    with the mean and the standard deviation of the differences d of r runs, on r - 1 degrees of freedom [1]_.

    Parameters
    ----------
    first, second : (..., r) errors of the two methods, paired by runs.

    References
    ----------
    .. [1] Student, "The probable error of a mean", Biometrika 6, 1908.

    Examples
    --------
    >>> float(paired_t_test([0.10, 0.12, 0.11], [0.20, 0.21, 0.23]))
    0.0072
    """
    difference = _differences(first, second)
    runs = difference.shape[-1]
    mean, spread = difference.mean(axis=-1), difference.std(axis=-1, ddof=1) / math.sqrt(runs)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, np.abs(mean) / spread)  # equal errors in every run: no difference
    return np.asarray(2 * stats.t.sf(t, runs - 1))


def wilcoxon_test(first: ArrayLike, second: ArrayLike) -> float:
    r"""Wilcoxon signed-rank test, two-tailed: the p-value of a difference between two methods, (r,), (r,) -> p.

    .. math:: W = \min\Big( \sum_{d_i > 0} R_i, \sum_{d_i < 0} R_i \Big)

    with :math:`R_i` the rank of the difference :math:`|d_i|` [1]_; equal differences have their mean rank. Exact for up
    to 50 pairs, or 13 if there are ties, otherwise by the normal approximation with the variance of tied ranks. Pairs
    without a difference count half for either side ([2]_, section 3.1.3).

    Parameters
    ----------
    first, second : (r,) errors of the two methods, paired by runs or datasets.

    References
    ----------
    .. [1] F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1, 1945.
    .. [2] J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of Machine Learning
           Research 7, 2006.

    Examples
    --------
    >>> wilcoxon_test([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.2, 0.4, 0.6, 0.8, 1.0, 1.2])
    0.03125
    """
    difference = _differences(first, second)
    if not difference.any():
        return 1.0
    return float(stats.wilcoxon(difference, zero_method="zsplit").pvalue)


def least_wilcoxon(runs: int, tests: int = 1) -> float:
    """The smallest p-value of the Wilcoxon test with this many pairs, after Holm's correction for this many tests.

    It occurs if all differences have the same sign, by chance in 2 of 2 ** runs cases.

    Examples
    --------
    >>> least_wilcoxon(5), least_wilcoxon(5, tests=5)
    (0.0625, 0.3125)
    """
    return min(1.0, tests * 2.0 ** (1 - runs))


def runs_for_wilcoxon(alpha: float, tests: int = 1) -> int:
    """The smallest number of pairs for which the Wilcoxon test can be below `alpha`, after Holm's correction.

    Examples
    --------
    >>> runs_for_wilcoxon(0.05), runs_for_wilcoxon(0.05, tests=5)
    (6, 8)
    """
    return math.floor(1 + math.log2(tests / alpha)) + 1


def coverage_test(covered: ArrayLike, level: float) -> tuple[float, int]:
    """Test the coverage of intervals: covered or not (b, k) -> p-value and direction.

    The exact binomial test, two-tailed, of the number of covered bags for each class, with Holm's correction over the
    classes; for two classes, the two intervals are equivalent. The direction is -1 if the class with the smallest
    p-value is covered too rarely, and 1 if it is covered too often.

    Examples
    --------
    At 95 %, 11 of 11 is not significant, but 200 of 200 is:

    >>> coverage_test(np.ones((11, 2)), 0.95)
    (1.0, 1)
    >>> coverage_test(np.ones((200, 2)), 0.95)
    (0.0001, 1)
    """
    hits = np.asarray(covered, dtype=bool)
    bags, k = hits.shape
    counts = hits.sum(axis=0)[: 1 if k == 2 else k].tolist()
    p = [float(stats.binomtest(count, bags, level).pvalue) for count in counts]
    least = int(np.argmin(p))
    return float(holm(p)[least]), 1 if counts[least] > level * bags else -1


def can_be_too_wide(bags: int, level: float, alpha: float) -> bool:
    """Whether this many bags, if all were covered, would show that intervals are too wide.

    Examples
    --------
    >>> can_be_too_wide(11, 0.95, 0.05), can_be_too_wide(100, 0.95, 0.05)
    (False, True)
    """
    return coverage_test(np.ones((bags, 1)), level)[0] < alpha


@dataclass(frozen=True, slots=True, eq=False)
class FriedmanTest:
    """The result of Friedman's test of m methods on N blocks.

    Attributes
    ----------
    ranks : (m,) mean ranks; 1 is the smallest error.
    blocks : N.
    statistic, p : Friedman's chi-squared with m - 1 degrees of freedom, and its p-value.
    f_statistic, f_p : Iman and Davenport's less conservative F with m - 1 and (m - 1)(N - 1) degrees, and its p-value.
    """

    ranks: FloatArray
    blocks: int
    statistic: float
    p: float
    f_statistic: float
    f_p: float


def friedman_test(errors: ArrayLike) -> FriedmanTest:
    r"""Friedman's test: whether m methods differ, given their errors on N blocks (datasets, or runs of datasets).

    .. math:: \chi^2_F = \frac{N}{S} \sum_j \Big(R_j - \frac{m + 1}{2}\Big)^2,
              \quad F_F = \frac{(N - 1) \chi^2_F}{N (m - 1) - \chi^2_F}

    with mean ranks :math:`R_j` and the mean variance S of the ranks in a block [1]_ [2]_, as recommended in [3]_,
    section 3.2.2. Without ties S is :math:`m (m + 1) / 12`. Equal errors have their mean rank, which makes S smaller
    ([4]_, section 5.8). The statistic is 0 if all errors of every block are equal.

    Parameters
    ----------
    errors : (N, m), at least two of each. The result has `ranks`, `statistic`, `p`, `f_statistic` and `f_p`.

    References
    ----------
    .. [1] M. Friedman, "The use of ranks to avoid the assumption of normality implicit in the analysis of variance",
           Journal of the American Statistical Association 32, 1937.
    .. [2] R. L. Iman and J. M. Davenport, "Approximations of the critical region of the Friedman statistic",
           Communications in Statistics 9, 1980.
    .. [3] J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of Machine Learning
           Research 7, 2006.
    .. [4] W. J. Conover, "Practical nonparametric statistics", 3rd edition, 1999.

    Examples
    --------
    >>> friedman_test([[0.1, 0.2, 0.3], [0.1, 0.3, 0.2], [0.1, 0.2, 0.3]]).ranks
    array([1.    , 2.3333, 2.6667])
    """
    values = np.asarray(errors, dtype=float)
    if values.ndim != 2 or min(values.shape) < 2:
        raise InvalidData(
            f"Friedman's test needs errors of at least 2 blocks by 2 methods; their shape is {values.shape}. "
            "Run more methods, runs or datasets."
        )
    if not np.isfinite(values).all():
        raise InvalidData("Friedman's test needs the error of each method in each block; some are missing or infinite.")
    blocks, methods = values.shape
    of_blocks = stats.rankdata(values, axis=1)
    ranks, within = of_blocks.mean(axis=0), float(of_blocks.var(axis=1, ddof=1).mean())
    chi2 = blocks * float(((ranks - (methods + 1) / 2) ** 2).sum()) / within if within > 0 else 0.0
    residual = blocks * (methods - 1) - chi2
    # If all blocks agree on one order, the residual is 0.
    f = (blocks - 1) * chi2 / residual if residual > 1e-9 else math.inf
    degrees = methods - 1
    return FriedmanTest(
        ranks,
        blocks,
        chi2,
        float(stats.chi2.sf(chi2, degrees)),
        f,
        float(stats.f.sf(f, degrees, degrees * (blocks - 1))),
    )


def critical_distance(methods: int, blocks: int, *, alpha: float = 0.05) -> float:
    r"""The critical distance of Nemenyi's test: mean ranks that differ by at least this differ significantly.

    .. math:: q_\alpha \sqrt{\frac{m (m + 1)}{6 N}}

    with :math:`q_\alpha` the quantile of the studentised range divided by :math:`\sqrt 2` (Nemenyi 1963; Demšar 2006,
    section 3.2.2). It is that of ranks without ties. Ties make ranks vary less, so that the distance is too large
    rather than too small.

    Examples
    --------
    >>> critical_distance(4, 14)
    1.2536
    """
    whole(2).check("methods", methods)
    whole(2).check("blocks", blocks)
    between(0, 1).check("alpha", alpha)
    q = float(stats.studentized_range.ppf(1 - alpha, methods, np.inf)) / math.sqrt(2)
    return q * math.sqrt(methods * (methods + 1) / (6 * blocks))


def alike(ranks: ArrayLike, distance: float) -> list[IntArray]:
    """Groups of methods whose mean ranks differ by less than the critical distance, as large as possible, best first.

    Examples
    --------
    >>> alike([3.0, 1.0, 2.0], 1.5)
    [array([1, 2]), array([2, 0])]
    """
    values = np.asarray(ranks, dtype=float)
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    groups, covered = [], 0
    for start in range(len(order)):
        end = int(np.searchsorted(ascending - ascending[start], distance, side="left"))
        if end - start > 1 and end > covered:  # otherwise it is part of an earlier group
            groups.append(order[start:end])
            covered = end
    return groups


def _differences(first: ArrayLike, second: ArrayLike) -> FloatArray:
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.shape[-1:] != b.shape[-1:] or a.ndim == 0:
        raise InvalidData(f"Errors must be paired by runs, but their shapes are {a.shape} and {b.shape}.")
    if a.shape[-1] < 2:
        raise InvalidData(f"A paired test needs at least two runs; found {a.shape[-1]}. Add runs.")
    return a - b
