"""Open one table as rows: CSV, TSV, JSON lines or Parquet, compressed or not, from a file or standard input.

Rows are read one at a time, so that a file may be larger than memory. An empty cell is None.
"""

import bz2
import csv
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

from quanet.data.records import Cells, PickColumns, json_rows, parquet_rows
from quanet.errors import InvalidData, InvalidSetting

FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
STDIN = "-"
DELIMITERS = ",;\t|"
MAX_CELL = 2**30  # characters; the default of Python's csv module is too short for some documents
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UTF8_MARK = b"\xef\xbb\xbf"
READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)  # raised for truncated and invalid archives
SAMPLE_TEXT = 'a.b. "C"\n,' + "d" * 100  # any text encoding can write it; encodings of domain names cannot


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
    """

    name: str
    columns: list[str]
    pick: PickColumns
    file: Any
    bytes_read: Callable[[], int] | None = None

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return self.file.tell() if self.bytes_read is None else self.bytes_read()

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def kind_of(path: Path) -> str:
    """The suffix that determines a file's format, in lower case, without the suffix of its compression.

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
    """The suffix of a table. Raises `InvalidData` if the format is unknown."""
    kind = kind_of(path)
    if kind in FORMATS:
        return kind
    suffixes = ", ".join(FORMATS)
    if kind in SPREADSHEETS:
        raise InvalidData(f"{path} is a spreadsheet. Save its sheet as CSV (UTF-8); quanet reads {suffixes}.")
    raise InvalidData(f"{path} has an unknown format: its name ends in none of {suffixes}. Rename or convert it.")


def open_rows(file: str, *, encoding: str) -> TableRows:
    """Open a table. The format follows from the suffix of a file, or from the first bytes of standard input (``-``)."""
    if file == STDIN:
        return _open_standard_input(encoding)
    path = Path(file)
    if path.is_dir():
        raise InvalidData(f"{file} is a folder. Pass the files in it, such as '{path / '*.csv'}'.")
    if not path.is_file():
        raise InvalidData(f"The file {file} does not exist.")
    kind = check_kind(path)
    try:
        raw = path.open("rb")
        try:
            return _rows(file, kind, _decompressed(raw, path.suffix.lower()), encoding, raw)
        except BaseException:
            raw.close()
            raise
    except READ_ERRORS as error:
        raise InvalidData(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def check_encoding(encoding: str) -> str:
    """The name of a text encoding. Raises `InvalidSetting` if it is unknown."""
    try:
        if SAMPLE_TEXT.encode(encoding).decode(encoding) == SAMPLE_TEXT:
            return encoding
    except (LookupError, ValueError):  # unknown, or not an encoding of text
        pass
    raise InvalidSetting(f"Unknown encoding {encoding!r}. Common ones are utf-8, utf-16, latin-1 and cp1252.")


def _decompressed(raw: Any, suffix: str) -> IO[bytes]:
    if suffix == ".zst":
        import pyarrow as pa

        return io.BufferedReader(pa.CompressedInputStream(raw, "zstd"))
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(suffix)
    return raw if opener is None else opener(raw, "rb")


def _open_standard_input(encoding: str) -> TableRows:
    name = "standard input"
    stream: Any = sys.stdin.buffer
    head = getattr(stream, "read1", stream.read)(2**16)
    whole: Any = io.BufferedReader(_Joined(head, stream))
    if head.startswith(b"\x1f\x8b"):
        whole = gzip.GzipFile(fileobj=whole)
        head = whole.peek(2**16)
    if head.startswith(b"PAR1"):  # its index is at the end of the file
        return _rows(name, ".parquet", io.BytesIO(whole.read()), encoding, whole)
    return _rows(name, ".jsonl" if head.lstrip()[:1] == b"{" else ".csv", whole, encoding, whole)


class _Joined(io.RawIOBase):
    """Bytes that were already read, followed by the rest of their stream."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self.head, self.stream = head, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self.head[: len(buffer)] or getattr(self.stream, "read1", self.stream.read)(len(buffer))
        self.head = self.head[len(buffer) :]
        buffer[: len(content)] = content
        return len(content)


def _rows(name: str, kind: str, stream: IO[bytes], encoding: str, file: Any) -> TableRows:
    if kind == ".parquet":
        columns, pick, bytes_read = parquet_rows(name, stream, file)
        return TableRows(name, columns, pick, file, bytes_read)
    lines = _lines(stream, encoding, name)
    if kind in {".jsonl", ".ndjson"}:
        return TableRows(name, *json_rows(name, lines), file)
    return _delimited(name, lines, file)


def _lines(stream: IO[bytes], encoding: str, name: str) -> Iterator[str]:
    """Decoded lines. Raises `InvalidData` for a line that cannot be decoded."""
    if "\n,".encode(encoding) != b"\n,":  # a line break takes several bytes, as in UTF-16
        yield from _wide_lines(stream, encoding, name)
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


def _wide_lines(stream: IO[bytes], encoding: str, name: str) -> Iterator[str]:
    number = 0
    decoded = io.TextIOWrapper(stream, encoding=encoding, newline="")
    try:
        for line in decoded:
            number += 1
            yield line
    except UnicodeError as error:
        reason = getattr(error, "reason", error)
        raise InvalidData(
            f"{name}, after line {number}: not valid {encoding} ({reason}). Specify the encoding: --encoding."
        ) from None
    finally:
        if not stream.closed:
            decoded.detach()  # the caller closes the stream


def _delimited(name: str, lines: Iterator[str], file: Any) -> TableRows:
    first = next(lines, "")
    if not first.strip():
        raise InvalidData(f"{name} is empty. It needs a line of column names and at least one row.")
    csv.field_size_limit(max(MAX_CELL, csv.field_size_limit()))  # one limit for all readers
    reader = csv.reader(chain([first], lines), delimiter=_delimiter(first), strict=True)
    rows = _checked(reader, name)
    columns = [column.strip() for column in next(rows)]
    return TableRows(name, columns, lambda wanted: _picked(rows, columns, wanted, name), file)


def _delimiter(header: str) -> str:
    """The delimiter that is most frequent in the header, outside quotes."""
    outside = "".join(header.split('"')[::2])
    return max(DELIMITERS, key=outside.count)


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
