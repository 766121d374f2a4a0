"""Parse dates into periods (day, week, month, quarter, year), and group rows by columns and periods."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quanet.data.columns import as_number, cell_name, nearest_first
from quanet.data.grouping import EMPTY
from quanet.errors import InvalidData, InvalidSetting, brief

if TYPE_CHECKING:
    import pandas as pd

    from quanet.data.streams import TableSource

Codes = NDArray[np.int32]
PERIODS: dict[str, Callable[[date], str]] = {
    "day": lambda day: day.isoformat(),
    "week": lambda day: "{}-W{:02}".format(*day.isocalendar()[:2]),
    "month": lambda day: f"{day:%Y-%m}",
    "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year:04}",
}
MAX_GROUPS = 100_000  # a column with more values is hardly useful for grouping
# A zone after a time: an offset, a name such as CET, or both, as in 2024-05-31T23:30+02:00[Europe/Berlin].
ZONE = r"(?:Z|UTC|[A-Z]{1,4}T|[+-]\d{2}(?::?\d{2})?)(?:\[[\w/+-]+\])?"
HALF = r"[AaPp]\.?[Mm]\.?"
CLOCK = r"[0-2]\d(?::?[0-5]\d(?::?[0-6]\d(?:[.,]\d+)?)?)?"
ISO = re.compile(
    rf"(\d{{4}})-?(\d{{2}})-?(\d{{2}})(?:[T ] *{CLOCK}(?: ?{HALF})?(?P<zone> ?{ZONE})?|Z|[+-]\d{{2}}:\d{{2}})?",
    re.ASCII,
)
MONTH, YEAR = re.compile(r"(\d{4})-(\d{2})", re.ASCII), re.compile(r"\d{4}", re.ASCII)  # dates without a day or month
COARSE = {"month": ("month", "quarter", "year"), "year": ("year",)}  # periods that such a date determines
SPECIAL_FORMATS = {"excel", "unix"}  # see `quanet.data.date_formats`


@dataclass(frozen=True, slots=True)
class Key:
    """A column to group by and, for dates, the period.

    Examples
    --------
    >>> str(Key("date", "month")), str(Key("product"))
    ('date (month)', 'product')
    """

    column: str
    period: str = ""  # day, week, month, quarter, year
    # Whether rows without a value are skipped, instead of forming the group "(empty)".
    required: bool = field(default=False, repr=False)

    def as_required(self) -> "Key":
        """The same key, with rows without a value skipped."""
        return Key(self.column, self.period, required=True)

    def __str__(self) -> str:
        return f"{self.column} ({self.period})" if self.period else self.column


def parse_key(text: str) -> Key:
    """Parse a key: ``product``, or ``date:month`` to group dates by period.

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
            f"Unknown period {period!r} in {text!r}. Choose from {', '.join(near)}. "
            f"If the column name contains a colon, write {text + ':'!r}."
        )
    return Key(column, period)


def period_of(value: Any, period: str, form: str | None = None) -> str:
    """The period of a date, in ISO 8601, so that the strings sort chronologically.

    A date with an offset or a time zone counts as it is written: 2024-05-31T23:30-05:00 is in May.

    Parameters
    ----------
    value : a date, or a string.
    period : day, week, month, quarter or year.
    form : format of strings, see `quanet.data.date_formats`. None: ISO 8601, such as 2024-05-31 or 2024-05-31T12:30;
        for months and years also 2024-05 and 2024.

    Examples
    --------
    >>> [period_of("2024-05-31 12:30", period) for period in ("day", "week", "month", "quarter", "year")]
    ['2024-05-31', '2024-W22', '2024-05', '2024-Q2', '2024']
    >>> period_of("31.5.2024", "month", "%d.%m.%Y"), period_of("2024-05", "quarter"), period_of("2024", "year")
    ('2024-05', '2024-Q2', '2024')
    """
    return PERIODS[period](_day(value, period, form))


