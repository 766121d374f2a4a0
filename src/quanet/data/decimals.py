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
    """A cell as a number, given what commas mean; None if it is not a number.

    Examples
    --------
    >>> read_number("1.234,5", DECIMAL_COMMA), read_number("1,234.5", THOUSANDS_COMMA), read_number(7, DECIMAL_COMMA)
    (1234.5, 1234.5, 7.0)
    """
    if not isinstance(value, str):
        return as_number(value)
    if style == DECIMAL_COMMA:
        return as_number(value.replace(".", "").replace(",", "."))
    return as_number(value.replace(",", ""))


def comma_numbers(cells: "pd.Series[Any]", source: "TableSource") -> list[float | None]:
    """The cells of a column with commas as numbers, None for those that are not numbers. A warning reports the style.

    Raises `InvalidData` if it is unclear what commas mean.
    """
    column = str(cells.name)
    style = comma_style([*source.peek()[column], *cells])
    at = next(at for at, cell in enumerate(cells) if isinstance(cell, str) and "," in cell)
    if not style:
        return [as_number(cell) for cell in cells]
    if style == UNCLEAR:
        text = cells.iloc[at].strip()
        raise InvalidData(
            f"{source.place(cells.index[at])}: {text!r} in column {column!r} may be {text.replace(',', '.')} or "
            f"{text.replace(',', '')}. Write numbers with a decimal point and without separators of thousands."
        )
    found = read_number(cells.iloc[at], style)
    warnings.warn(
        Detected(f"{source.name}: numbers in {column!r} have a {style} (detected: {cells.iloc[at]} is {found:g})."),
        stacklevel=2,
    )
    return [read_number(cell, style) for cell in cells]
