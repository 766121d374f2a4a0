"""What instances are: texts, in any common container, or numbers; and which columns of a table are which."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.errors import InvalidData

TEXT_KINDS = "OUST"  # of NumPy's dtypes
ROUNDING = 1e-7  # a sum of posteriors that is off by less is one up to rounding, in single precision too


def is_text(X: Any) -> bool:
    """Whether X is one column of texts rather than a matrix of numbers.

    A table with one column of strings counts as texts, whatever library it comes from.

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
    if getattr(column, "ndim", 1) != 1 or _is_table(column):
        return False
    dtype = getattr(column, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", "O") in "biufcmM":
        return False
    return any(isinstance(item, str) for item in _values(column))


def check_texts(X: Any) -> list[str]:
    """The texts as a list. Raise `InvalidData` if X is one string, a matrix, or has values that are not strings."""
    if isinstance(X, str):
        raise InvalidData(f"X is one string, {X[:40]!r}. Pass a list of texts, even for one text.")
    column = _only_column(X)
    shape = getattr(column, "shape", ())
    if hasattr(column, "tocsr") or len(shape) > 1 or _is_table(column):
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
    """Raise `InvalidData` unless X looks like a matrix of numbers."""
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
    """The names of a table's columns, of pandas, polars or pyarrow; None for an array."""
    names = getattr(X, "column_names", None)
    if names is None:
        names = getattr(X, "columns", None)
    return None if names is None or callable(names) else list(names)


def check_posteriors(posteriors: ArrayLike, k: int) -> FloatArray:
    """Posteriors (n, k) whose rows sum to one. Raise `InvalidData` if a row is no probability vector.

    Rows that sum to one up to rounding stay as they are, so that values which are equal stay equal. Others are scaled.
    """
    values = np.asarray(posteriors, dtype=float)
    if values.ndim != 2 or values.shape[1] != k:
        raise InvalidData(
            f"posteriors need one column for each of the {k} classes; their shape is {values.shape}."
            + (" Stack [1 - p, p] for two classes." if values.ndim == 1 and k == 2 else "")
        )
    total = values @ np.ones(k)  # as `sum`, and faster over so short an axis
    # A NaN fails every comparison, so it is caught here too.
    wrong = ~(np.abs(total - 1) <= 1e-3)
    if values.size and not values.min() >= 0:
        wrong |= (values < 0).any(axis=1)
    if wrong.any():
        first = int(wrong.argmax())
        raise InvalidData(
            f"row {first} of the posteriors is {values[first].tolist()}, which is no probability vector: "
            f"values are at least 0 and sum to 1. {int(wrong.sum())} of {len(values)} rows are like that."
        )
    off = np.abs(total - 1) > ROUNDING
    return np.where(off[:, None], values / total[:, None], values)


def check_labels(y: ArrayLike, n: int) -> LabelArray:
    """Return the labels (n,) as an array, or say what keeps them from naming one class for every instance."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise InvalidData(f"y is one label for each instance, of shape (n,); its shape is {labels.shape}.")
    if len(labels) != n:
        raise InvalidData(f"X has {n} instances but y has {len(labels)} labels. Give one for each.")
    if n == 0:
        raise InvalidData("X and y are empty. Give labelled instances to learn from.")
    complete = labels.dtype.kind in "biuUS"  # the others can hold NaN, NaT or None
    missing = [] if complete else [at for at, label in enumerate(labels.tolist()) if _is_missing(label)]
    if missing:
        raise InvalidData(f"y has {len(missing)} missing labels, the first at position {missing[0]}. Drop those rows.")
    if labels.dtype.kind == "f" and (labels != np.round(labels)).any():
        raise InvalidData("y has fractions, so it looks like a measurement; labels name classes. Bin it first.")
    return labels


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA, which neither is nor is not itself
        return True


def posterior_columns(X: Any, classes: LabelArray) -> tuple[FloatArray, FloatArray]:
    """Posteriors (n, k) in the order of `classes`, and all other columns (n, e) in their own order.

    The columns of a table are matched to the classes by name. Columns of an array, and of a table whose columns are
    just numbered from 0, are taken by position: the first k are the posteriors, in the sorted order of the labels.

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
    """Where the column of every label is."""
    for wanted, found in ((labels, names), (list(map(str, labels)), list(map(str, names)))):
        if all(found.count(label) == 1 for label in wanted):
            return [found.index(label) for label in wanted]
    raise InvalidData(
        f"The columns of the posteriors are {names[:8]}, but the classes are {labels[:8]}. Name one column after each "
        "class, or pass an array with the columns in the order of the classes."
    )


def _floats(X: Any, names: list[Any] | None) -> FloatArray:
    try:
        if names is not None and not hasattr(X, "__array__"):  # pyarrow
            return np.column_stack([np.asarray(X.column(at), dtype=float) for at in range(len(names))])
        return np.asarray(X, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidData(f"Posteriors are numbers, but X has other values: {error}.") from error


def _only_column(X: Any) -> Any:
    """The column of a table or matrix that has one; everything else as it is."""
    names = column_names(X)
    if names is not None:
        if len(names) != 1:
            return X
        return X.column(0) if hasattr(X, "column_names") else X[names[0]]
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1 and X.dtype.kind in TEXT_KINDS:
        return X[:, 0]
    return X


def _is_table(X: Any) -> bool:
    return column_names(X) is not None


def _values(column: Any) -> Any:
    """The values of a column as Python objects: pyarrow's own would not be strings."""
    return column.to_pylist() if hasattr(column, "to_pylist") else column


def _short(value: Any) -> str:
    written = repr(value)
    return written if len(written) <= 40 else f"{written[:37]}..."


@dataclass(frozen=True, slots=True, eq=False)
class ReadInstances:
    """Instances that `Quantifier.read` has read: the quantifier that did so takes them wherever it takes instances.

    Attributes
    ----------
    inputs : (n, d) what it needs of every instance, such as posteriors.
    """

    inputs: FloatArray

    def __len__(self) -> int:
        return len(self.inputs)

    def take(self, indices: IntArray) -> "ReadInstances":
        """Those at the given positions."""
        return ReadInstances(self.inputs[indices])
