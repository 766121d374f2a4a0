"""One or several tables as one stream of chunks, in bounded memory."""

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quanet.data.columns import check_columns
from quanet.data.csv_files import check_delimiter
from quanet.data.encodings import AUTO, check_encoding
from quanet.data.file_names import STDIN, resolve, shown_name
from quanet.data.partitions import file_partitions
from quanet.data.records import PEEKED_ROWS, Cells
from quanet.data.table_chunks import MAX_ROWS, frame_of, guarded, row_chunks, table_chunks
from quanet.data.table_rows import (
    Header,
    TableRows,
    check_header,
    check_unchanged,
    header_of,
    open_rows,
    read_headers,
)
from quanet.errors import BadFile, Detected, EmptyFile, InvalidData, QuanetWarning

if TYPE_CHECKING:
    import pandas as pd


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

    def peek(self) -> "pd.DataFrame":
        """The first rows of the first table, with all its columns."""
        rows, first, _ = self._peeked()
        return frame_of(rows.columns, first)

    def comma_style(self, column: str) -> str:
        """What commas mean in the numbers of a column (`quanet.data.decimals`), "" if it has none.

        The first rows of the first table decide, once for all rows of all tables. A warning reports it, once.
        """
        from quanet.data.decimals import comma_styles, report_style

        if self._commas is None:
            self._commas = comma_styles(self._first_chunk())
        style, example = self._commas.get(column, ("", ""))
        if example:
            self._commas[column] = style, ""
            report_style(self.name, column, style, example)
        return style

    def _first_chunk(self) -> "pd.DataFrame":
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

    def chunks(self, columns: Sequence[str], *, rows: int = MAX_ROWS) -> Iterator["pd.DataFrame"]:
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

    def read(self, columns: Sequence[str]) -> "pd.DataFrame":
        """All rows, with these columns."""
        import pandas as pd

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

    def _file_chunks(self, file: str, wanted: list[str], most: int) -> Iterator["pd.DataFrame"]:
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

    def _sound_chunks(self, file: str, wanted: list[str], most: int) -> Iterator["pd.DataFrame"]:
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
