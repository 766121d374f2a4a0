"""Judgements and human labels as numbers: what `quanet correct` counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from quanet.arrays import BoolArray, IntArray, LabelArray
from quanet.errors import InvalidData
from quanet.labels.judge_covariance import JudgedUnits, cluster_codes
from quanet.labels.judges import human_classes, judgement_cells
from quanet.simplex import encode

Kind: TypeAlias = Literal["labels", "scores", "patterns"]
# Human labels, judgements and, if wanted, clusters of rows of another file.
Calibration: TypeAlias = tuple[Sequence[Any], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Judgements:
    """Judged rows (n) and human-labelled rows (m) as numbers.

    Attributes
    ----------
    classes : (k,) human labels.
    width : number of labels, or bins of scores, of the judge.
    present : (n,) rows with a judgement.
    labelled : (n,) rows with a human label too; all False if human labels come from elsewhere.
    cells : (n,) the judge's label or bin, -1 where missing.
    codes, on_human : (m,) human label, and the judge's label or bin, of the human-labelled rows.
    units, units_on_human : (n,) and (m,) cluster of each row; None without clusters.
    part : True if the labelled rows are a random part of all.
    """

    classes: LabelArray
    width: int
    present: BoolArray
    labelled: BoolArray
    cells: IntArray
    codes: IntArray
    on_human: IntArray
    units: IntArray | None
    units_on_human: IntArray | None
    part: bool

    @property
    def counted(self) -> BoolArray:
        """Rows whose judgement counts: (n,)."""
        return self.present & ~self.labelled if self.part else self.present

    @property
    def table(self) -> IntArray:
        """Human-labelled rows by human label and judge's label: (k, j)."""
        k, j = len(self.classes), self.width
        return np.bincount(self.codes * j + self.on_human, minlength=k * j).reshape(k, j)

    def rows(self, place: IntArray) -> JudgedUnits:
        """All rows with their clusters; `place` is the group of each judged row."""
        rows = np.flatnonzero(self.present)
        human = np.full(len(self.present), -1)
        apart = not self.labelled.any()
        human[self.labelled] = -1 if apart else self.codes
        n, m = len(rows), len(self.codes) if apart else 0
        unit = np.arange(n + m)
        if self.units is not None and self.units_on_human is not None:
            unit = np.concatenate([self.units[rows], self.units_on_human[:m]])
        nowhere, no = np.full(m, -1), np.zeros(m, dtype=bool)
        return JudgedUnits(
            np.unique(unit, return_inverse=True)[1],
            np.concatenate([place[rows], nowhere]),
            np.concatenate([human[rows], self.codes[:m]]),
            np.concatenate([self.cells[rows], self.on_human[:m]]),
            np.concatenate([self.counted[rows], no]),
            np.concatenate([(self.labelled & self.part)[rows], no]),
        )


def read_judgements(
    judged: Sequence[Any],
    human: Sequence[Any],
    *,
    calibration: Calibration | None = None,
    at_random: bool = True,
    kind: Kind = "labels",
    clusters: Sequence[Any] | None = None,
) -> Judgements:
    """Judgements and human labels as numbers; see `correct_groups` for the parameters."""
    given = np.asarray(judged, dtype=object)
    present = is_present(given)
    truth, judged_truth, labelled = _human_labels(given, human, calibration)
    classes = human_classes(truth)
    codes = encode(truth, classes)
    part = calibration is None and at_random
    if not present.any():
        raise InvalidData("no row has a judgement. Choose the column with the judge's labels.")
    if kind == "labels":
        elsewhere = () if calibration is None else judged_truth.tolist()
        check_known((*given[present].tolist(), *elsewhere), classes)
    cells = np.full(len(given), -1)
    if kind == "patterns":
        cells[present], on_human = given[present].astype(np.intp), judged_truth.astype(np.intp)
    else:
        cells[present], on_human = judgement_cells(
            _typed(given[present]), judged_truth, classes, codes, scores=kind == "scores"
        )
    width = int(max(cells.max(), on_human.max(), len(classes) - 1 if kind == "labels" else 0)) + 1
    units, units_on_human = _clusters(clusters, calibration, labelled)
    return Judgements(classes, width, present, labelled, cells, codes, on_human, units, units_on_human, part)


def is_present(values: Any) -> BoolArray:
    """Values that are neither None nor NaN: (n,)."""
    return np.array([value is not None and value == value for value in values], dtype=bool)


def check_known(labels: Sequence[Any], classes: LabelArray, *, whose: str = "the judge's label") -> None:
    """Raise unless all labels are among the human labels."""
    known = set(classes.tolist())
    unknown = [value for value in labels if value not in known]
    if unknown:
        raise InvalidData(
            f"{whose} {unknown[0]!r} ({unknown.count(unknown[0]):,} rows) is not among the human labels: "
            f"{', '.join(map(repr, classes.tolist()))}. Drop these rows, or use the same labels."
        )


def _human_labels(given: Any, human: Any, calibration: Calibration | None) -> tuple[Any, Any, BoolArray]:
    """Human labels and the judge's labels of the same instances, (m,) each; and which instances have both (n,)."""
    if calibration is not None:
        truth, judged = (np.asarray(one, dtype=object) for one in calibration[:2])
        both, labelled = is_present(truth) & is_present(judged), np.zeros(len(given), dtype=bool)
    else:
        truth, judged = np.asarray(human, dtype=object), given
        if len(truth) != len(given):
            raise InvalidData(f"judged has {len(given)} values but human has {len(truth)}. Pass one for each instance.")
        both = labelled = is_present(truth) & is_present(given)
    if not both.any():
        raise InvalidData(
            "no row has both a human label and a judgement, so the judge's errors are unknown. Label some of the rows."
        )
    return _typed(truth[both]), _typed(judged[both]), labelled


def _typed(values: Any) -> Any:
    """An array of objects as an array of numbers or strings."""
    return np.array(values.tolist())


def _clusters(
    clusters: Sequence[Any] | None, calibration: Calibration | None, labelled: BoolArray
) -> tuple[IntArray | None, IntArray | None]:
    """Clusters as numbers, of the judged rows and of the human-labelled ones; equal names are one cluster.

    A row without a cluster is a cluster of its own.
    """
    if clusters is None:
        return None, None
    names = list(clusters)
    if calibration is not None:
        both = is_present(calibration[0]) & is_present(calibration[1])
        names += [name for name, wanted in zip(calibration[2], both, strict=True) if wanted]
    codes = cluster_codes(names)
    n = len(clusters)
    if n != len(labelled):
        raise InvalidData(f"clusters has {n} values but judged has {len(labelled)}. Pass one for each instance.")
    return codes[:n], codes[:n][labelled] if calibration is None else codes[n:]
