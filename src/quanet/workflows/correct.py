"""Correct a judge's rates group by group: the answer of `quanet correct`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray
from quanet.data.periods import Key
from quanet.diagnostics.findings import WIDE
from quanet.errors import InvalidData
from quanet.labels.judge_groups import ErrorTest, compare_errors, uses_own_labels
from quanet.labels.judges import correct_counts, human_classes, judgement_cells
from quanet.parameters import check_level
from quanet.simplex import encode


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

    @property
    def labels_used(self) -> list[str]:
        """Human labels that corrected each group: "own" or "all"."""
        return ["own" if own else "all" for own in self.own_labels.tolist()]

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
    calibration: tuple[Sequence[Any], Sequence[Any]] | None = None,
    at_random: bool = True,
    scores: bool = False,
    same_errors: bool = False,
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
    calibration : human labels and the judge's labels or scores of other instances, (m,) each. Then `human` is ignored.
    at_random : True if the human-labelled instances are a random part of all. Otherwise human labels only show how the
        judge errs.
    scores : True if the judge gives scores; two classes only.
    same_errors : assume equal errors in all groups, so that all labels correct each group.
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
    present = _present(given)
    ungrouped = int((present & (place < 0)).sum())
    place, groups = _without_empty_groups(place, groups, present)
    truth, judged_truth, labelled = _human_labels(given, human, calibration)
    classes = human_classes(truth)
    codes = encode(truth, classes)
    part = calibration is None and at_random
    counted = present & ~labelled if part else present
    _check_judged(given[present], judged_truth, classes, scores=scores)
    cells, on_human = _cells(given[counted], judged_truth, classes, codes, scores=scores)
    k, g = len(classes), len(groups)
    j = int(max(cells.max(initial=0), on_human.max(), 0 if scores else k - 1)) + 1
    table = _counts(codes, on_human, k, j)
    tables, errors = np.zeros((g, k, j), dtype=np.intp), None
    if calibration is None:
        tables = _counts(place[labelled], codes * j + on_human, g, k * j).reshape(g, k, j)
        errors = compare_errors(tables)
    own_labels = np.zeros(g, dtype=bool)
    if errors is not None and not same_errors:
        own_labels = uses_own_labels(tables, differ=errors.differ)
    own = tables.sum(axis=2) if part else np.zeros((g, k), dtype=np.intp)
    own_all = table.sum(axis=1) if part else np.zeros(k, dtype=np.intp)
    bags = np.vstack([_counts(place[counted], cells, g, j), np.bincount(cells, minlength=j)])
    used = np.concatenate([np.where(own_labels[:, None, None], tables, table), table[None]])
    estimate, lower, upper = correct_counts(bags, used, np.vstack([own, own_all]), level=level)
    shares = np.full((g + 1, k), np.nan)
    if not scores:
        every = encode(given[present], classes)
        counts = np.vstack([_counts(place[present], every, g, k), np.bincount(every, minlength=k)])
        shares = counts / counts.sum(axis=1, keepdims=True)
    sizes = np.bincount(place[present & (place >= 0)], minlength=g)
    if errors is not None and errors.differ and not part and not same_errors:
        estimate[-1], lower[-1], upper[-1] = _combined(estimate[:-1], lower[:-1], upper[:-1], sizes, own_labels)
    return Correction(
        classes=classes,
        keys=tuple(keys),
        groups=tuple(groups),
        sizes=sizes,
        estimate=estimate[:-1],
        lower=lower[:-1],
        upper=upper[:-1],
        judged=shares[:-1],
        total=np.stack([estimate[-1], lower[-1], upper[-1], shares[-1]]),
        rates=None if scores else table / table.sum(axis=1, keepdims=True),
        labelled=len(truth),
        level=level,
        small=(upper - lower)[:-1].max(axis=1) > 2 * WIDE,
        skipped={why: n for why, n in (("no judgement", int((~present).sum())), ("no group", ungrouped)) if n},
        source=source,
        calibration="part" if part else "apart",
        own_labels=own_labels,
        errors=errors,
        assumed=same_errors,
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

    return total, np.maximum(total - reach(lower), 0), np.minimum(total + reach(upper), 1)


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


def _present(values: Any) -> BoolArray:
    """Values that are neither None nor NaN: (n,)."""
    return np.array([value is not None and value == value for value in values], dtype=bool)


def _human_labels(given: Any, human: Any, calibration: tuple[Any, Any] | None) -> tuple[Any, Any, BoolArray]:
    """Human labels and the judge's labels of the same instances, (m,) each; and which instances have both (n,)."""
    if calibration is not None:
        truth, judged = (np.asarray(one, dtype=object) for one in calibration)
        both, labelled = _present(truth) & _present(judged), np.zeros(len(given), dtype=bool)
    else:
        truth, judged = np.asarray(human, dtype=object), given
        if len(truth) != len(given):
            raise InvalidData(f"judged has {len(given)} values but human has {len(truth)}. Pass one for each instance.")
        both = labelled = _present(truth) & _present(given)
    if not both.any():
        raise InvalidData(
            "no row has both a human label and a judgement, so the judge's errors are unknown. Label some of the rows."
        )
    return _typed(truth[both]), _typed(judged[both]), labelled


def _typed(values: Any) -> Any:
    """An array of objects as an array of numbers or strings."""
    return np.array(values.tolist())


def _check_judged(judged: Any, judged_truth: Any, classes: LabelArray, *, scores: bool) -> None:
    """Raise unless the judge's labels are among the human labels."""
    if not len(judged):
        raise InvalidData("no row has a judgement. Choose the column with the judge's labels.")
    if scores:
        return
    known = set(classes.tolist())
    unknown = [value for value in (*judged.tolist(), *judged_truth.tolist()) if value not in known]
    if unknown:
        raise InvalidData(
            f"the judge's label {unknown[0]!r} ({unknown.count(unknown[0]):,} rows) is not among the human labels: "
            f"{', '.join(map(repr, classes.tolist()))}. Drop these rows, or use the same labels."
        )


def _cells(
    judged: Any, judged_truth: Any, classes: LabelArray, codes: IntArray, *, scores: bool
) -> tuple[IntArray, IntArray]:
    """Column numbers, see `judgement_cells`, of the instances to correct and of the labelled ones."""
    if not len(judged):  # all instances have a human label
        return np.empty(0, dtype=np.intp), judgement_cells(judged_truth, judged_truth, classes, codes, scores=scores)[1]
    return judgement_cells(_typed(judged), judged_truth, classes, codes, scores=scores)
