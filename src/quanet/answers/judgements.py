"""Judgements and human labels as they come from a file: which can be used, and what is wrong with the others."""

from typing import Any

import numpy as np

from quanet.arrays import BoolArray, IntArray, LabelArray
from quanet.classifiers import check_labels
from quanet.errors import InvalidData
from quanet.simplex import classes_of, count, encode
from quanet.uncertainty.judges import FEWEST, judgement_cells


def present(values: Any) -> BoolArray:
    """Which values are neither None nor NaN: (n,)."""
    return np.array([value is not None and value == value for value in values], dtype=bool)


def human_part(given: Any, human: Any, aside: tuple[Any, Any] | None) -> tuple[Any, Any, BoolArray]:
    """Human labels, the judge's on the same instances, and which of the instances in question these are."""
    if aside is not None:
        truth, beside = (np.asarray(one, dtype=object) for one in aside)
        both = present(truth) & present(beside)
        return _plain(truth[both]), _plain(beside[both]), np.zeros(len(given), dtype=bool)
    labels = np.asarray(human, dtype=object)
    if len(labels) != len(given):
        raise InvalidData(f"there are {len(given)} judgements but {len(labels)} places for human labels.")
    labelled = present(labels) & present(given)
    return _plain(labels[labelled]), _plain(given[labelled]), labelled


def _plain(values: Any) -> Any:
    """Objects as an array of what they are: numbers or strings."""
    return np.array(values.tolist()) if len(values) else np.empty(0, dtype=str)


def check_human(truth: Any) -> LabelArray:
    """The classes among human labels; raise where these are too few to know how the judge errs."""
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


def check_judged(given: Any, beside: Any, classes: LabelArray, *, scores: bool) -> None:
    """Raise unless the judge uses the labels that people use."""
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


def cells_of(
    given: Any, beside: Any, classes: LabelArray, codes: IntArray, *, scores: bool
) -> tuple[IntArray, IntArray]:
    """The judge's labels, or bins of its scores, as numbers: of the instances in question and of the labelled ones."""
    if not len(given):  # people have labelled everything
        return np.empty(0, dtype=np.intp), judgement_cells(beside, beside, classes, codes, scores=scores)[1]
    return judgement_cells(_plain(given), beside, classes, codes, scores=scores)
