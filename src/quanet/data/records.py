"""Rows of JSON lines, whose cells have types. An empty cell is None."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeAlias

from quanet.data.eval_logs import harness_rows
from quanet.errors import EmptyFile, InvalidData

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
        raise EmptyFile(f"{name} is empty. It needs {needed}.")
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


def cell_or_none(value: Any) -> Any:
    """A cell, or None if it is empty: null, NaN, an empty string."""
    return None if value is None or value == "" or value != value else value
