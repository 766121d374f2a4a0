"""Groups of instances: by the values of columns, and by the period that a date falls into."""

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quanet.answers.shares import Key
from quanet.data.columns import label_name, nearest_first
from quanet.errors import InvalidData, InvalidSetting
from quanet.grouping import EMPTY

if TYPE_CHECKING:
    import pandas as pd

    from quanet.data.streams import Source

Codes = NDArray[np.int32]
PERIODS: dict[str, Callable[[date], str]] = {
    "day": lambda day: day.isoformat(),
    "week": lambda day: "{}-W{:02}".format(*day.isocalendar()[:2]),
    "month": lambda day: f"{day:%Y-%m}",
    "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year:04}",
}
MOST_GROUPS = 100_000  # beyond, a column is hardly one to group by
ISO = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})(?:[T ]\d{2}(?::?\d{2}.*)?)?Z?")


def parse_key(text: str) -> Key:
    """A key as it is written: ``product``, or ``date:month`` for dates cut into periods.

    Examples
    --------
    >>> parse_key("date:month"), parse_key("product")
    (Key(column='date', period='month'), Key(column='product', period=''))
    """
    column, colon, period = text.rpartition(":")
    if not colon:
        return Key(text)
    if period and period not in PERIODS:
        near = nearest_first(period, PERIODS)
        raise InvalidSetting(
            f"{period!r} in {text!r} is no period; there are {', '.join(near)}. "
            f"If the column's name has a colon, write {text + ':'!r}."
        )
    return Key(column, period)


def period_of(value: Any, period: str, form: str | None = None) -> str:
    """The period that a date falls into: ISO 8601, so that it sorts as time does.

    Parameters
    ----------
    value : a date, or its text.
    period : day, week, month, quarter or year.
    form : how texts are written, as for `strptime`; None reads ISO 8601, such as 2024-05-31 or 2024-05-31T12:30.

    Examples
    --------
    >>> [period_of("2024-05-31 12:30", period) for period in ("day", "week", "month", "quarter", "year")]
    ['2024-05-31', '2024-W22', '2024-05', '2024-Q2', '2024']
    >>> period_of("31.5.2024", "month", "%d.%m.%Y")
    '2024-05'
    """
    return PERIODS[period](_day(value, form))


def _day(value: Any, form: str | None) -> date:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    text = value.strip() if isinstance(value, str) else ""
    if form is not None:
        return datetime.strptime(text, form).date()
    found = ISO.fullmatch(text)
    if not found:
        raise ValueError("no date in ISO 8601")
    return date(*map(int, found.groups()))


class Groups:
    """Groups, found as tables come: each gets a number when it is first met.

    Parameters
    ----------
    keys : what to group by; without any, all rows are one group.
    form : of dates, see `period_of`.

    Attributes
    ----------
    found : the groups' values as strings, by number.
    """

    def __init__(self, keys: Sequence[Key], *, form: str | None = None) -> None:
        self.keys = tuple(keys)
        self.form = form
        self.numbers: dict[tuple[str, ...], int] = {}
        self._known: list[dict[Any, str]] = [{} for _ in keys]

    @property
    def found(self) -> list[tuple[str, ...]]:
        """The groups' values as strings, by number."""
        return list(self.numbers)

    def codes(self, table: "pd.DataFrame", source: "Source | None" = None) -> Codes:
        """The number of every row's group (n,), -1 for one that lacks a required value.

        Parameters
        ----------
        table : with the keys' columns; its index numbers the rows of `source`.
        source : where it comes from, for messages.
        """
        if not self.keys:
            self.numbers[()] = 0
            return np.zeros(len(table), dtype=np.int32)
        columns = [self._values(at, table[key.column], source) for at, key in enumerate(self.keys)]
        codes: Codes = np.empty(len(table), dtype=np.int32)
        numbers = self.numbers
        for row, values in enumerate(zip(*columns, strict=True)):
            codes[row] = -1 if None in values else numbers.setdefault(values, len(numbers))
        if len(numbers) > MOST_GROUPS:
            raise InvalidData(
                f"{' and '.join(repr(key.column) for key in self.keys)} give more than {MOST_GROUPS:,} groups. "
                "Group by what many rows share."
            )
        return codes

    def in_order(self, codes: Codes) -> tuple[list[tuple[str, ...]], Codes]:
        """The groups sorted, and the codes of rows as places among them."""
        order = sorted(self.numbers, key=lambda values: [(value == EMPTY, _sortable(value)) for value in values])
        places = np.full(len(order) + 1, -1, dtype=np.int32)  # the last one is that of -1
        for place, values in enumerate(order):
            places[self.numbers[values]] = place
        return order, places[codes]

    def _values(self, at: int, cells: "pd.Series[Any]", source: "Source | None") -> list[str | None]:
        """What a key says of every row, looked up once for every distinct cell."""
        known, key = self._known[at], self.keys[at]
        if len(known) > MOST_GROUPS:  # times to the second, say, which would fill memory
            known.clear()
        values: list[str | None] = []
        for row, cell in zip(cells.index, cells, strict=True):
            if cell is None:
                values.append(None if key.required else EMPTY)
                continue
            try:
                values.append(known[cell])
                continue
            except KeyError:
                pass
            known[cell] = self._named(cell, key, row, source)
            values.append(known[cell])
        return values

    def _named(self, cell: Any, key: Key, row: int, source: "Source | None") -> str:
        if not key.period:
            return label_name(cell)
        try:
            return period_of(cell, key.period, self.form)
        except ValueError:
            where = f"row {row + 1}" if source is None else source.place(row)
            wanted = f"written as {self.form}" if self.form else "in ISO 8601, such as 2024-05-31"
            raise InvalidData(
                f"{where}: {cell!r} in column {key.column!r} is no date {wanted}. "
                "Say how dates are written, such as --date-format '%d/%m/%Y'."
            ) from None


def group_codes(
    table: "pd.DataFrame", keys: Sequence[Key], *, source: "Source | None" = None, form: str | None = None
) -> tuple[list[tuple[str, ...]], Codes]:
    """The groups of a whole table, sorted, and for every row its group's place among them, -1 where it has none.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"date": ["2024-06-02", "2024-05-01", "2024-06-30"]}, dtype=object)
    >>> group_codes(table, [parse_key("date:month")])
    ([('2024-05',), ('2024-06',)], array([1, 0, 1], dtype=int32))
    """
    groups = Groups(keys, form=form)
    return groups.in_order(groups.codes(table, source))


def _sortable(value: str) -> tuple[float, str]:
    """Numbers by size, then texts by their letters."""
    try:
        return float(value), ""
    except ValueError:
        return float("inf"), value
