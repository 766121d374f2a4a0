"""What a judge's rates are once corrected, group by group: what `quanet correct` answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quanet.answers.shares import Key
from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray
from quanet.classifiers import check_labels
from quanet.diagnostics.checks import WIDE
from quanet.errors import InvalidData, InvalidSetting
from quanet.simplex import classes_of, count, encode
from quanet.uncertainty.judges import FEWEST, correct_counts, judgement_cells


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
    skipped: dict[str, int] = field(default_factory=dict)
    source: str = ""
    calibration: str = "apart"


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
    level: float = 0.95,
    source: str = "",
) -> Correction:
    """Corrected shares of groups of judged instances, and of all together.

    The judge is supposed to err in the same way in all groups: its error rates come from all human labels.

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
    there = _present(given)
    ungrouped = int((there & (place < 0)).sum())
    place, groups = _filled(place, groups, there)
    truth, beside, labelled = _human_part(given, human, aside)
    classes = _check_human(truth)
    codes = encode(truth, classes)
    part = aside is None and at_random
    counted = there & ~labelled if part else there
    _check_judged(given[there], beside, classes, scores=scores)
    cells, on_human = _cells(given[counted], beside, classes, codes, scores=scores)
    k, g = len(classes), len(groups)
    j = int(max(cells.max(initial=0), on_human.max(), 0 if scores else k - 1)) + 1
    own, own_all = np.zeros((g, k), dtype=np.intp), np.zeros(k, dtype=np.intp)
    if part:
        own, own_all = _by_group(place[labelled], codes, g, k), count(codes, k)
    table = np.array([count(on_human[codes == c], j) for c in range(k)])
    bags = np.vstack([_by_group(place[counted], cells, g, j), count(cells, j)])
    estimate, lower, upper = correct_counts(bags, table, np.vstack([own, own_all]), level=level)
    shares = np.full((g + 1, k), np.nan)
    if not scores:
        every = encode(given[there], classes)
        counts = np.vstack([_by_group(place[there], every, g, k), count(every, k)])
        shares = counts / counts.sum(axis=1, keepdims=True)
    return Correction(
        classes=classes,
        keys=tuple(keys),
        groups=tuple(groups),
        sizes=np.bincount(place[there & (place >= 0)], minlength=g),
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
    )


def _present(values: Any) -> BoolArray:
    return np.array([value is not None and value == value for value in values], dtype=bool)


def _filled(
    owner: IntArray, groups: Sequence[tuple[str, ...]], there: BoolArray
) -> tuple[IntArray, list[tuple[str, ...]]]:
    """Groups that the judge has judged something of, and every instance's place among them."""
    kept = np.bincount(owner[there & (owner >= 0)], minlength=len(groups)) > 0
    places = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)  # the last one for those of no group
    return places[owner], [group for group, wanted in zip(groups, kept, strict=True) if wanted]


def _human_part(given: Any, human: Any, aside: tuple[Any, Any] | None) -> tuple[Any, Any, BoolArray]:
    """Human labels, the judge's on the same instances, and which of the instances in question these are."""
    if aside is not None:
        truth, beside = (np.asarray(one, dtype=object) for one in aside)
        both = _present(truth) & _present(beside)
        return _plain(truth[both]), _plain(beside[both]), np.zeros(len(given), dtype=bool)
    labels = np.asarray(human, dtype=object)
    if len(labels) != len(given):
        raise InvalidData(f"there are {len(given)} judgements but {len(labels)} places for human labels.")
    labelled = _present(labels) & _present(given)
    return _plain(labels[labelled]), _plain(given[labelled]), labelled


def _plain(values: Any) -> Any:
    """Objects as an array of what they are: numbers or strings."""
    return np.array(values.tolist()) if len(values) else np.empty(0, dtype=str)


def _check_human(truth: Any) -> LabelArray:
    if not len(truth):
        raise InvalidData(
            "no row has both a human label and a judgement, so nothing is known of the judge. Label some of the rows."
        )
    classes = classes_of(check_labels(truth, len(truth)))
    if len(classes) < 2:
        raise InvalidData(
            f"all {len(truth)} human labels are {classes.tolist()[0]!r}; the judge's errors on another class are not "
            "known. Label some of the other class."
        )
    counts = count(encode(truth, classes), len(classes))
    if counts.min() < FEWEST:
        raise InvalidData(
            f"class {classes.tolist()[int(counts.argmin())]!r} has {counts.min()} human labels; the judge's errors on "
            f"it need at least {FEWEST}, better 50. Label more of it."
        )
    return classes


def _check_judged(given: Any, beside: Any, classes: LabelArray, *, scores: bool) -> None:
    if not len(given):
        raise InvalidData("no row has a judgement. Name the column that holds what the judge says.")
    if scores:
        return
    known = set(classes.tolist())
    strange = [value for value in (*given.tolist(), *beside.tolist()) if value not in known]
    if strange:
        first = strange[0]
        raise InvalidData(
            f"the judge says {first!r} in {strange.count(first):,} rows, which no human label is; these are "
            f"{', '.join(map(repr, classes.tolist()))}. Drop those rows, or let people use the same labels."
        )


def _cells(given: Any, beside: Any, classes: LabelArray, codes: IntArray, *, scores: bool) -> tuple[IntArray, IntArray]:
    if not len(given):  # people have labelled everything
        return np.empty(0, dtype=np.intp), judgement_cells(beside, beside, classes, codes, scores=scores)[1]
    return judgement_cells(_plain(given), beside, classes, codes, scores=scores)


def _by_group(owner: IntArray, cells: IntArray, g: int, j: int) -> IntArray:
    """How often each of j cells occurs in each of g groups: (g, j)."""
    inside = owner >= 0
    return np.bincount(owner[inside] * j + cells[inside], minlength=g * j).reshape(g, j)
