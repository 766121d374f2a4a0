"""Rows of JSON lines and of Parquet, whose cells have types. An empty cell is None."""

import gzip
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeAlias

from quanet.data.eval_logs import harness_rows
from quanet.errors import InvalidData

Cells: TypeAlias = Sequence[Any]
PickColumns: TypeAlias = Callable[[Sequence[str]], Iterator[Cells]]
PEEKED_ROWS = 1000  # read first, to find the columns and what they contain
SURROGATE = re.compile(r"\\ud[89a-f]", re.IGNORECASE)  # an escape sequence in JSON, half of a pair


def json_rows(name: str, lines: Iterator[str]) -> tuple[list[str], PickColumns]:
    """Columns and rows of JSON lines: one object per line."""
    return rows_of_objects(name, harness_rows(name, _objects(name, lines)), "one JSON object per line")


def rows_of_objects(name: str, objects: Iterator[dict[str, Any]], needed: str) -> tuple[list[str], PickColumns]:
    """Columns and rows of objects; the first objects have all columns. `needed` describes the file, for messages."""
    first = list(islice(objects, PEEKED_ROWS))
    if not first:
        raise InvalidData(f"{name} is empty. It needs {needed}.")
    columns = list(dict.fromkeys(key for row in first for key in row))

    def pick(wanted: Sequence[str]) -> Iterator[Cells]:
        return (tuple([cell_or_none(row.get(column)) for column in wanted]) for row in chain(first, objects))

    return columns, pick


def _objects(name: str, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
            raise InvalidData(
                f"{name}, line {number} is not JSON: {reason}. Write one object per line. "
                "A file with one JSON array is called .json."
            ) from None
        if not isinstance(row, dict):
            raise InvalidData(f"{name}, line {number} is JSON but not an object. Write one object per line.")
        yield replace_surrogates(row) if SURROGATE.search(line) else row


def replace_surrogates(value: Any) -> Any:
    """Replace unpaired surrogates, which are not characters, as UTF-8 decoders do."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {replace_surrogates(key): replace_surrogates(item) for key, item in value.items()}
    return [replace_surrogates(item) for item in value] if isinstance(value, list) else value


def parquet_rows(name: str, stream: Any, raw: Any) -> tuple[list[str], PickColumns, Callable[[], int]]:
    """Columns and rows of a Parquet file, and a function that returns the bytes read so far."""
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
            # pyarrow returns columns in the order of the file.
            parts = [map(cell_or_none, _cells(batch.column(column), column, name)) for column in wanted]
            done += len(batch)
            yield from zip(*parts, strict=True) if parts else ((),) * len(batch)

    return list(file.schema_arrow.names), pick, lambda: size * done // rows


def _cells(column: Any, title: str, name: str) -> list[Any]:
    """The cells of a Parquet column. Raises `InvalidData` if Python cannot represent one, such as the year 10000."""
    try:
        return column.to_pylist()
    except (OverflowError, ValueError) as error:
        raise InvalidData(
            f"{name}: column {title!r} ({column.type}) contains a value out of range: {error}. "
            "Dates must be in the years 1 to 9999."
        ) from None


def cell_or_none(value: Any) -> Any:
    """A cell, or None if it is empty: null, NaN, an empty string."""
    return None if value is None or value == "" or value != value else value
