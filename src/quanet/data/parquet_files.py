"""Parquet files: their columns, types and row groups, read batch by batch."""

import gzip
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from quanet.data.arrow_cells import column_cells
from quanet.data.records import Cells
from quanet.errors import InvalidData

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 8192  # rows read at once


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
        import pyarrow as pa
        import pyarrow.parquet as pq

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

    def batches(self, columns: Sequence[str], groups: Sequence[int] | None = None) -> Iterator["pa.RecordBatch"]:
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
