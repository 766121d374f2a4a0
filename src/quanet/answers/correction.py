"""What a judge's rates are once corrected, group by group: what `quanet correct` answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quanet.answers.judgements import cells_of, check_human, check_judged, human_part, present
from quanet.answers.shares import Key
from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray
from quanet.diagnostics.checks import WIDE
from quanet.errors import InvalidSetting
from quanet.simplex import encode
from quanet.uncertainty.judge_groups import ErrorTest, compare_errors, uses_own_labels
from quanet.uncertainty.judges import correct_counts


@dataclass(frozen=True, slots=True, eq=False)
class Correction:
    """Corrected rates of groups, and of all together.

    Attributes
    ----------
    classes : (k,) labels.
    keys, groups, sizes : as in `Shares`.
    estimate, lower, upper : (g, k) corrected shares and their intervals.
    judged : (g, k) shares that the judge gives, as they are; NaN for scores.
    total : (4, k) estimate, lower, upper, judged, of all together.
    rates : (k, k) shares of the judge's labels (columns) among instances of a human label (rows); None for scores.
    labelled : human labels.
    level : of confidence.
    small : (g,) groups whose interval is too wide to say much.
    skipped : rows that were left out, by the reason.
    source : where the instances come from.
    calibration : "part", the labelled rows are a random part of the file, so that their human labels count by
        themselves too; or "apart", they only tell how the judge errs.
    own_labels : (g,) groups whose correction uses their own human labels alone. That of the others uses the labels of
        all groups, and so assumes that the judge errs there as it does on average.
    errors : whether the judge errs differently from group to group; None where the labels' groups are not known.
    assumed : whether the same errors in all groups were asked for.
    """

    classes: LabelArray
    keys: tuple[Key, ...]
    groups: tuple[tuple[str, ...], ...]
    sizes: IntArray
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    judged: FloatArray
    total: FloatArray
    rates: FloatArray | None
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
        """Whose human labels corrected each group: "own" or "all"."""
        return ["own" if own else "all" for own in self.own_labels.tolist()]

    @property
    def doubtful(self) -> BoolArray:
        """Groups corrected by the labels of all though the judge's errors are known to differ between groups: (g,)."""
        return ~self.own_labels & (self.errors is not None and self.errors.differ)

    def sentence(self, at: int) -> str:
        """The answer in one sentence, about the class at a position."""
        estimate, lower, upper, judged = self.total[:, at]
        plain = "" if np.isnan(judged) else f", where the judge says {judged:.1%}"
        name = self.classes.tolist()[at]
        return f"{name}: {estimate:.1%} ({lower:.1%} to {upper:.1%} at {self.level:.0%} confidence){plain}."

    def assumptions(self) -> list[str]:
        """What the correction of groups supposes about the judge's errors, in sentences; nothing without groups."""
        if not self.keys or len(self.groups) < 2:
            return []
        return [_finding(self), *_use(self)]


def _finding(found: Correction) -> str:
    test = found.errors
    if test is None:
        return "The human labels come from another file, so whether the judge errs alike in all groups is not tested."
    if not test.tested:
        return "There are too few human labels per group to test whether the judge errs alike in all groups."
    if not test.differ:
        return f"No difference between groups in how the judge errs was found (p = {test.p_value:.2g})."
    worst = " · ".join(found.groups[int(np.argmin(test.p_values))])
    return f"The judge errs differently from group to group (p = {test.p_value:.2g}), most clearly in {worst}."


def _use(found: Correction) -> list[str]:
    own, g = int(found.own_labels.sum()), len(found.groups)
    differ = found.errors is not None and found.errors.differ
    if found.assumed:
        but = ", which the human labels contradict" if differ else ""
        return [
            f"As asked, every group is corrected by all human labels: the same errors in all groups are assumed{but}."
        ]
    said = []
    if own == g:
        said.append("Every group is corrected by its own human labels alone.")
    elif own:
        said.append(f"{own} of {g} groups are corrected by their own human labels alone.")
    if own < g:
        rest = "All groups" if not own else f"The other {g - own}"
        why = "in a group" if not own else "of their own"
        said.append(
            f"{rest} have too few labels {why} and are corrected by all human labels, which assumes that the judge "
            "errs there as it does on average."
            + (" That is doubtful here: label more rows of these groups." if differ else "")
        )
    if own and not differ:
        said.append("If the judge is known to err alike everywhere, --same-errors gives narrower intervals.")
    return said


