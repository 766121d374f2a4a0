"""What is known of a table before its rows are read: columns, types, row groups; and whether tables fit together."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from quanet.data.addresses import is_address
from quanet.data.columns import check_columns
from quanet.data.file_names import DATABASES, STDIN, kind_of, shown_name, split_address, stamp_of
from quanet.data.storage import Stamp
from quanet.data.table_rows import AUTO, TableRows, open_rows
from quanet.errors import InvalidData

REQUESTS = 16  # at the same time, for files in object storage


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says of its table.

    Attributes
    ----------
    file : its name.
    columns : their names.
    types : Arrow types of the columns, by name; empty if the format has none.
    group_rows : rows of the row groups of a Parquet file; None for other formats.
    """

    file: str
    columns: list[str]
    types: dict[str, Any]
    group_rows: tuple[int, ...] | None = None


def header_of(file: str, opened: TableRows) -> Header:
    """The header of an open table."""
    if opened.parquet is None:
        return Header(file, opened.columns, {})
    types = dict(zip(opened.columns, opened.parquet.types, strict=True))
    return Header(file, opened.columns, types, tuple(opened.parquet.group_rows))


def read_headers(files: Iterable[str], encoding: str, delimiter: str = AUTO) -> list[Header | InvalidData]:
    """Headers, or the errors of files that cannot be read; those in object storage are read at the same time."""

    def one(file: str) -> Header | InvalidData:
        try:
            with closing(open_rows(file, encoding=encoding, delimiter=delimiter)) as opened:
                return header_of(file, opened)
        except InvalidData as error:
            return error

    names = list(files)
    if not any(map(is_address, names)):
        return list(map(one, names))
    with ThreadPoolExecutor(REQUESTS) as pool:
        return list(pool.map(one, names))


def check_header(header: Header, first: dict[str, Header], columns: Sequence[str]) -> None:
    """Raise `InvalidData` if a table lacks a column, or has one of another type than the first table with a type.

    Parameters
    ----------
    header : of the table.
    first : the first table that has a type, for every column; completed by this one.
    columns : wanted columns.
    """
    name = shown_name(header.file)
    check_columns(columns, header.columns, name)
    for column in columns:
        found = header.types.get(column)
        if found is None or _family(found) is None:
            continue
        expected = first.setdefault(column, header)
        if _family(found) != _family(expected.types[column]):
            raise InvalidData(
                f"{name}: column {column!r} has the type {found}, but {shown_name(expected.file)} has "
                f"{expected.types[column]}. Write all files with the same types."
            )


def _family(kind: Any) -> str | None:
    """Which types fit together; None fits with all."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return _family(kind.value_type)
    if types.is_null(kind):
        return None
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date"
    texts = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return "text" if texts else str(kind)


def check_unchanged(file: str, before: Stamp) -> None:
    """Raise `InvalidData` if a file has changed since `before`. A database may change while it is read."""
    if file == STDIN or kind_of(split_address(file)[0]) in DATABASES:
        return
    if stamp_of(file) != before:
        raise InvalidData(f"{shown_name(file)} changed while it was read. Run the command again when it is complete.")
