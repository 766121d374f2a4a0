r"""Kernel densities of posteriors, KDEy: maximum likelihood, Cauchy-Schwarz and Hellinger (Moreo et al. 2024).

A class is a smooth density of posteriors, a Gaussian around each training posterior s:

.. math:: p_c(x) = \frac1{m_c} \sum_{s \in \text{class } c} K_h(x - s), \quad K_h(d) \propto \exp(-\|d\|^2 / 2 h^2)

What it takes from an instance does not depend on its bag, so it is computed once for a pool. For two classes posteriors
lie on a line, where the squared distance is twice that of one of them: densities are read from a table.
"""

import warnings
from abc import abstractmethod
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from quanet import kernels
from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.errors import QuanetWarning
from quanet.methods.about import About
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.methods.counting import mean_posterior
from quanet.methods.divergences import DIVERGENCES
from quanet.methods.representations import by_class, class_means, scaled_squares
from quanet.methods.solvers import mixture_weights, nearest_mixtures
from quanet.parameters import Constraint, Constraints, whole

NARROWEST = 1e-5  # below it a posterior's rounding matters
FINENESS = 32  # steps of a table in one bandwidth: cubics between them err by 1e-8
LONGEST = 2**16  # entries of a table; a bandwidth that needs more is summed directly
SPREAD = 16  # cells in one bandwidth to which a bag's posteriors are spread
LONGEST_LINE = 2**12  # such cells in all; a narrower bandwidth takes drawn points, as more classes do
IN_CACHE = 2**16  # kernel values computed at a time, so that they stay near the processor


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


class KDEyHD(KernelDensities):
    r"""Kernel density estimation of posteriors (y), by the Hellinger distance [1]_.

    .. math:: \hat p = \arg\min_{p \in \Delta} \int \Big( \sqrt{\textstyle\sum_c p_c\, f_c(x)} - \sqrt{q(x)} \Big)^2 dx

    with q the kernel density of the bag's own posteriors. For two classes the integral is a sum along a line, exact to
    the eye. For more it is estimated, as published, at points drawn from the classes' densities in equal numbers, each
    weighted by one over the density of being drawn.

    Parameters
    ----------
    classifier, bandwidth, cv : see `KDEyML`.
    trials : how many points are drawn, for more than two classes.
    random_state : seed of these points.

    References
    ----------
    .. [1] A. Moreo, P. González and J. J. del Coz, "Kernel density estimation for multiclass quantification", Machine
           Learning 114, 2025 (arXiv:2401.00490, 2024).

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(k=3).draw([0.4, 0.3, 0.3], 600, rng=0)
    >>> new, _ = Gaussians(k=3).draw([0.1, 0.3, 0.6], 600, rng=1)
    >>> KDEyHD(trials=2000).fit(X, y).predict(new).round(1)
    array([0.1, 0.3, 0.6])
    """

    about: ClassVar[About] = About(
        "matching", "Moreo et al. (2024)", "any", "posteriors", "O(n trials k), O(n) for two classes"
    )

    def __init__(
        self,
        classifier: Any = None,
        *,
        bandwidth: float = 0.1,
        cv: Any = 5,
        trials: int = 10_000,
        random_state: int = 0,
    ) -> None:
        super().__init__(classifier, bandwidth=bandwidth, cv=cv)
        self.trials = trials
        self.random_state = random_state

    def _fit_densities(self, bandwidth: float) -> None:
        k = len(self.starts_)
        whole(k).check("trials", self.trials, "KDEyHD")
        width = float(bandwidth / np.sqrt(2))
        self.on_a_line_ = k == 2 and SPREAD / width < LONGEST_LINE
        if self.on_a_line_:
            self.step_ = width / SPREAD
            cells: FloatArray = self.step_ * np.arange(-1.0, np.ceil(1 / self.step_) + 3)
            points = np.arange(-5 * width, 1 + 5 * width, width / 8)[:, None]
            self.smoothing_ = np.exp(scaled_squares(cells[:, None], points, -0.5 / width**2))
            self.templates_ = np.exp(log_densities(points, self.centres_[:, 1:], self.starts_, bandwidth=width))
        else:
            self.points_ = self._draw(bandwidth)
            classes = log_densities(self.points_, self.centres_, self.starts_, bandwidth=bandwidth)
            # A point's weight is one over the density of drawing it, from all classes alike.
            self.log_drawn_ = np.logaddexp.reduce(classes, axis=1) - np.log(k)
            self.templates_ = np.exp(classes - self.log_drawn_[:, None])

    def _draw(self, bandwidth: float) -> FloatArray:
        """Points from the density of each class: its posteriors in turn, and Gaussian noise."""
        ends = np.append(self.starts_[1:], len(self.centres_))
        each, points = int(self.trials) // len(ends), []
        for first, last in zip(self.starts_, ends, strict=True):
            chosen = self.centres_[np.linspace(first, last, each, endpoint=False).astype(np.intp)]
            # The same noise in every class, given to columns by their rank: so no order of classes is another draw.
            noise = np.random.default_rng(self.random_state).normal(scale=bandwidth, size=chosen.shape)
            ranks = chosen.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
            points.append(chosen + np.take_along_axis(noise, ranks, axis=1))
        return np.concatenate(points)

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Estimate the density of every bag and find the nearest mixture: (..., n, k) -> (..., k)."""
        posteriors = check_rows(rows, width=len(self.classes_))
        bags = np.ascontiguousarray(posteriors).reshape(-1, *posteriors.shape[-2:])
        targets = self._on_a_line(bags) if self.on_a_line_ else self._at_points(bags)
        found = nearest_mixtures(self.templates_, targets, DIVERGENCES["hellinger"], self.prior_)
        return found.reshape(*posteriors.shape[:-2], -1)

    def _on_a_line(self, bags: FloatArray) -> FloatArray:
        counts = np.zeros((len(bags), len(self.smoothing_)))
        kernels.count_cubic(bags[:, :, 1], self.step_, counts)
        return np.maximum(counts @ self.smoothing_, 0) / bags.shape[1]

    def _at_points(self, bags: FloatArray) -> FloatArray:
        """Density of every bag at the points, over that of drawing them: (b, n, k) -> (b, t)."""
        scale = -0.5 / float(self.bandwidth) ** 2
        # Two more columns make the whole exponent one product: squares and constants need no pass of their own.
        constants = scale * np.square(self.points_).sum(axis=1) - self.log_drawn_
        points = np.column_stack([-2 * scale * self.points_, constants, np.ones(len(constants))])
        found = np.empty((len(bags), len(points)))
        each = np.full(bags.shape[1], 1 / bags.shape[1])
        together = max(1, IN_CACHE // bags.shape[1])
        for bag, densities in zip(bags, found, strict=True):
            posteriors = np.vstack([bag.T, np.ones(len(bag)), scale * np.square(bag).sum(axis=1)])
            for first in range(0, len(points), together):
                part = slice(first, first + together)
                exponents = points[part] @ posteriors
                np.exp(np.minimum(exponents, 700, out=exponents), out=exponents)
                densities[part] = exponents @ each
        return found
