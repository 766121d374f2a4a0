"""Read judgements, human labels and clusters from files."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from quanet.data.streams import TableSource


@dataclass(frozen=True, slots=True, eq=False)
class JudgeColumns:
    """Columns of judged files: judges, human labels, clusters; and whether judges give scores."""

    judges: Sequence[str]
    human: str
    cluster: str | None = None
    scores: bool = False

    def names(self, *, with_human: bool = True) -> list[str]:
        """The columns to read."""
        return [*self.judges, *([self.human] if with_human else []), *([self.cluster] if self.cluster else [])]


@dataclass(frozen=True, slots=True, eq=False)
class JudgedTable:
    """Cells of a file: labels or scores of each judge, human labels, clusters; None where a cell is empty."""

    judges: Sequence[Sequence[Any]]
    human: Sequence[Any]
    clusters: Sequence[Any] | None

    def pairs(self) -> tuple[Any, ...]:
        """Human labels, the labels of all judges and, if there are any, clusters."""
        return (self.human, self.judges, *(() if self.clusters is None else (self.clusters,)))


def read_judged(
    table: "pd.DataFrame", source: "TableSource", columns: JudgeColumns, *, with_human: bool = True
) -> JudgedTable:
    """Cells of a table that was read from `source`."""
    return JudgedTable(
        [_judgements(table[judge], source, scores=columns.scores) for judge in columns.judges],
        _labels(table[columns.human], source) if with_human else [None] * len(table),
        None if columns.cluster is None else table[columns.cluster].tolist(),
    )


def settle_tables(
    tables: Sequence[JudgedTable | None], *, normalize: bool, given: Mapping[str, str]
) -> list[JudgedTable | None]:
    """The same tables with one spelling of each label, that of the human labels, if `normalize`.

    Names given with --names, by label, are replaced by the labels.
    """
    from quanet.data.columns import spellings
    from quanet.workflows.labelled import settle_labels

    there = [one for one in tables if one is not None]
    known = spellings([label for one in there for label in one.human]).values() if normalize else ()
    every = [label for one in there for part in (*one.judges, one.human) for label in part]
    settled = iter(settle_labels(every, normalize=normalize, known=known, given=given))

    def rebuilt(one: JudgedTable) -> JudgedTable:
        *judges, human = ([next(settled) for _ in part] for part in (*one.judges, one.human))
        return JudgedTable(judges, human, one.clusters)

    return [None if one is None else rebuilt(one) for one in tables]


def _labels(cells: Any, source: "TableSource") -> list[str | None]:
    from quanet.data.columns import label_names

    return [name or None for name in label_names(cells, source)]


def _judgements(cells: Any, source: "TableSource", *, scores: bool) -> Sequence[Any]:
    from quanet.data.columns import numbers_of
    from quanet.errors import InvalidData, brief

    if not scores:
        return _labels(cells, source)
    numbers = numbers_of(cells, source)
    for row, cell, number in zip(cells.index, cells, numbers, strict=True):
        if cell is not None and (number is None or not math.isfinite(number)):
            raise InvalidData(
                f"{source.place(row)}: {brief(cell)} in column {cells.name!r} is not a score. "
                "If the column contains labels, omit --scores."
            )
    return numbers
