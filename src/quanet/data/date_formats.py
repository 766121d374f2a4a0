"""Formats of dates that are not ISO 8601: read a date in a known format, detect the format of a column.

A format is that of `strptime`, or "excel" (days since 30 December 1899, as in 45292), or "unix" (seconds, milliseconds
or microseconds since 1970, as in 1714521600).
"""

import re
import warnings
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from quanet.data.columns import as_number
from quanet.data.periods import COARSE, HALF, MONTH, YEAR, ZONE, Key, too_coarse
from quanet.errors import Detected, InvalidData, brief

if TYPE_CHECKING:
    import pandas as pd

    from quanet.data.streams import TableSource

EXCEL, UNIX = "excel", "unix"
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
