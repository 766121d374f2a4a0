"""Figures as words, the same in every format of a report."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

NONE = "--"


def percent(share: float, *, digits: int = 1) -> str:
    """A share with its unit.

    Examples
    --------
    >>> percent(0.3724), percent(0.95, digits=0), percent(float("nan"))
    ('37.2 %', '95 %', '--')
    """
    return NONE if math.isnan(share) else f"{100 * share:.{digits}f} %"


def level_text(level: float) -> str:
    """A level of confidence, with no more digits than it has.

    Examples
    --------
    >>> level_text(0.95), level_text(0.999)
    ('95 %', '99.9 %')
    """
    return f"{round(100 * level, 6):g} %"


def between(lower: float, upper: float) -> str:
    """An interval of shares.

    Examples
    --------
    >>> between(0.349, 0.396)
    '34.9 to 39.6 %'
    """
    return NONE if math.isnan(lower) else f"{100 * lower:.1f} to {100 * upper:.1f} %"


def points(error: float) -> str:
    """A difference of shares in percentage points; small ones with two decimals.

    Examples
    --------
    >>> points(0.0482), points(0.0092)
    ('4.8 points', '0.92 points')
    """
    return f"{100 * error:.{1 if abs(error) >= 0.0095 else 2}f} points"


def many(number: int, one: str, more: str = "") -> str:
    """A number of things.

    Examples
    --------
    >>> many(1, "group"), many(2431, "instance"), many(2, "class", "classes")
    ('1 group', '2,431 instances', '2 classes')
    """
    return f"{number:,} {one if number == 1 else more or f'{one}s'}"


def listing(words: Sequence[str], *, most: int = 6) -> str:
    """Words in a sentence; of very many, the first and how many more there are.

    Examples
    --------
    >>> listing(["a"]), listing(["a", "b", "c"]), listing(list("abcdefgh"), most=3)
    ('a', 'a, b and c', 'a, b, c and 5 more')
    """
    if len(words) > most + 1:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def short(label: str, most: int = 30) -> str:
    r"""A label in one line, cut where it is too long for a picture.

    Examples
    --------
    >>> short("two\n lines"), short("a rather long label", 10)
    ('two lines', 'a rather …')
    """
    line = " ".join(str(label).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def plain(value: Any) -> Any:
    """A value as JSON has it: arrays as lists, what is not a number as null, dates as text.

    Examples
    --------
    >>> plain({"shares": np.array([0.5, np.nan]), "small": np.bool_(True), "level": 0.95})
    {'shares': [0.5, None], 'small': True, 'level': 0.95}
    """
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
