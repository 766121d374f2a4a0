"""Instances, labels and posteriors: read from columns of a table, and checked; texts or numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray
from quanet.data.columns import is_missing, numbers_of
from quanet.errors import InvalidData, brief
from quanet.simplex import label_array

if TYPE_CHECKING:
    import pandas as pd

    from quanet.data.streams import TableSource

TEXT_KINDS = "OUST"  # kinds of NumPy dtypes that may contain strings
ROUNDING = 1e-7  # a sum of posteriors may differ from 1 by this much, the rounding error of single precision


def is_text(X: Any) -> bool:
    """Whether X is one column of texts rather than a matrix of numbers.

    A table of any library with one column of strings counts as texts.

    Examples
    --------
    >>> is_text(["good", "bad"]), is_text(np.array([["good"], ["bad"]])), is_text(np.zeros((2, 1)))
    (True, True, False)
    """
    if isinstance(X, str):
        return True
    if hasattr(X, "tocsr"):
        return False
    column = _only_column(X)
    if getattr(column, "ndim", 1) != 1 or column_names(column) is not None:
        return False
    dtype = getattr(column, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", "O") in "biufcmM":
        return False
    return any(isinstance(item, str) for item in _values(column))


def check_texts(X: Any) -> list[str]:
    """The texts as a list. Raises `InvalidData` if X is one string, a matrix, or contains values other than strings."""
    if isinstance(X, str):
        raise InvalidData(f"X is one string, {X[:40]!r}. Pass a list of texts, even for one text.")
    column = _only_column(X)
    shape = getattr(column, "shape", ())
    if hasattr(column, "tocsr") or len(shape) > 1 or column_names(column) is not None:
        raise InvalidData(f"Texts are needed, but X is a matrix of shape {tuple(shape)}. Pass a list of strings.")
    texts = list(_values(column))
    wrong = [position for position, text in enumerate(texts) if not isinstance(text, str)]
    if len(wrong) == len(texts) and texts:
        raise InvalidData(
            f"Texts are needed, but none of the {len(texts):,} values of X is a string (the first is "
            f"{_short(texts[0])}). Pass a list of strings."
        )
    if wrong:
        raise InvalidData(
            f"{len(wrong):,} of {len(texts):,} texts {'is not a string' if len(wrong) == 1 else 'are not strings'} "
            f"(first at index {wrong[0]}: {_short(texts[wrong[0]])}). Drop these rows or replace them with ''."
        )
    return texts


def check_matrix(X: Any) -> None:
    """Raise `InvalidData` if X is one-dimensional or contains strings."""
    if hasattr(X, "tocsr"):
        return
    values = np.asarray(X)
    if values.ndim == 1:
        raise InvalidData(
            "X is one-dimensional but does not contain strings. Pass a list of texts or a matrix of numbers (n, d)."
        )
    if values.dtype.kind in TEXT_KINDS:
        texts = [at for at in range(values.shape[1]) if any(isinstance(value, str) for value in values[:, at])]
        if texts:
            names = column_names(X) or list(range(values.shape[1]))
            raise InvalidData(
                f"X has {values.shape[1]} columns, and {names[texts[0]]!r} contains strings. Pass one column of texts, "
                "numbers only, or a classifier that reads such tables."
            )


def column_names(X: Any) -> list[Any] | None:
    """The column names of a pandas, polars or pyarrow table; None for an array."""
    names = getattr(X, "column_names", None)
    if names is None:
        names = getattr(X, "columns", None)
    return None if names is None or callable(names) else list(names)


def check_posteriors(posteriors: ArrayLike, k: int) -> FloatArray:
    """Posteriors (n, k) whose rows sum to 1. Raises `InvalidData` if a row is not a probability vector.

    Rows that sum to 1 up to rounding are unchanged, so that equal values stay equal. Other rows are scaled.
    """
    values = np.asarray(posteriors, dtype=float)
    if values.ndim != 2 or values.shape[1] != k:
        raise InvalidData(
            f"Posteriors need one column per class ({k}); their shape is {values.shape}."
            + (" For two classes, stack [1 - p, p]." if values.ndim == 1 and k == 2 else "")
        )
    total = values @ np.ones(k)  # faster than `sum` over such a short axis
    # A NaN fails every comparison, so this finds it, too.
    wrong = ~(np.abs(total - 1) <= 1e-3)
    if values.size and not values.min() >= 0:
        wrong |= (values < 0).any(axis=1)
    if wrong.any():
        first = int(wrong.argmax())
        raise InvalidData(
            f"{int(wrong.sum())} of {len(values)} rows of the posteriors are not probability vectors (first at index "
            f"{first}: {values[first].tolist()}). Values must be at least 0 and sum to 1."
        )
    off = np.abs(total - 1) > ROUNDING
    return np.where(off[:, None], values / total[:, None], values)


def check_labels(y: ArrayLike, n: int) -> LabelArray:
    """The labels (n,) as an array. Raises `InvalidData` unless each of the n instances has one class."""
    labels = label_array(y)
    if labels.ndim != 1:
        raise InvalidData(f"y must have shape (n,), one label per instance; its shape is {labels.shape}.")
    if len(labels) != n:
        raise InvalidData(f"X has {n} instances but y has {len(labels)} labels. Pass one label per instance.")
    if n == 0:
        raise InvalidData("X and y are empty. Pass labelled instances.")
    complete = labels.dtype.kind in "biuUS"  # other dtypes can contain NaN, NaT or None
    missing = [] if complete else [at for at, label in enumerate(labels.tolist()) if has_no_value(label)]
    if missing:
        raise InvalidData(f"y has {len(missing)} missing labels (first at index {missing[0]}). Drop these rows.")
    if labels.dtype.kind == "f" and (labels != np.round(labels)).any():
        raise InvalidData("y contains fractions, but labels are classes. Bin continuous values first.")
    return labels


def has_no_value(label: Any) -> bool:
    """Whether a label or a name is None, NaN or NA."""
    try:
        return label is None or bool(label != label)
    except TypeError:  # comparisons with pandas.NA are neither true nor false
        return True


def posterior_columns(X: Any, classes: LabelArray) -> tuple[FloatArray, FloatArray]:
    """Posteriors (n, k) in the order of `classes`, and all other columns (n, e) in their own order.

    The columns of a table are matched to the classes by name. Columns of an array, and of a table whose columns are
    numbered from 0, are matched by position: the first k are the posteriors, in the order of the sorted labels.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"pos": [0.8], "neg": [0.2]})
    >>> posterior_columns(table, np.array(["neg", "pos"]))[0]
    array([[0.2, 0.8]])
    """
    names, k = column_names(X), len(classes)
    values = _floats(X, names)
    if values.ndim != 2:
        return values, np.empty((len(values), 0))
    if names is None or names == list(range(len(names))):
        return values[:, :k], values[:, k:]
    places = _places(names, classes.tolist())
    others = [at for at in range(len(names)) if at not in places]
    return values[:, places], values[:, others]


def _places(names: list[Any], labels: list[Any]) -> list[int]:
    """The position of each label's column."""
    for wanted, found in ((labels, names), (list(map(str, labels)), list(map(str, names)))):
        if all(found.count(label) == 1 for label in wanted):
            return [found.index(label) for label in wanted]
    raise InvalidData(
        f"The columns of the posteriors are {names[:8]}, but the classes are {labels[:8]}. Name one column after each "
        "class, or pass an array with columns in the order of the classes."
    )


