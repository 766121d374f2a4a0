"""Check a table before `fit`: columns, texts, labels and dates, in one pass and bounded memory."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quanet.data.columns import (
    UnclearColumn,
    cell_name,
    check_columns,
    find_label,
    find_text,
    label_names,
    numeric_columns,
)
from quanet.data.duplicates import RowOrder
from quanet.data.periods import Key
from quanet.data.streams import TableSource
from quanet.errors import InvalidData, brief
from quanet.workflows.check_dates import DateCheck, DateChecker, date_columns
from quanet.workflows.check_texts import Found, TextCheck, TextChecker

if TYPE_CHECKING:
    import pandas as pd

MAX_DISTINCT = 1000  # values of a column that are counted
MAX_LABELS = 10_000  # different labels that are counted; such a column hardly contains labels


@dataclass(frozen=True, slots=True)
class ColumnCheck:
    """A column: its name, what it contains, empty cells, distinct values (at most `MAX_DISTINCT`), a first value."""

    name: str
    kind: str  # text, label, number, date, words, empty
    empty: int
    distinct: int
    example: str


@dataclass(frozen=True, slots=True, eq=False)
class LabelCheck:
    """Labels of a table.

    Attributes
    ----------
    column : its name.
    counts : rows by label, the most frequent first.
    empty : rows without a label.
    order : a sentence if labels are related to the order of the rows; otherwise empty.
    """

    column: str
    counts: dict[str, int]
    empty: Found
    order: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class GroupCheck:
    """Groups of a table: the columns, the number of rows of each group, and rows without a group."""

    column: str
    sizes: dict[str, int]
    empty: int


@dataclass(frozen=True, slots=True, eq=False)
class TableCheck:
    """What a table contains.

    Attributes
    ----------
    source, rows : its name, and the number of rows.
    facts : format, encoding, delimiter.
    columns : all columns.
    texts, labels, dates, groups : of the columns that have a role; None or empty if no column has it.
    unclear : why no column is the text or the label.
    """

    source: str
    rows: int
    facts: dict[str, str]
    columns: tuple[ColumnCheck, ...]
    texts: TextCheck | None
    labels: LabelCheck | None
    dates: tuple[DateCheck, ...]
    groups: tuple[GroupCheck, ...]
    unclear: tuple[str, ...] = field(default=())


def check_table(
    source: TableSource,
    *,
    text: str | None = None,
    label: str | None = None,
    keys: Sequence[Key] = (),
    form: str | None = None,
) -> TableCheck:
    """Read a table once and report what it contains.

    Parameters
    ----------
    source : the table.
    text, label : columns; None: detected, if only one fits.
    keys, form : columns to group by, and the format of dates.
    """
    check_columns([key.column for key in keys], source.columns, source.name)
    unclear: list[str] = []
    besides = [key.column for key in keys]
    dated = date_columns(source, keys)
    label = _role(find_label, source, label, [*besides, *dated, *([text] if text else [])], []) if label else None
    text = _role(find_text, source, text, [*besides, *dated, *([label] if label else [])], unclear)
    numbers = numeric_columns(source, besides=[*besides, *dated]) if text else []
    others = [name for name in numbers if name != label and name != "label"]
    label = label or _role(find_label, source, None, [*besides, *dated, *others, *([text] if text else [])], unclear)
    columns = _ColumnCounter(source.columns)
    labels = _LabelCounter(label) if label else None
    texts = TextChecker(text) if text else None
    dates = [DateChecker(source, name, keys, form) for name in dated]
    groups = [_GroupCounter(key.column) for key in keys if not key.period]
    for table in source.chunks(source.columns):
        columns.add(table)
        codes = labels.add(table, source) if labels else None
        if texts:
            _check_texts(table[text], source)
            texts.add(table, codes, labels.names if labels else [])
        for date in dates:
            date.add(table)
        for group in groups:
            group.add(table, source)
    roles: dict[str | None, str] = {text: "text", label: "label", **dict.fromkeys(dated, "date")}
    return TableCheck(
        source=source.name,
        rows=source.rows,
        facts=source.facts,
        columns=tuple(columns.result(roles, set(numeric_columns(source)))),
        texts=texts.result(source) if texts else None,
        labels=labels.result(source) if labels else None,
        dates=tuple(date.result() for date in dates),
        groups=tuple(GroupCheck(group.column, dict(group.sizes), group.empty) for group in groups),
        unclear=tuple(unclear),
    )


def _role(find: Any, source: TableSource, wanted: str | None, besides: list[str], unclear: list[str]) -> str | None:
    """A column with a role, or None if it is not clear which."""
    try:
        name: str = find(source, wanted, besides=besides).name
    except UnclearColumn as error:
        unclear.append(str(error).removeprefix(f"{source.name}: "))
        return None
    return name


class _ColumnCounter:
    """Empty cells and distinct values of every column."""

    def __init__(self, names: Sequence[str]) -> None:
        self.empty = Counter[str]()
        self.values: dict[str, dict[Any, None]] = {name: {} for name in names}

    def add(self, table: "pd.DataFrame") -> None:
        for name, values in self.values.items():
            cells = table[name].tolist()
            self.empty[name] += sum(cell is None or (cell.__class__ is str and not cell.strip()) for cell in cells)
            if len(values) < MAX_DISTINCT:
                for cell in cells:
                    if cell is not None and len(values) < MAX_DISTINCT:
                        values[cell if cell.__hash__ else brief(cell)] = None

    def result(self, roles: dict[str | None, str], numeric: set[str]) -> Iterator[ColumnCheck]:
        for name, values in self.values.items():
            kind = roles.get(name) or ("number" if name in numeric else "words" if values else "empty")
            example = brief(next(iter(values))) if values else ""
            yield ColumnCheck(name, kind, self.empty[name], len(values), example)


class _LabelCounter:
    """Labels and how often they occur. Codes are positions in `names`, -1 for none."""

    def __init__(self, column: str) -> None:
        self.column = column
        self.names: list[str] = []
        self.counts = Counter[str]()
        self.empty = 0
        self.rows: list[int] = []
        self._codes: dict[str, int] = {}
        self._order = RowOrder()

    def add(self, table: "pd.DataFrame", source: TableSource) -> list[int]:
        codes = []
        for row, name in zip(table.index, label_names(table[self.column], source), strict=True):
            if not name:
                self.empty += 1
                self.rows += [int(row)] * (len(self.rows) < 3)
                codes.append(-1)
                continue
            code = self._codes.get(name)
            if code is None:
                if len(self.names) >= MAX_LABELS:
                    codes.append(-1)
                    continue
                code = self._codes[name] = len(self.names)
                self.names.append(name)
            self.counts[name] += 1
            codes.append(code)
        self._order.add(code for code in codes if code >= 0)
        return codes

    def result(self, source: TableSource) -> LabelCheck:
        empty = Found(self.empty, tuple(source.place(row) for row in self.rows))
        return LabelCheck(self.column, dict(self.counts.most_common()), empty, self._order.sentence)


def _check_texts(cells: "pd.Series[Any]", source: TableSource) -> None:
    """Raise `InvalidData` if a cell holds several values, which no command reads as a text."""
    for row, cell in zip(cells.index, cells, strict=True):
        if isinstance(cell, list | dict):
            raise InvalidData(
                f"{source.place(row)}: column {str(cells.name)!r} contains {brief(cell)}, which is not text. "
                "Choose the text column with --text."
            )


class _GroupCounter:
    """Rows of every group."""

    def __init__(self, column: str) -> None:
        self.column, self.empty = column, 0
        self.sizes = Counter[str]()

    def add(self, table: "pd.DataFrame", source: TableSource) -> None:
        names = label_names(table[self.column], source, cell_name)
        self.sizes.update(name for name in names if name)
        self.empty += sum(not name for name in names)
