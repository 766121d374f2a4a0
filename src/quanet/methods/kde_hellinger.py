"""Kernel densities of posteriors, KDEy, compared by the Hellinger distance (Moreo et al. 2024)."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, check_rows
from quanet.methods.about import About
from quanet.methods.densities import log_densities
from quanet.methods.divergences import DIVERGENCES
from quanet.methods.kde import KernelDensities
from quanet.methods.kernel_means import scaled_squares
from quanet.methods.solvers import nearest_mixtures
from quanet.parameters import whole

SPREAD = 16  # cells in one bandwidth to which a bag's posteriors are spread
LONGEST_LINE = 2**12  # such cells in all; a narrower bandwidth takes drawn points, as more classes do
IN_CACHE = 2**16  # kernel values computed at a time, so that they stay near the processor


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
