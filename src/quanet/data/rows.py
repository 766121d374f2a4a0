"""One table as a stream of rows: CSV, TSV, JSON lines or Parquet, compressed or not, from a file or standard input.

Nothing is kept that is not asked for, so that a file may be larger than memory. A cell that holds nothing is None.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

from quanet.data.tables import FORMATS, kind_of
from quanet.errors import InvalidData, InvalidSetting

Cells = Sequence[Any]
FIRST = 1000  # rows that say which columns a table has, and what they hold
LARGEST_CELL = 2**30  # characters; Python's own limit is shorter than many a document
STDIN = "-"
DELIMITERS = ",;\t|"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError)  # what files that are cut off or no archives raise
UTF8_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """An open table.

    Attributes
    ----------
    name : what messages call it.
    columns : their names.
    pick : given names of columns, the cells of these, row by row; to be called once.
    file : to be closed.
    """

    name: str
    columns: list[str]
    pick: Callable[[Sequence[str]], Iterator[Cells]]
    file: Any
    read: Callable[[], int] | None = None

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return self.file.tell() if self.read is None else self.read()

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def open_rows(file: str, *, encoding: str) -> Rows:
    """Open a table; the ending of a file says its format, the first bytes that of standard input (``-``)."""
    if file == STDIN:
        return _open_standard_input(encoding)
    path = Path(file)
    kind = kind_of(path)
    if path.is_dir():
        raise InvalidData(f"{file} is a folder. Give the files in it, such as '{path / '*.csv'}'.")
    if not path.is_file():
        raise InvalidData(f"there is no file {file}.")
    if kind not in FORMATS:
        raise InvalidData(f"{file} ends in none of {', '.join(FORMATS)}, so its format is not known. Rename it.")
    try:
        raw = path.open("rb")
        try:
            return _rows(file, kind, _decompressed(raw, path.suffix.lower()), encoding, raw)
        except BaseException:
            raw.close()
            raise
    except BROKEN as error:
        raise InvalidData(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def check_encoding(encoding: str) -> str:
    """The name of an encoding, or an error that says which there are."""
    try:
        "".encode(encoding)
    except LookupError:
        raise InvalidSetting(
            f"there is no encoding {encoding!r}. The usual ones are utf-8, utf-16, latin-1 and cp1252."
        ) from None
    return encoding


def _decompressed(raw: Any, suffix: str) -> IO[bytes]:
    if suffix == ".zst":
        import pyarrow as pa

        return io.BufferedReader(pa.CompressedInputStream(raw, "zstd"))
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(suffix)
    return raw if opener is None else opener(raw, "rb")


def _open_standard_input(encoding: str) -> Rows:
    name = "standard input"
    stream: Any = sys.stdin.buffer
    head = getattr(stream, "read1", stream.read)(2**16)
    whole: Any = io.BufferedReader(_Joined(head, stream))
    if head.startswith(b"\x1f\x8b"):
        whole = gzip.GzipFile(fileobj=whole)
        head = whole.peek(2**16)
    if head.startswith(b"PAR1"):  # whose contents stand at its end
        return _rows(name, ".parquet", io.BytesIO(whole.read()), encoding, whole)
    return _rows(name, ".jsonl" if head.lstrip()[:1] == b"{" else ".csv", whole, encoding, whole)


class _Joined(io.RawIOBase):
    """Bytes that were read already, and then the rest of their stream."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self.head, self.stream = head, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self.head[: len(buffer)] or getattr(self.stream, "read1", self.stream.read)(len(buffer))
        self.head = self.head[len(buffer) :]
        buffer[: len(content)] = content
        return len(content)


def _rows(name: str, kind: str, stream: IO[bytes], encoding: str, file: Any) -> Rows:
    if kind == ".parquet":
        return _parquet(name, stream, file)
    lines = _lines(stream, encoding, name)
    if kind in {".jsonl", ".ndjson"}:
        return _json(name, lines, file)
    return _delimited(name, lines, file)


