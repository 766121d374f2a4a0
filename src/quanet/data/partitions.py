"""Partitions of tables: what one worker reads by itself, any number of times, with the same rows."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING
from uuid import uuid4

from quanet.data.columns import check_columns
from quanet.data.encodings import AUTO
from quanet.data.file_names import STDIN, identity_of, shown_name
from quanet.data.storage import Stamp
from quanet.data.table_chunks import MAX_ROWS, table_chunks
from quanet.data.table_rows import Header, check_unchanged, open_rows
from quanet.errors import BadFile, InvalidData

if TYPE_CHECKING:
    import pandas as pd

    from quanet.data.streams import TableSource

PARTITION_ROWS = 100_000  # in a partition, unless a row group has more


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
    ) -> Iterator["pd.DataFrame"]:
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
