"""Representations by comparison with the training instances: how near an instance is to each class, on average."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np
from scipy.spatial.distance import cdist

from quanet.arrays import FloatArray, IntArray
from quanet.methods.representations import GAMMA, Representation, default_gamma
from quanet.parameters import Constraints, check_parameters, one_of

METRIC = one_of("manhattan", "euclidean")
TOGETHER = 2**22  # comparisons made at a time


def class_means(
    compare: Callable[[FloatArray, FloatArray], FloatArray], rows: FloatArray, centres: FloatArray, starts: IntArray
) -> FloatArray:
    """Mean comparison of every row with the centres of each class, which follow one another: (n, d) -> (n, k)."""
    sizes = np.diff(np.append(starts, len(centres)))
    means = np.empty((len(rows), len(starts)))
    together = max(1, TOGETHER // len(centres))
    for first in range(0, len(rows), together):
        part = slice(first, first + together)
        means[part] = np.add.reduceat(compare(rows[part], centres), starts, axis=1)
    means /= sizes
    return means


def by_class(columns: FloatArray, codes: IntArray) -> tuple[FloatArray, IntArray]:
    """The instances in the order of their classes, and where each class begins."""
    order = np.argsort(codes, kind="stable")
    return columns[order], np.searchsorted(codes[order], np.arange(int(codes.max()) + 1))


class KernelMean(Representation):
    """Base of the representations that a quadratic form compares: `encode` gives a mean kernel value for each class."""

    centres_: FloatArray
    starts_: IntArray

    def fit(self, columns: FloatArray, codes: IntArray) -> Self:
        """Keep the instances, by class."""
        check_parameters(self)
        self.centres_, self.starts_ = by_class(columns, codes)
        return self

    @abstractmethod
    def compare(self, rows: FloatArray, centres: FloatArray) -> FloatArray:
        """The kernel of every row and centre: (n, c), (m, c) -> (n, m)."""

    def encode(self, columns: FloatArray) -> FloatArray:
        """Mean kernel value of every instance with the instances of each class: (n, c) -> (n, k)."""
        return class_means(self.compare, columns, self.centres_, self.starts_)


class GaussianKernel(KernelMean):
    r"""Gaussian kernel: its mean over the instances z of each class.

    .. math:: \phi_c(x) = \frac1{m_c} \sum_{z \in \text{class } c} \exp(-\gamma \|x - z\|^2)

    In `Matching` and `MatchingX` bags are compared by the maximum mean discrepancy [1]_, whatever the divergence.

    Parameters
    ----------
    gamma : None takes 1 / (2 median squared distance) of the training instances.

    See Also
    --------
    KMM : kernel mean matching of features.

    References
    ----------
    .. [1] A. Gretton, K. M. Borgwardt, M. J. Rasch, B. Schölkopf and A. Smola, "A kernel two-sample test", Journal of
           Machine Learning Research 13, 2012.

    Examples
    --------
    >>> kernel = GaussianKernel(1.0).fit(np.array([[0.0], [1.0]]), np.array([0, 1]))
    >>> kernel.encode(np.array([[0.0]]))
    array([[1. , 0.37]])
    """

    allowed_values: ClassVar[Constraints] = {"gamma": GAMMA}

    def __init__(self, gamma: float | None = None) -> None:
        self.gamma = gamma

    def fit(self, columns: FloatArray, codes: IntArray) -> Self:
        """Keep the instances, by class."""
        super().fit(columns, codes)
        self.gamma_ = default_gamma(columns) if self.gamma is None else float(self.gamma)
        return self

    def compare(self, rows: FloatArray, centres: FloatArray) -> FloatArray:
        """Gaussian kernel: (n, c), (m, c) -> (n, m)."""
        values = scaled_squares(rows, centres, -self.gamma_)
        return np.exp(values, out=values)


def scaled_squares(rows: FloatArray, centres: FloatArray, scale: float) -> FloatArray:
    """Squared distances times a negative number: (n, c), (m, c) -> (n, m)."""
    values = rows @ (-2 * scale * centres.T)
    values += scale * np.einsum("ij,ij->i", rows, rows)[:, None]
    values += scale * np.einsum("ij,ij->i", centres, centres)
    return np.minimum(values, 0, out=values)


class Distances(KernelMean):
    r"""Distances: minus the mean distance to the instances z of each class.

    .. math:: \phi_c(x) = -\frac1{m_c} \sum_{z \in \text{class } c} \|x - z\|

    In `Matching` and `MatchingX` bags are compared by the energy distance [1]_, whatever the divergence.

    Parameters
    ----------
    metric : "manhattan", the sum over columns, which sorting makes fast, or "euclidean".

    See Also
    --------
    EDy, EDx : energy distance of posteriors and of features.

    References
    ----------
    .. [1] G. J. Székely and M. L. Rizzo, "Energy statistics: a class of statistics based on distances", Journal of
           Statistical Planning and Inference 143, 2013.

    Examples
    --------
    >>> distances = Distances().fit(np.array([[0.0], [0.5], [1.0]]), np.array([0, 1, 1]))
    >>> distances.encode(np.array([[0.25], [0.5]]))
    array([[-0.25, -0.5 ],
           [-0.5 , -0.25]])
    """

    allowed_values: ClassVar[Constraints] = {"metric": METRIC}

    def __init__(self, metric: str = "manhattan") -> None:
        self.metric = metric

    def fit(self, columns: FloatArray, codes: IntArray) -> Self:
        """Keep the instances, by class; each column sorted."""
        super().fit(columns, codes)
        if self.metric == "manhattan":
            self.centres_ = np.concatenate([np.sort(part, axis=0) for part in self._parts()])
        return self

    def _parts(self) -> list[FloatArray]:
        return np.split(self.centres_, self.starts_[1:])

    def compare(self, rows: FloatArray, centres: FloatArray) -> FloatArray:
        """Minus the distance: (n, c), (m, c) -> (n, m)."""
        return -cdist(rows, centres)

    def encode(self, columns: FloatArray) -> FloatArray:
        """Minus the mean distance of every instance to each class: (n, c) -> (n, k)."""
        if self.metric == "euclidean":
            return super().encode(columns)
        means = np.zeros((len(columns), len(self.starts_)))
        for c, part in enumerate(self._parts()):
            for column, values in zip(columns.T - part[0][:, None], (part - part[0]).T, strict=True):
                # Counted from one of the values, so that distances of equal values are zero without rounding.
                sums = np.concatenate([[0.0], values.cumsum()])
                below = np.searchsorted(values, column)
                # Of m values, those below x lie x - z away and the others z - x.
                means[:, c] -= (column * (2 * below - len(values)) + sums[-1] - 2 * sums[below]) / len(values)
        return means
