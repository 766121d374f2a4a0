"""An open table as chunks of bounded size: frames of cells, in which an empty cell is None."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.data.addresses import is_address
from quanet.data.arrow_cells import cells_of, places_of
from quanet.data.read_problems import READ_ERRORS, read_problem
from quanet.data.records import Cells
from quanet.data.table_rows import TableRows
from quanet.errors import InvalidData

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS = 20_000  # in a chunk
MAX_CHARACTERS = 2**22  # in a chunk, so that chunks of long texts have fewer rows


def table_chunks(
    opened: TableRows,
    columns: Sequence[str],
    *,
    rows: int = MAX_ROWS,
    start: int = 0,
    groups: Sequence[int] | None = None,
) -> Iterator["pd.DataFrame"]:
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
) -> Iterator["pd.DataFrame"]:
    """Rows of cells as frames of at most so many rows."""
    for part in _parts(cells, rows):
        yield frame_of(columns, part, start=start)
        start += len(part)


def guarded(name: str, parts: Iterable[Any], number: int = 0) -> Iterator[Any]:
    """The same rows or batches. Raises `InvalidData` with the row number if the file is truncated or damaged.

    `number` is the number of rows before them.
    """
    import pyarrow as pa

    try:
        for part in parts:
            number += part.num_rows if isinstance(part, pa.RecordBatch) else 1
            yield part
    except (*READ_ERRORS, pa.ArrowException) as error:
        if is_address(name):
            raise InvalidData(f"{name}, after row {number}: it {read_problem(name, error)}") from error
        reason = " ".join(str(error).split()).rstrip(".")
        raise InvalidData(f"{name} cannot be read after row {number}: {reason}. Is it truncated?") from error


def frame_of(columns: Sequence[str], rows: Sequence[Cells], *, start: int = 0) -> "pd.DataFrame":
    """Rows of cells as a frame."""
    import pandas as pd

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
    import pyarrow as pa

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
    import pyarrow.compute as pc
    from pyarrow import types

    if types.is_dictionary(column.type):
        found = np.append(_lengths(column.dictionary), 0)
        return found[places_of(column)]
    if types.is_string(column.type) or types.is_large_string(column.type):
        letters = column.buffers()[2]
        only_ascii = letters is None or np.frombuffer(letters, np.int8).min(initial=0) >= 0  # faster to measure
        measured = pc.binary_length(column) if only_ascii else pc.utf8_length(column)
        return measured.fill_null(0).to_numpy(zero_copy_only=False)
    return np.zeros(len(column), dtype=np.int64)
