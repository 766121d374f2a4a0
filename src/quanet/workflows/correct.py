"""Correct a judge's rates group by group: the answer of `quanet correct`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray
from quanet.data.periods import Key
from quanet.evaluation.findings import WIDE
from quanet.labels.judge_covariance import FEW_CLUSTERS, JointSpread, contrast_limits, joint_spread
from quanet.labels.judge_groups import ErrorTest, cluster_effect, compare_errors, uses_own_labels
from quanet.labels.judges import correct_counts
from quanet.parameters import check_level
from quanet.simplex import encode
from quanet.uncertainty.differences import Differences
from quanet.workflows.judge_checks import AnchorCheck, JudgePanel
from quanet.workflows.judgements import Calibration, Judgements, Kind, is_present, read_judgements


@dataclass(frozen=True, slots=True, eq=False)
class ClusterFacts:
    """Clusters of rows, and what they cost.

    Attributes
    ----------
    judged, labelled : number of clusters of the judged rows and of the human-labelled ones.
    shared : number of clusters in both, if the human labels come from another file.
    largest : rows of the largest cluster. If it is 1, intervals are those of independent rows.
    effect : (k,) design effect of all rows together: the variance relative to that of independent rows.
    few : (g + 1,) True if a group, or last all rows together, has few clusters for its interval.
    """

    judged: int
    labelled: int
    shared: int
    largest: int
    effect: FloatArray
    few: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Correction:
    """Corrected rates of groups and of all instances together.

    Attributes
    ----------
    classes : (k,) labels.
    estimate, lower, upper : (g, k) corrected shares and the limits of their intervals.
    judged : (g, k) uncorrected rates of the judge; NaN for scores.
    total : (4, k) estimate, lower, upper and judged of all instances together.
    rates : (k, k) share of each judge's label (columns) among instances of each human label (rows); None for scores.
    keys, groups, sizes : as in `Shares`.
    labelled : number of human labels.
    level : confidence level.
    small : (g,) groups whose interval is too wide to be useful.
    own_labels : (g,) groups corrected by their own human labels alone. The others use the labels of all groups, which
        assumes that the judge errs there as it does on average.
    skipped : number of rows left out, by reason.
    source : name of the data.
    calibration : "part": the labelled rows are a random part of the data, so their human labels also count directly; or
        "apart": human labels only show how the judge errs.
    errors : test whether the judge's errors differ between groups; None if the groups of the labels are unknown.
    assumed : True if equal errors in all groups were requested.
    tables : (g, k, j) human-labelled instances of each group by human label and judge's label; zeros if unknown.
    spread : how the rates of the groups and, last, of all rows vary together; None if not needed.
    clusters : clusters of rows; None if rows are independent.
    differences : between groups, if requested.
    panel : the rates of each of several judges; then the other attributes are about all judges together.
    anchor : check of the judge on an anchor set, if there is one.
    """

    classes: LabelArray
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    judged: FloatArray
    total: FloatArray
    rates: FloatArray | None
    keys: tuple[Key, ...]
    groups: tuple[tuple[str, ...], ...]
    sizes: IntArray
    labelled: int
    level: float
    small: BoolArray
    own_labels: BoolArray
    skipped: dict[str, int] = field(default_factory=dict)
    source: str = ""
    calibration: str = "apart"
    errors: ErrorTest | None = None
    assumed: bool = False
    tables: IntArray | None = None
    spread: JointSpread | None = None
    clusters: ClusterFacts | None = None
    differences: Differences | None = None
    panel: JudgePanel | None = None
    anchor: AnchorCheck | None = None

    @property
    def labels_used(self) -> list[str]:
        """Human labels that corrected each group: "own" or "all"."""
        return ["own" if own else "all" for own in self.own_labels.tolist()]

    def intervals(self, c: int) -> list[tuple[str, float, float, float]]:
        """Name, estimate, lower and upper end for a class: all rows together, then the groups."""
        every = [("all", *self.total[:3, c].tolist())]
        if self.keys:
            names = (" · ".join(map(str, group)) for group in self.groups)
            every += zip(names, *(one[:, c].tolist() for one in (self.estimate, self.lower, self.upper)), strict=True)
        return every

    @property
    def doubtful(self) -> BoolArray:
        """Groups corrected by the labels of all groups although the judge's errors differ between groups: (g,)."""
        return ~self.own_labels & (self.errors is not None and self.errors.differ)


