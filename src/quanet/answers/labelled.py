"""Labelled instances out of tables: texts or numbers, their labels, and columns to group them by."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.data.columns import as_number, check_columns, find_label, find_text, label_name, numbers_in
from quanet.data.streams import Source
from quanet.errors import InvalidData

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Labelled instances.

    Attributes
    ----------
    X : texts, or numbers (n, d).
    names : (n,) labels as they are called.
    table : other columns that were asked for, row by row.
    text : the column of texts; None for numbers.
    numbers : the columns of numbers.
    label : the column of labels.
    notes : what was guessed, and left out.
    """

    X: Any
    names: list[str]
    table: "pd.DataFrame"
    text: str | None
    numbers: tuple[str, ...]
    label: str
    notes: list[str] = field(default_factory=list)


def read_labelled(
    source: Source,
    *,
    text: str | None = None,
    label: str | None = None,
    numbers: Sequence[str] | None = None,
    also: Sequence[str] = (),
) -> Labelled:
    """Read labelled instances; rows without a text or a label are left out.

    Parameters
    ----------
    source : the table.
    text, label : columns; None where they are to be guessed.
    numbers : columns of numbers to read instead of a text.
    also : columns to group by.
    """
    taken = find_label(source, label, besides=[*also, *([text] if text else [])])
    notes = [f"Labels: column {taken.name!r}."] if taken.guessed else []
    columns: list[str] = list(numbers or ())
    column = None
    if numbers is None:
        column, columns, guess = _inputs(source, text, besides=[taken.name, *also])
        notes += guess
    check_columns([*columns, *also], source.columns, source.name)
    table = source.read([*([column] if column else columns), taken.name, *also])
    read = [column] if column else columns
    complete = ~table[[*read, taken.name]].isna().any(axis=1).to_numpy()
    if not complete.all():
        notes.append(f"Left out: {int((~complete).sum()):,} of {len(table):,} rows that lack a value.")
    table = table[complete]
    if not len(table):
        raise InvalidData(f"{source.name}: no row has both {' and '.join(map(repr, [*read, taken.name]))}.")
    X = [str(cell) for cell in table[column]] if column else as_matrix(table, columns, source)
    names = [label_name(cell) for cell in table[taken.name]]
    return Labelled(X, names, table[list(also)], column, tuple(columns), taken.name, notes)


def _inputs(source: Source, text: str | None, *, besides: Sequence[str]) -> tuple[str | None, list[str], list[str]]:
    """The column of texts, or those of numbers where no column is text."""
    try:
        found = find_text(source, text, besides=besides)
    except InvalidData:
        columns = numbers_in(source, besides=besides)
        if text is not None or not columns:
            raise
        return None, columns, [f"Numbers: columns {', '.join(map(repr, columns))}."]
    return found.name, [], [f"Texts: column {found.name!r}."] if found.guessed else []


def as_matrix(table: "pd.DataFrame", columns: Sequence[str], source: Source) -> Any:
    """Columns of numbers as a matrix (n, d), or an error that names the cell that is none."""
    matrix = np.empty((len(table), len(columns)))
    for place, name in enumerate(columns):
        for at, (row, cell) in enumerate(table[name].items()):
            value = as_number(cell)
            if value is None:
                raise InvalidData(f"{source.place(int(str(row)))}: {cell!r} in column {name!r} is no number.")
            matrix[at, place] = value
    return matrix
