"""Whole tables in memory: read one, read its labelled instances, and split them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.data.columns import UNCLEAR, as_number, check_columns, comma_style, is_missing, read_number
from quanet.data.duplicates import find_distinct, split_distinct
from quanet.data.encodings import AUTO
from quanet.data.file_names import check_kind, split_address
from quanet.data.streams import TableSource
from quanet.errors import InvalidData
from quanet.parameters import between
from quanet.simplex import classes_of, encode, prevalence_of


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Labelled instances, with a name and optional dates; `load_dataset` returns them.

    Parameters
    ----------
    X : n instances: texts, or a matrix of numbers (n, d).
    y : (n,) labels.
    name : for messages and reports.
    dates : (n,) dates as strings, such as "2005-08"; None if unknown.

    Examples
    --------
    >>> data = Dataset(["good", "bad", "fine", "poor"], ["pos", "neg", "pos", "neg"], "four words")
    >>> len(data), data.classes, data.prevalence
    (4, array(['neg', 'pos'], dtype='<U3'), array([0.5, 0.5]))
    >>> train, test = data.split(0.5, rng=0)
    >>> train.y.tolist(), test.y.tolist()
    (['pos', 'neg'], ['pos', 'neg'])
    """

    X: Any
    y: LabelArray
    name: str = ""
    dates: LabelArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "y", np.asarray(self.y))
        n = _length(self.X)
        if n != len(self.y):
            raise InvalidData(f"X has {n} instances but y has {len(self.y)} labels. They must match.")
        if self.dates is not None:
            object.__setattr__(self, "dates", np.asarray(self.dates))
            if len(self.dates) != len(self.y):
                raise InvalidData(f"Got {len(self.y)} instances but {len(self.dates)} dates. They must match.")

    def __len__(self) -> int:
        return len(self.y)

    @property
    def classes(self) -> LabelArray:
        """The distinct labels, sorted."""
        return classes_of(self.y)

    @property
    def prevalence(self) -> FloatArray:
        """The prevalence of each class, in the order of `classes`."""
        return prevalence_of(self.y, self.classes)

    def take(self, indices: IntArray) -> "Dataset":
        """The instances at the given positions."""
        from sklearn.utils import _safe_indexing  # here, because the import takes a second or two

        dates = None if self.dates is None else self.dates[indices]
        return Dataset(_safe_indexing(self.X, indices), self.y[indices], self.name, dates)

    def without(self, *labels: Any) -> "Dataset":
        """The instances of all other classes."""
        return self.take(np.flatnonzero([label not in labels for label in self.y.tolist()]))

    def split(self, share: float, *, rng: np.random.Generator | int) -> tuple["Dataset", "Dataset"]:
        """Split at random: the first part gets `share` of each class. Both parts keep the order.

        Copies of an instance (`quanet.data.duplicates`) stay in the same part.
        """
        first, second = self.split_positions(share, rng=rng)
        return self.take(first), self.take(second)

    def split_positions(self, share: float, *, rng: np.random.Generator | int) -> tuple[IntArray, IntArray]:
        """Positions of the instances in the two parts of `split`."""
        between(0, 1).check("share", share)
        rng = np.random.default_rng(rng)

        def in_first(codes: IntArray) -> IntArray:
            chosen = np.zeros(len(codes), dtype=np.intp)
            for c in range(len(self.classes)):
                members = rng.permutation(np.flatnonzero(codes == c))
                chosen[members[: round(share * len(members))]] = 1
            return chosen

        first = split_distinct(self.X, encode(self.y, self.classes), in_first)
        return np.flatnonzero(first == 1), np.flatnonzero(first == 0)

    def without_duplicates(self) -> "Dataset":
        """Drop repeated instances (`quanet.data.duplicates`) and keep the first of each."""
        distinct = find_distinct(self.X)
        return self if distinct is None else self.take(distinct.first)


def _length(X: Any) -> int:
    """Number of instances."""
    if isinstance(X, list):
        return len(X)
    from sklearn.utils.validation import _num_samples

    return int(_num_samples(X))


def read_table(
    path: str | Path, *, columns: Sequence[str] | None = None, encoding: str = AUTO, delimiter: str = AUTO
) -> pd.DataFrame:
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
    file, _ = split_address(str(path))
    kind = check_kind(file)
    source = TableSource([str(path)], encoding=encoding, delimiter=delimiter)
    cells = source.read(source.columns if columns is None else columns)
    typed = {name: _typed(cells[name], untyped=kind in {".csv", ".tsv"}) for name in cells.columns}
    return pd.DataFrame(typed, columns=cells.columns).reset_index(drop=True)


def _typed(cells: "pd.Series[Any]", *, untyped: bool) -> "pd.Series[Any]":
    """A column as numbers or booleans if all its cells are, else unchanged."""
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


def _full(table: pd.DataFrame, column: str, path: str | Path) -> LabelArray:
    """A column. Raises `InvalidData` if a cell is empty."""
    missing = table[column].isna().to_numpy()
    if missing.any():
        raise InvalidData(
            f"{path}: column {column!r} is empty in {int(missing.sum())} of {len(table)} rows, "
            f"the first is row {int(missing.argmax()) + 1}. Fill or drop them."
        )
    return table[column].to_numpy()


def _numbers(table: pd.DataFrame, features: list[str], path: str | Path) -> FloatArray:
    words = [name for name in features if table[name].dtype.kind not in "biuf"]
    if words or not features:
        found = f"column {words[0]!r} is not numeric" if words else "its only column is the label"
        raise InvalidData(
            f"{path} has no column 'text', and {found}. Name the text column, or keep only numeric columns."
        )
    for name in features:
        _full(table, name, path)
    return table[features].to_numpy(float)


def _dates(table: pd.DataFrame, column: str) -> LabelArray | None:
    return table[column].astype(str).to_numpy(dtype=object).astype(str) if column in table.columns else None
