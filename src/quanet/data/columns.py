"""Columns of a table: find them by name or content, and read their cells as numbers or as labels.

A whole column decides what commas mean: decimals (3,5) or thousands (1,234.5). Names of classes: how answers show
labels such as 0 and 1, how files may write them, and which spellings are probably one class.
"""

import copy
import math
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import LARGEST_WEIGHT, FloatArray, LabelArray
from quanet.errors import Detected, InvalidData, InvalidSetting, brief
from quanet.simplex import label_array

if TYPE_CHECKING:
    import pandas as pd

    from quanet.data.streams import TableSource

Cells: TypeAlias = Sequence[Any]
PickColumns: TypeAlias = Callable[[Sequence[str]], Iterator[Cells]]
PEEKED_ROWS = 1000  # read first, to find the columns and what they contain
MIN_WORDS = 3.0  # words per cell, on average, of a column that looks like text
MAX_CLASSES = 50  # distinct values of a column that looks like labels
MISSING = {"", "na", "n/a", "nan", "null", "none"}  # a missing number, in lower case
WHOLE = re.compile(r"(?:-(?=0\.))?(0|-?[1-9][0-9]*)\.0+")  # a whole number written with decimals; -0.0 is 0
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # with at most the digits of a 64-bit integer
DECIMAL_COMMA, THOUSANDS_COMMA, UNCLEAR = "decimal comma", "thousands comma", "unclear"
WITH_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?(e[+-]?\d+)?", re.IGNORECASE)
WITH_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
EITHER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # 1,234 is 1.234 or 1234
SEPARATORS = re.compile(r"[\s_\-\u2010-\u2015]+")  # white space, underscores, hyphens and dashes
MAX_SHOWN = 3  # groups of spellings in a message


class UnclearColumn(InvalidData):
    """No column was named, and none or several qualify."""


class FoundColumn(NamedTuple):
    """The name of a column, and whether it was guessed."""

    name: str
    guessed: bool


def nearest_first(name: str, names: Iterable[str]) -> list[str]:
    """Names, sorted by similarity to `name`.

    Examples
    --------
    >>> nearest_first("revew", ["date", "label", "Review"])
    ['Review', 'date', 'label']
    """
    wanted = name.lower()
    return sorted(names, key=lambda known: -SequenceMatcher(None, wanted, known.lower()).ratio())


def check_columns(wanted: Iterable[str], columns: Sequence[str], source: str) -> None:
    """Raise `InvalidData` if a wanted column is missing. The message lists the columns, the most similar first."""
    for name in wanted:
        if name not in columns:
            known = ", ".join(map(repr, nearest_first(name, columns)))
            raise InvalidData(f"{source} has no column {name!r}. Its columns are {known}.")


def find_text(source: "TableSource", wanted: str | None = None, *, besides: Iterable[str] = ()) -> FoundColumn:
    """The text column: `wanted`, else "text", else the only column whose cells have several words."""
    if wanted is not None:
        check_columns([wanted], source.columns, source.name)
        return FoundColumn(wanted, guessed=False)
    choices = [name for name in source.columns if name not in set(besides)]
    found = ["text"] if "text" in choices else [name for name in choices if _is_prose(source.peek()[name])]
    if len(choices) == 1 and not found and not _is_numeric(source.peek()[choices[0]]):
        found = choices
    return _only(found, choices, source, "text")


def find_label(source: "TableSource", wanted: str | None = None, *, besides: Iterable[str] = ()) -> FoundColumn:
    """The label column: `wanted`, else "label", else the only column with few distinct values."""
    if wanted is not None:
        check_columns([wanted], source.columns, source.name)
        return FoundColumn(wanted, guessed=False)
    choices = [name for name in source.columns if name not in set(besides)]
    found = ["label"] if "label" in choices else [name for name in choices if _is_label(source.peek()[name])]
    return _only(found or (choices if len(choices) == 1 else []), choices, source, "label")


def numeric_columns(source: "TableSource", *, besides: Iterable[str] = ()) -> list[str]:
    """Columns whose first cells are all numbers or missing."""
    return [name for name in source.columns if name not in set(besides) and _is_numeric(source.peek()[name])]


def _only(found: list[str], choices: list[str], source: "TableSource", role: str) -> FoundColumn:
    if len(found) == 1:
        return FoundColumn(found[0], guessed=True)
    columns = ", ".join(map(repr, found or choices)) or "none"
    if found:
        problem = f"several columns may be the {role}: {columns}"
    else:
        problem = f"no column is clearly the {role}. The columns are {columns}"
    raise UnclearColumn(f"{source.name}: {problem}. Name the column: --{role} NAME.")


