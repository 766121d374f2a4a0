"""Numbers with decimal commas (3,5) or with separators between thousands (1,234.5), which a whole column decides."""

import re
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from quanet.data.columns import as_number, is_missing
from quanet.errors import Detected, InvalidData

if TYPE_CHECKING:
    import pandas as pd

    from quanet.data.streams import TableSource

DECIMAL_COMMA, THOUSANDS_COMMA, UNCLEAR = "decimal comma", "thousands comma", "unclear"
WITH_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?(e[+-]?\d+)?", re.IGNORECASE)
WITH_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
EITHER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # 1,234 is 1.234 or 1234


def comma_style(values: Iterable[Any]) -> str:
    """What commas mean in a column of numbers; an empty string if not all cells are numbers.

    Examples
    --------
    >>> comma_style(["3,5", "1,234"]), comma_style(["1,234.5", "7"]), comma_style(["1,234"]), comma_style(["a, b"])
    ('decimal comma', 'thousands comma', 'unclear', '')
    """
    texts = [value.strip() for value in values if isinstance(value, str) and not is_missing(value)]
    commas = [text for text in texts if "," in text]
    others = [text for text in texts if "," not in text]
    if not commas:
        return ""
    decimal = all(map(WITH_DECIMAL_COMMA.fullmatch, texts))
    thousands = all(map(WITH_THOUSANDS.fullmatch, commas)) and all(as_number(text) is not None for text in others)
    if decimal and thousands:
        return UNCLEAR if all(map(EITHER.fullmatch, commas)) else DECIMAL_COMMA
    return DECIMAL_COMMA if decimal else THOUSANDS_COMMA if thousands else ""


def read_number(value: Any, style: str) -> float | None:
    """A cell as a number, given what commas mean; None if it is not a number that is written so.

    Examples
    --------
    >>> read_number("1.234,5", DECIMAL_COMMA), read_number("1,234.5", THOUSANDS_COMMA), read_number(7, DECIMAL_COMMA)
    (1234.5, 1234.5, 7.0)
    >>> read_number("3.5", DECIMAL_COMMA), read_number("3,5", THOUSANDS_COMMA)
    (None, None)
    """
    if not isinstance(value, str):
        return as_number(value)
    text = value.strip()
    if style == DECIMAL_COMMA:
        return as_number(text.replace(".", "").replace(",", ".")) if WITH_DECIMAL_COMMA.fullmatch(text) else None
    if "," in text:
        return as_number(text.replace(",", "")) if WITH_THOUSANDS.fullmatch(text) else None
    return as_number(text)


def comma_styles(table: "pd.DataFrame") -> dict[str, tuple[str, str]]:
    """What commas mean in the columns of numbers that have some, and the first cell with one, by column.

    Examples
    --------
    >>> import pandas as pd
    >>> comma_styles(pd.DataFrame({"x": ["7", "3,5"], "y": ["1", "2"], "text": ["a, b", "c"]}))
    {'x': ('decimal comma', '3,5')}
    """
    found = {}
    for column in table.columns:
        style = comma_style(table[column])
        if style:
            found[str(column)] = style, next(cell for cell in table[column] if isinstance(cell, str) and "," in cell)
    return found


def report_style(name: str, column: str, style: str, example: str) -> None:
    """Report by a warning what commas mean in a column."""
    number = read_number(example, style)
    if number is not None and style != UNCLEAR:
        message = f"{name}: numbers in {column!r} have a {style} (detected: {example} is {number:g})."
        warnings.warn(Detected(message), stacklevel=3)


def comma_numbers(cells: "pd.Series[Any]", numbers: list[float | None], source: "TableSource") -> list[float | None]:
    """The cells of a column as numbers, None for those that are not, given what commas mean in the whole column.

    Raises `InvalidData` if that is unclear.

    Parameters
    ----------
    cells : of a part of the table.
    numbers : the same as numbers without separators.
    source : the table, or what knows what commas mean in its columns.
    """
    column = str(cells.name)
    style = source.comma_style(column)
    if style == UNCLEAR:
        for row, cell in zip(cells.index, cells, strict=True):
            if isinstance(cell, str) and "," in cell:
                raise InvalidData(
                    f"{source.place(row)}: {cell.strip()!r} in column {column!r} may be "
                    f"{cell.strip().replace(',', '.')} or {cell.strip().replace(',', '')}. Write numbers with a "
                    "decimal point and without separators of thousands."
                )
    return [read_number(cell, style) for cell in cells] if style in {DECIMAL_COMMA, THOUSANDS_COMMA} else numbers
