"""Which class a report shows first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.errors import InvalidSetting

if TYPE_CHECKING:
    from quanet.arrays import IntArray, LabelArray


def position_of(classes: LabelArray, focus: Any) -> int | None:
    """Position of a class; without a name, the second of two classes, and None for more."""
    if focus is None:
        return 1 if len(classes) == 2 else None
    names = [str(name) for name in classes.tolist()]
    if str(focus) not in names:
        raise InvalidSetting(f"Unknown class {focus!r}. Choose from {', '.join(map(repr, names))}.")
    return names.index(str(focus))


def focus_first(order: IntArray, classes: LabelArray, focus: Any) -> IntArray:
    """Positions of classes, that of the class `focus` moved to the front; the same order without a name.

    Examples
    --------
    >>> focus_first(np.array([2, 0, 1]), np.array(["bad", "good", "ok"]), "good")
    array([1, 2, 0])
    """
    at = None if focus is None else position_of(classes, focus)
    return order if at is None else np.array([at, *(c for c in order.tolist() if c != at)])
