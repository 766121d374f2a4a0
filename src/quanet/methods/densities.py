"""Sums of Gaussians around instances, class by class, and their values between those of a table."""

from numbers import Real
from typing import Any

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.methods.kernel_means import scaled_squares
from quanet.parameters import Constraint

NARROWEST = 1e-5  # below it a posterior's rounding matters


def _is_bandwidth(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and NARROWEST <= float(value) < np.inf


BANDWIDTH = Constraint(
    f"a number of at least {NARROWEST}", _is_bandwidth, "0.01 to 0.2 is usual; GridSearchQ can choose it."
)


def log_densities(rows: FloatArray, centres: FloatArray, starts: IntArray, *, bandwidth: float) -> FloatArray:
    """Logarithms of the classes' densities, up to a number common to all: (n, d), (m, d), (k,) -> (n, k).

    The centres of a class follow one another from its start on.
    """
    found = np.empty((len(rows), len(starts)))
    sizes = np.diff(np.append(starts, len(centres)))
    together = max(1, 2**22 // len(centres))
    for first in range(0, len(rows), together):
        part = slice(first, first + together)
        exponents = scaled_squares(rows[part], centres, -0.5 / bandwidth**2)
        # Each class from its own peak, so that none vanishes.
        peaks = np.maximum.reduceat(exponents, starts, axis=1)
        exponents -= np.repeat(peaks, sizes, axis=1)
        np.exp(exponents, out=exponents)
        found[part] = np.log(np.add.reduceat(exponents, starts, axis=1) / sizes) + peaks
    return found


def interpolate(table: FloatArray, step: float, at: FloatArray) -> FloatArray:
    """Cubic interpolation in a table whose second entry is at 0: (g, k), (n,) -> (n, k).

    Examples
    --------
    >>> cubes = (np.arange(-1, 8)[:, None] * 0.25) ** 3
    >>> interpolate(cubes, 0.25, np.array([0.1, 0.9])).ravel()
    array([0.001, 0.729])
    """
    places = at / step
    whole = np.clip(places.astype(np.intp), 0, len(table) - 4)
    part = (places - whole)[:, None]
    before, here, after, later = (table[whole + shift] for shift in range(4))
    return (
        before * (-part * (part - 1) * (part - 2) / 6)
        + here * ((part + 1) * (part - 1) * (part - 2) / 2)
        + after * (-(part + 1) * part * (part - 2) / 2)
        + later * ((part + 1) * part * (part - 1) / 6)
    )
