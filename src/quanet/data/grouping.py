"""Natural groups as bags: instances with the same value in a column."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import IntArray, LabelArray
from quanet.bags import Bags
from quanet.errors import InvalidBags
from quanet.simplex import classes_of, encode

if TYPE_CHECKING:
    import pandas as pd

EMPTY = "(empty)"  # the group of instances without a value


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ByGroup:
    """Bags by group: natural groups, such as periods, products or regions. Nothing is drawn at random.

    Parameters
    ----------
    groups : (n,) the group of every instance in the pool. Instances without a group (None, NaN, NaT) form the group
        "(empty)", which comes last.

    Examples
    --------
    >>> months = ["May", "May", "June", "May"]
    >>> bags = ByGroup(groups=months).draw(["bad", "good", "good", "good"], rng=0)
    >>> bags.labels, bags.sizes
    (array(['June', 'May'], dtype=object), array([1, 3]))
    """

    groups: ArrayLike

    def draw(self, y: ArrayLike, *, rng: Any, classes: ArrayLike | None = None) -> Bags:  # noqa: ARG002
        """One bag per group, sorted, with prevalences computed from the labels `y` (n,)."""
        names = classes_of(y) if classes is None else np.asarray(classes)
        codes = encode(y, names)
        owner, labels = self._owners()
        if len(codes) != len(owner):
            raise InvalidBags(f"Got {len(codes):,} labels but {len(owner):,} groups. Pass one of each per instance.")
        counts = np.bincount(owner * len(names) + codes, minlength=len(labels) * len(names))
        counts = counts.reshape(len(labels), len(names))
        members = _members(owner, len(labels))
        return Bags(members, counts / counts.sum(axis=1, keepdims=True), labels, pool_size=len(owner))

    def bags(self) -> Bags:
        """One bag per group, without prevalences, for prediction."""
        owner, labels = self._owners()
        return Bags(_members(owner, len(labels)), labels=labels, pool_size=len(owner))

    def _owners(self) -> tuple[IntArray, LabelArray]:
        """The position of every instance's group among the sorted groups, and the names of the groups."""
        import pandas as pd

        column = self._column()
        mixed = column.dtype == object
        owner, labels = pd.factorize(column, sort=not mixed)
        if not len(labels):
            raise InvalidBags("No instance has a group. Check the grouping column.")
        names, known = pd.Index(labels).tolist(), np.asarray(labels)
        if mixed:
            names = [label.value if isinstance(label, _Truth) else label for label in names]
            order = _sorted_places(names)
            names, owner = [names[at] for at in order], np.where(owner < 0, -1, np.argsort(order)[owner])
            known = _objects(names)
        if (owner < 0).any():
            names = [int(name) if isinstance(name, float) and name.is_integer() else name for name in names]
            names = names if names[-1] == EMPTY else [*names, EMPTY]
            known, owner = _objects(names), np.where(owner < 0, len(names) - 1, owner)
        return owner, known

    def _column(self) -> "pd.Series[Any]":
        """The groups as one column that distinguishes True from 1."""
        import pandas as pd

        groups: Any = self.groups
        if isinstance(groups, list | tuple):
            groups = _objects(groups) if np.ndim(groups[:1]) == 1 else pd.DataFrame(groups)
        shape: tuple[int, ...] = getattr(groups, "shape", ())
        if len(shape) > 1 and shape[1] != 1:
            raise InvalidBags(
                f"groups has {shape[1]} columns, but every instance needs one group. Join the columns first, such as "
                "table['product'] + ', ' + table['month']."
            )
        column = pd.DataFrame(groups).iloc[:, 0] if len(shape) > 1 else pd.Series(groups)
        if column.dtype == object and any(isinstance(value, bool | np.bool_) for value in column):
            column = column.map(lambda value: _Truth(bool(value)) if isinstance(value, bool | np.bool_) else value)
        return column


@dataclass(frozen=True, slots=True)
class _Truth:
    """True or False, which pandas would treat as 1 and 0."""

    value: bool


def _objects(values: Sequence[Any]) -> LabelArray:
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array


def _sorted_places(names: list[Any]) -> IntArray:
    """Positions of names in sorted order: numbers before strings, and "(empty)" last."""
    places = range(len(names))
    empty = [isinstance(name, str) and name == EMPTY for name in names]
    try:
        order = sorted(places, key=lambda at: (empty[at], names[at]))
    except TypeError:
        kinds = ["" if isinstance(name, int | float) else type(name).__name__ for name in names]
        order = sorted(places, key=lambda at: (empty[at], kinds[at], names[at] if kinds[at] == "" else str(names[at])))
    return np.array(order, dtype=np.intp)


def _members(owner: IntArray, b: int) -> list[IntArray]:
    return np.split(np.argsort(owner, kind="stable"), np.cumsum(np.bincount(owner, minlength=b))[:-1])
