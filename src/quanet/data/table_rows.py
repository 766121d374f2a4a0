"""Open one table as rows: delimited text, JSON, Parquet, a sheet of a workbook, a table of a database.

Rows are read one at a time, so that a file may be larger than memory. An empty cell is None.

What is known of a table before its rows are read: columns, types, row groups; and whether tables fit together.
"""

import bz2
import codecs
import csv
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

from quanet.data.addresses import is_address
from quanet.data.columns import check_columns
from quanet.data.eval_logs import inspect_archive
from quanet.data.file_names import (
    DATABASES,
    STDIN,
    WITH_PARTS,
    WORKBOOKS,
    check_kind,
    kind_of,
    shown_name,
    split_address,
    stamp_of,
)
from quanet.data.parquet_files import ParquetTable
from quanet.data.read_problems import read_problem
from quanet.data.records import Cells, PickColumns, json_rows, rows_of_objects
from quanet.data.storage import Stamp, StoredFile
from quanet.errors import EmptyFile, InvalidData, InvalidSetting, brief

DELIMITERS = ",;\t|"
FIRST_LINES = 100  # that the delimiter is found from
MAX_CELL = 2**30  # characters; the default of Python's csv module is too short for some documents
AUTO = "auto"  # the encoding or the delimiter is detected
HEAD = 2**20  # bytes that the encoding is detected from
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UTF8_MARK = b"\xef\xbb\xbf"
READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)  # raised for truncated and invalid archives
SAMPLE_TEXT = 'a.b. "C"\n,' + "d" * 100  # any text encoding can write it; encodings of domain names cannot
REQUESTS = 16  # at the same time, for files in object storage


@dataclass(frozen=True, slots=True, eq=False)
class TableRows:
    """An open table.

    Attributes
    ----------
    name : used in messages.
    columns : their names.
    pick : given names of columns, returns their cells, row by row; call it once.
    file : closed by `close`.
    bytes_read : returns the bytes read so far; None: the position in the file.
    facts : encoding and delimiter of a text file.
    parquet : the file, if it is Parquet, to read whole columns.
    """

    name: str
    columns: list[str]
    pick: PickColumns
    file: Any
    bytes_read: Callable[[], int] | None = None
    facts: tuple[tuple[str, str], ...] = ()
    parquet: ParquetTable | None = None

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return self.file.tell() if self.bytes_read is None else self.bytes_read()

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def open_rows(file: str, *, encoding: str, delimiter: str = AUTO) -> TableRows:
    """Open a table. The format follows from the suffix of a file, or from the first bytes of standard input (``-``)."""
    rows = partial(_rows, delimiter=delimiter)
    if file == STDIN:
        from quanet.data.standard_input import open_standard_input

        return open_standard_input(rows, encoding)
    path, part = split_address(file)
    kind = _checked_kind(path, part)
    try:
        if kind in WORKBOOKS and isinstance(path, Path):
            from quanet.data.workbooks import sheet_rows

            return TableRows(*sheet_rows(path, part))
        if kind in DATABASES and isinstance(path, Path):
            from quanet.data.databases import database_rows

            return TableRows(*database_rows(path, part))
        raw = path.open() if isinstance(path, StoredFile) else path.open("rb")
        try:
            return rows(str(path), kind, _decompressed(raw, path.suffix.lower()), encoding, raw, part)
        except BaseException:
            raw.close()
            raise
    except READ_ERRORS as error:
        raise InvalidData(f"{path} {read_problem(str(path), error)}") from error


def _checked_kind(path: Path | StoredFile, part: str) -> str:
    """The suffix of an existing table. Raises `InvalidData` if it cannot be opened."""
    if isinstance(path, Path):
        if path.is_dir():
            raise InvalidData(f"{path} is a folder. Pass the files in it, such as '{path / '*.csv'}'.")
        if not path.is_file():
            raise InvalidData(f"The file {path} does not exist.")
    kind = check_kind(path)
    if part and kind not in WITH_PARTS:
        raise InvalidData(f"{path} has no sheets or tables. Leave out {'#' + part!r}.")
    if isinstance(path, StoredFile) and kind in (*WORKBOOKS, *DATABASES):
        raise InvalidData(f"{path} cannot be read from object storage. Copy the file to this machine first.")
    return kind


