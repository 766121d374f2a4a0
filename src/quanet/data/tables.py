"""Tables in files: CSV, TSV, JSON lines and Parquet, compressed or not, with their columns checked."""

import gzip
import io
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quanet.arrays import FloatArray, LabelArray
from quanet.data.dataset import Dataset
from quanet.errors import InvalidData

if TYPE_CHECKING:
    import pandas as pd

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")


def read_table(path: str | Path, *, columns: Sequence[str] | None = None) -> "pd.DataFrame":
    """Read a table; the file's ending says how: .csv, .tsv, .jsonl (.ndjson) or .parquet, all also .gz.

    Parameters
    ----------
    path : the file.
    columns : those that must be there; others are not read.
    """
    import pandas as pd

    file = Path(path)
    kind = kind_of(file)
    if kind not in FORMATS:
        raise InvalidData(f"{file} ends in none of {', '.join(FORMATS)}, so its format is not known. Rename it.")
    if not file.is_file():
        raise InvalidData(f"there is no file {file}.")
    try:
        if kind == ".parquet":
            # Parquet compresses its columns itself, so its reader knows no .gz.
            zipped = file.suffix.lower() == ".gz"
            table = pd.read_parquet(io.BytesIO(gzip.decompress(file.read_bytes())) if zipped else file)
        elif kind in {".jsonl", ".ndjson"}:
            table = pd.read_json(file, lines=True)
        else:
            table = pd.read_csv(file, sep="\t" if kind == ".tsv" else ",")
    except pd.errors.EmptyDataError as error:
        raise InvalidData(f"{file} is empty. Give a table with a line of column names, and rows below it.") from error
    except (ValueError, OSError, EOFError, zlib.error) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InvalidData(f"{file} cannot be read as {kind[1:].upper()}: {reason}") from error
    if not len(table):
        raise InvalidData(f"{file} has no rows.")
    return table if columns is None else check_columns(table, columns, source=str(file))


def check_columns(table: "pd.DataFrame", columns: Sequence[str], *, source: str) -> "pd.DataFrame":
    """The named columns of a table, or an error that lists the columns there are."""
    missing = [name for name in columns if name not in table.columns]
    if missing:
        there = ", ".join(repr(str(name)) for name in table.columns)
        raise InvalidData(f"{source} has no column {missing[0]!r}; its columns are {there}.")
    return table.loc[:, list(dict.fromkeys(columns))]


def kind_of(path: Path) -> str:
    """The ending that says a file's format, in small letters, without that of its compression.

    Examples
    --------
    >>> kind_of(Path("reviews.2024.CSV.gz"))
    '.csv'
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def read_dataset(path: str | Path, *, text: str | None = None, label: str = "label", date: str = "date") -> Dataset:
    """Labelled instances from a table; rows that lack something are an error that names the first.

    Parameters
    ----------
    path : the table.
    text, label, date : its columns. Without `text` it is the column of that name, or, if there is none, every other
        column as a number. Dates are read where the table has them.
    """
    table = read_table(path)
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
