"""Several judges next to each other, and the check of a judge on an anchor set."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.errors import InvalidData
from quanet.labels.judge_covariance import cluster_codes
from quanet.labels.judge_groups import ErrorTest, cluster_effect, compare_errors
from quanet.labels.judges import MIN_PER_CLASS, agreement, combine_labels, correct_counts, judgement_cells
from quanet.simplex import encode
from quanet.workflows.judgements import Calibration, check_known, is_present, read_judgements


@dataclass(frozen=True, slots=True, eq=False)
class JudgePanel:
    """Several judges of the same rows.

    Attributes
    ----------
    names : (b,) the judges.
    totals : (b, 4, k) estimate, lower, upper and uncorrected rate of all rows together, by each judge alone.
    kappa : (b + 1, b + 1) Cohen's kappa of each pair of judges and, last, of judges and people.
    """

    names: tuple[str, ...]
    totals: FloatArray
    kappa: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class AnchorCheck:
    """Whether a judge errs on an anchor set as on the human-labelled rows that correct its rates.

    Attributes
    ----------
    test : of equal errors.
    before, now : (k, j) labels of the judge (columns) among rows of each human label; NaN without such rows.
    numbers : (2, k) human labels of each class: those that correct the rates, and those of the anchor set.
    rates : (2, 3, k) estimate, lower and upper of all rows, corrected by the former and by the latter; NaN if there are
        too few labels.
    source : name of the anchor set.
    judge : the judge, if there are several.
    """

    test: ErrorTest
    before: FloatArray
    now: FloatArray
    numbers: IntArray
    rates: FloatArray
    source: str = ""
    judge: str = ""


def combine_judges(
    judges: Sequence[Sequence[Any]], human: Sequence[Any], *, calibration: Calibration | None = None
) -> tuple[list[int | None], Calibration | None, FloatArray]:
    """Several judges' labels as those of one, and their agreement.

    Parameters
    ----------
    judges : (b, n) labels, None if missing.
    human : (n,) human labels, None if missing.
    calibration : human labels (m,), labels of all judges (b, m) and, if there are clusters, clusters of other rows.

    Returns
    -------
    judged : (n,) the number of each row's combination of labels; None if a label is missing.
    calibration : the same for the other rows.
    kappa : (b + 1, b + 1) agreement of judges and, last, people.
    """
    of_pairs = [None if calibration is None else (calibration[0], one) for one in (calibration or ((), judges))[1]]
    read = [read_judgements(one, human, calibration=pair) for one, pair in zip(judges, of_pairs, strict=True)]
    classes = np.unique(np.concatenate([one.classes for one in read]))
    codes = np.stack([_codes(one, classes) for one in judges])
    truth = _codes(human if calibration is None else calibration[0], classes)
    on_human = codes if calibration is None else np.stack([_codes(one, classes) for one in calibration[1]])
    complete, labelled = (codes >= 0).all(axis=0), (on_human >= 0).all(axis=0) & (truth >= 0)
    if not labelled.any():
        raise InvalidData("no row has a human label and the labels of all judges. Label such rows, or use one judge.")
    cells, cells_on_human = combine_labels(codes[:, complete], on_human[:, labelled], len(classes))
    combined = _filled(complete, cells)
    pairs = None
    if calibration is not None:
        pairs = (_filled(labelled, classes[truth[labelled]]), _filled(labelled, cells_on_human), *calibration[2:])
    return combined, pairs, agreement(np.vstack([on_human, truth]), len(classes))


def _codes(labels: Sequence[Any], classes: LabelArray) -> IntArray:
    """Labels as class numbers, -1 if missing."""
    given = np.asarray(labels, dtype=object)
    known = is_present(given)
    codes = np.full(len(given), -1)
    if known.any():
        codes[known] = encode(np.array(given[known].tolist()), classes)
    return codes


def _filled(places: Any, values: Any) -> list[Any]:
    """A list with these values at these places, and None elsewhere."""
    result = np.full(len(places), None, dtype=object)
    result[places] = values.tolist()
    return list(result)


def check_anchor(
    judged: Sequence[Any],
    human: Sequence[Any],
    anchor: Calibration,
    *,
    calibration: Calibration | None = None,
    clusters: Sequence[Any] | None = None,
    scores: bool = False,
    level: float = 0.95,
    source: str = "",
) -> AnchorCheck:
    """Test whether a judge errs on an anchor set as on the human-labelled rows that correct its rates.

    Parameters
    ----------
    judged, human, calibration, clusters : as in `correct_groups`.
    anchor : human labels and the judge's labels or scores of the anchor set, (a,) each; and clusters, if known.
    scores : True if the judge gives scores.
    level : confidence level.
    source : name of the anchor set.
    """
    data = read_judgements(
        judged,
        human,
        calibration=calibration,
        at_random=False,
        kind="scores" if scores else "labels",
        clusters=clusters,
    )
    truth, said = (np.asarray(one, dtype=object) for one in anchor[:2])
    both = is_present(truth) & is_present(said)
    if not both.any():
        raise InvalidData(f"{source or 'the anchor set'} has no row with a human label and a judgement.")
    check_known(truth[both].tolist(), data.classes, whose=f"{source or 'the anchor set'}: the label")
    codes = encode(np.array(truth[both].tolist()), data.classes)
    if scores:
        pairs = calibration if calibration is not None else (human, judged)
        known = is_present(pairs[0]) & is_present(pairs[1])
        given = np.array(np.asarray(pairs[1], dtype=object)[known].tolist())
        cells, _ = judgement_cells(said[both].astype(float), given, data.classes, data.codes, scores=True)
    else:
        check_known(said[both].tolist(), data.classes, whose=f"{source or 'the anchor set'}: the judge's label")
        cells = encode(np.array(said[both].tolist()), data.classes)
    k, j = len(data.classes), data.width
    cells = np.minimum(cells, j - 1)
    now = np.bincount(codes * j + cells, minlength=k * j).reshape(k, j)
    tables = np.stack([data.table, now])
    numbers = tables.sum(axis=2)
    rates = np.full((2, 3, k), np.nan)
    if numbers.min() >= MIN_PER_CLASS:
        bag = np.bincount(data.cells[data.present], minlength=j)
        found = correct_counts(np.stack([bag, bag]), tables, np.zeros((2, k), dtype=np.intp), level=level)
        rates = np.stack(found, axis=1)
    with np.errstate(invalid="ignore"):
        before, after = tables / numbers[..., None]
    effect = 1.0
    if data.units_on_human is not None and len(anchor) > 2:
        units = cluster_codes(np.asarray(anchor[2], dtype=object)[both].tolist())
        effect = cluster_effect(
            tables,
            np.repeat([0, 1], [len(data.codes), len(codes)]),
            np.concatenate([data.codes * j + data.on_human, codes * j + cells]),
            np.concatenate([data.units_on_human, units + data.units_on_human.max() + 1]),
        )
    test = compare_errors(tables, design_effect=effect)
    return AnchorCheck(test, before, after, numbers, rates, source)
