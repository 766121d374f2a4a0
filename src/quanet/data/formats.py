"""Formats of tables, told by the endings of files."""

from pathlib import Path

from quanet.errors import InvalidData

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
SHEETS = (".xlsx", ".xls", ".ods", ".numbers")


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


def check_kind(path: Path) -> str:
    """The ending of a table's file, or an error that says which there are."""
    kind = kind_of(path)
    if kind in FORMATS:
        return kind
    endings = ", ".join(FORMATS)
    if kind in SHEETS:
        raise InvalidData(f"{path} is a spreadsheet. Save its sheet as CSV (UTF-8); quanet reads {endings}.")
    raise InvalidData(f"{path} ends in none of {endings}, so its format is not known. Rename it.")
