r"""Kernel densities of posteriors, KDEy: maximum likelihood and Cauchy-Schwarz (Moreo et al. 2024).

A class is a smooth density of posteriors, a Gaussian around each training posterior s:

.. math:: p_c(x) = \frac1{m_c} \sum_{s \in \text{class } c} K_h(x - s), \quad K_h(d) \propto \exp(-\|d\|^2 / 2 h^2)

What it takes from an instance does not depend on its bag, so it is computed once for a pool. For two classes posteriors
lie on a line, where the squared distance is twice that of one of them: densities are read from a table.
"""

import warnings
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.errors import QuanetWarning
from quanet.methods.about import About
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.methods.counting import mean_posterior
from quanet.methods.densities import BANDWIDTH, interpolate, log_densities
from quanet.methods.kernel_means import by_class, class_means, scaled_squares
from quanet.methods.solvers import mixture_weights
from quanet.parameters import Constraints

FINENESS = 32  # steps of a table in one bandwidth: cubics between them err by 1e-8
LONGEST = 2**16  # entries of a table; a bandwidth that needs more is summed directly


class KernelDensities(AggregativeQuantifier):
    """Base of the three KDEy: the bandwidth, and the training posteriors by class."""

    allowed_values: ClassVar[Constraints] = {"bandwidth": BANDWIDTH}

    def __init__(self, classifier: Any = None, *, bandwidth: float = 0.1, cv: Any = 5) -> None:
        super().__init__(classifier, cv=cv)
        self.bandwidth = bandwidth

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        self.centres_, self.starts_ = by_class(posteriors, codes)
        self.step_, self.table_ = 0.0, np.empty((0, len(self.starts_)))
        self._fit_densities(float(self.bandwidth))

    @abstractmethod
    def _fit_densities(self, bandwidth: float) -> None:
        """Learn from `centres_`, the training posteriors by class."""

    def _tabulate(self, bandwidth: float, *, logarithms: bool) -> None:
        """Keep a table of the classes' densities along the line of two classes' posteriors, if it is not too long."""
        width = float(bandwidth / np.sqrt(2))
        if len(self.starts_) > 2 or FINENESS / width > LONGEST:
            return
        self.step_ = width / FINENESS
        places: FloatArray = self.step_ * np.arange(-1.0, np.ceil(1 / self.step_) + 3)
        table = log_densities(places[:, None], self.centres_[:, 1:], self.starts_, bandwidth=width)
        self.table_ = table if logarithms else np.exp(table)