def _day(value: Any, period: str, form: str | None) -> date:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    if form is not None:
        from quanet.data.date_formats import read_day

        return read_day(value, form)
    is_year = isinstance(value, int) and 1000 <= value <= 9999
    text = value.strip() if isinstance(value, str) else str(value) if is_year else ""
    if found := ISO.fullmatch(text):
        return date(*map(int, found.group(1, 2, 3)))
    if period in COARSE["month"] and (found := MONTH.fullmatch(text)):
        return date(int(found[1]), int(found[2]), 1)
    if period in COARSE["year"] and YEAR.fullmatch(text):
        return date(int(text), 1, 1)
    raise ValueError("not an ISO 8601 date")


def without_zone(text: str) -> str:
    """A date and time as it is written, without its offset or time zone; any other text is unchanged.

    Examples
    --------
    >>> without_zone("2024-05-31T12:30+02:00"), without_zone("2024-05-31 12:30:00 CET"), without_zone("2024-05")
    ('2024-05-31T12:30', '2024-05-31 12:30:00', '2024-05')
    """
    found = ISO.fullmatch(text)
    return text if found is None or found["zone"] is None else text[: found.start("zone")]


def first_day(name: str) -> str:
    """The first day of a period written by `period_of`.

    Examples
    --------
    >>> [first_day(name) for name in ("2024-05-31", "2024-W22", "2024-05", "2024-Q2", "2024")]
    ['2024-05-31', '2024-05-27', '2024-05-01', '2024-04-01', '2024-01-01']
    """
    year, _, rest = name.partition("-")
    if rest.startswith("W"):
        return date.fromisocalendar(int(year), int(rest[1:]), 1).isoformat()
    if rest.startswith("Q"):
        return date(int(year), 3 * int(rest[1:]) - 2, 1).isoformat()
    month, _, day = rest.partition("-")
    return date(int(year), int(month or 1), int(day or 1)).isoformat()


def check_date_format(form: str) -> str:
    """A format for `strptime`, or "excel" or "unix". Raises `InvalidSetting` if it is invalid."""
    if form in SPECIAL_FORMATS:
        return form
    try:
        datetime.strptime(datetime(2024, 5, 31).strftime(form), form)
    except (ValueError, re.error) as error:
        reason = str(error).partition(" in format")[0]
        raise InvalidSetting(
            f"{form!r} is not a date format: {reason}. Use %d for day, %m for month and %Y for year, as in '%d/%m/%Y'."
        ) from None
    return form


