r"""Divergences between distributions over bins, as sums over the bins: how far a mixture m is from a bag's q.

Each is convex in m, so that the nearest mixture of classes is the only one. For the search, each knows its first and
second derivative in m.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from quanet.arrays import FloatArray
from quanet.parameters import instance_of, one_of

Elementwise = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class Divergence:
    """A divergence as a sum over bins of ``value(m, q)``, with its derivatives in m; ``m`` is always above zero.

    Parameters
    ----------
    name : what it is called.
    value, slope, curvature : functions of mixtures m and bags q, bin by bin: (..., J), (..., J) -> (..., J).
    kernel : the number of its compiled search for two classes, or None.

    Examples
    --------
    >>> halves, quarters = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    >>> float(DIVERGENCES["l2"].value(halves, quarters).sum())
    0.125
    """

    name: str
    value: Elementwise
    slope: Elementwise
    curvature: Elementwise
    kernel: int | None = None


def _topsoe(m: FloatArray, q: FloatArray) -> FloatArray:
    total = m + q
    return m * np.log(2 * m / total) + q * np.log(np.where(q > 0, 2 * q, total) / total)


def _half(function: Elementwise) -> Elementwise:
    return lambda m, q: 0.5 * function(m, q)


def _topsoe_slope(m: FloatArray, q: FloatArray) -> FloatArray:
    return np.log(2 * m / (m + q))


def _topsoe_curvature(m: FloatArray, q: FloatArray) -> FloatArray:
    return q / (m * (m + q))


DIVERGENCES: dict[str, Divergence] = {
    one.name: one
    for one in (
        Divergence(
            "hellinger",
            lambda m, q: np.square(np.sqrt(m) - np.sqrt(q)),
            lambda m, q: 1 - np.sqrt(q / m),
            lambda m, q: 0.5 * np.sqrt(q / m) / m,
            kernel=0,
        ),
        Divergence("topsoe", _topsoe, _topsoe_slope, _topsoe_curvature, kernel=1),
        Divergence("jensen-shannon", _half(_topsoe), _half(_topsoe_slope), _half(_topsoe_curvature), kernel=1),
        Divergence(
            "likelihood",
            lambda m, q: m - q * np.log(m),
            lambda m, q: 1 - q / m,
            lambda m, q: q / np.square(m),
            kernel=2,
        ),
        Divergence("l2", lambda m, q: np.square(m - q), lambda m, q: 2 * (m - q), lambda m, _: np.full(m.shape, 2.0)),
    )
}

DIVERGENCE = one_of(*DIVERGENCES) | instance_of(Divergence, "a Divergence")


def find_divergence(divergence: str | Divergence) -> Divergence:
    """The divergence with this name; a `Divergence` is returned as it is.

    Examples
    --------
    >>> find_divergence("topsoe").name
    'topsoe'
    """
    DIVERGENCE.check("divergence", divergence)
    return divergence if isinstance(divergence, Divergence) else DIVERGENCES[divergence]
