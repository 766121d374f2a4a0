"""Is a method better than another, or was it luck? Tests for errors that are paired by runs or by blocks."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from quanet.arrays import FloatArray, IntArray
from quanet.errors import InvalidData, InvalidSetting


def paired_t_test(first: ArrayLike, second: ArrayLike) -> FloatArray:
    r"""Probability of a mean difference as large as this, if there is none: (..., r), (..., r) -> (...).

    Two-tailed, with the r runs as pairs: :math:`t = \bar d / (s_d / \sqrt r)` on r - 1 degrees of freedom (Student,
    1908).

    Examples
    --------
    >>> float(paired_t_test([0.10, 0.12, 0.11], [0.20, 0.21, 0.23]))
    0.0072
    """
    difference = _differences(first, second)
    runs = difference.shape[-1]
    mean, spread = difference.mean(axis=-1), difference.std(axis=-1, ddof=1) / math.sqrt(runs)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, np.abs(mean) / spread)  # equal errors, even in every run, are no difference
    return np.asarray(2 * stats.t.sf(t, runs - 1))


def wilcoxon_test(first: ArrayLike, second: ArrayLike) -> float:
    """Probability of signed ranks as far apart as this, if there is no difference: (r,), (r,) -> p, two-tailed.

    Exact for up to 50 pairs without ties, otherwise by the normal approximation; pairs without a difference count half
    for either side (Wilcoxon 1945; Demšar 2006, section 3.1.3).

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
    """The least p that Wilcoxon's test can give with so many pairs, after Holm's correction for so many tests.

    All differences have one sign then, which chance gives in 2 of 2 ** runs cases.

    Examples
    --------
    >>> least_wilcoxon(5), least_wilcoxon(5, tests=5)
    (0.0625, 0.3125)
    """
    return min(1.0, tests * 2.0 ** (1 - runs))


def runs_for_wilcoxon(alpha: float, tests: int = 1) -> int:
    """Fewest pairs with which Wilcoxon's test can give a p below `alpha`, after Holm's correction.

    Examples
    --------
    >>> runs_for_wilcoxon(0.05), runs_for_wilcoxon(0.05, tests=5)
    (6, 8)
    """
    return math.floor(1 + math.log2(tests / alpha)) + 1


def coverage_test(covered: ArrayLike, level: float) -> tuple[float, int]:
    """Do intervals hold the truth as often as they say? Covered or not, (b, k) -> p and the direction.

    The exact binomial test, two-tailed, of the bags covered for each class, with Holm's correction over the classes;
    the intervals of two classes are one. The direction is -1 where the class with the least p is covered too rarely,
    and 1 where it is covered too often.

    Examples
    --------
    Eleven of eleven say nothing at 95 %; 200 of 200 do:

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
    """Whether so many bags, all of them covered, would show that intervals are too wide.

    Examples
    --------
    >>> can_be_too_wide(11, 0.95, 0.05), can_be_too_wide(100, 0.95, 0.05)
    (False, True)
    """
    return coverage_test(np.ones((bags, 1)), level)[0] < alpha


def holm(p: ArrayLike) -> FloatArray:
    """Probabilities of several tests, raised so that all of them together keep their level: (m,) -> (m,) (Holm 1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values = np.asarray(p, dtype=float)
    order = np.argsort(values, kind="stable")
    raised = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    result = np.empty_like(values)
    result[order] = np.minimum(raised, 1.0)
    return result


@dataclass(frozen=True, slots=True, eq=False)
class Friedman:
    """What Friedman's test says of m methods on N blocks.

    Attributes
    ----------
    ranks : (m,) mean ranks; 1 is the least error.
    blocks : N.
    statistic, p : Friedman's chi-squared on m - 1 degrees of freedom, and its probability.
    f_statistic, f_p : Iman and Davenport's less conservative F on m - 1 and (m - 1)(N - 1) degrees, and its own.
    """

    ranks: FloatArray
    blocks: int
    statistic: float
    p: float
    f_statistic: float
    f_p: float


def friedman_test(errors: ArrayLike) -> Friedman:
    r"""Do m methods differ at all? Errors of N blocks (datasets, or runs of datasets) by m methods: (N, m).

    .. math:: \chi^2_F = \frac{12 N}{m (m + 1)} \Big(\sum_j R_j^2 - \frac{m (m + 1)^2}{4}\Big),
              \quad F_F = \frac{(N - 1) \chi^2_F}{N (m - 1) - \chi^2_F}

    with mean ranks :math:`R_j` (Friedman 1937; Iman and Davenport 1980; Demšar 2006, section 3.2.2).

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
        raise InvalidData("Friedman's test needs every method's error in every block; some are missing or infinite.")
    blocks, methods = values.shape
    ranks = stats.rankdata(values, axis=1).mean(axis=0)
    spread = float((ranks**2).sum()) - methods * (methods + 1) ** 2 / 4
    chi2 = max(12 * blocks / (methods * (methods + 1)) * spread, 0.0)
    left = blocks * (methods - 1) - chi2
    # All blocks agree on one order: nothing is left to compare the differences with.
    f = (blocks - 1) * chi2 / left if left > 1e-9 else math.inf
    degrees = methods - 1
    return Friedman(
        ranks,
        blocks,
        chi2,
        float(stats.chi2.sf(chi2, degrees)),
        f,
        float(stats.f.sf(f, degrees, degrees * (blocks - 1))),
    )


def critical_distance(methods: int, blocks: int, *, alpha: float = 0.05) -> float:
    r"""Mean ranks of two methods that differ by this or more differ significantly, by Nemenyi's test.

    .. math:: q_\alpha \sqrt{\frac{m (m + 1)}{6 N}}

    with :math:`q_\alpha` the studentised range's quantile over :math:`\sqrt 2` (Nemenyi 1963; Demšar 2006,
    section 3.2.2).

    Examples
    --------
    >>> critical_distance(4, 14)
    1.2536
    """
    if methods < 2 or blocks < 2 or not 0 < alpha < 1:
        raise InvalidSetting(
            "a critical distance is that of at least 2 methods on at least 2 blocks at 0 < alpha < 1; "
            f"got {methods} methods, {blocks} blocks, alpha {alpha}."
        )
    q = float(stats.studentized_range.ppf(1 - alpha, methods, np.inf)) / math.sqrt(2)
    return q * math.sqrt(methods * (methods + 1) / (6 * blocks))


def alike(ranks: ArrayLike, distance: float) -> list[IntArray]:
    """Largest groups of two or more methods whose mean ranks lie within less than the critical distance, best first.

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
        if end - start > 1 and end > covered:  # one that ends where an earlier one ended is a part of it
            groups.append(order[start:end])
            covered = end
    return groups


def _differences(first: ArrayLike, second: ArrayLike) -> FloatArray:
    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if one.shape[-1:] != other.shape[-1:] or one.ndim == 0:
        raise InvalidData(f"errors are paired by runs, but their shapes are {one.shape} and {other.shape}.")
    if one.shape[-1] < 2:
        raise InvalidData(f"a paired test needs at least two runs; there is {one.shape[-1]}. Run more.")
    return one - other
