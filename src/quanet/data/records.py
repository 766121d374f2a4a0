"""Rows that have types of their own: those of JSON lines and of Parquet. A cell that holds nothing is None."""

import gzip
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from quanet.errors import InvalidData

Cells = Sequence[Any]
FIRST = 1000  # rows that say which columns a table has, and what they hold
HALF = re.compile(r"\\ud[89a-f]", re.IGNORECASE)  # of a pair of escapes in JSON


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """An open table.

    Attributes
    ----------
    name : what messages call it.
    columns : their names.
    pick : given names of columns, the cells of these, row by row; to be called once.
    file : to be closed.
    """

    name: str
    columns: list[str]
    pick: Callable[[Sequence[str]], Iterator[Cells]]
    file: Any
    read: Callable[[], int] | None = None

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return self.file.tell() if self.read is None else self.read()

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def json_rows(name: str, lines: Iterator[str], file: Any) -> Rows:
    """Rows of JSON lines: one object a line."""
    objects = _objects(name, lines)
    first = list(islice(objects, FIRST))
    if not first:
        raise InvalidData(f"{name} is empty. Give one JSON object a line.")
    columns = list(dict.fromkeys(key for row in first for key in row))

    def pick(wanted: Sequence[str]) -> Iterator[Cells]:
        return (tuple([_filled(row.get(column)) for column in wanted]) for row in chain(first, objects))

    return Rows(name, columns, pick, file)


def _objects(name: str, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
            raise InvalidData(
                f"{name}, line {number} is no JSON: {reason}. Write one object a line; of an array, "
                "jq -c '.[]' makes such lines."
            ) from None
        if not isinstance(row, dict):
            raise InvalidData(f"{name}, line {number} is JSON, but no object with named values. Write one a line.")
        yield _paired(row) if HALF.search(line) else row


def _paired(value: Any) -> Any:
    """JSON with half surrogate pairs, which are no characters, replaced as UTF-8 decoders replace them."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_paired(key): _paired(one) for key, one in value.items()}
    return [_paired(one) for one in value] if isinstance(value, list) else value


def parquet_rows(name: str, stream: Any, raw: Any) -> Rows:
    """Rows of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not stream.seekable() or isinstance(stream, gzip.GzipFile):
        stream = io.BytesIO(stream.read())
    try:
        file = pq.ParquetFile(stream)
    except pa.ArrowException as error:
        raise InvalidData(f"{name} cannot be read as PARQUET: {' '.join(str(error).split())}") from None
    rows, size = max(file.metadata.num_rows, 1), stream.seek(0, io.SEEK_END) if stream is raw else 0
    done = 0

    def pick(wanted: Sequence[str]) -> Iterator[Cells]:
        nonlocal done
        for batch in file.iter_batches(batch_size=8192, columns=list(wanted)):
            # pyarrow gives columns in the file's order.
            parts = [map(_filled, _cells(batch.column(column), column, name)) for column in wanted]
            done += len(batch)
            yield from zip(*parts, strict=True) if parts else ((),) * len(batch)

    return Rows(name, list(file.schema_arrow.names), pick, raw, lambda: size * done // rows)


def _cells(column: Any, title: str, name: str) -> list[Any]:
    """The cells of a column of Parquet; an error where Python has no value for one, as for a date after 9999."""
    try:
        return column.to_pylist()
    except (OverflowError, ValueError) as error:
        raise InvalidData(
            f"{name}: column {title!r} ({column.type}) holds a value out of range: {error}. "
            "Dates can be of the years 1 to 9999."
        ) from None


def _filled(value: Any) -> Any:
    """A cell as it is, or None where it holds nothing: no value, not a number, an empty text."""
    return None if value is None or value == "" or value != value else value