def correct_groups(
    judged: Sequence[Any],
    human: Sequence[Any],
    *,
    keys: Sequence[Key] = (),
    groups: Sequence[tuple[str, ...]] = ((),),
    owner: NDArray[np.integer[Any]] | None = None,
    aside: tuple[Sequence[Any], Sequence[Any]] | None = None,
    at_random: bool = True,
    scores: bool = False,
    same_errors: bool = False,
    level: float = 0.95,
    source: str = "",
) -> Correction:
    """Corrected shares of groups of judged instances, and of all together.

    A judge may err differently from group to group, which is tested. A group with enough human labels is corrected by
    these alone; any other by all labels, and the answer says so.

    Parameters
    ----------
    judged : (n,) the judge's labels, or scores of the larger class; None where there is none.
    human : (n,) labels by people; None where there is none.
    keys, groups : what the groups were made by, and their names, as in `Shares`.
    owner : (n,) the group of every instance, as a position in `groups`, -1 for none. None puts all into the first.
    aside : human labels and what the judge says of the same instances, (m,) each, from elsewhere; then `human` is not
        looked at.
    at_random : whether those that people have labelled are a random part of the instances, as is supposed where they
        were not chosen by anything; else they only tell how the judge errs.
    scores : whether the judge gives scores; for two classes.
    same_errors : assume that the judge errs alike in all groups, so that all labels count for each of them.
    level : of confidence.
    source : for the reader.

    Examples
    --------
    >>> judged = ["good"] * 80 + ["bad"] * 20 + ["good"] * 10 + ["bad"] * 90 + ["good"] * 450 + ["bad"] * 550
    >>> human = ["good"] * 100 + ["bad"] * 100 + [None] * 1000
    >>> found = correct_groups(judged, human)
    >>> found.classes.tolist(), found.estimate.round(2), found.judged.round(2), found.labelled
    (['bad', 'good'], array([[0.5, 0.5]]), array([[0.55, 0.45]]), 200)
    """
    if not 0 < level < 1:
        raise InvalidSetting(f"level lies between 0 and 1, such as 0.95; got {level}.")
    given = np.asarray(judged, dtype=object)
    place = np.zeros(len(given), dtype=np.intp) if owner is None else np.asarray(owner, dtype=np.intp)
    there = present(given)
    ungrouped = int((there & (place < 0)).sum())
    place, groups = _filled(place, groups, there)
    truth, beside, labelled = human_part(given, human, aside)
    classes = check_human(truth)
    codes = encode(truth, classes)
    part = aside is None and at_random
    counted = there & ~labelled if part else there
    check_judged(given[there], beside, classes, scores=scores)
    cells, on_human = cells_of(given[counted], beside, classes, codes, scores=scores)
    k, g = len(classes), len(groups)
    j = int(max(cells.max(initial=0), on_human.max(), 0 if scores else k - 1)) + 1
    table = _by_group(codes, on_human, k, j)
    tables, errors = np.zeros((g, k, j), dtype=np.intp), None
    if aside is None:
        tables = _by_group(place[labelled], codes * j + on_human, g, k * j).reshape(g, k, j)
        errors = compare_errors(tables)
    own_labels = np.zeros(g, dtype=bool)
    if errors is not None and not same_errors:
        own_labels = uses_own_labels(tables, differ=errors.differ)
    own = tables.sum(axis=2) if part else np.zeros((g, k), dtype=np.intp)
    own_all = table.sum(axis=1) if part else np.zeros(k, dtype=np.intp)
    bags = np.vstack([_by_group(place[counted], cells, g, j), np.bincount(cells, minlength=j)])
    used = np.concatenate([np.where(own_labels[:, None, None], tables, table), table[None]])
    estimate, lower, upper = correct_counts(bags, used, np.vstack([own, own_all]), level=level)
    shares = np.full((g + 1, k), np.nan)
    if not scores:
        every = encode(given[there], classes)
        counts = np.vstack([_by_group(place[there], every, g, k), np.bincount(every, minlength=k)])
        shares = counts / counts.sum(axis=1, keepdims=True)
    sizes = np.bincount(place[there & (place >= 0)], minlength=g)
    if errors is not None and errors.differ and not part and not same_errors:
        estimate[-1], lower[-1], upper[-1] = _all_together(estimate[:-1], lower[:-1], upper[:-1], sizes, own_labels)
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
        skipped={why: n for why, n in (("no judgement", int((~there).sum())), ("no group", ungrouped)) if n},
        source=source,
        calibration="part" if part else "apart",
        own_labels=own_labels,
        errors=errors,
        assumed=same_errors,
    )


def _all_together(
    estimate: FloatArray, lower: FloatArray, upper: FloatArray, sizes: IntArray, own_labels: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Shares of all groups together from those of each, (g, k), where the judge's errors differ between them.

    Distances of ends from estimates add up as standard deviations do: by squares for groups with labels of their own,
    which are independent, and plainly for those that share all labels (Zou and Donner 2008).
    """
    weights = (sizes / sizes.sum())[:, None]
    total = (weights * estimate).sum(axis=0)

    def reach(end: FloatArray) -> FloatArray:
        far = weights * np.abs(end - estimate)
        return np.sqrt((far[own_labels] ** 2).sum(axis=0) + far[~own_labels].sum(axis=0) ** 2)

    return total, np.maximum(total - reach(lower), 0), np.minimum(total + reach(upper), 1)


def _filled(
    owner: IntArray, groups: Sequence[tuple[str, ...]], there: BoolArray
) -> tuple[IntArray, list[tuple[str, ...]]]:
    """Groups that the judge has judged something of, and every instance's place among them."""
    kept = np.bincount(owner[there & (owner >= 0)], minlength=len(groups)) > 0
    places = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)  # the last one for those of no group
    return places[owner], [group for group, wanted in zip(groups, kept, strict=True) if wanted]


def _by_group(owner: IntArray, cells: IntArray, g: int, j: int) -> IntArray:
    """How often each of j cells occurs in each of g groups: (g, j)."""
    inside = owner >= 0
    return np.bincount(owner[inside] * j + cells[inside], minlength=g * j).reshape(g, j)
