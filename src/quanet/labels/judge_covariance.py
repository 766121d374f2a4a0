"""How corrected rates vary together: what groups share (human labels, clusters of rows), and what clusters cost.

Differences between the rates of groups follow from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse, stats

from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray
from quanet.uncertainty.contrasts import combined_reaches
from quanet.uncertainty.differences import Differences

# Added to every cell of the table of human and judged labels, for the interval only. With 10 labels per class, the
# intervals cover at worst 90 % without it and 93 % with it (benchmarks/judges.py, 500 trials per setting).
PSEUDO_COUNT = 0.1
FEW_CLUSTERS = 20  # effective ones; with fewer, intervals are rough
CHUNK = 2000  # units whose influences are in memory at once


@dataclass(frozen=True, slots=True, eq=False)
class JudgedUnits:
    """Rows, and the units that are independent of each other: clusters, or the rows themselves.

    Attributes
    ----------
    unit : (n,) the unit of each row, from 0.
    group : (n,) the group of each row, -1 for none.
    human : (n,) the human label as a class number, -1 for none.
    cell : (n,) the judge's label, or bin of its scores, as a number.
    judged : (n,) rows whose judgement counts for the rates of their group.
    direct : (n,) rows whose human label counts for the rates of their group.
    weight : (u,) how often each unit occurs; None for once.
    """

    unit: IntArray
    group: IntArray
    human: IntArray
    cell: IntArray
    judged: BoolArray
    direct: BoolArray
    weight: FloatArray | None = None

    def without_clusters(self) -> "JudgedUnits":
        """Each row as its own unit; equal rows are one unit with a weight."""
        kinds = np.stack([self.group, self.human, self.cell, self.judged, self.direct])
        (group, human, cell, judged, direct), weight = np.unique(kinds, axis=1, return_counts=True)
        unit = np.arange(len(weight))
        return JudgedUnits(unit, group, human, cell, judged > 0, direct > 0, weight.astype(float))


@dataclass(frozen=True, slots=True, eq=False)
class JointSpread:
    """How the corrected rates of r problems vary together, to first order.

    Attributes
    ----------
    covariance : (k, r, r) of the estimates, by class.
    effect : (r, k) design effect: the variance relative to that of as many independent rows.
    clusters : (r, k) effective number of units: as many of equal influence have the same sum.
    freedom : (r, k) degrees of freedom of the variance. They are one less than there are effective units, and fewer if
        a few units dominate, such as those with most cases of a rare class.
    """

    covariance: FloatArray
    effect: FloatArray
    clusters: FloatArray
    freedom: FloatArray

    def stretch(self, level: float) -> FloatArray:
        """Factor by which clusters enlarge the critical value of a likelihood-ratio test: (r, k).

        It is the design effect, with the t distribution instead of the normal one (Kent 1982; Rao and Scott 1984;
        Carter, Schnepel and Steigerwald 2017).
        """
        # Few clusters may look less variable than independent rows by chance.
        effect = np.where(self.clusters < FEW_CLUSTERS, np.maximum(self.effect, 1.0), self.effect)
        wider = stats.f.ppf(level, 1, self.freedom) / stats.chi2.ppf(level, 1)
        return np.asarray(effect * (1 + 1 / self.freedom) * wider)

    def of_groups(self) -> "JointSpread":
        """Without the last problem, which is all rows together."""
        return JointSpread(self.covariance[:, :-1, :-1], self.effect[:-1], self.clusters[:-1], self.freedom[:-1])

    @property
    def correlation(self) -> FloatArray:
        """Correlation of the estimates, by class: (k, r, r)."""
        spread = np.sqrt(np.maximum(np.einsum("crr->cr", self.covariance), 1e-300))
        return np.asarray(self.covariance / (spread[:, :, None] * spread[:, None, :]))


def joint_spread(
    units: JudgedUnits, bags: IntArray, tables: IntArray, own: IntArray, estimate: FloatArray, pooled: BoolArray
) -> JointSpread:
    """Covariance of corrected rates, from the influence of every row on every rate.

    Parameters
    ----------
    units : the rows.
    bags, tables, own : (r, j), (r, k, j), (r, k) counts of the groups and, last, of all rows together; see
        `correct_counts`.
    estimate : (r, k) corrected rates.
    pooled : (r,) True if the table has the human labels of all groups, False for those of the group alone.
    """
    r, k, j = tables.shape
    influences = _influences(bags, tables, own, estimate)
    expected = _mean_squares((bags, tables, own), influences)
    n_units = int(units.unit.max()) + 1
    weight = np.ones(n_units) if units.weight is None else units.weight
    labelled = units.human >= 0
    place = (units.unit[labelled], (units.human * j + units.cell)[labelled])
    shown = sparse.csr_matrix((np.ones(len(place[0])), place), shape=(n_units, k * j))
    covariance = np.zeros((k, r, r))
    plain, square, fourth = np.zeros((3, r, k))
    for c in range(k):
        sums, squares = (_of_groups(units, one, ~pooled, c, n_units) for one in (influences, expected))
        common, common_square = (
            np.where(pooled, one[1][..., c].reshape(r, -1).T, 0.0) for one in (influences, expected)
        )  # (k j, r)
        for at in range(0, n_units, CHUNK):
            part = slice(at, at + CHUNK)
            together = np.asarray(sums[part].toarray() + shown[part] @ common)
            alone = np.asarray(squares[part].toarray() + shown[part] @ common_square)
            covariance[c] += together.T @ (weight[part, None] * together)
            plain[:, c] += weight[part] @ alone
            square[:, c] += weight[part] @ alone**2
            fourth[:, c] += weight[part] @ together**4
    variance = np.einsum("crr->rc", covariance)
    effect = np.where(plain > 0, variance / np.maximum(plain, 1e-300), 1.0)
    clusters = np.where(plain > 0, plain**2 / np.maximum(square, 1e-300), n_units)
    # Satterthwaite: twice the squared variance, divided by the variance of its estimate.
    excess = fourth / np.maximum(variance, 1e-150) ** 2 - 1 / clusters
    freedom = np.minimum(clusters, 2 / np.maximum(excess, 1e-9)) - 1
    return JointSpread(covariance, effect, clusters, np.maximum(freedom, 1.0))


def _of_groups(
    units: JudgedUnits, influences: tuple[FloatArray, FloatArray, FloatArray], own: BoolArray, c: int, n_units: int
) -> sparse.csr_matrix:
    """Influence of each unit on the rates of its rows' groups and of all rows, without pooled human labels: (u, r)."""
    of_judged, of_table, of_own = (one[..., c] for one in influences)
    r = len(own)
    labelled = units.human >= 0
    rows, columns, values = [], [], []
    for problem in (units.group, np.full(len(units.group), r - 1)):
        member = problem >= 0
        kinds = (
            (units.judged & member, of_judged, (units.cell,)),
            (units.direct & member, of_own, (units.human,)),
            (labelled & member & own[problem], of_table, (units.human, units.cell)),
        )
        for chosen, influence, place in kinds:
            rows.append(units.unit[chosen])
            columns.append(problem[chosen])
            values.append(influence[problem[chosen], *(one[chosen] for one in place)])
    at = (np.concatenate(rows), np.concatenate(columns))
    return sparse.csr_matrix((np.concatenate(values), at), shape=(n_units, r))


