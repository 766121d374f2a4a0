"""Whole tables in memory, with their columns checked: `read_table`, and labelled instances from one."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quanet.arrays import FloatArray, LabelArray
from quanet.data.columns import NOTHING, as_number
from quanet.data.dataset import Dataset
from quanet.data.formats import check_kind
from quanet.data.streams import Source
from quanet.errors import InvalidData

if TYPE_CHECKING:
    import pandas as pd


def read_table(path: str | Path, *, columns: Sequence[str] | None = None, encoding: str = "utf-8") -> "pd.DataFrame":
    """Read a table; the file's ending says how: .csv, .tsv, .jsonl (.ndjson) or .parquet, all also .gz.

    It is read as the commands read it: a CSV file's delimiter is found in its first line, and only an empty cell is
    missing. A column of a CSV file is one of numbers if all its cells are; there, NA, nan, null and the like are
    missing, too.

    Parameters
    ----------
    path : the file.
    columns : those that must be there; others are not read.
    encoding : of CSV, TSV and JSON lines.
    """
    import pandas as pd

    file = Path(path)
    kind = check_kind(file)
    if not file.is_file():
        raise InvalidData(f"there is no file {file}.")
    source = Source([str(file)], encoding=encoding)
    cells = source.read(source.columns if columns is None else columns)
    typed = {name: _typed(cells[name], words=kind in {".csv", ".tsv"}) for name in cells.columns}
    return pd.DataFrame(typed, columns=cells.columns).reset_index(drop=True)


def _typed(cells: "pd.Series[Any]", *, words: bool) -> "pd.Series[Any]":
    """A column as numbers or truth values where all its cells are such, else as it is."""
    import pandas as pd

    there = [cell for cell in cells if cell is not None and not (words and cell.strip().lower() in NOTHING)]
    if words and there and set(there) <= {"True", "False"} and len(there) == len(cells):
        return cells == "True"
    if words and there and all(as_number(cell) is not None for cell in there):
        return pd.to_numeric(cells.where(cells.isin(there)), errors="coerce")
    if not words and there and all(isinstance(cell, bool | int | float) for cell in there):
        return pd.Series(cells.tolist(), index=cells.index).infer_objects()
    return cells


def check_columns(table: "pd.DataFrame", columns: Sequence[str], *, source: str) -> "pd.DataFrame":
    """The named columns of a table, or an error that lists the columns there are."""
    missing = [name for name in columns if name not in table.columns]
    if missing:
        there = ", ".join(repr(str(name)) for name in table.columns)
        raise InvalidData(f"{source} has no column {missing[0]!r}; its columns are {there}.")
    return table.loc[:, list(dict.fromkeys(columns))]


def read_dataset(
    path: str | Path,
    *,
    text: str | None = None,
    label: str = "label",
    date: str = "date",
    encoding: str = "utf-8",
) -> Dataset:
    """Labelled instances from a table; rows that lack something are an error that names the first.

    Parameters
    ----------
    path : the table.
    text, label, date : its columns. Without `text` it is the column of that name, or, if there is none, every other
        column as a number. Dates are read where the table has them.
    encoding : of the file.
    """
    table = read_table(path, encoding=encoding)
    if text is None and "text" in table.columns:
        text = "text"
    if text is None:
        features = [name for name in table.columns if name not in {label, date}]
        check_columns(table, [label], source=str(path))
        return Dataset(_numbers(table, features, path), _full(table, label, path), Path(path).name, _dates(table, date))
    check_columns(table, [text, label], source=str(path))
    texts = _full(table, text, path).tolist()
    numbers = [value for value in texts if not isinstance(value, str)]
    if numbers:
        raise InvalidData(
            f"{path}: column {text!r} holds {type(numbers[0]).__name__} values, such as {numbers[0]!r}, not texts. "
            "Name the column that has the texts."
        )
    return Dataset(texts, _full(table, label, path), Path(path).name, _dates(table, date))


def _full(table: "pd.DataFrame", column: str, path: str | Path) -> LabelArray:
    """A column that must have a value in every row."""
    missing = table[column].isna().to_numpy()
    if missing.any():
        raise InvalidData(
            f"{path}: column {column!r} is empty in {int(missing.sum())} of {len(table)} rows, "
            f"the first being row {int(missing.argmax()) + 1}. Fill or drop them."
        )
    return table[column].to_numpy()


def _numbers(table: "pd.DataFrame", features: list[str], path: str | Path) -> FloatArray:
    words = [name for name in features if table[name].dtype.kind not in "biuf"]
    if words or not features:
        found = f"column {words[0]!r} holds no numbers" if words else "it has no column but the label"
        raise InvalidData(
            f"{path} has no column 'text', and {found}. Name the column that has the texts, or leave numbers alone."
        )
    for name in features:
        _full(table, name, path)
    return table[features].to_numpy(float)


def _dates(table: "pd.DataFrame", column: str) -> LabelArray | None:
    return table[column].astype(str).to_numpy(dtype=object).astype(str) if column in table.columns else None
