r"""Kernel densities of posteriors, KDEy: maximum likelihood, Cauchy-Schwarz and Hellinger (Moreo et al. 2024).

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
from quanet.methods.divergences import DIVERGENCES
from quanet.methods.kernel_means import by_class, class_means, scaled_squares
from quanet.methods.solvers import mixture_weights, nearest_mixtures
from quanet.parameters import Constraints, whole

FINENESS = 32  # steps of a table in one bandwidth: cubics between them err by 1e-8
SPREAD = 16  # cells in one bandwidth to which a bag's posteriors are spread
LONGEST_LINE = 2**12  # such cells in all; a narrower bandwidth takes drawn points, as more classes do
IN_CACHE = 2**16  # kernel values computed at a time, so that they stay near the processor
LONGEST = 2**16  # entries of a table; a bandwidth that needs more is summed directly


class _KDEy(AggregativeQuantifier):
    """Base of the three: the bandwidth, and the training posteriors by class."""

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


class KDEyML(_KDEy):
    r"""KDEy by maximum likelihood: the mixture of densities under which the bag is most likely (Moreo et al. 2024).

    .. math:: \hat p = \arg\max_p \sum_i \log \sum_c p_c\, p_c(x_i)

    The same as the mixture with the least Kullback-Leibler divergence from the bag. Once densities are there, this is
    the likelihood of `EMQ`, and Newton's method maximises it as exactly.

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.
    bandwidth : h above, in units of posteriors; `GridSearchQ` can choose it.
    tol, max_iter : the change of prevalences at which a bag is settled, and steps at most.

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


class KDEyCS(_KDEy):
    r"""KDEy by Cauchy and Schwarz: the mixture of densities at the least angle to the bag's (Moreo et al. 2024).

    .. math:: \hat p = \arg\min_p -\log \frac{p^\top a}{\sqrt{p^\top B p}}

    with :math:`a_c` and :math:`B_{cd}` the integrals of the product of class c's density with the bag's and class d's,
    which are mean kernel values of twice the variance. On the simplex of :math:`a_c p_c` it is a quadratic function.

    Parameters
    ----------
    classifier, cv, bandwidth : see `KDEyML`.

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


class KDEyHD(_KDEy):
    r"""KDEy by Hellinger: the mixture of densities at the least Hellinger distance to the bag's (Moreo et al. 2024).

    .. math:: \hat p = \arg\min_p \int \Big( \sqrt{\textstyle\sum_c p_c\, p_c(x)} - \sqrt{q(x)} \Big)^2 dx

    with q the kernel density of the bag's own posteriors. For two classes the integral is a sum along a line, exact to
    the eye. For more it is estimated, as published, at points drawn from the classes' densities in equal numbers, each
    weighted by one over the density of being drawn.

    Parameters
    ----------
    classifier, cv, bandwidth : see `KDEyML`.
    trials : how many points are drawn, for more than two classes.
    random_state : seed of these points.

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
        from quanet import kernels

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
