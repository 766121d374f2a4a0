"""Which column is which: found by name, or guessed where there is only one choice."""

import math
import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from quanet.arrays import LabelArray
from quanet.data.variants import label_key
from quanet.errors import InvalidData, brief

if TYPE_CHECKING:
    import pandas as pd

    from quanet.data.streams import Source

WORDS = 3.0  # on average, from which on a column looks like texts
MOST_CLASSES = 50  # distinct values, up to which a column looks like labels
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")  # as many digits as an integer of 64 bits can have


NOTHING = {"", "na", "n/a", "nan", "null", "none"}  # what people write for a number that they do not have


class UnclearColumn(InvalidData):
    """No column, or more than one, can be what is needed, and none was named."""


class Taken(NamedTuple):
    """A column, and whether it was guessed."""

    name: str
    guessed: bool


def nearest_first(name: str, names: Iterable[str]) -> list[str]:
    """Names, those most like the given one first.

    Examples
    --------
    >>> nearest_first("revew", ["date", "label", "Review"])
    ['Review', 'date', 'label']
    """
    wanted = name.lower()
    return sorted(names, key=lambda one: -SequenceMatcher(None, wanted, one.lower()).ratio())


def check_columns(wanted: Iterable[str], columns: Sequence[str], source: str) -> None:
    """Raise `InvalidData` that lists the columns there are, nearest first, unless all wanted ones are among them."""
    for name in wanted:
        if name not in columns:
            there = ", ".join(map(repr, nearest_first(name, columns)))
            raise InvalidData(f"{source} has no column {name!r}; its columns are {there}.")


def find_text(source: "Source", wanted: str | None = None, *, besides: Iterable[str] = ()) -> Taken:
    """The column of texts: the one wanted, else "text", else the only one whose cells have several words."""
    if wanted is not None:
        check_columns([wanted], source.columns, source.name)
        return Taken(wanted, guessed=False)
    choices = [name for name in source.columns if name not in set(besides)]
    found = ["text"] if "text" in choices else [name for name in choices if _is_prose(source.peek()[name])]
    if len(choices) == 1 and not found and not _is_number(source.peek()[choices[0]]):
        found = choices
    return _only(found, choices, source, "text")


def find_label(source: "Source", wanted: str | None = None, *, besides: Iterable[str] = ()) -> Taken:
    """The column of labels: the one wanted, else "label", else the only one with few distinct values."""
    if wanted is not None:
        check_columns([wanted], source.columns, source.name)
        return Taken(wanted, guessed=False)
    choices = [name for name in source.columns if name not in set(besides)]
    found = ["label"] if "label" in choices else [name for name in choices if _is_label(source.peek()[name])]
    return _only(found or (choices if len(choices) == 1 else []), choices, source, "label")


def numbers_in(source: "Source", *, besides: Iterable[str] = ()) -> list[str]:
    """Columns whose first cells are all numbers."""
    return [name for name in source.columns if name not in set(besides) and _is_number(source.peek()[name])]


def _only(found: list[str], choices: list[str], source: "Source", role: str) -> Taken:
    if len(found) == 1:
        return Taken(found[0], guessed=True)
    there = ", ".join(map(repr, found or choices)) or "none"
    why = f"several columns may be the {role}" if found else f"no column is clearly the {role}"
    raise UnclearColumn(f"{source.name}: {why}; there are {there}. Name it: --{role} NAME.")


def _is_prose(cells: "pd.Series[Any]") -> bool:
    values = [cell for cell in cells if isinstance(cell, str)]
    return bool(values) and sum(value.count(" ") + 1 for value in values) / len(values) >= WORDS


def _is_label(cells: "pd.Series[Any]") -> bool:
    values = [str(cell) for cell in cells if cell is not None]
    kinds = len(set(values))
    return 2 <= kinds <= min(MOST_CLASSES, len(values) // 2) and not _is_prose(cells)


def _is_number(cells: "pd.Series[Any]") -> bool:
    values = [cell for cell in cells if cell is not None]
    return bool(values) and all(as_number(value) is not None for value in values)


def as_number(value: Any) -> float | None:
    """A cell as a number, infinite where it is too large for one, or None where it is none.

    Examples
    --------
    >>> as_number("1.5"), as_number("four"), as_number(10**400)
    (1.5, None, inf)
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return None


def label_name(value: Any) -> str:
    """A label as a name, the same whatever format it was read from.

    Examples
    --------
    >>> label_name(" positive"), label_name(4), label_name(4.0), label_name("4"), label_name(True)
    ('positive', '4', '4', '4', 'True')
    """
    if isinstance(value, list | dict):
        raise InvalidData(f"{brief(value)} holds several values. Use a column that has one value in every row.")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def names_of(cells: "pd.Series[Any]", source: "Source") -> list[str | None]:
    """The cells of a column as names, None where there is none; an error names the row."""
    names: list[str | None] = []
    for row, cell in zip(cells.index, cells, strict=True):
        try:
            names.append(None if cell is None else label_name(cell))
        except InvalidData as error:
            raise InvalidData(f"{source.place(row)}, column {str(cells.name)!r}: {error}") from None
    return names


def as_labels(names: Sequence[str]) -> LabelArray:
    """Labels of names: whole numbers where all are such, so that 10 comes after 9.

    Examples
    --------
    >>> as_labels(["10", "9"]), as_labels(["10", "nine"])
    (array([10,  9]), array(['10', 'nine'], dtype='<U4'))
    """
    if names and all(map(WHOLE.fullmatch, set(names))):
        return np.array([int(name) for name in names])
    return np.array(names, dtype=str)


def match_labels(names: Sequence[str], classes: LabelArray, *, source: str) -> LabelArray:
    """The classes of a model that names of labels mean, or an error about those that it does not know."""
    known = {label_name(label): place for place, label in enumerate(classes.tolist())}
    unknown = sorted(set(names) - set(known))
    if unknown:
        there = ", ".join(map(repr, nearest_first(unknown[0], known)))
        count = sum(name == unknown[0] for name in names)
        others = f", and {len(unknown) - 1} other labels are unknown too" if len(unknown) > 1 else ""
        looks = {label_key(name): name for name in known}.get(label_key(unknown[0]))
        hint = f" It looks like {looks!r}: --normalize-labels takes it for that." if looks else ""
        raise InvalidData(
            f"{source}: the model does not know the label {unknown[0]!r} ({count:,} rows){others}; it knows {there}."
            f"{hint}"
        )
    return classes[np.array([known[name] for name in names], dtype=np.intp)]