def check_encoding(encoding: str) -> str:
    """The name of a text encoding, or "auto". Raises `InvalidSetting` if it is unknown."""
    try:
        if encoding == AUTO or SAMPLE_TEXT.encode(encoding).decode(encoding) == SAMPLE_TEXT:
            return encoding
    except (LookupError, ValueError):  # unknown, or not an encoding of text
        pass
    raise InvalidSetting(f"Unknown encoding {encoding!r}. Common ones are utf-8, utf-16, latin-1 and cp1252.")


def check_delimiter(delimiter: str) -> str:
    """A delimiter of cells, or "auto". Raises `InvalidSetting` unless it is one character, or "tab"."""
    found = "\t" if delimiter.lower() in {"tab", "\\t"} else delimiter
    if found == AUTO or (len(found) == 1 and found not in '"\r\n\0'):
        return found
    raise InvalidSetting(f"Unknown delimiter {brief(delimiter)}. Use one character, such as ';' or ',', or tab.")


def _decompressed(raw: Any, suffix: str) -> IO[bytes]:
    if suffix == ".zst":
        import pyarrow as pa

        return io.BufferedReader(pa.CompressedInputStream(raw, "zstd"))
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(suffix)
    return raw if opener is None else opener(raw, "rb")


def _rows(
    name: str, kind: str, stream: IO[bytes], encoding: str, file: Any, part: str = "", *, delimiter: str
) -> TableRows:
    if kind == ".parquet":
        table = ParquetTable(name, stream, file)
        return TableRows(name, table.columns, table.rows, file, table.bytes_read, parquet=table)
    if kind == ".eval":
        return TableRows(name, *rows_of_objects(name, iter(inspect_archive(name, stream)), "samples"), file)
    if encoding == AUTO:
        stream, encoding = _detected(stream, name)
    if kind == ".json":
        from quanet.data.json_arrays import json_array_rows

        return TableRows(name, *json_array_rows(name, stream, encoding, part), file, facts=(("encoding", encoding),))
    lines = _lines(stream, encoding, name)
    if kind in {".jsonl", ".ndjson"}:
        return TableRows(name, *json_rows(name, lines), file, facts=(("encoding", encoding),))
    return _delimited(name, lines, file, encoding, delimiter)


def _detected(stream: IO[bytes], name: str) -> tuple[IO[bytes], str]:
    """The stream from its start, and its encoding: UTF-8 if the first bytes are valid UTF-8."""
    head = b""
    with suppress(*READ_ERRORS):  # raised again when the rows are read
        while len(head) < HEAD and (content := stream.read(2**16)):
            head += content
    if stream.seekable():
        stream.seek(0)
    else:
        from quanet.data.standard_input import joined

        stream = joined(head, stream)
    try:
        # The last character may be cut in two.
        codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) < HEAD)
        if b"\0" not in head:
            return stream, "utf-8"
    except UnicodeDecodeError:
        pass
    from quanet.data.encodings import detect_encoding

    return stream, detect_encoding(head, name)


def _lines(stream: IO[bytes], encoding: str, name: str) -> Iterator[str]:
    """Decoded lines. Raises `InvalidData` for a line that cannot be decoded."""
    if "\n,".encode(encoding) != b"\n,":  # a line break takes several bytes, as in UTF-16
        from quanet.data.encodings import wide_lines

        yield from wide_lines(stream, encoding, name)
        return
    for number, line in enumerate(stream, 1):
        if number == 1:
            if line.startswith(UTF16_MARKS):
                raise InvalidData(f"{name} is UTF-16, not {encoding}. Add --encoding utf-16.")
            line = line.removeprefix(UTF8_MARK)  # noqa: PLW2901
        try:
            yield line.decode(encoding)
        except UnicodeDecodeError as error:
            around = line[max(0, error.start - 20) : error.end + 20].decode(encoding, errors="replace").strip()
            raise InvalidData(
                f"{name}, line {number}: {around!r} is not valid {encoding} (byte {line[error.start]:#04x}). "
                "Specify the encoding, such as --encoding latin-1, cp1252 or utf-16."
            ) from None


