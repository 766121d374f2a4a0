"""Classes in order: which comes before which, and how smooth prevalences are along that order."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.errors import InvalidData, InvalidSetting


def ladder_of(classes: LabelArray, order: Sequence[Any] | None, name: str, call: str | None = None) -> IntArray:
    """Positions of the classes from the lowest to the highest: (k,).

    Numbers and booleans have an order of their own; other labels need `order`. A missing one is an error that shows
    how to pass it, in ``call`` or to the constructor of a method of that name.

    Examples
    --------
    >>> ladder_of(np.array(["bad", "good", "ok"]), ["bad", "ok", "good"], "OACC")
    array([0, 2, 1])
    """
    known = classes.tolist()
    if order is None:
        if classes.dtype.kind not in "biuf":
            raise InvalidData(
                f"{name} needs ordered classes, and the order of {known[:4]} is not known. "
                f"Pass it from the lowest to the highest: {call or name + '('}order={known[:4]})."
            )
        return np.arange(len(known))
    given = list(order)
    if sorted(map(str, given)) != sorted(map(str, known)):
        raise InvalidSetting(f"order is {given}, but the classes are {known}. List each class once.")
    return np.array([known.index(one) for one in given])


def second_differences(k: int) -> FloatArray:
    """The matrix of second differences: (k - 2, k).

    Examples
    --------
    >>> second_differences(4)
    array([[-1.,  2., -1.,  0.],
           [ 0., -1.,  2., -1.]])
    """
    return 2 * np.eye(k - 2, k, 1) - np.eye(k - 2, k) - np.eye(k - 2, k, 2)


def smoothness(ladder: IntArray) -> FloatArray:
    """Second differences along the ladder of shares in the classes' own order: (k,) -> (k - 2, k).

    Examples
    --------
    >>> smoothness(np.array([0, 2, 1]))
    array([[-1., -1.,  2.]])
    """
    k = len(ladder)
    matrix = np.zeros((k - 2, k))
    matrix[:, ladder] = second_differences(k)
    return matrix


def monotone(cumulated: FloatArray) -> FloatArray:
    """Cumulated shares that rise: the mean of the least that lies above and the most that lies below.

    (..., k - 1) -> (..., k - 1) (Destercke and Yang 2014).

    Examples
    --------
    >>> monotone(np.array([0.3, 0.2, 0.6]))
    array([0.25, 0.25, 0.6 ])
    """
    above = np.maximum.accumulate(cumulated, axis=-1)
    below = np.minimum.accumulate(cumulated[..., ::-1], axis=-1)[..., ::-1]
    return (above + below) / 2