def _lines(stream: IO[bytes], encoding: str, name: str) -> Iterator[str]:
    """Decoded lines; one that cannot be decoded is named."""
    if "\n,".encode(encoding) != b"\n,":  # a line's end is more than one byte, as in UTF-16
        yield from _wide_lines(stream, encoding, name)
        return
    for number, line in enumerate(stream, 1):
        if number == 1:
            if line.startswith(UTF16):
                raise InvalidData(f"{name} begins as UTF-16 does, not {encoding}. Say so: --encoding utf-16.")
            line = line.removeprefix(UTF8_MARK)  # noqa: PLW2901
        try:
            yield line.decode(encoding)
        except UnicodeDecodeError as error:
            around = line[max(0, error.start - 20) : error.end + 20].decode(encoding, errors="replace").strip()
            raise InvalidData(
                f"{name}, line {number}: {around!r} is not {encoding}, at byte {line[error.start]:#04x}. "
                "Give the file's encoding, such as --encoding latin-1, cp1252 or utf-16."
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
            f"{name}, after line {number}: this is not {encoding} ({reason}). Give the file's encoding: --encoding."
        ) from None
    finally:
        decoded.detach()  # the stream is not its own to close


def _delimited(name: str, lines: Iterator[str], file: Any) -> Rows:
    first = next(lines, "")
    if not first.strip():
        raise InvalidData(f"{name} is empty. Give a table with a line of column names, and rows below it.")
    csv.field_size_limit(max(LARGEST_CELL, csv.field_size_limit()))  # the module has but one, for all readers
    reader = csv.reader(chain([first], lines), delimiter=_delimiter(first), strict=True)
    rows = _checked(reader, name)
    columns = [column.strip() for column in next(rows)]
    return Rows(name, columns, lambda wanted: _picked(rows, columns, wanted, name), file)


def _delimiter(header: str) -> str:
    """What parts the names of columns: whatever of the usual is most frequent outside quotes."""
    outside = "".join(header.split('"')[::2])
    return max(DELIMITERS, key=outside.count)


def _checked(reader: Any, name: str) -> Iterator[list[str]]:
    """Rows that all have as many cells as the first."""
    width, number = 0, 0
    try:
        for row in reader:
            if not row:  # an empty line
                continue
            width = width or len(row)
            if len(row) != width:
                raise InvalidData(
                    f"{name}, line {reader.line_num}: row {number} has {len(row)} cells, but there are {width} "
                    "columns. Put quotes around cells that hold a delimiter."
                )
            number += 1
            yield row
    except csv.Error as error:
        raise InvalidData(
            f'{name}, line {reader.line_num}: {error}. A quote inside a quoted cell is written twice, "".'
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


def _json(name: str, lines: Iterator[str], file: Any) -> Rows:
    objects = _objects(name, lines)
    first = list(islice(objects, FIRST))
    if not first:
        raise InvalidData(f"{name} is empty. Give one JSON object a line.")
    columns = list(dict.fromkeys(key for row in first for key in row))

    def pick(wanted: Sequence[str]) -> Iterator[Cells]:
        return (tuple([_filled(row.get(column)) for column in wanted]) for row in chain(first, objects))

    return Rows(name, columns, pick, file)


def _objects(name: str, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InvalidData(
                f"{name}, line {number} is no JSON: {error}. Write one object a line; of an array, "
                "jq -c '.[]' makes such lines."
            ) from None
        if not isinstance(row, dict):
            raise InvalidData(f"{name}, line {number} is JSON, but no object with named values. Write one a line.")
        yield row


def _parquet(name: str, stream: Any, raw: Any) -> Rows:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not stream.seekable() or isinstance(stream, gzip.GzipFile):
        stream = io.BytesIO(stream.read())
    try:
        file = pq.ParquetFile(stream)
    except pa.ArrowException as error:
        raise InvalidData(f"{name} cannot be read as PARQUET: {' '.join(str(error).split())}") from None
    rows, size = max(file.metadata.num_rows, 1), stream.seek(0, io.SEEK_END) if stream is raw else 0
    done = 0

    def pick(wanted: Sequence[str]) -> Iterator[Cells]:
        nonlocal done
        for batch in file.iter_batches(batch_size=8192, columns=list(wanted)):
            # pyarrow gives columns in the file's order.
            parts = [map(_filled, batch.column(column).to_pylist()) for column in wanted]
            done += len(batch)
            yield from zip(*parts, strict=True) if parts else ((),) * len(batch)

    return Rows(name, list(file.schema_arrow.names), pick, raw, lambda: size * done // rows)


def _filled(value: Any) -> Any:
    """A cell as it is, or None where it holds nothing: no value, not a number, an empty text."""
    return None if value is None or value == "" or value != value else value