def _floats(X: Any, names: list[Any] | None) -> FloatArray:
    try:
        if names is not None and not hasattr(X, "__array__"):  # pyarrow
            return np.column_stack([np.asarray(X.column(at), dtype=float) for at in range(len(names))])
        return np.asarray(X, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidData(f"Posteriors must be numbers: {error}.") from error


def _only_column(X: Any) -> Any:
    """The column of a table or matrix with one column; everything else unchanged."""
    names = column_names(X)
    if names is not None:
        if len(names) != 1:
            return X
        return X.column(0) if hasattr(X, "column_names") else X[names[0]]
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1 and X.dtype.kind in TEXT_KINDS:
        return X[:, 0]
    return X


def _values(column: Any) -> Any:
    """The values of a column as Python objects; those of pyarrow are not strings."""
    return column.to_pylist() if hasattr(column, "to_pylist") else column


def _short(value: Any) -> str:
    written = repr(value)
    return written if len(written) <= 40 else f"{written[:37]}..."


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What `Quantifier.read` returns: every method of that quantifier that accepts instances accepts it, too.

    Attributes
    ----------
    values : (n, d) what the classifier says about each instance, such as posteriors.
    descriptions : (n, e) what each instance is about, to measure drift, or their sums by group
        (`quanet.drift.profile.GroupDescriptions`); None if unknown.
    hashes : (n,) of the content of each instance, 0 if unknown (`quanet.data.copies.content_hashes`), or those by group
        (`GroupHashes`); None if instances are posteriors, which do not identify them.

    Examples
    --------
    >>> from quanet import CC
    >>> quantifier = CC("precomputed").fit([[0.9, 0.1], [0.2, 0.8]], ["no", "yes"])
    >>> inputs = quantifier.read([[0.7, 0.3], [0.4, 0.6]])  # once; `predict`, `diagnose` and others accept the result
    >>> len(inputs), quantifier.predict(inputs)
    (2, array([0.5, 0.5]))
    """

    values: FloatArray
    descriptions: Any = None
    hashes: Any = None

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.array(self.values, dtype=dtype, copy=copy)

    def take(self, indices: IntArray) -> "Inputs":
        """The inputs at these positions."""
        described = None if self.descriptions is None else self.descriptions[indices]
        return Inputs(self.values[indices], described, None if self.hashes is None else self.hashes[indices])

    @classmethod
    def joined(cls, parts: Sequence["Inputs"]) -> "Inputs":
        """The inputs of several parts, one after the other."""
        several = ([part.descriptions for part in parts], [part.hashes for part in parts])
        known = [None if any(one is None for one in column) else np.concatenate(column) for column in several]
        return cls(np.concatenate([part.values for part in parts]), *known)


@dataclass(frozen=True, slots=True)
class InputColumns:
    """Input columns of a model: a text column, or numeric columns.

    Attributes
    ----------
    text : the text column, or None.
    features : numeric columns, if there is no text column.
    """

    text: str | None = None
    features: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [self.text] if self.text is not None else list(self.features)

    @property
    def lacking(self) -> str:
        """Why a row is skipped."""
        return "no text" if self.text is not None else "a number is missing"

    def of(self, table: "pd.DataFrame", source: "TableSource") -> tuple[Any, BoolArray]:
        """Instances of a table, and which rows have one (n,)."""
        if self.text is not None:
            return _texts(table[self.text], self.text, source)
        columns = [_numbers(table[name], name, source) for name in self.features]
        matrix: FloatArray = np.column_stack(columns)
        there = np.asarray(np.isfinite(matrix).all(axis=1))
        return matrix[there], there


def _texts(cells: "pd.Series[Any]", column: str, source: "TableSource") -> tuple[list[str], BoolArray]:
    values = cells.tolist()
    for row, value in zip(cells.index, values, strict=True):
        if value is not None and not isinstance(value, str):
            raise InvalidData(
                f"{source.place(row)}: column {column!r} contains {brief(value)}, which is not text. "
                "Choose the text column with --text."
            )
    there = np.array([value is not None and not value.isspace() for value in values], dtype=bool)
    return [value for value, kept in zip(values, there, strict=True) if kept], there


def _numbers(cells: "pd.Series[Any]", column: str, source: "TableSource") -> FloatArray:
    found = np.full(len(cells), np.nan)
    for at, (value, number) in enumerate(zip(cells, numbers_of(cells, source), strict=True)):
        if number is None and not is_missing(value):
            raise InvalidData(
                f"{source.place(cells.index[at])}: {brief(value)} in column {column!r} is not a number. "
                "Correct it, or leave the column out of --features."
            )
        found[at] = np.nan if number is None else number
    return found
