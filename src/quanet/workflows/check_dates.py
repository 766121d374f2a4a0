"""Check the dates of a table: their format, their range, periods without rows, dates that cannot be read."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from quanet.data.periods import ISO, MONTH, YEAR, Key, detect_formats, first_day, fitting_formats, period_of
from quanet.data.streams import TableSource
from quanet.workflows.check_texts import SHOWN, Found

if TYPE_CHECKING:
    import pandas as pd

NAMED = re.compile(r"date|time|day|month|year|week|created|posted|datum|jahr|monat|tag", re.IGNORECASE)
MAX_KNOWN = 100_000  # different dates that are remembered
MAX_TRIED = 100  # cells that are tried in every format
READABLE = 0.8  # share of the cells of a column of dates that are dates
MAX_PERIODS = 20_000  # between the first and the last date


@dataclass(frozen=True, slots=True, eq=False)
class DateCheck:
    """Dates of a table.

    Attributes
    ----------
    column : its name.
    form : their format; "ISO 8601", or one of `quanet.data.periods`; empty if it is unclear.
    choices : formats that fit, if it is unclear which one.
    period : of `sizes`: day, week, month, quarter or year.
    sizes : rows by period, in order of time.
    gaps : periods without rows between the first and the last.
    empty, unreadable : rows without a date, and rows whose date cannot be read.
    example : a date that cannot be read.
    """

    column: str
    form: str
    choices: tuple[str, ...]
    period: str
    sizes: dict[str, int]
    gaps: tuple[str, ...]
    empty: int
    unreadable: Found
    example: str


def date_columns(source: TableSource, keys: Sequence[Key]) -> list[str]:
    """Columns of dates: those grouped by period, and those whose first cells are dates."""
    chosen = [key.column for key in keys if key.period]
    first = source.peek()
    for name in source.columns:
        if (
            name not in chosen
            and name in first
            and _are_dates(name, [cell for cell in first[name] if cell is not None])
        ):
            chosen.append(name)
    return chosen


def _are_dates(name: str, cells: list[Any]) -> bool:
    if not cells or any(isinstance(cell, list | dict | bool) for cell in cells):
        return False
    texts = [str(cell).strip() for cell in cells if not isinstance(cell, date)]
    if texts and all(text.replace(".", "", 1).isdecimal() for text in texts) and not NAMED.search(name):
        return False  # numbers
    return not texts or _are_iso(texts) or bool(_formats(cells))


def _are_iso(texts: list[str]) -> bool:
    """Whether most dates are in ISO 8601."""
    return sum(any(form.fullmatch(text) for form in (ISO, MONTH, YEAR)) for text in texts) * 2 > len(texts)


def _formats(cells: list[Any]) -> list[str]:
    """Formats that read most cells, of those without a list; several if they disagree."""
    whole = detect_formats(cells)
    if whole:
        return whole
    some = [cell for cell in dict.fromkeys(cells) if isinstance(cell, str)][:MAX_TRIED]
    readable = [cell for cell in some if fitting_formats(cell.strip())]
    return detect_formats(readable) if len(readable) > READABLE * len(some) else []


class DateChecker:
    """Collects what `DateCheck` reports, chunk by chunk."""

    def __init__(self, source: TableSource, column: str, keys: Sequence[Key], form: str | None) -> None:
        self.source, self.column, self.form = source, column, form
        self.choices: tuple[str, ...] = ()
        cells = [cell for cell in source.peek()[column] if cell is not None]
        texts = [str(cell).strip() for cell in cells if not isinstance(cell, date)]
        if form is None and texts and not _are_iso(texts):
            self.choices = tuple(_formats([cell for cell in cells if not isinstance(cell, list | dict)]))
            self.form = self.choices[0] if len(self.choices) == 1 else None
        period = next((key.period for key in keys if key.column == column and key.period), "")
        self.period = period or self._period(texts)
        self.sizes = Counter[str]()
        self.empty, self.unreadable, self.example = 0, 0, ""
        self.rows: list[int] = []
        self._known: dict[Any, str] = {}

    def _period(self, texts: list[str]) -> str:
        return "year" if self.form is None and texts and all(map(YEAR.fullmatch, texts)) else "month"

    def add(self, table: "pd.DataFrame") -> None:
        """Add the rows of a chunk."""
        if len(self._known) > MAX_KNOWN:
            self._known.clear()
        for row, cell in zip(table.index, table[self.column], strict=True):
            if cell is None:
                self.empty += 1
                continue
            try:
                period = self._known.get(cell) or period_of(cell, self.period, self.form)
                self._known[cell] = period
                self.sizes[period] += 1
            except (ValueError, TypeError, OverflowError):
                self.unreadable += 1
                if len(self.rows) < SHOWN:
                    self.rows.append(int(row))
                    self.example = self.example or str(cell)[:40]

    def result(self) -> DateCheck:
        """The result for all chunks."""
        sizes = dict(sorted(self.sizes.items()))
        unclear = len(self.choices) > 1
        return DateCheck(
            column=self.column,
            form="" if unclear or not sizes else self.form or "ISO 8601",
            choices=self.choices if unclear else (),
            period=self.period,
            sizes=sizes,
            gaps=_gaps(sizes, self.period),
            empty=self.empty,
            unreadable=Found(self.unreadable, tuple(map(self.source.place, self.rows))),
            example=self.example,
        )


def _gaps(sizes: dict[str, int], period: str) -> tuple[str, ...]:
    """Periods without rows between the first and the last one."""
    if not sizes:
        return ()
    first, last = (date.fromisoformat(first_day(name)) for name in (min(sizes), max(sizes)))
    expected: dict[str, None] = {}
    step = {"day": 1, "week": 7}.get(period, 27)
    number = first.toordinal()
    while number <= last.toordinal() and len(expected) < MAX_PERIODS:
        expected[period_of(date.fromordinal(number), period)] = None
        number += step
    return tuple(name for name in expected if name not in sizes)