def _mean_squares(
    counts: tuple[IntArray, IntArray, IntArray], influences: tuple[FloatArray, FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean square of the influences of rows of one kind, in the shape of the influences."""
    means = []
    for number, one in zip(counts, influences, strict=True):
        share = number / np.maximum(number.sum(axis=-1, keepdims=True), 1)
        means.append(np.broadcast_to((share[..., None] * one**2).sum(axis=-2, keepdims=True), one.shape))
    return means[0], means[1], means[2]


def _influences(
    bags: IntArray, tables: IntArray, own: IntArray, estimate: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Change of the rates by one judgement (r, j, k), by one row of the table (r, k, j, k), by one own label (r, k, k).

    They are scores times the inverse of Fisher's information, at rates and errors away from 0 and 1; each kind of row
    has influence zero on average.
    """
    r, k, j = tables.shape
    rates = tables + PSEUDO_COUNT
    rates = rates / rates.sum(axis=2, keepdims=True)
    n_judged, n_table, n_own = bags.sum(axis=1), tables.sum(axis=2), own.sum(axis=1)
    n = (n_judged + n_own)[:, None]
    shares = (n * estimate + 0.5) / (n + 0.5 * k)
    mixed = np.einsum("rc,rcj->rj", shares, rates)
    eye_k, eye_j = np.eye(k), np.eye(j)
    # Scores in the logits of the rates (k j) and of the shares (k): (r, j, d), (r, k, j, d), (r, k, d).
    by_rate = shares[:, None, :, None] * rates.swapaxes(1, 2)[..., None] * (eye_j[:, None] - rates[:, None])
    by_share = shares[:, None] * (rates.swapaxes(1, 2) - mixed[..., None])
    judged = np.concatenate([by_rate.reshape(r, j, k * j), by_share], axis=2) / mixed[..., None]
    within = np.einsum("cd,rcja->rcjda", eye_k, eye_j - rates[:, :, None]).reshape(r, k, j, k * j)
    table = np.concatenate([within, np.zeros((r, k, j, k))], axis=3)
    direct = np.concatenate([np.zeros((r, k, k * j)), eye_k - shares[:, None]], axis=2)
    information = np.einsum("rj,rja,rjb->rab", n_judged[:, None] * mixed, judged, judged)
    information += np.einsum("rcj,rcja,rcjb->rab", n_table[..., None] * rates, table, table)
    information += np.einsum("rc,rca,rcb->rab", n_own[:, None] * shares, direct, direct)
    to_shares = shares[:, :, None] * (eye_k - shares[:, None])
    solved = to_shares @ np.linalg.pinv(information, rcond=1e-10, hermitian=True)[:, k * j :]
    of_judged = np.einsum("rcd,rjd->rjc", solved, judged)
    of_table = np.einsum("rcd,rajd->rajc", solved, table)
    of_own = np.einsum("rcd,rad->rac", solved, direct)
    of_judged -= np.einsum("rj,rjc->rc", bags / np.maximum(n_judged, 1)[:, None], of_judged)[:, None]
    of_table -= np.einsum("raj,rajc->rac", tables / np.maximum(n_table, 1)[..., None], of_table)[:, :, None]
    of_own -= np.einsum("ra,rac->rc", own / np.maximum(n_own, 1)[:, None], of_own)[:, None]
    return of_judged, of_table, of_own


def cluster_codes(names: Sequence[Any]) -> IntArray:
    """Clusters as numbers; a row without a name is a cluster of its own.

    Examples
    --------
    >>> cluster_codes(["a", "b", None, "a", None])
    array([0, 1, 2, 0, 3])
    """
    numbers: dict[Any, int] = {}
    return np.array(
        [
            numbers.setdefault(("row", row) if name is None or name != name else name, len(numbers))
            for row, name in enumerate(names)
        ],
        dtype=np.intp,
    )


def contrast_limits(
    weights: FloatArray, estimate: FloatArray, lower: FloatArray, upper: FloatArray, correlation: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weighted sums of rates with intervals: (m, r), three of (r, k), (k, r, r) -> three of (m, k)."""
    total = weights @ estimate
    reaches = combined_reaches(weights[..., None], estimate - lower, upper - estimate, correlation[None], np.False_)
    return total, total - reaches[0], total + reaches[1]


def contrast_rates(
    weights: FloatArray,
    names: tuple[Sequence[str], Sequence[str]],
    rates: tuple[FloatArray, FloatArray, FloatArray],
    spread: JointSpread,
    *,
    level: float,
    classes: LabelArray,
    sizes: IntArray | None = None,
) -> Differences:
    """Differences between weighted means of corrected rates, with intervals, p-values and Holm's correction.

    Parameters
    ----------
    weights : (m, r) of each rate in each difference: positive for the second side, negative for the first.
    names : of the first and second sides, (m,) each.
    rates : estimate, lower and upper limits of the rates, (r, k) each.
    spread : how the rates vary together.
    level, classes : confidence level and (k,) labels of the rates.
    sizes : (m, 2) instances of both sides.
    """
    estimate, lower, upper = rates
    found, low, high = contrast_limits(weights, estimate, lower, upper, spread.correlation)
    apart = np.broadcast_to(np.eye(len(estimate)), spread.correlation.shape)
    _, low_apart, high_apart = contrast_limits(weights, estimate, lower, upper, apart)
    # The distance from the estimate to its limit towards 0 stands for the quantile of `level`.
    towards = np.where(found > 0, found - low, high - found)
    freedom = np.where(weights[..., None] != 0, spread.freedom, np.inf).min(axis=1)
    quantile = stats.t.ppf((1 + level) / 2, freedom)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(found == 0, 0.0, np.abs(found) / towards * quantile)
    return Differences.of(
        *names,
        found,
        np.maximum(low, -1),
        np.minimum(high, 1),
        2 * stats.t.sf(t, freedom),
        level=level,
        classes=classes,
        first_estimate=np.maximum(-weights, 0) @ estimate,
        second_estimate=np.maximum(weights, 0) @ estimate,
        sizes=sizes,
        relative_width=(high - low) / np.maximum(high_apart - low_apart, 1e-300),
    )