def correct_groups(
    judged: Sequence[Any],
    human: Sequence[Any],
    *,
    keys: Sequence[Key] = (),
    groups: Sequence[tuple[str, ...]] = ((),),
    owner: NDArray[np.integer[Any]] | None = None,
    calibration: Calibration | None = None,
    at_random: bool = True,
    kind: Kind = "labels",
    same_errors: bool = False,
    clusters: Sequence[Any] | None = None,
    joint: bool = False,
    level: float = 0.95,
    source: str = "",
) -> Correction:
    """Corrected shares of groups of judged instances, and of all instances together.

    The judge's errors may differ between groups; this is tested. A group with enough human labels is corrected by these
    alone, every other group by the labels of all groups.

    Parameters
    ----------
    judged : (n,) the judge's labels, or scores for the larger class; None if missing.
    human : (n,) human labels; None if missing.
    keys, groups : columns of the groups and names of the groups, as in `Shares`.
    owner : (n,) group of each instance as a position in `groups`, -1 for none. None puts all instances in one group.
    calibration : human labels and the judge's labels or scores of other instances, (m,) each, and their clusters if
        there are clusters. Then `human` is ignored.
    at_random : True if the human-labelled instances are a random part of all. Otherwise human labels only show how the
        judge errs.
    kind : "labels"; "scores", two classes only; or "patterns", numbers of the combined labels of several judges.
    same_errors : assume equal errors in all groups, so that all labels correct each group.
    clusters : (n,) names of clusters, such as conversations, whose instances are not independent. Clusters are
        independent of each other. None if instances are.
    joint : True to compute how groups vary together also without clusters, for differences between groups.
    level : confidence level.
    source : name of the data.

    Examples
    --------
    >>> judged = ["good"] * 80 + ["bad"] * 20 + ["good"] * 10 + ["bad"] * 90 + ["good"] * 450 + ["bad"] * 550
    >>> human = ["good"] * 100 + ["bad"] * 100 + [None] * 1000
    >>> found = correct_groups(judged, human)
    >>> found.classes.tolist(), found.estimate.round(2), found.judged.round(2), found.labelled
    (['bad', 'good'], array([[0.5, 0.5]]), array([[0.55, 0.45]]), 200)
    """
    check_level(level)
    given = np.asarray(judged, dtype=object)
    place = np.zeros(len(given), dtype=np.intp) if owner is None else np.asarray(owner, dtype=np.intp)
    present = is_present(given)
    ungrouped = int((present & (place < 0)).sum())
    place, groups = _without_empty_groups(place, groups, present)
    data = read_judgements(judged, human, calibration=calibration, at_random=at_random, kind=kind, clusters=clusters)
    k, j, g = len(data.classes), data.width, len(groups)
    table = data.table
    tables, errors = np.zeros((g, k, j), dtype=np.intp), None
    if calibration is None:
        shown = data.codes * j + data.on_human
        tables = _counts(place[data.labelled], shown, g, k * j).reshape(g, k, j)
        effect = cluster_effect(tables, place[data.labelled], shown, data.units_on_human)
        errors = compare_errors(tables, design_effect=effect)
    own_labels = np.zeros(g, dtype=bool)
    if errors is not None and not same_errors:
        own_labels = uses_own_labels(tables, differ=errors.differ)
    cells = data.cells[data.counted]
    bags = np.vstack([_counts(place[data.counted], cells, g, j), np.bincount(cells, minlength=j)])
    used = np.concatenate([np.where(own_labels[:, None, None], tables, table), table[None]])
    own = np.vstack([tables.sum(axis=2), table.sum(axis=1)]) * data.part
    estimate, lower, upper = correct_counts(bags, used, own, level=level)
    spread, facts = None, None
    if joint or clusters is not None:
        spread, largest = _spread(data, place, (bags, used, own), estimate, np.append(~own_labels, True))
        if largest > 1:
            estimate, lower, upper = correct_counts(bags, used, own, level=level, stretch=spread.stretch(level))
        if clusters is not None:
            facts = _cluster_facts(data, spread, largest)
    shares = np.full((g + 1, k), np.nan)
    if kind == "labels":
        every = encode(np.array(given[present].tolist()), data.classes)
        counts = np.vstack([_counts(place[present], every, g, k), np.bincount(every, minlength=k)])
        shares = counts / counts.sum(axis=1, keepdims=True)
    sizes = np.bincount(place[present & (place >= 0)], minlength=g)
    if errors is not None and errors.differ and not data.part and not same_errors:
        each = estimate[:-1], lower[:-1], upper[:-1]
        together = _combined(*each, sizes, own_labels)
        if spread is not None and facts is not None:
            shared = spread.correlation[:, :-1, :-1]
            together = tuple(one[0] for one in contrast_limits(sizes[None] / sizes.sum(), *each, shared))
        estimate[-1], lower[-1], upper[-1] = together[0], np.maximum(together[1], 0), np.minimum(together[2], 1)
    return Correction(
        classes=data.classes,
        keys=tuple(keys),
        groups=tuple(groups),
        sizes=sizes,
        estimate=estimate[:-1],
        lower=lower[:-1],
        upper=upper[:-1],
        judged=shares[:-1],
        total=np.stack([estimate[-1], lower[-1], upper[-1], shares[-1]]),
        rates=table / table.sum(axis=1, keepdims=True) if kind == "labels" else None,
        labelled=len(data.codes),
        level=level,
        small=(upper - lower)[:-1].max(axis=1) > 2 * WIDE,
        skipped={why: n for why, n in (("no judgement", int((~present).sum())), ("no group", ungrouped)) if n},
        source=source,
        calibration="part" if data.part else "apart",
        own_labels=own_labels,
        errors=errors,
        assumed=same_errors,
        tables=tables,
        spread=spread,
        clusters=facts,
    )