def _delimited(name: str, lines: Iterator[str], file: Any, encoding: str, delimiter: str) -> TableRows:
    first = next(lines, "")
    if not first.strip():
        raise EmptyFile(f"{name} is empty. It needs a line of column names and at least one row.")
    csv.field_size_limit(max(MAX_CELL, csv.field_size_limit()))  # one limit for all readers
    lines = chain([first], lines)
    if delimiter == AUTO:
        some, lines = _first_lines(lines)
        delimiter = find_delimiter(some, name)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    rows = _checked(reader, name)
    columns = [column.strip() for column in next(rows)]
    facts = (("encoding", encoding), ("delimiter", _delimiter_name(delimiter)))
    return TableRows(name, columns, lambda wanted: _picked(rows, columns, wanted, name), file, facts=facts)


def _first_lines(lines: Iterator[str]) -> tuple[list[str], Iterator[str]]:
    """The first lines, and all lines. An error is raised where it occurs."""
    some: list[str] = []
    try:
        for line in islice(lines, FIRST_LINES):
            some.append(line)  # noqa: PERF402 # the lines before an error are kept
    except (InvalidData, *READ_ERRORS) as error:
        return some, chain(some, _failing(error))
    return some, chain(some, lines)


def _failing(error: Exception) -> Iterator[str]:
    raise error
    yield


def find_delimiter(lines: Sequence[str], name: str) -> str:
    r"""The delimiter of the first lines of a table: the one that gives most rows as many cells as the header.

    Raises `InvalidData` if several fit all rows equally well.

    Examples
    --------
    >>> find_delimiter(["id;comment, free text\n", "1;good\n", "2;bad, sad, mad\n"], "a.csv")
    ';'
    """
    widths = {delimiter: _widths(lines, delimiter) for delimiter in DELIMITERS}
    fits = {
        delimiter: (sum(width == header for width in rows), header)
        for delimiter, (header, *rows) in widths.items()
        if header > 1
    }
    if not fits:  # a single column
        return DELIMITERS[0]
    best = max(fits.values())
    chosen = [delimiter for delimiter, fit in fits.items() if fit == best]
    rows = widths[chosen[0]][1:]
    if len(chosen) > 1 and rows and best[0] == len(rows):
        both = " and ".join(map(repr, chosen))
        options = " or ".join(f"--delimiter {_delimiter_name(one)!r}" for one in chosen)
        raise InvalidData(f"{name}: {both} both fit as delimiters of cells. Set {options}.")
    return chosen[0]


def _delimiter_name(delimiter: str) -> str:
    return "tab" if delimiter == "\t" else delimiter


def _widths(lines: Sequence[str], delimiter: str) -> list[int]:
    """The number of cells of the header and of each row, up to a row that cannot be read with this delimiter."""
    found: list[int] = []
    with suppress(csv.Error):  # also in a quoted cell that goes on in the next lines
        for row in csv.reader(lines, delimiter=delimiter, strict=True):
            if row:
                found.append(len(row))  # noqa: PERF401 # the rows before an error are kept
    return found or [0]


def _checked(reader: Any, name: str) -> Iterator[list[str]]:
    """Rows. Raises `InvalidData` if one has more or fewer cells than the header."""
    width, number = 0, 0
    try:
        for row in reader:
            if not row:  # an empty line
                continue
            width = width or len(row)
            if len(row) != width:
                raise InvalidData(
                    f"{name}, line {reader.line_num}: row {number} has {len(row)} cells, but the table has {width} "
                    "columns. Put quotes around cells that contain a delimiter."
                )
            number += 1
            yield row
    except csv.Error as error:
        raise InvalidData(
            f'{name}, line {reader.line_num}: {error}. Double a quote inside a quoted cell: "".'
        ) from None


def _picked(rows: Iterator[list[str]], columns: list[str], wanted: Sequence[str], name: str) -> Iterator[Cells]:
    places = []
    for column in wanted:
        if columns.count(column) > 1:
            raise InvalidData(f"{name} has {columns.count(column)} columns {column!r}. Rename all but one.")
        places.append(columns.index(column))
    if not places:
        return (() for _ in rows)
    if len(places) == 1:
        place = places[0]
        return ((row[place] or None,) for row in rows)
    pick = itemgetter(*places)
    return (tuple([cell or None for cell in pick(row)]) for row in rows)


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
