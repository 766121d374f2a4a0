"""Folds: which instances a classifier learns from, and which are held out. Copies of an instance stay together."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    check_cv,
)
from sklearn.model_selection._split import GroupsConsumerMixin

from quanet.arrays import IntArray, LabelArray
from quanet.duplicates import Distinct, find_distinct
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning
from quanet.simplex import classes_of, count, encode

# Splitters that look at nothing but the number and the classes of instances.
SPLITTERS = {KFold, LeaveOneOut, RepeatedKFold, RepeatedStratifiedKFold, ShuffleSplit, StratifiedKFold}
SPLITTERS |= {StratifiedShuffleSplit}


def make_folds(X: Any, codes: IntArray, classes: LabelArray, cv: Any) -> list[tuple[IntArray, IntArray]]:
    """Training and held-out instances of every fold; `cv` as in `AggregativeQuantifier`.

    Copies of an instance (`quanet.duplicates`) are in the same fold.
    """
    return split_in_folds(codes, classes, cv, find_distinct(X))


def split_in_folds(
    codes: IntArray, classes: LabelArray, cv: Any, distinct: Distinct | None
) -> list[tuple[IntArray, IntArray]]:
    """As `make_folds`, where the distinct instances are known; None where all are different."""
    distinct = _enough(distinct, codes, classes)
    if distinct is None:
        return _split(codes, classes, cv, None)
    if not _splits_by_class(cv):
        return _split(codes, classes, cv, distinct.owner)
    # Each instance once, so that folds are what they would be without the copies; these then follow.
    folds = _split(distinct.representatives(codes), classes, cv, None)
    parts = [np.zeros((2, len(distinct.first)), dtype=bool) for _ in folds]
    for part, fold in zip(parts, folds, strict=True):
        for side, chosen in zip(part, fold, strict=True):
            side[chosen] = True
    seen, held = ([np.flatnonzero(part[side][distinct.owner]) for part in parts] for side in (0, 1))
    return list(zip(seen, held, strict=True))


def _enough(distinct: Distinct | None, codes: IntArray, classes: LabelArray) -> Distinct | None:
    """Distinct instances; a class that has one only, in several copies, is split between these."""
    if distinct is None:
        return None
    found = distinct.representatives(codes)
    single = np.flatnonzero((count(found, len(classes)) < 2) & (count(codes, len(classes)) >= 2))
    if not len(single):
        return distinct
    warnings.warn(
        f"All instances of class {classes.tolist()[single[0]]!r} are copies of one. They are split between the folds, "
        "so the errors of this class look smaller than they are. Add different instances of it.",
        QuanetWarning,
        stacklevel=5,
    )
    return distinct.without(np.unique(distinct.owner[np.isin(codes, single)]))


def _splits_by_class(cv: Any) -> bool:
    """Whether `cv` looks at the number and the classes of instances only, so that it can split the distinct ones."""
    return isinstance(cv, int | float | np.integer) or type(cv) in SPLITTERS


def _split(codes: IntArray, classes: LabelArray, cv: Any, groups: IntArray | None) -> list[tuple[IntArray, IntArray]]:
    """Folds of instances; `groups` (n,) are their copies where `cv` is a splitter that may not keep them together."""
    counts = count(codes, len(classes))
    rarest = int(counts.argmin())
    name = classes.tolist()[rarest]
    if counts[rarest] < 2:
        raise InvalidData(
            f"class {name!r} has one instance, so a classifier cannot be fitted without it. "
            "Add instances, or give a fitted classifier: FrozenEstimator(classifier)."
        )
    if isinstance(cv, float):
        if not 0 < cv < 1:
            raise InvalidSetting(f"cv as a held-out share lies between 0 and 1; got {cv}.")
        splitter: Any = StratifiedShuffleSplit(n_splits=1, test_size=cv, random_state=0)
    elif isinstance(cv, int | np.integer):
        if cv < 2:
            raise InvalidSetting(f"cv needs at least 2 folds, or a share between 0 and 1; got {cv}.")
        if counts[rarest] < cv:
            warnings.warn(
                f"class {name!r} has {counts[rarest]} different instances, fewer than the {cv} folds; "
                f"{counts[rarest]} folds are used.",
                QuanetWarning,
                stacklevel=5,
            )
        # Not shuffled: neighbours in a file, such as reviews of one day or author, stay in one fold.
        splitter = StratifiedKFold(min(int(cv), int(counts[rarest])))
    else:
        splitter = cv
    wanted = np.arange(len(codes)) if groups is None else groups
    try:
        splitter = check_cv(splitter)
        folds = list(splitter.split(np.zeros(len(codes)), codes, wanted if _takes_groups(splitter) else None))
    except ValueError as error:
        raise InvalidSetting(f"cv={cv!r} cannot split {len(codes)} instances: {error}") from error
    if not folds:
        raise InvalidSetting(f"cv={cv!r} makes no folds. Give their number, a share between 0 and 1, or a splitter.")
    if groups is not None:
        _check_apart(folds, groups, cv)
    return folds


def _takes_groups(splitter: Any) -> bool:
    return isinstance(splitter, GroupsConsumerMixin)


def _check_apart(folds: list[tuple[IntArray, IntArray]], groups: IntArray, cv: Any) -> None:
    """Warn if a splitter of the caller's own puts copies of an instance on both sides of a fold."""
    leaked = sum(int(np.isin(groups[held], groups[seen]).sum()) for seen, held in folds)
    if leaked:
        warnings.warn(
            f"cv={cv} holds out {leaked:,} instances whose copies are in the training part of the same fold, so errors "
            "look smaller than they are. Remove the copies, or use StratifiedGroupKFold, which keeps them together.",
            QuanetWarning,
            stacklevel=5,
        )


class Folds(BaseEstimator):
    """`make_folds` as a scikit-learn splitter, for its own searches.

    Parameters
    ----------
    cv : a number of folds, a share or a splitter, see `AggregativeQuantifier`.

    Examples
    --------
    >>> texts, labels = ["good", "bad", "Good ", "poor"], ["yes", "no", "yes", "no"]
    >>> [held.tolist() for _, held in Folds(2).split(texts + ["fine"], labels + ["yes"])]
    [[0, 1, 2], [3, 4]]
    """

    def __init__(self, cv: Any = 5) -> None:
        self.cv = cv

    def split(self, X: Any, y: ArrayLike, groups: Any = None) -> Iterator[tuple[IntArray, IntArray]]:  # noqa: ARG002
        """Positions of the training and the held-out instances of every fold."""
        classes = classes_of(y)
        yield from make_folds(X, encode(y, classes), classes, self.cv)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """How many folds there are."""
        return len(list(self.split(X, y, groups)))
