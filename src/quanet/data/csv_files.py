"""CSV and TSV files: Arrow reads them, and Python's csv module whatever Arrow may read differently, to explain errors.

Arrow reads blocks of whole rows. A block that it might read differently goes to the csv module, with all that follows:
quotes inside cells that are not quoted, lone carriage returns, bytes that cannot be decoded, rows with more or fewer
cells than the header. So cells, and the line that an error names, never depend on who reads them.
"""

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from operator import itemgetter
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from quanet.data.columns import Cells
from quanet.data.encodings import AUTO, LANGUAGES, UTF8_MARK, decoded_lines
from quanet.data.storage import READ_ERRORS
from quanet.errors import EmptyFile, InvalidData, InvalidSetting, brief

if TYPE_CHECKING:
    import pyarrow as pa

DELIMITERS = ",;\t|"
FIRST_LINES = 100  # that the delimiter is found from
MAX_CELL = 2**30  # characters; the default of Python's csv module is too short for some documents
PIECE = 2**13  # bytes read at once: what compressed files read ahead, so that an error loses no row before it
BLOCK = 2**19  # bytes that Arrow reads at once; more would be allocated again for every block
MAX_BLOCK = 2**23  # bytes without the end of a row, from which on the csv module reads
BATCH = 8192  # rows of the csv module in a batch
SINGLE_BYTES = {*LANGUAGES, "iso8859-1"}  # encodings that Arrow gets as UTF-8; other than UTF-8, which it knows
QUOTE, LINE_END, RETURN = b'"\n\r'