class Groups:
    """Groups of rows, collected over several tables. Each group gets a number when it first occurs.

    Parameters
    ----------
    keys : what to group by; without keys, all rows are one group.
    form : format of dates, see `period_of`. None: ISO 8601, or else the only format that fits the first dates of a
        column; a warning reports it.
    forms : the format of each key instead, if known; a format is then never guessed.

    Attributes
    ----------
    found : the values of each group as strings, by number.
    forms : the format of each key's dates, given or detected so far.
    """

    def __init__(
        self, keys: Sequence[Key], *, form: str | None = None, forms: Sequence[str | None] | None = None
    ) -> None:
        self.keys = tuple(keys)
        self.numbers: dict[tuple[str, ...], int] = {}
        self._known: list[dict[tuple[type, Any], str]] = [{} for _ in keys]
        self.forms = [form for _ in keys] if forms is None else list(forms)
        self._guesses = forms is None

    @property
    def found(self) -> list[tuple[str, ...]]:
        """The values of each group as strings, by number."""
        return list(self.numbers)

    def codes(self, table: "pd.DataFrame", source: "TableSource | None" = None) -> Codes:
        """The group number of every row (n,), -1 if a required value is missing.

        Parameters
        ----------
        table : with the columns of the keys; its index numbers the rows of `source`.
        source : the table's source, for messages.
        """
        if not self.keys:
            self.numbers[()] = 0
            return np.zeros(len(table), dtype=np.int32)
        columns = [self._values(at, table[key.column], source) for at, key in enumerate(self.keys)]
        codes: Codes = np.empty(len(table), dtype=np.int32)
        numbers = self.numbers
        for row, values in enumerate(zip(*columns, strict=True)):
            codes[row] = -1 if None in values else numbers.setdefault(values, len(numbers))
        if len(numbers) > MAX_GROUPS:
            raise InvalidData(
                f"{' and '.join(repr(key.column) for key in self.keys)} give more than {MAX_GROUPS:,} groups. "
                "Group by a column with fewer distinct values."
            )
        return codes

    def in_order(self, codes: Codes) -> tuple[list[tuple[str, ...]], Codes]:
        """The groups, sorted, and the codes of rows as positions in this order."""
        order = group_order(self.numbers)
        places = np.full(len(order) + 1, -1, dtype=np.int32)  # the last entry is for code -1
        for place, values in enumerate(order):
            places[self.numbers[values]] = place
        return order, places[codes]

    def _values(self, at: int, cells: "pd.Series[Any]", source: "TableSource | None") -> list[str | None]:
        """The value of a key for every row, computed once for every distinct cell."""
        known, key = self._known[at], self.keys[at]
        new = not known
        if len(known) > MAX_GROUPS:  # such as times in seconds, which would fill the memory
            known.clear()
        values: list[str | None] = []
        for row, cell in zip(cells.index, cells, strict=True):
            if cell is None:
                values.append(None if key.required else EMPTY)
                continue
            kind = cell.__class__  # True equals 1 but is a different value
            try:
                values.append(known[kind, cell])
                continue
            except KeyError:
                pass
            except TypeError:  # raises for a list or an object, which has no name
                self._named(cell, at, row, source)
            try:
                known[kind, cell] = self._named(cell, at, row, source)
            except InvalidData:
                if not new or not self._detect(at, cells, row, source):
                    raise
                known.clear()
                return self._values(at, cells, source)
            values.append(known[kind, cell])
        return values

    def _detect(self, at: int, cells: "pd.Series[Any]", row: int, source: "TableSource | None") -> bool:
        """Detect the format of the dates in a column, once. Raises `InvalidData` if several formats fit."""
        if not self._guesses or self.forms[at] is not None or not self.keys[at].period:
            return False
        from quanet.data.date_formats import detect_column

        self.forms[at] = detect_column(cells, row, self.keys[at], source)
        return self.forms[at] is not None

    def _named(self, cell: Any, at: int, row: int, source: "TableSource | None") -> str:
        key = self.keys[at]
        where = f"row {row + 1}" if source is None else source.place(row)
        if not key.period:
            try:
                return cell_name(cell)
            except InvalidData as error:
                raise InvalidData(f"{where}, column {key.column!r}: {error}") from None
        try:
            return period_of(cell, key.period, self.forms[at])
        except ValueError:
            from quanet.data.date_formats import date_problem

            problem = date_problem(cell, key.period, self.forms[at])
            raise InvalidData(f"{where}: {brief(cell)} in column {key.column!r} {problem}") from None


def too_coarse(kind: str, period: str) -> str:
    """Why a month or a year is in no such period, and what to do."""
    return f"is a {kind} and does not determine the {period}. Group by {' or '.join(COARSE[kind])}."


def group_codes(
    table: "pd.DataFrame", keys: Sequence[Key], *, source: "TableSource | None" = None, form: str | None = None
) -> tuple[list[tuple[str, ...]], Codes]:
    """The groups of a table, sorted, and the position of each row's group, -1 for rows without a group.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"date": ["2024-06-02", "2024-05-01", "2024-06-30"]}, dtype=object)
    >>> group_codes(table, [parse_key("date:month")])
    ([('2024-05',), ('2024-06',)], array([1, 0, 1], dtype=int32))
    """
    groups = Groups(keys, form=form)
    return groups.in_order(groups.codes(table, source))


def group_order(groups: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Groups sorted by their values; numbers by size, empty values last."""
    return sorted(groups, key=lambda values: [(value == EMPTY, _sortable(value)) for value in values])


def _sortable(value: str) -> tuple[float, str]:
    """Sort numbers by size, then strings; nan and inf are strings."""
    number = as_number(value)
    return (number, value) if number is not None and math.isfinite(number) else (math.inf, value)
