"""Open one table: delimited text, JSON, Parquet, a sheet of a workbook, a table of a database. And write one.

Rows are read one at a time or in chunks of bounded size, so that a file may be larger than memory. An empty cell is
None. Headers, which are read first, show whether tables fit together.
"""

import bz2
import codecs
import gzip
import io
import json
import lzma
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from quanet.data.arrow_tables import ParquetTable, cells_of, places_of
from quanet.data.columns import Cells, PickColumns, check_columns
from quanet.data.csv_files import CsvTable
from quanet.data.databases import database_rows
from quanet.data.encodings import AUTO, HEAD, decoded_lines, detect_encoding
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
from quanet.data.json_files import inspect_archive, json_array_rows, json_rows, rows_of_objects
from quanet.data.storage import READ_ERRORS, Stamp, StoredFile, is_address, read_problem
from quanet.data.workbooks import check_excel, sheet_rows, to_workbook
from quanet.errors import InvalidData, InvalidSetting
from quanet.files import as_utf8, json_ready, replacing

REQUESTS = 16  # at the same time, for files in object storage
MAX_ROWS = 20_000  # in a chunk
MAX_CHARACTERS = 2**22  # in a chunk, so that chunks of long texts have fewer rows
ENDINGS = (".csv", ".jsonl", ".parquet", ".xlsx")


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
    batches : given names of columns, and the row groups of a Parquet file or None, returns Arrow batches; call it once,
        and not `pick`. None for formats that have none.
    parquet : the file, if it is Parquet.
    """

    name: str
    columns: list[str]
    pick: PickColumns
    file: Any
    bytes_read: Callable[[], int] | None = None
    facts: tuple[tuple[str, str], ...] = ()
    batches: Callable[..., Iterator[Any]] | None = None
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
        return _open_standard_input(rows, encoding)
    path, part = split_address(file)
    kind = _checked_kind(path, part)
    try:
        if kind in WORKBOOKS and isinstance(path, Path):
            return TableRows(*sheet_rows(path, part))
        if kind in DATABASES and isinstance(path, Path):
            return TableRows(*database_rows(path, part))
        raw = path.open() if isinstance(path, StoredFile) else path.open("rb")
        try:
            return rows(str(path), kind, _decompressed(raw, path.suffix.lower()), encoding, raw, part)
        except BaseException:
            raw.close()
            raise
    except READ_ERRORS as error:
        raise InvalidData(f"{path} {read_problem(str(path), error)}") from error


def _open_standard_input(rows: Callable[[str, str, Any, str, Any], Any], encoding: str) -> Any:
    """An open table; `rows` opens it, given its name, format, content, encoding and file."""
    stream: Any = sys.stdin.buffer
    head = getattr(stream, "read1", stream.read)(2**16)
    whole: Any = _joined(head, stream)
    if head.startswith(b"\x1f\x8b"):
        inner: Any = gzip.GzipFile(fileobj=whole)
        head = inner.peek(2**16)
        whole = _joined(b"", inner)
    if head.startswith(b"PAR1"):  # its index is at the end of the file
        return rows(shown_name(STDIN), ".parquet", io.BytesIO(whole.read()), encoding, whole)
    kinds = {b"{": ".jsonl", b"[": ".json"}
    return rows(shown_name(STDIN), kinds.get(head.lstrip()[:1], ".csv"), whole, encoding, whole)


def _joined(head: bytes, stream: IO[bytes]) -> io.BufferedReader:
    """Bytes that were already read, followed by the rest of their stream."""
    return io.BufferedReader(_Joined(head, stream))


class _Joined(io.RawIOBase):
    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self.head, self.stream = head, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self.head[: len(buffer)] or getattr(self.stream, "read1", self.stream.read)(len(buffer))
        self.head = self.head[len(buffer) :]
        buffer[: len(content)] = content
        return len(content)


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


def _decompressed(raw: Any, suffix: str) -> IO[bytes]:
    if suffix == ".zst":
        return io.BufferedReader(pa.CompressedInputStream(raw, "zstd"))
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(suffix)
    return raw if opener is None else opener(raw, "rb")


def _rows(
    name: str, kind: str, stream: IO[bytes], encoding: str, file: Any, part: str = "", *, delimiter: str
) -> TableRows:
    if kind == ".parquet":
        table = ParquetTable(name, stream, file)
        return TableRows(name, table.columns, table.rows, file, table.bytes_read, batches=table.batches, parquet=table)
    if kind == ".eval":
        return TableRows(name, *rows_of_objects(name, iter(inspect_archive(name, stream)), "samples"), file)
    if encoding == AUTO:
        stream, encoding = _detected(stream, name)
    if kind == ".json":
        return TableRows(name, *json_array_rows(name, stream, encoding, part), file, facts=(("encoding", encoding),))
    if kind in {".jsonl", ".ndjson"}:
        lines = decoded_lines(stream, encoding, name)
        return TableRows(name, *json_rows(name, lines), file, facts=(("encoding", encoding),))
    text = CsvTable(name, stream, encoding, delimiter)
    return TableRows(
        name, text.columns, text.rows, file, facts=text.facts, batches=text.batches if text.plain else None
    )


def _detected(stream: IO[bytes], name: str) -> tuple[IO[bytes], str]:
    """The stream from its start, and its encoding: UTF-8 if the first bytes are valid UTF-8."""
    head = b""
    with suppress(*READ_ERRORS):  # raised again when the rows are read
        while len(head) < HEAD and (content := stream.read(2**16)):
            head += content
    if stream.seekable():
        stream.seek(0)
    else:
        stream = _joined(head, stream)
    try:
        # The last character may be cut in two.
        codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) < HEAD)
        if b"\0" not in head:
            return stream, "utf-8"
    except UnicodeDecodeError:
        pass
    return stream, detect_encoding(head, name)


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


def table_chunks(
    opened: TableRows,
    columns: Sequence[str],
    *,
    rows: int = MAX_ROWS,
    start: int = 0,
    groups: Sequence[int] | None = None,
) -> Iterator[pd.DataFrame]:
    """Frames with these columns.

    Parameters
    ----------
    opened : a table; its rows can be read once.
    columns : wanted columns.
    rows : most rows of a chunk. Chunks of long texts have fewer. They do not depend on row groups.
    start : the first value of the index.
    groups : row groups of a Parquet file; all by default.
    """
    if opened.batches is None:
        yield from row_chunks(guarded(opened.name, opened.pick(columns), start), columns, rows=rows, start=start)
        return
    batches = guarded(opened.name, opened.batches(columns, groups), start)
    for table in _cut(batches, columns, rows):
        yield cells_of(table, columns, start=start, name=opened.name)
        start += table.num_rows


def row_chunks(
    cells: Iterator[Cells], columns: Sequence[str], *, rows: int = MAX_ROWS, start: int = 0
) -> Iterator[pd.DataFrame]:
    """Rows of cells as frames of at most so many rows."""
    for part in _parts(cells, rows):
        yield frame_of(columns, part, start=start)
        start += len(part)


def guarded(name: str, parts: Iterable[Any], number: int = 0) -> Iterator[Any]:
    """The same rows or batches. Raises `InvalidData` with the row number if the file is truncated or damaged.

    `number` is the number of rows before them.
    """
    try:
        for part in parts:
            number += part.num_rows if isinstance(part, pa.RecordBatch) else 1
            yield part
    except (*READ_ERRORS, pa.ArrowException) as error:
        if is_address(name):
            raise InvalidData(f"{name}, after row {number}: it {read_problem(name, error)}") from error
        reason = " ".join(str(error).split()).rstrip(".")
        raise InvalidData(f"{name} cannot be read after row {number}: {reason}. Is it truncated?") from error


def frame_of(columns: Sequence[str], rows: Sequence[Cells], *, start: int = 0) -> pd.DataFrame:
    """Rows of cells as a frame."""
    cells: Any = zip(*rows, strict=True) if rows else ([] for _ in columns)
    index = pd.RangeIndex(start, start + len(rows))
    return pd.DataFrame(
        {name: pd.Series(list(values), dtype=object, index=index) for name, values in zip(columns, cells, strict=True)},
        index=index,
    )


def _parts(cells: Iterator[Cells], most: int) -> Iterator[list[Cells]]:
    """Rows in parts of bounded size."""
    part: list[Cells] = []
    characters = 0
    for row in cells:
        part.append(row)
        characters += sum([len(cell) for cell in row if cell.__class__ is str])
        if len(part) >= most or characters >= MAX_CHARACTERS:
            yield part
            part, characters = [], 0
    if part:
        yield part


def _cut(batches: Iterator[Any], columns: Sequence[str], most: int) -> Iterator[Any]:
    """Arrow tables that end where `_parts` ends its parts, regardless of the batches."""
    waiting: list[Any] = []
    rows = characters = 0
    for batch in batches:
        lengths = np.cumsum(_characters(batch, columns))
        begin = 0  # of the rows that are not yet used
        while begin < batch.num_rows:
            used = int(lengths[begin - 1]) if begin else 0
            full = int(np.searchsorted(lengths, MAX_CHARACTERS - characters + used)) + 1
            end = min(batch.num_rows, begin + most - rows, max(full, begin + 1))
            waiting.append(batch.slice(begin, end - begin))
            rows, characters = rows + end - begin, characters + int(lengths[end - 1]) - used
            begin = end
            if rows >= most or characters >= MAX_CHARACTERS:
                yield pa.Table.from_batches(waiting)
                waiting, rows, characters = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _characters(batch: Any, columns: Sequence[str]) -> Any:
    """(n,) characters of the texts in every row."""
    total = np.zeros(batch.num_rows, dtype=np.int64)
    for column in columns:
        total += _lengths(batch.column(column))
    return total


def _lengths(column: Any) -> Any:
    if types.is_dictionary(column.type):
        found = np.append(_lengths(column.dictionary), 0)
        return found[places_of(column)]
    if types.is_string(column.type) or types.is_large_string(column.type):
        letters = column.buffers()[2]
        only_ascii = letters is None or np.frombuffer(letters, np.int8).min(initial=0) >= 0  # faster to measure
        measured = pc.binary_length(column) if only_ascii else pc.utf8_length(column)
        return measured.fill_null(0).to_numpy(zero_copy_only=False)
    return np.zeros(len(column), dtype=np.int64)


def check_rows_file(path: Path) -> None:
    """Raise `InvalidSetting` unless `write_chunks` can write such a file."""
    if path.suffix.lower() not in ENDINGS:
        raise InvalidSetting(f"{path} does not end in any of {', '.join(ENDINGS)}.")
    if path.suffix.lower() == ".xlsx":
        check_excel()


def write_chunks(path: Path, chunks: Iterable[pd.DataFrame]) -> int:
    """Write data frames with the same columns to one file, which appears when it is complete; return their rows."""
    check_rows_file(path)
    write = dict(zip(ENDINGS, (_write_csv, _write_json_lines, _write_parquet, _write_excel), strict=True))
    try:
        with replacing(path) as file:
            return write[path.suffix.lower()](file, chunks)
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be written: {error.strerror or error}. Choose another file.") from None


def _write_csv(file: IO[bytes], chunks: Iterable[pd.DataFrame]) -> int:
    rows = 0
    for chunk in chunks:
        file.write(as_utf8(chunk.to_csv(index=False, header=rows == 0, float_format="%.6g")))
        rows += len(chunk)
    return rows


def _write_json_lines(file: IO[bytes], chunks: Iterable[pd.DataFrame]) -> int:
    rows = 0
    for chunk in chunks:
        for values in zip(*(chunk[name].tolist() for name in chunk.columns), strict=True):
            record = json_ready(dict(zip(chunk.columns, map(_rounded, values), strict=True)))
            file.write(as_utf8(json.dumps(record, ensure_ascii=False) + "\n"))
        rows += len(chunk)
    return rows


def _rounded(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _write_parquet(file: IO[bytes], chunks: Iterable[pd.DataFrame]) -> int:
    rows, writer = 0, None
    try:
        for chunk in chunks:
            schema = None if writer is None else writer.schema
            table = pa.Table.from_pandas(chunk, schema=schema or _schema(chunk), preserve_index=False)
            if writer is None:
                writer = pq.ParquetWriter(file, table.schema)
            writer.write_table(table)
            rows += len(chunk)
    finally:
        if writer is not None:
            writer.close()
    return rows


def _write_excel(file: IO[bytes], chunks: Iterable[pd.DataFrame]) -> int:
    table = pd.concat(list(chunks))
    file.write(to_workbook(table, "items"))
    return len(table)


def _schema(chunk: pd.DataFrame) -> Any:
    """Types of the columns: numbers as they are, all else text; the first rows may all be empty."""
    kinds = {"i": pa.int64(), "f": pa.float64()}
    return pa.schema([(name, kinds.get(chunk[name].dtype.kind, pa.string())) for name in chunk.columns])
