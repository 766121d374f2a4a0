"""Split instances into folds for cross-fitting. Copies of an instance stay in the same fold."""

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
from quanet.data.duplicates import Distinct, canonical_order, find_distinct, take_instances
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning
from quanet.parameters import between, whole
from quanet.simplex import classes_of, count, encode

# Splitters that use only the number and the classes of instances.
SPLITTERS = {KFold, LeaveOneOut, RepeatedKFold, RepeatedStratifiedKFold, ShuffleSplit, StratifiedKFold}
SPLITTERS |= {StratifiedShuffleSplit}
FRACTION = between(0, 1)  # held out


def make_folds(X: Any, codes: IntArray, classes: LabelArray, cv: Any) -> list[tuple[IntArray, IntArray]]:
    """Training and held-out positions of each fold; `cv` as in `AggregativeQuantifier`.

    Copies of an instance (`quanet.data.duplicates`) are in the same fold.
    """
    return split_in_folds(codes, classes, cv, find_distinct(X))


def split_in_folds(
    codes: IntArray, classes: LabelArray, cv: Any, distinct: Distinct | None
) -> list[tuple[IntArray, IntArray]]:
    """As `make_folds`, with known distinct instances; None if there are no copies."""
    distinct = _splittable(distinct, codes, classes)
    if distinct is None:
        return _split(codes, classes, cv, None)
    if not _splits_by_class(cv):
        return _split(codes, classes, cv, distinct.owner)
    # Split each instance once, so that the folds are the same as without copies; then add the copies.
    folds = _split(distinct.representatives(codes), classes, cv, None)
    parts = [np.zeros((2, len(distinct.first)), dtype=bool) for _ in folds]
    for part, fold in zip(parts, folds, strict=True):
        for side, chosen in zip(part, fold, strict=True):
            side[chosen] = True
    seen, held_out = ([np.flatnonzero(part[side][distinct.owner]) for part in parts] for side in (0, 1))
    return list(zip(seen, held_out, strict=True))


def is_number(cv: Any) -> bool:
    """Whether `cv` is a number of folds or a fraction. The order of the instances does not matter then."""
    return isinstance(cv, int | float | np.number)


def _splittable(distinct: Distinct | None, codes: IntArray, classes: LabelArray) -> Distinct | None:
    """Distinct instances, except that the copies are split if a class consists of copies of one instance."""
    if distinct is None:
        return None
    found = distinct.representatives(codes)
    single = np.flatnonzero((count(found, len(classes)) < 2) & (count(codes, len(classes)) >= 2))
    if not len(single):
        return distinct
    warnings.warn(
        f"All instances of class {classes.tolist()[single[0]]!r} are copies of one. The folds share these copies, so "
        "errors of this class are underestimated. Add different instances of it.",
        QuanetWarning,
        stacklevel=5,
    )
    return distinct.without(np.unique(distinct.owner[np.isin(codes, single)]))


def _splits_by_class(cv: Any) -> bool:
    """Whether `cv` uses only the number and the classes of instances, so that it can split the distinct ones."""
    return is_number(cv) or type(cv) in SPLITTERS


def _split(codes: IntArray, classes: LabelArray, cv: Any, groups: IntArray | None) -> list[tuple[IntArray, IntArray]]:
    """Folds of instances; `groups` (n,) identifies copies if the splitter `cv` may separate them."""
    counts = count(codes, len(classes))
    rarest = int(counts.argmin())
    name = classes.tolist()[rarest]
    if counts[rarest] < 2:
        raise InvalidData(
            f"Class {name!r} has only one instance, which cannot be both fitted to and held out. "
            "Add instances, or pass a fitted classifier: FrozenEstimator(classifier)."
        )
    if isinstance(cv, float):
        FRACTION.check("cv", cv)
        splitter: Any = StratifiedShuffleSplit(n_splits=1, test_size=cv, random_state=0)
    elif isinstance(cv, int | np.integer):
        (whole(2) | FRACTION).check("cv", cv)
        if counts[rarest] < cv:
            warnings.warn(
                f"Class {name!r} has {counts[rarest]} different instances, fewer than the {cv} folds. "
                f"Using {counts[rarest]} folds.",
                QuanetWarning,
                stacklevel=5,
            )
        # Not shuffled: `Quantifier.fit` has put the instances into an order that is related to nothing.
        splitter = StratifiedKFold(min(int(cv), int(counts[rarest])))
    else:
        splitter = cv
    wanted = np.arange(len(codes)) if groups is None else groups
    try:
        splitter = check_cv(splitter)
        folds = list(splitter.split(np.zeros(len(codes)), codes, wanted if _uses_groups(splitter) else None))
    except ValueError as error:
        raise InvalidSetting(f"cv={cv!r} cannot split {len(codes)} instances: {error}") from error
    if not folds:
        raise InvalidSetting(f"cv={cv!r} returns no folds. Pass a number, a fraction between 0 and 1, or a splitter.")
    if groups is not None:
        _check_apart(folds, groups, cv)
    return folds


def _uses_groups(splitter: Any) -> bool:
    return isinstance(splitter, GroupsConsumerMixin)


def _check_apart(folds: list[tuple[IntArray, IntArray]], groups: IntArray, cv: Any) -> None:
    """Warn if the caller's splitter separates copies of an instance."""
    leaked = sum(int(np.isin(groups[held_out], groups[seen]).sum()) for seen, held_out in folds)
    if leaked:
        warnings.warn(
            f"cv={cv} holds out {leaked:,} instances whose copies are in the training part of the same fold, so errors "
            "are underestimated. Remove the copies, or use StratifiedGroupKFold, which keeps them together.",
            QuanetWarning,
            stacklevel=5,
        )


class Folds(BaseEstimator):
    """`make_folds` as a scikit-learn splitter. The order of the instances does not decide which fold they are in.

    Parameters
    ----------
    cv : a number of folds, a fraction or a splitter, see `AggregativeQuantifier`.

    Examples
    --------
    >>> texts, labels = ["good", "bad", "Good ", "poor"], ["yes", "no", "yes", "no"]
    >>> [held.tolist() for _, held in Folds(2).split(texts + ["fine"], labels + ["yes"])]
    [[0, 1, 2], [3, 4]]
    """

    def __init__(self, cv: Any = 5) -> None:
        self.cv = cv

    def split(self, X: Any, y: ArrayLike, groups: Any = None) -> Iterator[tuple[IntArray, IntArray]]:  # noqa: ARG002
        """Positions of the training and the held-out instances of each fold."""
        classes = classes_of(y)
        codes = encode(y, classes)
        order = canonical_order(X, codes) if is_number(self.cv) else None
        if order is None:
            order = np.arange(len(codes))
        for seen, held_out in make_folds(take_instances(X, order), codes[order], classes, self.cv):
            yield np.sort(order[seen]), np.sort(order[held_out])

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds."""
        return len(list(self.split(X, y, groups)))