class KDEyML(KernelDensities):
    r"""Kernel density estimation of posteriors (y), by maximum likelihood [1]_.

    .. math:: \hat p = \arg\max_{p \in \Delta} \sum_i \log \sum_c p_c\, f_c(\pi_i), \qquad
        f_c(\pi) = \frac1{m_c} \sum_{s \in \text{class } c} K_h(\pi - s)

    with K a Gaussian kernel around each out-of-fold posterior s of class c. It is also the mixture with the least
    Kullback-Leibler divergence from the bag. Once densities are there, this is the likelihood of `EMQ`, and Newton's
    method maximises it as exactly. Posteriors need not be calibrated.

    Parameters
    ----------
    classifier : see `AggregativeQuantifier`.
    bandwidth : h above, in units of posteriors; `GridSearchQ` can choose it.
    cv : see `AggregativeQuantifier`.
    tol, max_iter : the change of prevalences at which a bag is settled, and steps at most.

    References
    ----------
    .. [1] A. Moreo, P. González and J. J. del Coz, "Kernel density estimation for multiclass quantification", Machine
           Learning 114, 2025 (arXiv:2401.00490, 2024).

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(k=3).draw([0.4, 0.3, 0.3], 1500, rng=0)
    >>> new, _ = Gaussians(k=3).draw([0.1, 0.3, 0.6], 1500, rng=1)
    >>> KDEyML().fit(X, y).predict(new).round(1)
    array([0.1, 0.3, 0.6])
    """

    about: ClassVar[About] = About(
        "matching",
        "Moreo et al. (2024)",
        "any",
        "posteriors",
        "O(m k) an instance, once (two classes: O(1)); O(n k^2) a step",
    )

    def __init__(
        self, classifier: Any = None, *, bandwidth: float = 0.1, cv: Any = 5, tol: float = 1e-6, max_iter: int = 1000
    ) -> None:
        super().__init__(classifier, bandwidth=bandwidth, cv=cv)
        self.tol = tol
        self.max_iter = max_iter

    def _fit_densities(self, bandwidth: float) -> None:
        self._tabulate(bandwidth, logarithms=True)

    def rows(self, inputs: ArrayLike) -> FloatArray:
        """Density of every instance in each class, as parts of the largest: (n, k)."""
        posteriors = super().rows(inputs)
        if len(self.table_):
            logarithms = interpolate(self.table_, self.step_, posteriors[:, 1])
        else:
            logarithms = log_densities(posteriors, self.centres_, self.starts_, bandwidth=float(self.bandwidth))
        logarithms -= logarithms.max(axis=1, keepdims=True)
        return np.exp(logarithms, out=logarithms)

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Maximise the likelihood of every bag: (..., n, k) -> (..., k)."""
        densities = check_rows(rows, width=len(self.classes_))
        found, unsettled = mixture_weights(densities, self.prior_, tol=self.tol, max_iter=self.max_iter)
        if unsettled:
            warnings.warn(
                f"KDEyML did not settle within {self.max_iter} steps on {unsettled} bags. Raise max_iter or tol.",
                QuanetWarning,
                stacklevel=2,
            )
        return found


class KDEyCS(KernelDensities):
    r"""Kernel density estimation of posteriors (y), by the Cauchy-Schwarz divergence [1]_.

    .. math:: \hat p = \arg\min_{p \in \Delta} -\log \frac{p^\top a}{\sqrt{p^\top B p}}

    with :math:`a_c` and :math:`B_{cd}` the integrals of the product of class c's density with the bag's and class d's,
    which are mean kernel values of twice the variance: the mixture at the least angle to the bag's density. On the
    simplex of :math:`a_c p_c` it is a quadratic function.

    Parameters
    ----------
    classifier, bandwidth, cv : see `KDEyML`.

    References
    ----------
    .. [1] A. Moreo, P. González and J. J. del Coz, "Kernel density estimation for multiclass quantification", Machine
           Learning 114, 2025 (arXiv:2401.00490, 2024).

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(k=3).draw([0.4, 0.3, 0.3], 1500, rng=0)
    >>> new, _ = Gaussians(k=3).draw([0.1, 0.3, 0.6], 1500, rng=1)
    >>> KDEyCS().fit(X, y).predict(new).round(1)
    array([0.1, 0.3, 0.6])
    """

    about: ClassVar[About] = About(
        "matching",
        "Moreo et al. (2024)",
        "any",
        "posteriors",
        "O(m k) an instance, once, O(1) for two classes; O(n k + k^3) a bag",
    )

    def _fit_densities(self, bandwidth: float) -> None:
        self._tabulate(np.sqrt(2) * bandwidth, logarithms=False)
        means = self._overlaps(self.centres_)
        gram = np.add.reduceat(means, self.starts_) / np.diff(np.append(self.starts_, len(means)))[:, None]
        self.gram_ = (gram + gram.T) / 2

    def _overlaps(self, posteriors: FloatArray) -> FloatArray:
        if len(self.table_):
            return interpolate(self.table_, self.step_, posteriors[:, 1])
        scale = -0.25 / float(self.bandwidth) ** 2

        def compare(rows: FloatArray, centres: FloatArray) -> FloatArray:
            values = scaled_squares(rows, centres, scale)
            return np.exp(values, out=values)

        return class_means(compare, posteriors, self.centres_, self.starts_)

    def rows(self, inputs: ArrayLike) -> FloatArray:
        """Mean kernel value of every instance with the training posteriors of each class: (n, k)."""
        return self._overlaps(super().rows(inputs))

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Average, and find the mixture at the least angle: (..., n, k) -> (..., k)."""
        from quanet import kernels

        k = len(self.classes_)
        means = mean_posterior(check_rows(rows, width=k)).reshape(-1, k)
        largest = means.max(axis=1, keepdims=True)
        parts = np.maximum(means / np.where(largest > 0, largest, 1), 1e-12)
        quadratics = self.gram_ * (1 + 1e-10 * np.eye(k)) / (parts[:, :, None] * parts[:, None, :])
        found = np.full(parts.shape, 1 / k)
        kernels.simplex_quadratics_of(quadratics, np.arange(len(quadratics)), np.zeros(parts.shape), found)
        found /= parts
        found /= found.sum(axis=1, keepdims=True)
        found[largest[:, 0] <= 0] = self.prior_  # nothing in reach of any class
        return found.reshape(*np.shape(rows)[:-2], k)