def _spread(
    data: Judgements,
    place: IntArray,
    counts: tuple[IntArray, IntArray, IntArray],
    estimate: FloatArray,
    pooled: BoolArray,
) -> tuple[JointSpread, int]:
    """How the rates vary together, and the number of rows of the largest cluster."""
    rows = data.rows(place)
    largest = int(np.bincount(rows.unit).max())
    rows = rows if largest > 1 else rows.without_clusters()
    return joint_spread(rows, *counts, estimate, pooled), largest


def _cluster_facts(data: Judgements, spread: JointSpread, largest: int) -> ClusterFacts:
    assert data.units is not None
    assert data.units_on_human is not None
    judged, labelled = np.unique(data.units[data.present]), np.unique(data.units_on_human)
    apart = not data.labelled.any()
    return ClusterFacts(
        judged=len(judged),
        labelled=len(labelled),
        shared=len(np.intersect1d(judged, labelled)) if apart else 0,
        largest=largest,
        effect=spread.effect[-1] if largest > 1 else np.ones(len(data.classes)),
        few=spread.clusters.min(axis=1) < FEW_CLUSTERS,
    )


def _combined(
    estimate: FloatArray, lower: FloatArray, upper: FloatArray, sizes: IntArray, own_labels: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Shares of all groups together from the shares of each (g, k), if the judge's errors differ between groups.

    Distances between limits and estimates add up like standard deviations: in squares for groups with their own labels,
    which are independent, and linearly for groups that share the labels of all (Zou and Donner 2008).
    """
    weights = (sizes / sizes.sum())[:, None]
    total = (weights * estimate).sum(axis=0)

    def reach(end: FloatArray) -> FloatArray:
        far = weights * np.abs(end - estimate)
        return np.sqrt((far[own_labels] ** 2).sum(axis=0) + far[~own_labels].sum(axis=0) ** 2)

    return total, total - reach(lower), total + reach(upper)


def _without_empty_groups(
    owner: IntArray, groups: Sequence[tuple[str, ...]], present: BoolArray
) -> tuple[IntArray, list[tuple[str, ...]]]:
    """The groups with at least one judgement, and the position of each instance's group among them."""
    filled = np.bincount(owner[present & (owner >= 0)], minlength=len(groups)) > 0
    places = np.append(np.where(filled, np.cumsum(filled) - 1, -1), -1)  # the last one is for instances without a group
    return places[owner], [group for group, wanted in zip(groups, filled, strict=True) if wanted]


def _counts(owner: IntArray, cells: IntArray, g: int, j: int) -> IntArray:
    """Number of instances in each of j cells, for each of g groups: (g, j)."""
    grouped = owner >= 0
    return np.bincount(owner[grouped] * j + cells[grouped], minlength=g * j).reshape(g, j)
