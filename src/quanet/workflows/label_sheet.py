"""The sheet of rows to label: what `quanet label plan` writes, people fill in, and `quanet refine` reads.

Besides the texts and an empty column for the labels, it has columns with the plan, so that reading it can tell whether
it belongs to the data, and whether rows were changed, dropped or skipped. Sorting it is harmless.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.data.columns import as_number, check_columns, label_name, label_names
from quanet.data.duplicates import hash_texts
from quanet.data.instances import InputColumns
from quanet.errors import InvalidData
from quanet.labels.label_plans import LabelPlan
from quanet.workflows.labelled import settle_labels

if TYPE_CHECKING:
    import pandas as pd

    from quanet.corpus.batch_reader import BatchReader
    from quanet.data.columns import ClassNames
    from quanet.data.streams import TableSource

ORDER, ROW, STRATUM, SIZE, WEIGHT = "plan_order", "plan_row", "plan_stratum", "plan_stratum_size", "plan_weight"
CHECK, ROWS = "plan_check", "plan_rows_in_data"
PLAN = (ORDER, ROW, STRATUM, SIZE, WEIGHT, CHECK, ROWS)
MAX_CELL = 30_000  # characters compared; a cell of a spreadsheet holds 32,767
FORMULA = ("=", "+", "-", "@")  # a spreadsheet would compute a cell that begins so
SHOWN = 3  # rows named in a message


@dataclass(frozen=True, slots=True, eq=False)
class GivenLabels:
    """Labels of rows of a source.

    Attributes
    ----------
    rows : (n,) rows, counted from 0 over all files of the source.
    names : (n,) labels.
    cells : what the model reads in these rows, with their groups and weights.
    total : number of rows of the source.
    strata, weights : (n,) of a plan; None for a simple random part.
    planned : number of rows in the plan; None without one.
    """

    rows: IntArray
    names: list[str]
    cells: "pd.DataFrame"
    total: int
    strata: IntArray | None = None
    weights: FloatArray | None = None
    planned: int | None = None


def make_sheet(
    source: "TableSource", inputs: InputColumns, plan: LabelPlan, rows: IntArray, *, label: str, shown: Sequence[str]
) -> "pd.DataFrame":
    """The rows to label, in the order in which to label them.

    Parameters
    ----------
    source, inputs : the files, and the columns that the model reads.
    plan : the instances to label.
    rows : (N,) the row of every instance in the source.
    label : name of the empty column for the labels.
    shown : other columns to show, such as identifiers and groups.
    """
    chosen = rows[plan.indices]
    columns = [name for name in dict.fromkeys([*shown, *inputs.columns]) if name != label]
    table = read_rows(source, list(dict.fromkeys([*columns, *inputs.columns])), chosen).loc[chosen]
    sheet = table[columns].copy()
    for name in columns:
        sheet[name] = [
            f" {cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell for cell in table[name]
        ]
    sheet[label] = ""
    sizes = np.bincount(plan.strata, plan.design_weights)
    sheet[ORDER] = np.arange(1, plan.n + 1)
    sheet[ROW] = chosen + 1
    sheet[STRATUM] = plan.strata + 1
    sheet[SIZE] = np.round(sizes[plan.strata]).astype(int)
    sheet[WEIGHT] = plan.design_weights.round(6)
    sheet[CHECK] = fingerprints(table, inputs)
    sheet[ROWS] = source.rows
    return sheet.reset_index(drop=True)


def read_rows(source: "TableSource", columns: Sequence[str], rows: IntArray) -> "pd.DataFrame":
    """Some rows of a source, which is read again."""
    import pandas as pd

    parts = [table[table.index.isin(rows)] for table in source.chunks(columns)]
    return pd.concat(parts)


def fingerprints(table: "pd.DataFrame", inputs: InputColumns) -> list[str]:
    """A short hash of what the model reads in every row; equal for texts that differ only in case and white space."""
    if inputs.text is not None:
        cells = ["" if cell is None else str(cell)[:MAX_CELL] for cell in table[inputs.text]]
    else:
        numbers = table[list(inputs.features)].map(as_number).to_numpy(dtype=float)  # NaN if empty
        cells = [" ".join(f"{value:.9g}" for value in row) for row in numbers.tolist()]
    return [f"h{value:016x}" for value in hash_texts(cells).tolist()]  # begins with a letter: no spreadsheet number


def read_labels(
    sheet: "TableSource | None",
    source: "TableSource",
    reader: "BatchReader",
    column: str,
    classes: "ClassNames",
    *,
    at_random: bool = False,
    normalize: bool = False,
) -> GivenLabels:
    """The labels of a sheet, or of the rows of the data that have one, spelled as answers show the classes.

    Parameters
    ----------
    sheet : the file with the labels; None if the data contain them.
    source, reader : the data, already read, and what reads them.
    column : the column of labels.
    classes : names of the classes.
    at_random, normalize : as in `read_sheet` and `settle_labels`.
    """
    if sheet is not None:
        given = read_sheet(sheet, source, reader.inputs, column, columns=reader.columns, at_random=at_random)
    else:
        given = labels_in_source(source, column, reader.columns)
    known = [label_name(name) for name in classes.names.tolist()]
    return replace(given, names=settle_labels(classes.shown(given.names), normalize=normalize, known=known))


def read_sheet(
    sheet: "TableSource",
    source: "TableSource",
    inputs: InputColumns,
    label: str,
    *,
    columns: Sequence[str],
    at_random: bool = False,
) -> GivenLabels:
    """The labels in a sheet, checked against the data that it was made for.

    Parameters
    ----------
    sheet : the file with the labels.
    source, inputs : the data, already read, and the columns that the model reads.
    label : the column of labels.
    columns : columns of the data to read, those of `inputs` among them.
    at_random : whether rows without a label were skipped at random.
    """
    missing = [name for name in PLAN if name not in sheet.columns]
    if missing:
        raise InvalidData(
            f"{sheet.name} has no column {missing[0]!r}, so it is not a plan. Make one with quanet label plan, or put "
            f"the labels into a column of {source.name}, omit --labels and add --random if they are of random rows."
        )
    check_columns([label], sheet.columns, sheet.name)
    seen = [name for name in inputs.columns if name in sheet.columns]
    table = sheet.read([label, *PLAN, *seen])
    table = table[table.notna().any(axis=1)]  # spreadsheets may add empty rows
    names = label_names(table[label], sheet)
    numbers = {name: _integers(table[name], sheet) for name in (ORDER, ROW, STRATUM, SIZE, ROWS)}
    rows = numbers[ROW] - 1
    _check_rows(numbers, sheet, source)
    cells = read_rows(source, columns, rows).loc[rows]
    _check_texts(table, cells, sheet, source, inputs, written=len(seen) == len(inputs.columns))
    filled = np.array([bool(name) for name in names], dtype=bool)
    if not filled.any():
        raise InvalidData(f"{sheet.name}: column {label!r} is empty. Fill in the labels, from the first row on.")
    _check_order(numbers[ORDER], filled, sheet, at_random=at_random)
    strata = numbers[STRATUM][filled]
    sizes = np.bincount(strata, minlength=int(numbers[STRATUM].max()) + 1)
    return GivenLabels(
        rows[filled],
        [str(name) for name in names if name],
        cells[filled],
        source.rows,
        strata,
        numbers[SIZE][filled] / sizes[strata],
        int(numbers[ORDER].max()),
    )


def labels_in_source(source: "TableSource", label: str, columns: Sequence[str]) -> GivenLabels:
    """The labels in a column of the data that is empty for most rows, with other columns of these rows."""
    import pandas as pd

    labels: list[str] = []
    parts = []
    for table in source.chunks([label, *columns]):
        names = label_names(table[label], source)
        parts.append(table[[bool(name) for name in names]])
        labels += [name for name in names if name]
    if not labels:
        raise InvalidData(f"{source.name}: column {label!r} is empty. Plan labels with quanet label plan.")
    cells = pd.concat(parts)
    return GivenLabels(np.asarray(cells.index, dtype=np.intp), labels, cells, source.rows)


def _integers(cells: "pd.Series[Any]", sheet: "TableSource") -> IntArray:
    values = [as_number(cell) if cell is not None else None for cell in cells]
    for row, value in zip(cells.index, values, strict=True):
        if value is None or not value.is_integer() or value < 1:
            raise InvalidData(
                f"{sheet.place(row)}: column {str(cells.name)!r} was changed. Restore the columns plan_... of the plan."
            )
    return np.array([int(value) for value in values if value is not None], dtype=np.intp)


def _check_rows(numbers: dict[str, IntArray], sheet: "TableSource", source: "TableSource") -> None:
    """Raise if the sheet was made for data of another size, mixes plans, or contains a row twice."""
    if not len(numbers[ROW]):
        raise InvalidData(f"{sheet.name} has no rows. Make a plan with quanet label plan.")
    totals = np.unique(numbers[ROWS])
    if len(totals) > 1:
        raise InvalidData(f"{sheet.name} contains rows of several plans. Use one plan for one set of files.")
    if totals[0] != source.rows or numbers[ROW].max() > source.rows:
        raise InvalidData(
            f"{sheet.name} belongs to other data: its plan was made for {totals[0]:,} rows, and {source.name} has "
            f"{source.rows:,}. Use the same files in the same order, or make a new plan with quanet label plan."
        )
    double = [row for row, number in Counter(numbers[ROW].tolist()).items() if number > 1]
    if double:
        raise InvalidData(f"{sheet.name} contains row {double[0]:,} of the data twice. Delete one of the two.")


def _check_texts(
    table: "pd.DataFrame",
    cells: "pd.DataFrame",
    sheet: "TableSource",
    source: "TableSource",
    inputs: InputColumns,
    *,
    written: bool,
) -> None:
    """Raise if texts of the data or of the sheet differ from those of the plan."""
    planned = np.array([str(cell) for cell in table[CHECK]])
    rows, found = cells.index, np.array(fingerprints(cells, inputs))
    differ = np.flatnonzero(found != planned)
    if len(differ) > len(rows) / 2:
        raise InvalidData(
            f"{sheet.name} belongs to other data: {len(differ):,} of its {len(rows):,} rows are not in {source.name}. "
            "Use the same files in the same order, or make a new plan with quanet label plan."
        )
    if len(differ):
        raise InvalidData(
            f"{source.place(int(rows[differ[0]]))}: the text is not the one that was planned ({len(differ):,} of "
            f"{len(rows):,} rows differ). Use the files that {sheet.name} was made for, or make a new plan with quanet "
            "label plan."
        )
    if written:
        differ = np.flatnonzero(np.array(fingerprints(table, inputs)) != planned)
        if len(differ):
            raise InvalidData(
                f"{sheet.place(int(table.index[differ[0]]))}: the text was changed ({len(differ):,} of {len(rows):,} "
                "rows), so its label may belong to another text. Restore the texts of the plan."
            )


def _check_order(order: IntArray, filled: Any, sheet: "TableSource", *, at_random: bool) -> None:
    """Raise if rows before the last labelled one have no label, unless they are missing at random."""
    last = int(order[filled].max())
    skipped = sorted(set(range(1, last + 1)) - set(order[filled].tolist()))
    if skipped and not at_random:
        named = ", ".join(map(str, skipped[:SHOWN])) + (", ..." if len(skipped) > SHOWN else "")
        raise InvalidData(
            f"{sheet.name}: {len(skipped):,} of the first {last:,} rows of the plan have no label ({ORDER} {named}). "
            "Fill them in: rows that are hard to label differ from others. If they are missing at random, add --random."
        )
