"""Labelled instances, and how to split them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.data.duplicates import find_distinct, split_distinct
from quanet.errors import InvalidData
from quanet.parameters import between
from quanet.simplex import classes_of, encode, prevalence_of


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Labelled instances, with a name and optional dates; `load_dataset` returns them.

    Parameters
    ----------
    X : n instances: texts, or a matrix of numbers (n, d).
    y : (n,) labels.
    name : for messages and reports.
    dates : (n,) dates as strings, such as "2005-08"; None if unknown.

    Examples
    --------
    >>> data = Dataset(["good", "bad", "fine", "poor"], ["pos", "neg", "pos", "neg"], "four words")
    >>> len(data), data.classes, data.prevalence
    (4, array(['neg', 'pos'], dtype='<U3'), array([0.5, 0.5]))
    >>> train, test = data.split(0.5, rng=0)
    >>> train.y.tolist(), test.y.tolist()
    (['pos', 'neg'], ['pos', 'neg'])
    """

    X: Any
    y: LabelArray
    name: str = ""
    dates: LabelArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "y", np.asarray(self.y))
        n = _length(self.X)
        if n != len(self.y):
            raise InvalidData(f"X has {n} instances but y has {len(self.y)} labels. They must match.")
        if self.dates is not None:
            object.__setattr__(self, "dates", np.asarray(self.dates))
            if len(self.dates) != len(self.y):
                raise InvalidData(f"Got {len(self.y)} instances but {len(self.dates)} dates. They must match.")

    def __len__(self) -> int:
        return len(self.y)

    @property
    def classes(self) -> LabelArray:
        """The distinct labels, sorted."""
        return classes_of(self.y)

    @property
    def prevalence(self) -> FloatArray:
        """The prevalence of each class, in the order of `classes`."""
        return prevalence_of(self.y, self.classes)

    def take(self, indices: IntArray) -> "Dataset":
        """The instances at the given positions."""
        from sklearn.utils import _safe_indexing  # here, because the import takes a second or two

        dates = None if self.dates is None else self.dates[indices]
        return Dataset(_safe_indexing(self.X, indices), self.y[indices], self.name, dates)

    def without(self, *labels: Any) -> "Dataset":
        """The instances of all other classes."""
        return self.take(np.flatnonzero([label not in labels for label in self.y.tolist()]))

    def split(self, share: float, *, rng: np.random.Generator | int) -> tuple["Dataset", "Dataset"]:
        """Split at random: the first part gets `share` of each class. Both parts keep the order.

        Copies of an instance (`quanet.data.duplicates`) stay in the same part.
        """
        first, second = self.split_positions(share, rng=rng)
        return self.take(first), self.take(second)

    def split_positions(self, share: float, *, rng: np.random.Generator | int) -> tuple[IntArray, IntArray]:
        """Positions of the instances in the two parts of `split`."""
        between(0, 1).check("share", share)
        rng = np.random.default_rng(rng)

        def in_first(codes: IntArray) -> IntArray:
            chosen = np.zeros(len(codes), dtype=np.intp)
            for c in range(len(self.classes)):
                members = rng.permutation(np.flatnonzero(codes == c))
                chosen[members[: round(share * len(members))]] = 1
            return chosen

        first = split_distinct(self.X, encode(self.y, self.classes), in_first)
        return np.flatnonzero(first == 1), np.flatnonzero(first == 0)

    def without_duplicates(self) -> "Dataset":
        """Drop repeated instances (`quanet.data.duplicates`) and keep the first of each."""
        distinct = find_distinct(self.X)
        return self if distinct is None else self.take(distinct.first)


def _length(X: Any) -> int:
    """Number of instances."""
    if isinstance(X, list):
        return len(X)
    from sklearn.utils.validation import _num_samples

    return int(_num_samples(X))
