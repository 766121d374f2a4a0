"""Arrow tables and Parquet files: their columns as cells, which are Python objects, None where empty."""

import gzip
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from quanet.data.columns import Cells, cell_or_none
from quanet.errors import InvalidData

BATCH = 8192  # rows read at once


def cells_of(
    table: pa.Table | pa.RecordBatch, columns: Sequence[str] | None = None, *, start: int = 0, name: str = "The table"
) -> pd.DataFrame:
    """The cells of an Arrow table or record batch, as `TableSource.chunks` yields them. An empty cell is None.

    Parameters
    ----------
    table : from any engine; text may be string, large_string or dictionary.
    columns : wanted columns; all by default.
    start : the first value of the index.
    name : of the table, for messages.

    Examples
    --------
    >>> import pyarrow as pa
    >>> cells_of(pa.table({"text": ["good", ""], "stars": [5, None]})).to_numpy().tolist()
    [['good', 5], [None, None]]
    """
    wanted = list(table.schema.names if columns is None else columns)
    index = pd.RangeIndex(start, start + table.num_rows)
    cells = {column: column_cells(table.column(column), column, name) for column in wanted}
    return pd.DataFrame(cells, index, dtype=object, copy=False)


def column_cells(column: Any, title: str, name: str) -> Any:
    """(n,) cells of an Arrow column, an array of objects.

    Raises `InvalidData` if Python cannot represent one, such as the year 10000.
    """
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks != 1:
            parts = [column_cells(chunk, title, name) for chunk in column.chunks]
            return np.concatenate(parts) if parts else np.empty(0, dtype=object)
        column = column.chunk(0)
    try:
        return _cells(column)
    except (OverflowError, ValueError) as error:
        raise InvalidData(
            f"{name}: column {title!r} ({column.type}) contains a value out of range: {error}. "
            "Dates must be in the years 1 to 9999."
        ) from None


def _cells(column: Any) -> Any:
    kind = column.type
    if types.is_null(kind):
        return np.full(len(column), None, dtype=object)
    if types.is_dictionary(kind):
        return np.append(_cells(column.dictionary), [None])[places_of(column)]
    if types.is_string(kind) or types.is_large_string(kind):
        return _without_empty(column).to_numpy(zero_copy_only=False)
    if not column.null_count and (types.is_integer(kind) or types.is_boolean(kind)):
        return column.to_numpy(zero_copy_only=False).astype(object)
    if not column.null_count and (types.is_float32(kind) or types.is_float64(kind)):
        numbers = column.to_numpy(zero_copy_only=False)
        cells = numbers.astype(object)
        cells[np.isnan(numbers)] = None
        return cells
    if types.is_temporal(kind) or types.is_decimal(kind):  # few different ones
        encoded = column.dictionary_encode()
        return np.append(_objects(encoded.dictionary.to_pylist()), [None])[places_of(encoded)]
    return _objects(column.to_pylist())


def _without_empty(texts: Any) -> Any:
    """Texts with null in place of an empty one."""
    empty = pc.equal(pc.binary_length(texts), 0)
    return pc.if_else(empty, pa.scalar(None, texts.type), texts) if pc.any(empty).as_py() else texts


def places_of(column: Any) -> Any:
    """(n,) positions of a dictionary column's cells in its dictionary; null is the position after the last one."""
    codes = column.indices.cast("int64")
    return codes.fill_null(len(column.dictionary)).to_numpy(zero_copy_only=False)


def _objects(cells: list[Any]) -> Any:
    """An array of these cells, also if they are lists. NaN and the empty string become None."""
    found = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        found[place] = cell_or_none(cell)
    return found


class ParquetTable:
    """An open Parquet file.

    Parameters
    ----------
    name : used in messages.
    stream : the content, decompressed.
    raw : the file; the same object as `stream` unless it is compressed.

    Attributes
    ----------
    columns : names of the columns.
    types : their Arrow types.
    group_rows : rows of every row group.
    """

    def __init__(self, name: str, stream: Any, raw: Any) -> None:
        if not stream.seekable() or isinstance(stream, gzip.GzipFile):
            stream = io.BytesIO(stream.read())
        try:
            self._file = pq.ParquetFile(stream, pre_buffer=isinstance(stream, pa.NativeFile))
        except pa.ArrowException as error:
            raise InvalidData(f"{name} cannot be read as PARQUET: {' '.join(str(error).split())}") from None
        self.name = name
        self.columns: list[str] = list(self._file.schema_arrow.names)
        self.types: list[Any] = list(self._file.schema_arrow.types)
        facts = self._file.metadata
        self.group_rows = [facts.row_group(group).num_rows for group in range(facts.num_row_groups)]
        self._size = stream.seek(0, io.SEEK_END) if stream is raw else 0
        self._done = 0

    def batches(self, columns: Sequence[str], groups: Sequence[int] | None = None) -> Iterator[pa.RecordBatch]:
        """Batches with these columns, in this order; of some row groups, or of all."""
        wanted = list(columns)
        for column in wanted:
            if self.columns.count(column) > 1:
                number = self.columns.count(column)
                raise InvalidData(f"{self.name} has {number} columns {column!r}. Rename all but one.")
        for group in range(len(self.group_rows)) if groups is None else groups:  # one, so that only one is in memory
            for batch in self._file.iter_batches(batch_size=BATCH, columns=wanted, row_groups=[group]):
                self._done += batch.num_rows
                yield batch.select(wanted) if wanted else batch  # pyarrow returns columns in the order of the file

    def rows(self, columns: Sequence[str]) -> Iterator[Cells]:
        """Cells of these columns, row by row."""
        for batch in self.batches(columns):
            parts = [column_cells(batch.column(column), column, self.name) for column in columns]
            yield from zip(*parts, strict=True) if parts else ((),) * batch.num_rows

    def bytes_read(self) -> int:
        """About how many bytes were read so far."""
        return self._size * self._done // max(sum(self.group_rows), 1)
