"""Read a whole table into memory: `read_table` and `read_dataset`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quanet.arrays import FloatArray, LabelArray
from quanet.data.columns import UNCLEAR, as_number, check_columns, comma_style, is_missing, read_number
from quanet.data.dataset import Dataset
from quanet.data.encodings import AUTO
from quanet.data.file_names import check_kind, split_address
from quanet.data.streams import TableSource
from quanet.errors import InvalidData

if TYPE_CHECKING:
    import pandas as pd


def read_table(
    path: str | Path, *, columns: Sequence[str] | None = None, encoding: str = AUTO, delimiter: str = AUTO
) -> "pd.DataFrame":
    r"""Read a table: CSV, TSV, JSON, JSON lines, Parquet; a sheet of a workbook; a table or query of a database.

    Endings are .csv, .tsv, .json, .jsonl (.ndjson) and .parquet, also compressed (.gz, .bz2, .xz, .zst); .xlsx (.xlsm)
    for Excel; .sqlite (.sqlite3, .db) and .duckdb.

    The commands use the same reader. It finds the delimiter of a CSV file in its first lines, and only an empty cell is
    missing. A column of a CSV file is numeric if all its cells are numbers, also with decimal commas; there, NA, nan,
    null and none are missing, too.

    Parameters
    ----------
    path : the file; with the sheet, table or query after #, as in ``book.xlsx#March`` or
        ``store.db#select text, label from reviews``.
    columns : columns to read; all of them must exist. Default: all columns.
    encoding : of CSV, TSV and JSON. "auto": UTF-8 if the file is valid UTF-8, else detected; a warning reports it.
    delimiter : of CSV and TSV, such as ";" or "tab". "auto": found in the first lines.

    Returns
    -------
    pandas.DataFrame
        with one row per row of the table.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     path = Path(home, "reviews.csv")
    ...     _ = path.write_text("text;stars\nGood film;4,5\nWeak plot;NA\n")
    ...     table = read_table(path)
    >>> table["text"].tolist(), table["stars"].tolist()
    (['Good film', 'Weak plot'], [4.5, nan])
    """
    import pandas as pd

    file, _ = split_address(str(path))
    kind = check_kind(file)
    source = TableSource([str(path)], encoding=encoding, delimiter=delimiter)
    cells = source.read(source.columns if columns is None else columns)
    typed = {name: _typed(cells[name], untyped=kind in {".csv", ".tsv"}) for name in cells.columns}
    return pd.DataFrame(typed, columns=cells.columns).reset_index(drop=True)


def _typed(cells: "pd.Series[Any]", *, untyped: bool) -> "pd.Series[Any]":
    """A column as numbers or booleans if all its cells are, else unchanged."""
    import pandas as pd

    present = [cell for cell in cells if not (is_missing(cell) if untyped else cell is None)]
    if untyped and present and set(present) <= {"True", "False"} and len(present) == len(cells):
        return cells == "True"
    if untyped and present and all(as_number(cell) is not None for cell in present):
        return pd.to_numeric(cells.where(cells.isin(present)), errors="coerce")
    if untyped and (style := comma_style(present)) and style != UNCLEAR:
        return pd.Series([read_number(cell, style) for cell in cells], index=cells.index, dtype=float)
    if not untyped and present and all(isinstance(cell, bool | int | float) for cell in present):
        return pd.Series(cells.tolist(), index=cells.index).infer_objects()
    return cells


def read_dataset(
    path: str | Path,
    *,
    text: str | None = None,
    label: str = "label",
    date: str = "date",
    encoding: str = AUTO,
    delimiter: str = AUTO,
) -> Dataset:
    """Labelled instances from a table. Raises `InvalidData` if a cell is empty.

    Parameters
    ----------
    path : the table.
    text, label, date : its columns. Without `text`, the column "text" is used; if the table has none, all other
        columns are used as numbers. Dates are read if the column exists.
    encoding, delimiter : of the file.
    """
    table = read_table(path, encoding=encoding, delimiter=delimiter)
    if text is None and "text" in table.columns:
        text = "text"
    if text is None:
        features = [name for name in table.columns if name not in {label, date}]
        check_columns([label], list(table.columns), str(path))
        return Dataset(_numbers(table, features, path), _full(table, label, path), Path(path).name, _dates(table, date))
    check_columns([text, label], list(table.columns), str(path))
    texts = _full(table, text, path).tolist()
    numbers = [value for value in texts if not isinstance(value, str)]
    if numbers:
        raise InvalidData(
            f"{path}: column {text!r} contains {type(numbers[0]).__name__} values, such as {numbers[0]!r}, not texts. "
            "Name the text column."
        )
    return Dataset(texts, _full(table, label, path), Path(path).name, _dates(table, date))


def _full(table: "pd.DataFrame", column: str, path: str | Path) -> LabelArray:
    """A column. Raises `InvalidData` if a cell is empty."""
    missing = table[column].isna().to_numpy()
    if missing.any():
        raise InvalidData(
            f"{path}: column {column!r} is empty in {int(missing.sum())} of {len(table)} rows, "
            f"the first is row {int(missing.argmax()) + 1}. Fill or drop them."
        )
    return table[column].to_numpy()


def _numbers(table: "pd.DataFrame", features: list[str], path: str | Path) -> FloatArray:
    words = [name for name in features if table[name].dtype.kind not in "biuf"]
    if words or not features:
        found = f"column {words[0]!r} is not numeric" if words else "its only column is the label"
        raise InvalidData(
            f"{path} has no column 'text', and {found}. Name the text column, or keep only numeric columns."
        )
    for name in features:
        _full(table, name, path)
    return table[features].to_numpy(float)


def _dates(table: "pd.DataFrame", column: str) -> LabelArray | None:
    return table[column].astype(str).to_numpy(dtype=object).astype(str) if column in table.columns else None
