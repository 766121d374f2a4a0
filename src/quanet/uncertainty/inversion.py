"""Ends of an interval from how estimates err at every share."""

import numpy as np

from quanet.arrays import FloatArray

FINE = 4001  # shares that are tried for an interval's ends


def towards_the_ends(points: int) -> FloatArray:
    """Shares from 0 to 1, closer to each other near the ends."""
    return np.sin(np.linspace(0, np.pi / 2, points)) ** 2


def invert(
    estimate: FloatArray, shares: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Least and largest share that an estimate (b,) can belong to, if errors at shares (g,) lie in low to high, (g,).

    Examples
    --------
    >>> invert(np.array([0.0, 0.5]), np.array([0.0, 1.0]), np.array([-0.1, -0.1]), np.array([0.1, 0.1]))
    (array([0. , 0.4]), array([0.1, 0.6]))
    """
    fine = towards_the_ends(FINE)
    # A larger share has larger estimates; where noise says otherwise the wider of the two holds.
    highest = np.maximum.accumulate(fine + np.interp(fine, shares, high))
    lowest = np.minimum.accumulate((fine + np.interp(fine, shares, low))[::-1])[::-1]
    lower = fine[np.minimum(np.searchsorted(highest, estimate - 1e-12), FINE - 1)]
    upper = fine[np.maximum(np.searchsorted(lowest, estimate + 1e-12, side="right") - 1, 0)]
    return lower, upper