class CsvTable:
    """An open CSV or TSV file; its rows can be read once, by `rows` or by `batches`.

    Parameters
    ----------
    name : used in messages.
    stream, encoding : the content.
    delimiter : of cells, or "auto".

    Attributes
    ----------
    columns : their names.
    facts : encoding and delimiter.
    plain : whether Arrow can read it.
    """

    def __init__(self, name: str, stream: IO[bytes], encoding: str, delimiter: str) -> None:
        lines = decoded_lines(stream, encoding, name)
        first = next(lines, "")
        if not first.strip():
            raise EmptyFile(f"{name} is empty. It needs a line of column names and at least one row.")
        csv.field_size_limit(max(MAX_CELL, csv.field_size_limit()))  # one limit for all readers
        some, problem = _taken(chain([first], lines), FIRST_LINES)
        self.delimiter = find_delimiter(some, name) if delimiter == AUTO else delimiter
        self.name, self._stream = name, stream
        reader = csv.reader(chain(some, _failing(problem) if problem else lines), delimiter=self.delimiter, strict=True)
        self._rows = _checked(reader, name)
        self.columns = [column.strip() for column in next(self._rows)]
        self.facts = (("encoding", encoding), ("delimiter", _delimiter_name(self.delimiter)))
        self._line = reader.line_num  # lines of the header
        self._encoding, self._is_utf8 = encoding, codecs.lookup(encoding).name == "utf-8"
        known = (self._is_utf8 or codecs.lookup(encoding).name in SINGLE_BYTES) and self.delimiter.isascii()
        self.plain = known and problem is None and self._line <= len(some)
        self._start = "".join(some[self._line :]).encode(encoding) if self.plain else b""

    def rows(self, columns: Sequence[str]) -> Iterator[Cells]:
        """Cells of these columns, row by row, as the csv module reads them."""
        return _picked(self._rows, self._places(columns))

    def batches(self, columns: Sequence[str], groups: None = None) -> Iterator["pa.RecordBatch"]:  # noqa: ARG002
        """The same cells as Arrow batches."""
        places = self._places(columns)
        block, line, row, ended = self._start, self._line, 1, False
        while block or not ended:
            block, ended, problem = _filled(block, self._stream)
            end = 0 if problem else _end_of_rows(block, self.delimiter, ended)
            if end == 0 and not ended and len(block) < MAX_BLOCK:
                continue
            table = self._parsed(block, end, places) if end > 0 else None
            if table is None:
                following = _lines(block, _failing(problem) if problem else self._stream)
                yield from self._explained(following, line, row, columns)
                return
            yield from (table.rename_columns(list(columns)) if columns else table).to_batches()
            line += int(np.count_nonzero(np.frombuffer(block, np.uint8, end) == LINE_END))
            row, block = row + table.num_rows, block[end:]

    def _places(self, columns: Sequence[str]) -> list[int]:
        """Positions of columns. Raises `InvalidData` if several have the same name."""
        for column in columns:
            if self.columns.count(column) > 1:
                raise InvalidData(
                    f"{self.name} has {self.columns.count(column)} columns {column!r}. Rename all but one."
                )
        return [self.columns.index(column) for column in columns]

    def _parsed(self, block: bytes, end: int, places: Sequence[int]) -> "pa.Table | None":
        """Columns of the whole rows of a block, as Arrow reads them; None if it cannot."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        names = [str(place) for place in range(len(self.columns))]
        wanted = [names[place] for place in places or [0]]  # one, to know the number of rows
        try:
            content = pa.py_buffer(block)[:end]
            if not block.isascii():  # all columns are checked; Arrow would check those that are wanted
                text = block[:end].decode(self._encoding)
                content = content if self._is_utf8 else pa.py_buffer(text.encode())
            return arrow.read_csv(
                pa.BufferReader(content),
                read_options=arrow.ReadOptions(use_threads=False, column_names=names, block_size=content.size + 1),
                parse_options=arrow.ParseOptions(delimiter=self.delimiter, newlines_in_values=b'"' in block),
                convert_options=arrow.ConvertOptions(
                    check_utf8=False, column_types=dict.fromkeys(wanted, pa.string()), include_columns=wanted
                ),
            )
        except (UnicodeDecodeError, pa.ArrowInvalid):
            return None

    def _explained(
        self, lines: Iterator[bytes], line: int, row: int, columns: Sequence[str]
    ) -> Iterator["pa.RecordBatch"]:
        """Batches of the rows of the csv module, after so many lines and rows; an error follows all rows before it."""
        import pyarrow as pa

        decoded = decoded_lines(lines, self._encoding, self.name, line + 1)
        reader = csv.reader(decoded, delimiter=self.delimiter, strict=True)
        rows = _picked(_checked(reader, self.name, len(self.columns), row, line), self._places(columns))
        part: list[Cells] = [()]
        while part:
            part, problem = _taken(rows, BATCH)
            cells = zip(*part, strict=True) if columns else [[None] * len(part)]
            if part:
                yield pa.record_batch([pa.array(values, pa.string()) for values in cells], list(columns) or ["0"])
            if problem:
                raise problem


def _filled(block: bytes, stream: Any) -> tuple[bytes, bool, Exception | None]:
    """What was left over, with more bytes; whether the stream has ended; and the error that ended it."""
    pieces, size = [block], 0
    try:
        while size < BLOCK:
            piece = stream.read1(PIECE)
            if not piece:
                return b"".join(pieces), True, None
            pieces.append(piece)
            size += len(piece)
    except READ_ERRORS as error:
        return b"".join(pieces), True, error
    return b"".join(pieces), False, None


def _end_of_rows(block: bytes, delimiter: str, ended: bool) -> int:
    """Where the last whole row of a block ends; -1 if Arrow may read the block differently.

    Quotes are what Arrow expects if each second one ends a cell, and the others begin one or follow such an end.
    """
    end = len(block) if ended else block.rfind(b"\n") + 1
    letters = np.frombuffer(block, np.uint8, end)
    if block.startswith(UTF8_MARK) or (b"\r" in block and not _in_line_ends(letters)):
        return -1
    if block.find(b'"', 0, end) < 0:
        return end
    quotes = np.flatnonzero(letters == QUOTE)
    opening, closing = quotes[::2], quotes[1::2]
    before, after = letters[opening[opening > 0] - 1], letters[closing[closing < end - 1] + 1]
    marks = [ord(delimiter), LINE_END, QUOTE]
    if not np.isin(before, marks).all() or not np.isin(after, [*marks, RETURN]).all():
        return -1
    inside = len(quotes)
    while inside % 2:  # the last line ends in a quoted cell
        end = block.rfind(b"\n", 0, quotes[inside - 1]) + 1
        inside = int(np.searchsorted(quotes, end))
    return end


def _in_line_ends(letters: Any) -> bool:
    """Whether each carriage return precedes a line feed."""
    returns = letters == RETURN
    return bool((letters[1:][returns[:-1]] == LINE_END).all() and not returns[-1:].any())


def _lines(block: bytes, stream: Any) -> Iterator[bytes]:
    """The lines of a block and of the stream that follows it."""
    end = block.rfind(b"\n") + 1
    yield from io.BytesIO(block[:end])
    rest = block[end:]
    for line in stream:
        yield rest + line
        rest = b""
    if rest:
        yield rest


def check_delimiter(delimiter: str) -> str:
    """A delimiter of cells, or "auto". Raises `InvalidSetting` unless it is one character, or "tab"."""
    found = "\t" if delimiter.lower() in {"tab", "\\t"} else delimiter
    if found == AUTO or (len(found) == 1 and found not in '"\r\n\0'):
        return found
    raise InvalidSetting(f"Unknown delimiter {brief(delimiter)}. Use one character, such as ';' or ',', or tab.")


def _taken(items: Iterator[Any], most: int) -> tuple[list[Any], Exception | None]:
    """The first items, and the error that ended them."""
    some: list[Any] = []
    try:
        for item in islice(items, most):
            some.append(item)  # noqa: PERF402 # the items before an error are kept
    except (InvalidData, *READ_ERRORS) as error:
        return some, error
    return some, None


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


def _checked(reader: Any, name: str, width: int = 0, number: int = 0, line: int = 0) -> Iterator[list[str]]:
    """Rows. Raises `InvalidData` if one has more or fewer cells than the header.

    Parameters
    ----------
    reader : of the csv module.
    name : used in messages.
    width : cells of the header; 0: the header is read first.
    number, line : rows and lines before, with the header.
    """
    try:
        for row in reader:
            if not row:  # an empty line
                continue
            width = width or len(row)
            if len(row) != width:
                raise InvalidData(
                    f"{name}, line {line + reader.line_num}: row {number} has {len(row)} cells, but the table has "
                    f"{width} columns. Put quotes around cells that contain a delimiter."
                )
            number += 1
            yield row
    except csv.Error as error:
        raise InvalidData(
            f'{name}, line {line + reader.line_num}: {error}. Double a quote inside a quoted cell: "".'
        ) from None


def _picked(rows: Iterator[list[str]], places: Sequence[int]) -> Iterator[Cells]:
    if not places:
        return (() for _ in rows)
    if len(places) == 1:
        place = places[0]
        return ((row[place] or None,) for row in rows)
    pick = itemgetter(*places)
    return (tuple([cell or None for cell in pick(row)]) for row in rows)
