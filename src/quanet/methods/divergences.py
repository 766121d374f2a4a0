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
    r"""Divergence of a mixture m from a bag q, as a sum over bins, with its derivatives in m.

    .. math:: D(m, q) = \sum_j d(m_j, q_j)

    Pass your own to `Matching` and its relatives, if :math:`d` is convex in m; m is always above zero. The named ones
    are

    ================  =====================================================================
    "hellinger"       :math:`(\sqrt m - \sqrt q)^2`
    "topsoe"          :math:`m \ln \frac{2 m}{m + q} + q \ln \frac{2 q}{m + q}` [1]_
    "jensen-shannon"  half of it
    "likelihood"      :math:`m - q \ln m`
    "l2"              :math:`(m - q)^2`
    ================  =====================================================================

    Parameters
    ----------
    name : what it is called.
    value, slope, curvature : functions of mixtures m and bags q, bin by bin: (..., J), (..., J) -> (..., J).
    kernel : the number of its compiled search for two classes, or None.

    References
    ----------
    .. [1] F. Topsøe, "Some inequalities for information divergence and related measures of discrimination", IEEE
           Transactions on Information Theory 46, 2000.

    Examples
    --------
    >>> from quanet import Gaussians, Matching
    >>> chi_squared = Divergence(
    ...     "chi-squared", lambda m, q: (m - q) ** 2 / m, lambda m, q: 1 - (q / m) ** 2, lambda m, q: 2 * q**2 / m**3)
    >>> X, y = Gaussians().draw([0.5, 0.5], 1000, rng=0)
    >>> new, _ = Gaussians().draw([0.2, 0.8], 1000, rng=1)
    >>> Matching(divergence=chi_squared).fit(X, y).predict(new).round(1)
    array([0.2, 0.8])
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
