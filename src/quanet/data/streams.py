"""One or several tables as one stream of chunks, in bounded memory."""

import glob
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from difflib import get_close_matches
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quanet.data.columns import check_columns
from quanet.data.records import PEEKED_ROWS, Cells
from quanet.data.table_rows import (
    AUTO,
    READ_ERRORS,
    STDIN,
    TableRows,
    check_encoding,
    is_file,
    open_rows,
    split_address,
)
from quanet.errors import InvalidData

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS = 20_000  # in a chunk
MAX_CHARACTERS = 2**22  # in a chunk, so that chunks of long texts have fewer rows


class TableSource:
    r"""Rows of one or several tables, read as one.

    Cells of CSV and TSV are strings. Cells of other formats keep their types. An empty cell is None.

    Parameters
    ----------
    files : names, patterns such as ``reviews-*.csv``, or ``-`` for standard input. A sheet of a workbook, a table of a
        database or a query follows after #: ``book.xlsx#March``, ``store.db#reviews``,
        ``store.db#select text, date from reviews``.
    encoding : of CSV, TSV and JSON. "auto": UTF-8 if the file is valid UTF-8, else detected and reported.

    Attributes
    ----------
    files : the names, with patterns expanded.
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

    def __init__(self, files: Iterable[str | Path], *, encoding: str = AUTO) -> None:
        self.files = resolve(files)
        self.encoding = check_encoding(encoding)
        self.rows = 0
        self.follow: Callable[[int], None] | None = None
        self._first: tuple[TableRows, list[Cells], Iterator[Cells]] | None = None
        self._starts: list[tuple[int, str]] = []
        self._done = 0  # bytes of the files read completely
        self._current: TableRows | None = None

    @property
    def name(self) -> str:
        """The name used in messages."""
        if self.files == [STDIN]:
            return "standard input"
        return self.files[0] if len(self.files) == 1 else f"{self.files[0]} and {len(self.files) - 1} more files"

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
        return None if STDIN in self.files else sum(map(_size, self.files))

    @property
    def position(self) -> int:
        """Bytes read so far."""
        current = self._current.position if self._current and STDIN not in self.files else 0
        return self._done + current

    def peek(self) -> "pd.DataFrame":
        """The first rows of the first table, with all its columns."""
        rows, first, _ = self._peeked()
        return _frame(rows.columns, first)

    def check(self, columns: Sequence[str]) -> None:
        """Raise `InvalidData` if a table lacks one of these columns, before any is read."""
        check_columns(columns, self.columns, _display_name(self.files[0]))
        for file in self.files[1:]:
            if file != STDIN:
                with closing(open_rows(file, encoding=self.encoding)) as opened:
                    check_columns(columns, opened.columns, file)

    def chunks(self, columns: Sequence[str], *, rows: int = MAX_ROWS) -> Iterator["pd.DataFrame"]:
        """The rows with these columns, chunk by chunk. The index counts rows over all files, from 0."""
        wanted = list(dict.fromkeys(columns))
        self.check(wanted)
        self.rows, self._done, self._starts = 0, 0, []
        for number, file in enumerate(self.files):
            self._starts.append((self.rows, file))
            with closing(self._open(number)) as self._current:
                if file == STDIN:  # not checked above, because it can be read only once
                    check_columns(wanted, self._current.columns, _display_name(file))
                for part in _parts(self._cells(self._current, wanted), rows):
                    if self.follow:
                        self.follow(self.position)
                    yield _frame(wanted, part, start=self.rows)
                    self.rows += len(part)
            self._done += 0 if file == STDIN else _size(file)
            self._current = None
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
        start, file = [begin for begin in self._starts if begin[0] <= row][-1]
        return f"{_display_name(file)}, row {row - start + 1}"

    def _peeked(self) -> tuple[TableRows, list[Cells], Iterator[Cells]]:
        """The first table, its first rows and, for standard input, an iterator over the other rows."""
        if self._first is None:
            rows = open_rows(self.files[0], encoding=self.encoding)
            try:
                unique = len(set(rows.columns)) == len(rows.columns)
                cells = _guarded(rows, rows.pick(rows.columns) if unique else iter(()))
                self._first = rows, list(islice(cells, PEEKED_ROWS)), cells
            finally:
                if self.files[0] != STDIN:
                    rows.close()
        return self._first

    def _open(self, number: int) -> TableRows:
        if self.files[number] == STDIN and number == 0:
            return self._peeked()[0]  # a pipe can be read only once
        return open_rows(self.files[number], encoding=self.encoding)

    def _cells(self, rows: TableRows, wanted: list[str]) -> Iterator[Cells]:
        if self._first is None or rows is not self._first[0]:
            return _guarded(rows, rows.pick(wanted))
        places = [rows.columns.index(column) for column in wanted]
        return (tuple([row[place] for place in places]) for row in chain(*self._first[1:]))


def _guarded(rows: TableRows, cells: Iterator[Cells]) -> Iterator[Cells]:
    """The same rows. Raises `InvalidData` with the row number if the file is truncated."""
    number = 0
    try:
        for row in cells:
            number += 1
            yield row
    except READ_ERRORS as error:
        raise InvalidData(f"{rows.name} cannot be read after row {number}: {error}. Is it truncated?") from error


def resolve(files: Iterable[str | Path]) -> list[str]:
    """Names of files, with patterns replaced by the files that match, sorted."""
    found: list[str] = []
    for file in map(str, files):
        path, part = split_address(file)
        if file == STDIN or path.exists() or not glob.has_magic(str(path)):
            found.append(file)
            continue
        # A pattern may contain # itself.
        matches = sorted(glob.glob(file, recursive=True))  # noqa: PTH207
        if not matches and part:
            matches = [f"{match}#{part}" for match in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207
        if not matches:
            raise InvalidData(f"No file matches {file!r}.")
        found += matches
    for file in found:
        path, _ = split_address(file)
        if file != STDIN and not path.exists():
            raise InvalidData(f"The file {path} does not exist.{_suggestion(path)}")
    if found.count(STDIN) > 1:
        raise InvalidData("Standard input (-) can be read only once.")
    return found


def _size(file: str) -> int:
    return split_address(file)[0].stat().st_size


def _suggestion(path: Path) -> str:
    """A question that names the file with the most similar name in the same folder."""
    names = [file.name for file in path.parent.iterdir() if is_file(file)] if path.parent.is_dir() else []
    near = get_close_matches(path.name, names, n=1, cutoff=0.8)
    return f" Did you mean {path.parent / near[0]}?" if near else ""


def _display_name(file: str) -> str:
    return "standard input" if file == STDIN else file


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


def _frame(columns: Sequence[str], rows: Sequence[Cells], *, start: int = 0) -> "pd.DataFrame":
    import pandas as pd

    cells: Any = zip(*rows, strict=True) if rows else ([] for _ in columns)
    index = pd.RangeIndex(start, start + len(rows))
    return pd.DataFrame(
        {name: pd.Series(list(values), dtype=object, index=index) for name, values in zip(columns, cells, strict=True)},
        index=index,
    )
