"""Tables in one or several files, as one stream of chunks in bounded memory."""

import glob
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from difflib import get_close_matches
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quanet.data.columns import check_columns
from quanet.data.records import FIRST, Cells, Rows
from quanet.data.rows import BROKEN, STDIN, check_encoding, open_rows
from quanet.errors import InvalidData

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 20_000  # of a chunk
MOST_CHARACTERS = 2**22  # of a chunk; long texts make it shorter


class Source:
    r"""Rows of one or several tables, read as one.

    Cells of CSV and TSV are strings; those of JSON lines and Parquet are what they are there. An empty cell is None.

    Parameters
    ----------
    files : names, patterns such as ``reviews-*.csv``, or ``-`` for standard input.
    encoding : of CSV, TSV and JSON lines.

    Attributes
    ----------
    files : the names, patterns resolved.
    rows : read so far.
    follow : told how many bytes have been read, with every chunk.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("a.csv", "b.csv"):
    ...         _ = Path(folder, name).write_text("text,stars\ngood film,5\nbad film,1\n")
    ...     source = Source([f"{folder}/*.csv"])
    ...     source.columns, source.read(["stars"])["stars"].tolist()
    (['text', 'stars'], ['5', '1', '5', '1'])
    """

    def __init__(self, files: Iterable[str | Path], *, encoding: str = "utf-8") -> None:
        self.files = resolve(files)
        self.encoding = check_encoding(encoding)
        self.rows = 0
        self.follow: Callable[[int], None] | None = None
        self._first: tuple[Rows, list[Cells], Iterator[Cells]] | None = None
        self._starts: list[tuple[int, str]] = []
        self._done = 0  # bytes of files that are read
        self._current: Rows | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        if self.files == [STDIN]:
            return "standard input"
        return self.files[0] if len(self.files) == 1 else f"{len(self.files)} files from {self.files[0]} on"

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the first table."""
        return self._begun()[0].columns

    @property
    def size(self) -> int | None:
        """Bytes of all files; None where standard input is among them."""
        return None if STDIN in self.files else sum(Path(file).stat().st_size for file in self.files)

    @property
    def position(self) -> int:
        """Bytes of files read so far."""
        current = self._current.position if self._current and STDIN not in self.files else 0
        return self._done + current

    def peek(self) -> "pd.DataFrame":
        """The first rows of the first table, with all its columns."""
        rows, first, _ = self._begun()
        return _frame(rows.columns, first)

    def check(self, columns: Sequence[str]) -> None:
        """Raise `InvalidData` unless every table has these columns, before any is read."""
        check_columns(columns, self.columns, _called(self.files[0]))
        for file in self.files[1:]:
            if file != STDIN:
                with closing(open_rows(file, encoding=self.encoding)) as opened:
                    check_columns(columns, opened.columns, file)

    def chunks(self, columns: Sequence[str], *, rows: int = MOST_ROWS) -> Iterator["pd.DataFrame"]:
        """Tables of these columns, some rows after others; the index counts rows over all files, from 0."""
        wanted = list(dict.fromkeys(columns))
        self.check(wanted)
        self.rows, self._done, self._starts = 0, 0, []
        for number, file in enumerate(self.files):
            self._starts.append((self.rows, file))
            with closing(self._open(number)) as self._current:
                if file == STDIN:  # which `check` leaves alone, as it can be read but once
                    check_columns(wanted, self._current.columns, _called(file))
                for part in _parts(self._cells(self._current, wanted), rows):
                    if self.follow:
                        self.follow(self.position)
                    yield _frame(wanted, part, start=self.rows)
                    self.rows += len(part)
            self._done += 0 if file == STDIN else Path(file).stat().st_size
            self._current = None
        if not self.rows:
            raise InvalidData(f"{self.name} has no rows.")

    def read(self, columns: Sequence[str]) -> "pd.DataFrame":
        """All rows, with these columns."""
        import pandas as pd

        return pd.concat(list(self.chunks(columns)))

    def place(self, row: int) -> str:
        """What a message calls a row, given as in the index of chunks.

        Rows are counted from 1, without the line of column names.
        """
        start, file = [one for one in self._starts if one[0] <= row][-1]
        return f"{_called(file)}, row {row - start + 1}"

    def _begun(self) -> tuple[Rows, list[Cells], Iterator[Cells]]:
        """The first table, its first rows, and, of standard input, those that come after them."""
        if self._first is None:
            rows = open_rows(self.files[0], encoding=self.encoding)
            try:
                unique = len(set(rows.columns)) == len(rows.columns)
                cells = _whole(rows, rows.pick(rows.columns) if unique else iter(()))
                self._first = rows, list(islice(cells, FIRST)), cells
            finally:
                if self.files[0] != STDIN:
                    rows.close()
        return self._first

    def _open(self, number: int) -> Rows:
        if self.files[number] == STDIN and number == 0:
            return self._begun()[0]  # what has come through a pipe comes once
        return open_rows(self.files[number], encoding=self.encoding)

    def _cells(self, rows: Rows, wanted: list[str]) -> Iterator[Cells]:
        if self._first is None or rows is not self._first[0]:
            return _whole(rows, rows.pick(wanted))
        places = [rows.columns.index(column) for column in wanted]
        return (tuple([row[place] for place in places]) for row in chain(*self._first[1:]))


def _whole(rows: Rows, cells: Iterator[Cells]) -> Iterator[Cells]:
    """Cells as they are; a file that ends too early is an error that names the row."""
    number = 0
    try:
        for row in cells:
            number += 1
            yield row
    except BROKEN as error:
        raise InvalidData(f"{rows.name} cannot be read on after row {number}: {error}. Is the file whole?") from error


def resolve(files: Iterable[str | Path]) -> list[str]:
    """Names of files, with patterns replaced by what they match, in order."""
    found: list[str] = []
    for file in map(str, files):
        if file == STDIN or Path(file).exists() or not glob.has_magic(file):
            found.append(file)
            continue
        matches = sorted(glob.glob(file, recursive=True))  # noqa: PTH207
        if not matches:
            raise InvalidData(f"no file matches {file!r}.")
        found += matches
    for file in found:
        if file != STDIN and not Path(file).exists():
            raise InvalidData(f"there is no file {file}.{_beside(file)}")
    if found.count(STDIN) > 1:
        raise InvalidData("standard input (-) can be read only once.")
    return found


def _beside(file: str) -> str:
    """The file in the same folder whose name is most like this one, as a question."""
    path = Path(file)
    names = [one.name for one in path.parent.iterdir() if one.is_file()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, names, n=1, cutoff=0.8)
    return f" Did you mean {path.parent / near[0]}?" if near else ""


def _called(file: str) -> str:
    return "standard input" if file == STDIN else file


def _parts(cells: Iterator[Cells], most: int) -> Iterator[list[Cells]]:
    """Rows in parts of bounded length."""
    part: list[Cells] = []
    characters = 0
    for row in cells:
        part.append(row)
        characters += sum([len(cell) for cell in row if cell.__class__ is str])
        if len(part) >= most or characters >= MOST_CHARACTERS:
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
