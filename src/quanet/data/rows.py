"""One table as a stream of rows: CSV, TSV, JSON lines or Parquet, compressed or not, from a file or standard input.

Nothing is kept that is not asked for, so that a file may be larger than memory. A cell that holds nothing is None.
"""

import bz2
import csv
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

from quanet.data.formats import check_kind
from quanet.data.records import Cells, Rows, json_rows, parquet_rows
from quanet.errors import InvalidData, InvalidSetting

LARGEST_CELL = 2**30  # characters; Python's own limit is shorter than many a document
STDIN = "-"
DELIMITERS = ",;\t|"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError)  # what files that are cut off or no archives raise
SIGNS = 'a.b. "C"\n,' + "d" * 100  # that an encoding of texts can write; those of domain names cannot
UTF8_MARK = b"\xef\xbb\xbf"


def open_rows(file: str, *, encoding: str) -> Rows:
    """Open a table; the ending of a file says its format, the first bytes that of standard input (``-``)."""
    if file == STDIN:
        return _open_standard_input(encoding)
    path = Path(file)
    if path.is_dir():
        raise InvalidData(f"{file} is a folder. Give the files in it, such as '{path / '*.csv'}'.")
    if not path.is_file():
        raise InvalidData(f"there is no file {file}.")
    kind = check_kind(path)
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
        if SIGNS.encode(encoding).decode(encoding) == SIGNS:
            return encoding
    except (LookupError, ValueError):  # no such encoding, none for texts, or one that refuses all of them
        pass
    raise InvalidSetting(f"there is no encoding {encoding!r}. The usual ones are utf-8, utf-16, latin-1 and cp1252.")


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
        return parquet_rows(name, stream, file)
    lines = _lines(stream, encoding, name)
    if kind in {".jsonl", ".ndjson"}:
        return json_rows(name, lines, file)
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
        if not stream.closed:
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
