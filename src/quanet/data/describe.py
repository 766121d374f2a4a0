"""Summarize a dataset as plain data: counts, prevalences, lengths, dates, first texts."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from quanet.arrays import FloatArray
from quanet.data.dataset import Dataset
from quanet.data.lequa import BagFiles
from quanet.simplex import count, encode


@dataclass(frozen=True, kw_only=True, slots=True)
class Description:
    """A summary of a part of a dataset.

    Attributes
    ----------
    instances : number of instances.
    counts : instances per class.
    width : number of features; None for texts.
    words : minimum, quartiles and maximum of the words per text (5,); None for numbers.
    repeated : texts that equal an earlier one; None for numbers.
    dates : the first and the last.
    first : the first instances, with their labels.
    """

    instances: int
    counts: dict[Any, int]
    width: int | None = None
    words: FloatArray | None = None
    repeated: int | None = None
    dates: tuple[str, str] | None = None
    first: tuple[tuple[Any, Any], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class BagsDescription:
    """A summary of bags in files: their number, and the minimum, mean and maximum prevalence of each class (3, k)."""

    bags: int
    prevalences: FloatArray | None


def describe(data: Dataset, *, first: int = 3) -> Description:
    """Summarize labelled instances, with the first few of them.

    Examples
    --------
    >>> found = describe(Dataset(["good film", "bad", "bad"], ["pos", "neg", "neg"]), first=1)
    >>> found.counts, found.words.tolist(), found.repeated, found.first
    ({'neg': 2, 'pos': 1}, [1.0, 1.0, 1.0, 1.5, 2.0], 1, (('pos', 'good film'),))
    """
    classes = data.classes
    counts = count(encode(data.y, classes), len(classes)).tolist()
    is_text = isinstance(data.X[0], str)
    return Description(
        instances=len(data),
        counts=dict(zip(classes.tolist(), counts, strict=True)),
        width=None if is_text else data.X.shape[1],
        words=np.quantile([len(text.split()) for text in data.X], np.linspace(0, 1, 5)) if is_text else None,
        repeated=len(data) - len(set(data.X)) if is_text else None,
        dates=None if data.dates is None else (str(min(data.dates)), str(max(data.dates))),
        first=tuple(zip(data.y[:first].tolist(), data.X[:first], strict=True)),
    )


def describe_bags(bags: BagFiles) -> BagsDescription:
    """Summarize bags in files, without reading the bags."""
    known = bags.k is not None
    values = bags.prevalences if known else None
    return BagsDescription(
        bags=len(bags),
        prevalences=None if values is None else np.stack([values.min(axis=0), values.mean(axis=0), values.max(axis=0)]),
    )
