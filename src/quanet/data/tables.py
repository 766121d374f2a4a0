"""Tables in files: CSV, TSV, JSON lines and Parquet, compressed or not, with their columns checked."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quanet.data.dataset import Dataset
from quanet.errors import InvalidData

if TYPE_CHECKING:
    import pandas as pd

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")


def read_table(path: str | Path, *, columns: Sequence[str] | None = None) -> "pd.DataFrame":
    """Read a table; the file's ending says how: .csv, .tsv, .jsonl (.ndjson) or .parquet, the first three also .gz.

    Parameters
    ----------
    path : the file.
    columns : those that must be there; others are not read.
    """
    import pandas as pd

    file = Path(path)
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    kind = suffixes[-1] if suffixes else ""
    if kind not in FORMATS:
        raise InvalidData(f"{file} ends in none of {', '.join(FORMATS)}, so its format is not known. Rename it.")
    if not file.is_file():
        raise InvalidData(f"there is no file {file}.")
    try:
        if kind == ".parquet":
            table = pd.read_parquet(file)
        elif kind in {".jsonl", ".ndjson"}:
            table = pd.read_json(file, lines=True)
        else:
            table = pd.read_csv(file, sep="\t" if kind == ".tsv" else ",")
    except (ValueError, OSError, EOFError) as error:
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


def read_dataset(path: str | Path, *, text: str, label: str) -> Dataset:
    """Labelled texts from two columns of a table; rows that lack one of the two are an error that names the first."""
    table = read_table(path, columns=[text, label])
    for column in (text, label):
        missing = table[column].isna().to_numpy()
        if missing.any():
            raise InvalidData(
                f"{path}: column {column!r} is empty in {int(missing.sum())} of {len(table)} rows, "
                f"the first being row {int(missing.argmax()) + 1}. Fill or drop them."
            )
    texts = table[text].tolist()
    numbers = [value for value in texts if not isinstance(value, str)]
    if numbers:
        raise InvalidData(
            f"{path}: column {text!r} holds {type(numbers[0]).__name__} values, such as {numbers[0]!r}, not texts. "
            "Name the column that has the texts."
        )
    return Dataset(texts, table[label].to_numpy(), Path(path).name)
