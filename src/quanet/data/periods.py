"""Parse dates into periods (day, week, month, quarter, year), and group rows by columns and periods.

The format of dates is ISO 8601, or one that is given, or the only one that fits a column: that of `strptime`, or
"excel" (days since 30 December 1899, as in 45292), or "unix" (seconds, milliseconds or microseconds since 1970).
"""

import math
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quanet.data.columns import as_number, cell_name, nearest_first
from quanet.data.grouping import EMPTY
from quanet.errors import Detected, InvalidData, InvalidSetting, brief

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
EXCEL, UNIX = SPECIAL_FORMATS = ("excel", "unix")
FORMATS = (
    *("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y-%m-%d"),
    *("%d/%m/%y", "%m/%d/%y", "%y/%m/%d", "%d.%m.%y", "%d-%m-%y", "%m-%d-%y"),
    *("%d %B %Y", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d. %B %Y", "%B %d, %Y", "%b %d, %Y", "%B %d %Y", "%b %d %Y"),
    *("%Y %B %d", "%Y %b %d", "%A, %B %d, %Y", "%a, %d %b %Y", "%a %b %d %Y", "%a %b %d %H:%M:%S %Y"),
    *("%m/%Y", "%Y/%m", "%m.%Y", "%m-%Y", "%B %Y", "%b %Y", "%b-%Y", "%b-%y", "%B-%Y", "%Y %B", "%Y %b"),
)
DIGITS = {8: "%Y%m%d", 6: "%Y%m"}  # whole numbers, by their number of digits
SERIAL_DAYS = (20_000, 80_000)  # numbers that are dates in Excel: 1954 to 2119
SECONDS = (631_152_000, 4_102_444_800)  # 1990 to 2100
TIME = re.compile(rf"[T,]? *\d{{1,2}}:\d{{2}}(:\d{{2}}([.,]\d+)?)? ?({HALF})? ?({ZONE})?")
MAX_CELLS = 20_000  # distinct cells that a format is detected from


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
    form : format of strings, of `strptime`, "excel" or "unix". None: ISO 8601, such as 2024-05-31 or 2024-05-31T12:30;
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


def read_day(value: Any, form: str) -> date:
    """A date in a format. A time after a date is ignored, unless the format has one; so is a time zone.

    Raises ValueError if the date does not fit.

    Examples
    --------
    >>> read_day("31.12.2024 18:30", "%d.%m.%Y").isoformat(), read_day("45292", "excel").isoformat()
    ('2024-12-31', '2024-01-01')
    >>> read_day(1714521600, "unix").isoformat()
    '2024-05-01'
    """
    if form in {EXCEL, UNIX}:
        number = as_number(value)
        if number is None or isinstance(value, bool) or not 0 <= number < 1e18:
            raise ValueError(f"not a date in the format {form}")
        if form == EXCEL:
            return date(1899, 12, 30) + timedelta(days=min(int(number), 2_958_465))  # at most the year 9999
        while number > SECONDS[1]:  # milliseconds, microseconds
            number /= 1000
        return datetime.fromtimestamp(number, tz=UTC).date()
    text = value.strip() if isinstance(value, str) else str(value)
    try:
        return datetime.strptime(text, form).date()
    except ValueError:
        if "%H" in form or "%I" in form or not (found := _time_at_end(text)):
            raise
        return datetime.strptime(text[: found.start()].rstrip(" ,"), form).date()


def _time_at_end(text: str) -> re.Match[str] | None:
    return next((found for found in TIME.finditer(text) if found.end() == len(text)), None)


def fitting_formats(text: str) -> list[str]:
    """Formats that can read a date, for suggestions."""
    return [form for form in FORMATS if _fits([text], form)]


def has_day(form: str) -> bool:
    """Whether dates in a format determine the day, not only the month or the year."""
    return form in {EXCEL, UNIX} or any(part in form for part in ("%d", "%j", "%x", "%c", "%D"))


def detect_formats(cells: Iterable[Any]) -> list[str]:
    """Formats that read all cells; several only if they disagree about a date.

    Dates without a format, such as those of Parquet, are ignored.

    Examples
    --------
    >>> detect_formats(["03/04/2024", "31/12/2024"]), detect_formats(["03/04/2024", "05/06/2024"])
    (['%d/%m/%Y'], ['%d/%m/%Y', '%m/%d/%Y'])
    >>> detect_formats(["May 2024"]), detect_formats([45292, 45293.5]), detect_formats(["soon"])
    (['%B %Y'], ['excel'], [])
    """
    values = [cell for cell in dict.fromkeys(cells) if cell is not None and not isinstance(cell, date)][:MAX_CELLS]
    numbers = [as_number(value) for value in values]
    if not values:
        return []
    if None not in numbers:
        form = _numeric_format([str(value).strip() for value in values], [number or 0.0 for number in numbers])
        return [form] if form and _fits(values, form) else []
    if not all(isinstance(value, str) for value in values):
        return []
    found: dict[tuple[date, ...], str] = {}
    for form in FORMATS:
        if _fits(values[:1], form) and (days := _fits(values, form)):
            found.setdefault(days, form)
    return list(found.values())


def detect_column(cells: "pd.Series[Any]", row: int, key: Key, source: "TableSource | None") -> str | None:
    """The format of the dates in a column, reported by a warning; None if no format reads all dates.

    Raises `InvalidData` if several formats fit, or if dates are too coarse for the period.

    Parameters
    ----------
    cells : the first dates of the column.
    row : of a date that is not ISO 8601.
    key : the column and the period.
    source : for messages.
    """
    try:
        forms = detect_formats(cells)
    except TypeError:  # a list or an object
        return None
    where = f"row {row + 1}" if source is None else source.place(row)
    shown = f"{brief(cells[row])} in column {key.column!r}"
    if not forms:
        return None
    if len(forms) > 1:
        choices = " or ".join(f"'{form}'" for form in forms)
        raise InvalidData(
            f"{where}: {shown} may be in several formats, and none of the first {len(cells):,} rows decides. "
            f"Set --date-format: {choices}."
        )
    form = forms[0]
    if not has_day(form) and key.period not in COARSE["month"]:
        raise InvalidData(f"{where}: {shown} {too_coarse('month', key.period)}")
    name = "" if source is None else f"{source.name}: "
    day = read_day(cells[row], form)
    message = f"{name}dates in {key.column!r} have the format {form} (detected: {cells[row]} is {day.day} {day:%B %Y})"
    warnings.warn(Detected(f"{message}. If this is wrong, specify it with --date-format."), stacklevel=2)
    return form


def _numeric_format(texts: list[str], numbers: list[float]) -> str:
    lengths = {len(text) for text in texts if text.isdecimal()}
    if len(lengths) == 1 and all(text.isdecimal() for text in texts) and (known := DIGITS.get(lengths.pop())):
        return known
    if all(SERIAL_DAYS[0] <= number <= SERIAL_DAYS[1] for number in numbers):
        return EXCEL
    for factor in (1, 1_000, 1_000_000):
        if all(SECONDS[0] <= number / factor <= SECONDS[1] for number in numbers):
            return UNIX
    return ""


def _fits(values: list[Any], form: str) -> tuple[date, ...]:
    """The dates, or nothing if one does not fit."""
    with suppress(ValueError, OverflowError):
        return tuple(read_day(value, form) for value in values)
    return ()


def date_problem(cell: Any, period: str, form: str | None) -> str:
    """Why a date cannot be parsed, and what to do."""
    text = str(cell).strip() if isinstance(cell, str | int) else ""
    coarse = "month" if MONTH.fullmatch(text) else "year" if YEAR.fullmatch(text) else ""
    if coarse and form is None and period not in COARSE[coarse]:
        return too_coarse(coarse, period)
    wanted = f"a date in the format {form}" if form else "a date in ISO 8601, such as 2024-05-31"
    formats = [f"'{found}'" for found in fitting_formats(text) if found != form][:3]
    advice = f"Set --date-format: {' or '.join(formats)}." if formats else "Correct it, or set --date-format."
    return f"is not {wanted}. {advice}"
