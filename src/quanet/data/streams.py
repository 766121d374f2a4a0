"""Tables as one stream of chunks, in bounded memory, or as partitions, which workers read by themselves."""

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd

from quanet.data.columns import PEEKED_ROWS, Cells, check_columns, comma_styles, report_style
from quanet.data.csv_files import check_delimiter
from quanet.data.encodings import AUTO, check_encoding
from quanet.data.file_names import STDIN, identity_of, resolve, shown_name
from quanet.data.storage import Stamp
from quanet.data.table_files import (
    MAX_ROWS,
    Header,
    TableRows,
    check_header,
    check_unchanged,
    frame_of,
    guarded,
    header_of,
    open_rows,
    read_headers,
    row_chunks,
    table_chunks,
)
from quanet.errors import BadFile, Detected, EmptyFile, InvalidData, QuanetWarning

PARTITION_ROWS = 100_000  # in a partition, unless a row group has more


class TableSource:
    r"""Rows of one or several tables, read as one.

    Cells of CSV and TSV are strings. Cells of other formats keep their types. An empty cell is None.

    Parameters
    ----------
    files : names, patterns such as ``reviews-*.csv``, or ``-`` for standard input. A sheet of a workbook, a table of a
        database or a query follows after #: ``book.xlsx#March``, ``store.db#reviews``,
        ``store.db#select text, date from reviews``.
        Addresses in object storage are files, too: ``s3://bucket/reviews/*.parquet``, ``gs://``, ``abfs://``.
    encoding : of CSV, TSV and JSON. "auto": UTF-8 if the file is valid UTF-8, else detected and reported.
    delimiter : of CSV and TSV, such as ";" or "tab". "auto": found in the first lines.
    skip_bad : whether files that cannot be read, or have other columns than the first, are skipped and reported.
        None: no, and the error does not mention the option of the commands.

    Attributes
    ----------
    files : the names, with patterns expanded.
    bad_files : files that were skipped, as a whole or in part, with the reason.
    bad_partitions : ids of skipped partitions of files that are otherwise used.
    empty_files : files without rows, if others have rows.
    rows : rows read so far.
    follow : called for every chunk with the bytes read so far.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("a.csv", "b.csv"):
    ...         _ = Path(folder, name).write_text("text,stars\ngood film,5\nbad film,1\n")
    ...     source = TableSource([f"{folder}/*.csv"])
    ...     source.columns, source.read(["stars"])["stars"].tolist()
    (['text', 'stars'], ['5', '1', '5', '1'])
    """

    def __init__(
        self,
        files: Iterable[str | Path],
        *,
        encoding: str = AUTO,
        delimiter: str = AUTO,
        skip_bad: bool | None = None,
    ) -> None:
        self.stamps = resolve(files)
        self.files = list(self.stamps)
        self.encoding = check_encoding(encoding)
        self.delimiter = check_delimiter(delimiter)
        self.skip_bad = skip_bad
        self.bad_files: dict[str, str] = {}
        self.bad_partitions: set[str] = set()
        self.empty_files: list[str] = []
        self.rows = 0
        self.follow: Callable[[int], None] | None = None
        self._first: tuple[TableRows, list[Cells], Iterator[Cells]] | None = None
        self._headers: dict[str, Header] = {}
        self._commas: dict[str, tuple[str, str]] | None = None  # what they mean, and a cell that is not yet reported
        self._starts: list[tuple[int, str, int]] = []  # row of the index, file, row of the file
        self._done = 0  # bytes of the files read completely
        self._current: TableRows | None = None

    @property
    def name(self) -> str:
        """The name used in messages."""
        first = shown_name(self.files[0])
        return first if len(self.files) == 1 else f"{first} and {len(self.files) - 1} more files"

    @property
    def names(self) -> list[str]:
        """The files as answers show them, without credentials."""
        return [shown_name(file) if file != STDIN else file for file in self.files]

    @property
    def columns(self) -> list[str]:
        """The columns of the first table."""
        return self._peeked()[0].columns

    @property
    def facts(self) -> dict[str, str]:
        """Encoding and delimiter of the first table, if it is a text file."""
        return dict(self._peeked()[0].facts)

    @property
    def size(self) -> int | None:
        """Bytes of all files; None if standard input is one of them."""
        return None if STDIN in self.files else sum(self.stamps[file].size for file in self.files)

    @property
    def position(self) -> int:
        """Bytes read so far."""
        current = self._current.position if self._current and STDIN not in self.files else 0
        return self._done + current

    def peek(self) -> pd.DataFrame:
        """The first rows of the first table, with all its columns."""
        rows, first, _ = self._peeked()
        return frame_of(rows.columns, first)

    def comma_style(self, column: str) -> str:
        """What commas mean in the numbers of a column (`quanet.data.columns`), "" if it has none.

        The first rows of the first table decide, once for all rows of all tables. A warning reports it, once.
        """
        if self._commas is None:
            self._commas = comma_styles(self._first_chunk())
        style, example = self._commas.get(column, ("", ""))
        if example:
            self._commas[column] = style, ""
            report_style(self.name, column, style, example)
        return style

    def _first_chunk(self) -> pd.DataFrame:
        """The first rows of the first table: more than `peek` has, unless they can be read only once."""
        first = self.peek()
        if len(first) < PEEKED_ROWS or self.files[0] == STDIN:
            return first
        with warnings.catch_warnings(), suppress(InvalidData):
            warnings.simplefilter("ignore")  # they were reported
            chunks: Any = self.with_files(self.files[:1]).chunks(self.columns)
            with closing(chunks):
                return next(chunks)
        return first

    def check(self, columns: Sequence[str]) -> None:
        """Raise `InvalidData` if a table lacks one of these columns or has other types, before any is read."""
        first: dict[str, Header] = {}  # the first table that has a type for a column
        for header in self.headers():
            with self._skipping(header.file):
                check_header(header, first, columns)

    def headers(self) -> list[Header]:
        """What the files say of their tables; without standard input, unless it is the first. Bad files are skipped."""
        opened, _, _ = self._peeked()
        self._headers.setdefault(self.files[0], header_of(self.files[0], opened))
        unread = [file for file in self.files if file not in self._headers and file != STDIN]
        for file, header in zip(unread, read_headers(unread, self.encoding, self.delimiter), strict=True):
            with self._skipping(file):
                if isinstance(header, InvalidData):
                    raise header
                self._headers[file] = header
        return [self._headers[file] for file in self.files if file in self._headers]

    def chunks(self, columns: Sequence[str], *, rows: int = MAX_ROWS) -> Iterator[pd.DataFrame]:
        """The rows with these columns, chunk by chunk. The index counts rows over all files, from 0."""
        wanted = list(dict.fromkeys(columns))
        self.check(wanted)
        self.rows, self._done, self._starts = 0, 0, []
        for file in list(self.files):
            before, done = self.rows, self._done
            self._starts.append((self.rows, file, 0))
            with self._skipping(file):
                for chunk in self._file_chunks(file, wanted, rows):
                    if self.follow:
                        self.follow(self.position)
                    yield chunk
                    self.rows += len(chunk)
            self._done, self._current = done + self.stamps[file].size, None
            if self.rows == before and shown_name(file) not in self.bad_files:
                self.report_empty(file)
        if not self.rows:
            raise InvalidData(f"{self.name} has no rows.")

    def read(self, columns: Sequence[str]) -> pd.DataFrame:
        """All rows, with these columns."""
        return pd.concat(list(self.chunks(columns)))

    def place(self, row: int) -> str:
        """The position of a row for messages: its file and number, counted from 1 without the header.

        `row` is a value of the index of `chunks`.
        """
        start, file, first = [begin for begin in self._starts if begin[0] <= row][-1]
        return f"{shown_name(file)}, row {row - start + first + 1}"

    def with_files(self, files: Iterable[str | Path]) -> "TableSource":
        """Other files that are read in the same way."""
        return TableSource(files, encoding=self.encoding, delimiter=self.delimiter, skip_bad=self.skip_bad)

    def skip(self, file: str, reason: str, partition: str = "") -> None:
        """Skip a file, or one of its partitions, and report it.

        Raises `BadFile` unless bad files are to be skipped and others are left.
        """
        several = len(self.stamps) > 1
        if not self.skip_bad or not several:
            hint = several and self.skip_bad is False
            raise BadFile(f"{reason}{' To continue without such files, add --skip-bad-files.' * hint}", file, partition)
        known = shown_name(file) in self.bad_files
        if partition and len(list(file_partitions(file, self.stamps[file], self._headers.get(file)))) > 1:
            self.bad_partitions.add(partition)
            reason = f"{reason} Its other row groups are used."
        elif file in self.files:
            self._drop(file)
        if not known:  # one line for each file
            self.bad_files[shown_name(file)] = reason
            warnings.warn(f"Skipped: {reason}", QuanetWarning, stacklevel=2)
        if not self.files:
            raise InvalidData(f"None of the {len(self.stamps):,} files can be used. The last one: {reason}")

    def _drop(self, file: str) -> None:
        if file == self.files[0]:
            self._first = None
        self.files.remove(file)

    def report_empty(self, file: str) -> None:
        """Report a file without rows, if there are others."""
        if len(self.stamps) > 1 and shown_name(file) not in self.empty_files:
            self.empty_files.append(shown_name(file))
            warnings.warn(Detected(f"{shown_name(file)} has no rows."), stacklevel=2)

    @contextmanager
    def _skipping(self, file: str) -> Iterator[None]:
        """Inside, an error is one of this file, which is skipped if it may be."""
        try:
            yield
        except EmptyFile:
            if len(self.files) == 1:
                raise
            self.report_empty(file)
            self._drop(file)
        except InvalidData as error:
            self.skip(file, str(error), getattr(error, "partition", ""))

    def _peeked(self) -> tuple[TableRows, list[Cells], Iterator[Cells]]:
        """The first table, its first rows and, for standard input, an iterator over the other rows."""
        while self._first is None:
            with self._skipping(self.files[0]):
                self._first = self._peek(self.files[0])
        return self._first

    def _peek(self, file: str) -> tuple[TableRows, list[Cells], Iterator[Cells]]:
        rows = open_rows(file, encoding=self.encoding, delimiter=self.delimiter)
        try:
            unique = len(set(rows.columns)) == len(rows.columns)
            cells = guarded(rows.name, rows.pick(rows.columns) if unique else iter(()))
            return rows, list(islice(cells, PEEKED_ROWS)), cells
        finally:
            if file != STDIN:
                rows.close()

    def _file_chunks(self, file: str, wanted: list[str], most: int) -> Iterator[pd.DataFrame]:
        if file == STDIN and self.files[0] == STDIN:  # a pipe can be read only once
            self._current, first, others = self._peeked()
            places = [self._current.columns.index(column) for column in wanted]
            cells = (tuple([row[place] for place in places]) for row in chain(first, others))
            yield from row_chunks(cells, wanted, rows=most, start=self.rows)
            return
        if self.skip_bad:
            yield from self._sound_chunks(file, wanted, most)
            return
        with closing(open_rows(file, encoding=self.encoding, delimiter=self.delimiter)) as self._current:
            check_columns(wanted, self._current.columns, shown_name(file))
            yield from table_chunks(self._current, wanted, rows=most, start=self.rows)
        check_unchanged(file, self.stamps[file])

    def _sound_chunks(self, file: str, wanted: list[str], most: int) -> Iterator[pd.DataFrame]:
        """Chunks of the partitions that can be read to their end: each is read twice, so that none counts in part."""
        for part in file_partitions(file, self.stamps[file], self._headers.get(file)):
            if part.id in self.bad_partitions:
                continue
            with self._skipping(file):
                read = partial(part.chunks, wanted, encoding=self.encoding, delimiter=self.delimiter)
                deque(read(), maxlen=0)
                self._starts.append((self.rows, file, part.first_row))
                for chunk in read(rows=most):
                    yield chunk.set_axis(range(self.rows, self.rows + len(chunk)))
            self._done += part.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A file, or some row groups of a Parquet file.

    Attributes
    ----------
    file : its name or address, which may contain credentials; `name` does not.
    stamp : size and time of the last change of the file.
    id : identifies the content: name, size, time of the last change and row groups.
    first_row_group, row_groups : of a Parquet file; `row_groups` is None if the file is read as a whole.
    first_row : rows of the file before this partition.
    rows : number of rows; None if only reading can tell.
    size : about how many bytes are read.
    """

    file: str = field(repr=False)
    stamp: Stamp
    id: str
    first_row_group: int = 0
    row_groups: int | None = None
    first_row: int = 0
    rows: int | None = None
    size: int = 0

    @property
    def name(self) -> str:
        """The name used in messages."""
        return shown_name(self.file)

    def place(self, row: int) -> str:
        """The position of a row for messages. `row` is a value of the index of `chunks`."""
        return f"{self.name}, row {row + 1}"

    def chunks(
        self, columns: Sequence[str], *, encoding: str = AUTO, delimiter: str = AUTO, rows: int = MAX_ROWS
    ) -> Iterator[pd.DataFrame]:
        """The rows with these columns, as `TableSource.chunks` yields them. The index counts rows of the file, from 0.

        Raises `BadFile` if the file cannot be read, lacks a column, or has changed since it was listed.
        """
        wanted = list(dict.fromkeys(columns))
        groups = None
        if self.row_groups is not None:
            groups = range(self.first_row_group, self.first_row_group + self.row_groups)
        try:
            with closing(open_rows(self.file, encoding=encoding, delimiter=delimiter)) as opened:
                check_columns(wanted, opened.columns, self.name)
                if groups and opened.parquet and len(opened.parquet.group_rows) < groups.stop:
                    check_unchanged(self.file, self.stamp)
                yield from table_chunks(opened, wanted, rows=rows, start=self.first_row, groups=groups)
            check_unchanged(self.file, self.stamp)
        except InvalidData as error:
            raise BadFile(str(error), self.file, self.id) from error


def partitions_of(source: "TableSource", *, rows: int = PARTITION_ROWS) -> list[Partition]:
    """The partitions of a source, in its order. Of Parquet files, only metadata are read.

    A file without rows has no partition. Files that cannot be opened raise `BadFile`, or are skipped if the source
    skips bad files, as are partitions that it could not read. Standard input is one partition, which only
    `source.chunks` can read.

    Parameters
    ----------
    source : the files.
    rows : a partition of a Parquet file has row groups with about so many rows.
    """
    headers = {header.file: header for header in source.headers()}
    for file, header in headers.items():
        if header.group_rows is not None and not sum(header.group_rows):
            source.report_empty(file)
    return [
        partition
        for file in source.files
        for partition in file_partitions(file, source.stamps[file], headers.get(file), rows)
        if partition.id not in source.bad_partitions
    ]


def file_partitions(
    file: str, stamp: Stamp, header: Header | None, wanted: int = PARTITION_ROWS
) -> Iterator[Partition]:
    """The partitions of a file: row groups of Parquet with about as many rows as wanted, else one."""
    if file == STDIN:
        yield Partition(file=file, stamp=stamp, id=uuid4().hex[:20])
        return
    if header is None or header.group_rows is None:
        yield Partition(file=file, stamp=stamp, id=_digest(file, stamp), size=stamp.size)
        return
    total = max(sum(header.group_rows), 1)
    begin = first_row = waiting = 0
    for group, number in enumerate(header.group_rows, 1):
        waiting += number
        following = header.group_rows[group] if group < len(header.group_rows) else wanted
        if waiting and (waiting + following / 2 > wanted or group == len(header.group_rows)):
            yield Partition(
                file=file,
                stamp=stamp,
                id=_digest(file, stamp, begin, group),
                first_row_group=begin,
                row_groups=group - begin,
                first_row=first_row,
                rows=waiting,
                size=stamp.size * waiting // total,
            )
            begin, first_row, waiting = group, first_row + waiting, 0


def _digest(file: str, stamp: Stamp, *groups: int) -> str:
    content = repr((identity_of(file), *stamp, *groups))
    return blake2b(content.encode("utf-8", "surrogateescape"), digest_size=10).hexdigest()