def _is_prose(cells: "pd.Series[Any]") -> bool:
    values = [cell for cell in cells if isinstance(cell, str)]
    return bool(values) and sum(value.count(" ") + 1 for value in values) / len(values) >= MIN_WORDS


def _is_label(cells: "pd.Series[Any]") -> bool:
    values = [str(cell) for cell in cells if cell is not None]
    distinct = len(set(values))
    return 2 <= distinct <= min(MAX_CLASSES, len(values) // 2) and not _is_prose(cells)


def _is_numeric(cells: "pd.Series[Any]") -> bool:
    values = [cell for cell in cells if not is_missing(cell)]
    if any(as_number(value) is None for value in values):
        return bool(comma_style(values))
    return bool(values)


def cell_or_none(value: Any) -> Any:
    """A cell, or None if it is empty: null, NaN, an empty string."""
    return None if value is None or value == "" or value != value else value


def is_missing(cell: Any) -> bool:
    """Whether a cell of a column of numbers has no value: empty, NA, nan, null, none.

    Examples
    --------
    >>> [is_missing(cell) for cell in (None, " NA", "0", 0)]
    [True, True, False, False]
    """
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING)


def as_number(value: Any) -> float | None:
    """A cell as a number: infinite if it is too large, None if it is not a number.

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
    """A label as a name, independent of the file format: a whole number has no decimals, also if it is a text.

    Other texts are unchanged, also those that look like numbers: the versions 1.1 and 1.10 are different labels.

    Examples
    --------
    >>> label_name(" positive"), label_name(4), label_name(4.0), label_name("4"), label_name("4.0"), label_name(True)
    ('positive', '4', '4', '4', '4', 'True')
    >>> label_name("1.10"), label_name("04")
    ('1.10', '04')
    """
    name = cell_name(value)
    found = WHOLE.fullmatch(name)
    return name if found is None else found[1]


def cell_name(value: Any) -> str:
    """A cell as a name, such as that of a group: a text as it is written, a whole number without decimals.

    Examples
    --------
    >>> cell_name(" 2.0"), cell_name(2.0), cell_name(2.5)
    ('2.0', '2', '2.5')
    """
    if isinstance(value, list | dict):
        raise InvalidData(f"{brief(value)} contains several values. Use a column with one value per row.")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, Decimal) and value.is_finite():  # of a database or of Parquet: 4.50 is 4.5
        value = f"{value.normalize():f}"
    return str(value).strip()


def label_names(
    cells: "pd.Series[Any]", source: "TableSource", name: Callable[[Any], str] = label_name
) -> list[str | None]:
    """The cells of a column as names of labels, or other names; None for an empty cell. An error names the row."""
    names: list[str | None] = []
    for row, cell in zip(cells.index, cells, strict=True):
        try:
            names.append(None if cell is None else name(cell))
        except InvalidData as error:
            raise InvalidData(f"{source.place(row)}, column {str(cells.name)!r}: {error}") from None
    return names


def numbers_of(cells: "pd.Series[Any]", source: "TableSource") -> list[float | None]:
    """The cells of a column as numbers, None for those that are not. Decimal commas are detected and reported."""
    numbers = [as_number(cell) for cell in cells]
    # In a column with decimal commas, 1.234 is 1234, and 1.5 is an error.
    if any(isinstance(cell, str) and ("," in cell or "." in cell) for cell in cells):
        return comma_numbers(cells, numbers, source)
    return numbers


def weights_of(cells: "pd.Series[Any]", source: "TableSource") -> FloatArray:
    """The cells of a column as weights: numbers from 0 up. An error names the row and the cell."""
    numbers = numbers_of(cells, source)
    for row, cell, number in zip(cells.index, cells, numbers, strict=True):
        if number is None or not 0 <= number <= LARGEST_WEIGHT:
            found = "is empty" if is_missing(cell) else f"is {brief(cell)}"
            raise InvalidData(
                f"{source.place(row)}: the weight in column {str(cells.name)!r} {found}. Weights must be numbers "
                "from 0 up. Correct the row or remove it."
            )
    return np.array(numbers, dtype=float)


def as_labels(names: Sequence[str]) -> LabelArray:
    """Labels from names: integers if all names are integers, so that 9 sorts before 10.

    Examples
    --------
    >>> as_labels(["10", "9"]), as_labels(["10", "nine"])
    (array([10,  9]), array(['10', 'nine'], dtype='<U4'))
    """
    if names and all(map(INTEGER.fullmatch, set(names))):
        return np.array([int(name) for name in names])
    return np.array(names, dtype=str)


def match_labels(names: Sequence[str], classes: LabelArray, *, source: str) -> LabelArray:
    """The classes of a model with these names. Raises `InvalidData` for unknown names."""
    known = {label_name(label): position for position, label in enumerate(classes.tolist())}
    unknown = sorted(set(names) - set(known))
    if unknown:
        choices = ", ".join(map(repr, nearest_first(unknown[0], known)))
        count = sum(name == unknown[0] for name in names)
        others = f" {len(unknown) - 1} other labels are unknown, too." if len(unknown) > 1 else ""
        similar = {label_key(name): name for name in known}.get(label_key(unknown[0]))
        hint = f" It looks like {similar!r}. Add --normalize-labels to treat them as one." if similar else ""
        raise InvalidData(
            f"{source}: the model does not know the label {unknown[0]!r} ({count:,} rows). Its classes are {choices}."
            f"{others}{hint}"
        )
    return classes[np.array([known[name] for name in names], dtype=np.intp)]


def parse_names(texts: Sequence[str]) -> dict[str, str]:
    """Names by label, from texts such as "0=negative"; raises `InvalidSetting` for anything else.

    Examples
    --------
    >>> parse_names(["0=negative", "1 = positive"])
    {'0': 'negative', '1': 'positive'}
    """
    names: dict[str, str] = {}
    for text in texts:
        label, equals, name = (part.strip() for part in text.partition("="))
        if not (label and equals and name):
            raise InvalidSetting(f"{brief(text)} is not of the form LABEL=NAME, such as 0=negative.")
        label = label_name(label)
        if label in names:
            raise InvalidSetting(f"Label {label!r} has two names, {names[label]!r} and {name!r}. Give one.")
        if name in names.values():
            raise InvalidSetting(f"Two labels have the name {name!r}. Give every class its own name.")
        names[label] = name
    return names


def as_labels_written(written: Iterable[Any], names: Mapping[str, str]) -> list[Any]:
    """Labels of a file, with the names of `parse_names` replaced by the labels that they stand for.

    Examples
    --------
    >>> as_labels_written(["0", "negative", None, "1"], {"0": "negative"})
    ['0', '0', None, '1']
    """
    labels = {label_name(name): label for label, name in names.items()}
    return [labels.get(one, one) for one in written]


@dataclass(frozen=True, slots=True, eq=False)
class ClassNames:
    """Classes and their names.

    Attributes
    ----------
    classes : (k,) labels, as a model or a file has them.
    names : (k,) names that answers show; equal to `classes` if no class was renamed.
    others : other names that files may use, such as those saved with a model: name -> name shown.
    """

    classes: LabelArray
    names: LabelArray
    others: Mapping[str, str]

    @classmethod
    def of(cls, classes: LabelArray, given: Mapping[str, str], saved: Mapping[str, str] | None = None) -> "ClassNames":
        """Names of classes from those given now and those saved with the model, as `parse_names` returns them.

        Examples
        --------
        >>> named = ClassNames.of(np.array([0, 1]), {"positive": "good"}, {"0": "negative", "1": "positive"})
        >>> named.names.tolist(), named.shown(["0", "positive", "good"])
        (['negative', 'good'], ['negative', 'good', 'good'])
        """
        labels = [label_name(label) for label in classes.tolist()]
        known = {label_name(label): name for label, name in (saved or {}).items()}
        shown = [known.get(label, label) for label in labels]
        new = list(shown)
        for label, name in given.items():
            place = (labels if label in labels else shown).index(label) if label in {*labels, *shown} else None
            if place is None:
                choices = ", ".join(map(repr, nearest_first(label, dict.fromkeys([*shown, *labels]))))
                raise InvalidSetting(f"Unknown class {label!r}. The classes are {choices}.")
            new[place] = name
        for place, name in enumerate(new):
            if name in new[:place] or name in labels[:place] + labels[place + 1 :]:
                raise InvalidSetting(f"{name!r} would name two classes. Give every class its own name.")
        if new == labels:
            return cls(classes, classes, {})
        others = {name: final for name, final in zip(shown, new, strict=True) if name not in labels}
        return cls(classes, np.array(new), others)

    def rename(self, fitted: Any) -> Any:
        """A fitted quantifier that shows the names; the same one if no class was renamed."""
        if self.names is self.classes:
            return fitted
        renamed = copy.copy(fitted)
        renamed.classes_ = self.names
        return renamed

    def with_labels(self, renamed: Any) -> Any:
        """A fitted quantifier that `rename` returned, with its labels again."""
        return ClassNames(self.names, self.classes, {}).rename(renamed)

    def shown(self, written: Iterable[Any]) -> list[Any]:
        """Labels of a file as answers show them; unknown ones, and None, are unchanged."""
        if self.names is self.classes:
            return list(written)
        labels = [label_name(label) for label in self.classes.tolist()]
        others = {label_name(name): shown for name, shown in self.others.items()}
        names = others | dict(zip(labels, self.names.tolist(), strict=True))
        return [names.get(one, one) for one in written]

    def find(self, wanted: str | None) -> str | None:
        """The name shown of a class, given its name or its label; raises `InvalidSetting` if it is unknown."""
        if wanted is None:
            return None
        (name,) = self.shown([label_name(wanted)])
        known = [label_name(one) for one in self.names.tolist()]
        if name not in known:
            classes = ", ".join(map(repr, nearest_first(wanted, known)))
            raise InvalidSetting(f"Unknown class {wanted!r}. Choose from {classes}.")
        return str(name)


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


def label_key(label: str) -> str:
    """What all spellings of a label have in common: case, Unicode form and separators are ignored.

    Examples
    --------
    >>> label_key("Negative "), label_key("NOT_SURE"), label_key("not-sure"), label_key("-1")
    ('negative', 'not sure', 'not sure', '-1')
    """
    folded = unicodedata.normalize("NFKC", label).casefold()
    if any(character.isalpha() for character in folded):  # in a number, "-" is a minus sign
        folded = SEPARATORS.sub(" ", folded)
    return unicodedata.normalize("NFKC", folded.strip())


def label_variants(labels: Iterable[Any]) -> list[tuple[str, ...]]:
    """Groups of labels that are probably one class, the most frequent spelling first in each.

    Examples
    --------
    >>> label_variants(["negative", "NEGATIVE", "Negative ", "negative", "positive"])
    [('negative', 'NEGATIVE', 'Negative ')]
    """
    groups: dict[str, list[str]] = {}
    for label in _by_frequency(labels):
        groups.setdefault(label_key(label), []).append(label)
    return [tuple(group) for _, group in sorted(groups.items()) if len(group) > 1]


def normalize_labels(labels: ArrayLike, *, known: Iterable[Any] = ()) -> LabelArray:
    """Labels with one spelling per class: the spelling in `known`, or else the most frequent one.

    Use it before `fit` if labels were typed by hand. Case, white space, hyphens, underscores and the Unicode form are
    ignored; labels that are not strings stay as they are.

    Parameters
    ----------
    labels : (n,) labels.
    known : classes whose spelling is right, such as `classes_` of a model.

    Returns
    -------
    ndarray
        (n,) labels.

    Examples
    --------
    >>> normalize_labels(["negative", "NEGATIVE", "Negative ", "negative", "positive"])
    array(['negative', 'negative', 'negative', 'negative', 'positive'], dtype='<U8')
    >>> normalize_labels(["not sure", "YES"], known=["Not-Sure", "yes"])
    array(['Not-Sure', 'yes'], dtype='<U8')
    """
    values = label_array(labels).tolist()
    spelling = spellings(values, known)
    return label_array([spelling.get(label, label) if isinstance(label, str) else label for label in values])


def spellings(labels: Sequence[Any], known: Iterable[Any] = ()) -> dict[str, str]:
    """The normalized spelling of every label: label -> label, see `normalize_labels`."""
    chosen = {label_key(label): label for label in known if isinstance(label, str)}
    found = _by_frequency(labels)
    for label in found:
        chosen.setdefault(label_key(label), label)
    return {label: chosen[label_key(label)] for label in found}


def describe_variants(labels: Iterable[Any]) -> str:
    """One sentence about labels that are probably one class, or an empty string.

    Examples
    --------
    >>> describe_variants(["yes", "Yes", "no"])
    "These labels look like one class: 'yes', 'Yes'."
    """
    found = label_variants(labels)
    if not found:
        return ""
    groups = "; ".join(", ".join(map(repr, group)) for group in found[:MAX_SHOWN])
    more = f" and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
    return f"These labels look like one class{' each' if len(found) > 1 else ''}: {groups}{more}."


def _by_frequency(labels: Iterable[Any]) -> list[str]:
    """The distinct labels that are strings, the most frequent first; ties in order of appearance."""
    counts = Counter(label for label in labels if isinstance(label, str))
    return sorted(counts, key=lambda label: -counts[label])
