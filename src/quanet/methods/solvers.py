"""Minimisation over the simplex, for a whole stack of bags at once."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from quanet import kernels
from quanet.arrays import FloatArray, IntArray
from quanet.simplex import project

FLOOR = 1e-30  # what a mixture has at least in a bin, so that slopes stay finite
GAP = 1e-6  # above the least height: where slopes are steep, small steps alone do not mean that a bag has settled
KEPT = 0.1  # of a mixture in a bin, at least, after one step
TOGETHER = 2**20  # numbers of the second derivatives of the bags that are searched together
RIDGE = 1e-6  # of the curvature: keeps a step short where nothing tells classes apart


class Separable(Protocol):
    """A convex divergence of mixtures m from targets q, summed over bins, and its derivatives in m."""

    @property
    def kernel(self) -> int | None:
        """The number of its compiled search for two classes, or None."""

    @property
    def value(self) -> Callable[[FloatArray, FloatArray], FloatArray]:
        """Bin by bin: (..., J), (..., J) -> (..., J)."""

    @property
    def slope(self) -> Callable[[FloatArray, FloatArray], FloatArray]:
        """First derivative in m."""

    @property
    def curvature(self) -> Callable[[FloatArray, FloatArray], FloatArray]:
        """Second derivative in m."""


def simplex_least_squares(matrix: FloatArray, targets: FloatArray) -> FloatArray:
    r"""Prevalences that come nearest to every target: (m, k), (..., m) -> (..., k).

    .. math:: \arg\min_{p \in \Delta} \| M p - t \|^2

    Most bags are settled together, by the solution that ignores :math:`p \ge 0`; the others by an exact active-set
    method. The columns of `matrix` must be linearly independent.

    Examples
    --------
    >>> rates = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> simplex_least_squares(rates, np.array([[0.55, 0.45], [0.1, 0.9]]))
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    return simplex_quadratic_minimum(matrix.T @ matrix, targets @ matrix)


def simplex_quadratic_minimum(quadratic: FloatArray, linears: FloatArray) -> FloatArray:
    r"""Least points of quadratic functions with one and the same matrix: (k, k), (..., k) -> (..., k).

    .. math:: \arg\min_{p \in \Delta} \tfrac12 p^\top Q p - l^\top p

    Q must be positive definite.

    Examples
    --------
    >>> simplex_quadratic_minimum(np.eye(3), np.array([0.5, 0.4, -0.3]))
    array([0.55, 0.45, 0.  ])
    """
    k = len(quadratic)
    flat = np.ascontiguousarray(linears).reshape(-1, k)
    # Stationarity with the sum held at one: x = Q^-1 l - multiplier Q^-1 1.
    inverse_ones = np.linalg.solve(quadratic, np.ones(k))
    free = np.asarray(np.linalg.solve(quadratic, flat.T).T, dtype=np.float64)
    free -= np.outer((free.sum(axis=1) - 1) / inverse_ones.sum(), inverse_ones)
    outside = (free < 0).any(axis=1)
    if outside.any():
        corrected = project(free[outside])
        kernels.simplex_quadratics(quadratic, flat[outside], corrected)
        free[outside] = corrected
    return free.reshape(linears.shape)


def nearest_mixtures(
    templates: FloatArray,
    targets: FloatArray,
    divergence: Separable,
    start: FloatArray,
    *,
    penalty: FloatArray | None = None,
    tol: float = 1e-8,
    max_iter: int = 100,
) -> FloatArray:
    r"""Weights of the mixture of templates that comes nearest to every target: (J, k), (..., J), (k,) -> (..., k).

    .. math:: \arg\min_{p \in \Delta} \sum_j D\Big(\sum_c p_c T_{jc}, t_j\Big) + \tfrac12 p^\top R p

    For two classes Newton's method between brackets; for more, sequential quadratic programming with exact second
    derivatives, all bags at once, each until it settles.

    Parameters
    ----------
    templates : (J, k) what each class looks like.
    targets : (..., J) what the bags look like.
    divergence : D, convex in its first argument.
    start : (k,) where to begin; the answer too, where nothing tells the classes apart.
    penalty : (k, k) or (..., k, k), R above; None for none.
    tol : the largest change in the last step. Convergence is quadratic, so the error left is far smaller.
    max_iter : steps at most.

    Examples
    --------
    >>> from quanet.methods.divergences import DIVERGENCES
    >>> templates = np.array([[0.7, 0.1], [0.2, 0.2], [0.1, 0.7]])
    >>> nearest_mixtures(templates, np.array([0.4, 0.2, 0.4]), DIVERGENCES["hellinger"], np.array([0.5, 0.5]))
    array([0.5, 0.5])
    """
    width, k = templates.shape
    flat = np.ascontiguousarray(targets).reshape(-1, width)
    found = np.empty((len(flat), k))
    if k == 2 and divergence.kernel is not None and penalty is None:
        kernels.nearest_of_two(templates, flat, divergence.kernel, float(start[1]), tol, max_iter, found[:, 1])
        found[:, 0] = 1 - found[:, 1]
    else:
        every = None if penalty is None else np.broadcast_to(penalty, (*targets.shape[:-1], k, k)).reshape(-1, k, k)
        together = max(1, TOGETHER // (width * k))
        for first in range(0, len(flat), together):
            part = slice(first, first + together)
            search = _Search(templates, flat[part], divergence, None if every is None else every[part])
            found[part] = search.run(start, tol, max_iter)
    return found.reshape(*targets.shape[:-1], k)


class _Search:
    """Sequential quadratic programming for a stack of bags (b, J), with one set of templates (J, k)."""

    def __init__(
        self, templates: FloatArray, targets: FloatArray, divergence: Separable, penalty: FloatArray | None
    ) -> None:
        self.templates, self.targets, self.divergence, self.penalty = templates, targets, divergence, penalty

    def run(self, start: FloatArray, tol: float, max_iter: int) -> FloatArray:
        points = np.tile(start, (len(self.targets), 1))
        filled = self.templates.max(axis=1) > 0
        moving = np.flatnonzero((self.targets[:, filled] > 0).any(axis=1))  # the others share no bin with any class
        for _ in range(max_iter if len(moving) else 0):
            change, gap = self._step(points, moving)
            moving = moving[(change >= tol) | (gap > GAP)]
            if not len(moving):
                break
        return points

    def _mixtures(self, points: FloatArray) -> FloatArray:
        return np.maximum(points @ self.templates.T, FLOOR)

    def _height(self, points: FloatArray, bags: FloatArray, penalty: FloatArray | None) -> FloatArray:
        heights = self.divergence.value(self._mixtures(points), bags).sum(axis=1)
        return heights if penalty is None else heights + 0.5 * np.einsum("bi,bij,bj->b", points, penalty, points)

    def _gradient(self, points: FloatArray, bags: FloatArray, penalty: FloatArray | None) -> FloatArray:
        gradient = self.divergence.slope(self._mixtures(points), bags) @ self.templates
        return gradient if penalty is None else gradient + np.einsum("bij,bj->bi", penalty, points)

    def _step(self, points: FloatArray, moving: IntArray) -> tuple[FloatArray, FloatArray]:
        """Move the points of the bags `moving`; return by how much, and how far each can have been above its least."""
        here, bags = points[moving], self.targets[moving]
        penalty = None if self.penalty is None else self.penalty[moving]
        gradient = self._gradient(here, bags, penalty)
        gradient -= np.einsum("bi,bi->b", gradient, here)[:, None]  # a constant is no slope where shares sum to one
        curvature = self.divergence.curvature(self._mixtures(here), bags)
        hessian = np.matmul(self.templates.T, curvature[:, :, None] * self.templates)
        if penalty is not None:
            hessian += penalty
        k = here.shape[1]
        diagonal = np.arange(k)
        steepest = np.abs(gradient).max(axis=1, keepdims=True)
        hessian[:, diagonal, diagonal] += RIDGE * (np.trace(hessian, axis1=1, axis2=2)[:, None] / k + RIDGE * steepest)
        there = here.copy()
        kernels.simplex_quadratics_of(
            hessian, np.arange(len(hessian)), np.einsum("bij,bj->bi", hessian, here) - gradient, there
        )
        direction = there / there.sum(axis=1, keepdims=True) - here
        length = self._lengths(here, direction, gradient, bags, penalty)
        points[moving] = here + length[:, None] * direction
        return np.abs(length[:, None] * direction).max(axis=1), -gradient.min(axis=1)

    def _lengths(
        self,
        here: FloatArray,
        direction: FloatArray,
        gradient: FloatArray,
        bags: FloatArray,
        penalty: FloatArray | None,
    ) -> FloatArray:
        """How far to go along each direction: down, and not past a wall that only shows beyond the minimum."""
        descent = np.einsum("bi,bi->b", gradient, direction)
        before = self._height(here, bags, penalty)
        # Where a bag has instances, slopes may be infinite at an empty mixture: a step that ends there never leaves.
        least = np.where(bags > 0, KEPT * self._mixtures(here), 0)
        length = np.ones(len(here))
        open_ = np.flatnonzero(descent < 0)
        for _ in range(40):
            trial = here[open_] + length[open_, None] * direction[open_]
            part = None if penalty is None else penalty[open_]
            after = self._height(trial, bags[open_], part)
            rise = np.einsum("bi,bi->b", self._gradient(trial, bags[open_], part), direction[open_])
            down = after <= before[open_] + 1e-4 * length[open_] * descent[open_] + 1e-14
            inside = (self._mixtures(trial) >= least[open_]).all(axis=1)
            good = down & inside & (rise <= -0.9 * descent[open_] + 1e-14)
            open_ = open_[~good]
            if not len(open_):
                break
            length[open_] *= 0.5
        return length


def mixture_weights(
    rows: FloatArray, start: FloatArray, *, scale: FloatArray | None = None, tol: float = 1e-6, max_iter: int = 1000
) -> tuple[FloatArray, int]:
    r"""Weights of the mixture that makes every bag most likely: (..., n, k), (k,) -> (..., k).

    .. math:: \arg\max_{p \in \Delta} \sum_i \log \sum_c p_c L_{ic}, \quad L_{ic} = r_{ic} s_c

    Newton's method: in one dimension for two classes, and sequential quadratic programming for more. The second value
    returned is the number of bags that did not settle within `max_iter` steps.

    Parameters
    ----------
    rows : (..., n, k) likelihoods, up to a factor for each instance.
    start : (k,) where to begin; the answer too, where nothing tells the classes apart.
    scale : (k,) a factor for each class; None for 1.
    tol : the largest change in the last step. Convergence is quadratic, so the error left is far smaller.
    max_iter : steps at most.

    Examples
    --------
    >>> weights, unsettled = mixture_weights(np.array([[4.0, 1.0], [1.0, 4.0], [1.0, 4.0]]), np.array([0.5, 0.5]))
    >>> weights.round(4), unsettled
    (array([0.2222, 0.7778]), 0)
    """
    n, k = rows.shape[-2:]
    bags = np.ascontiguousarray(rows).reshape(-1, n, k)
    weights = np.tile(start, (len(bags), 1))
    maximise = kernels.binary_likelihood if k == 2 else kernels.mixture_likelihood
    unsettled = maximise(bags, np.ones(k) if scale is None else scale, weights, tol, max_iter)
    return weights.reshape(*rows.shape[:-2], k), unsettled


def maximum_likelihood(
    posteriors: FloatArray, prior: FloatArray, *, tol: float = 1e-6, max_iter: int = 1000
) -> tuple[FloatArray, int]:
    """The prevalences that EM approaches, exactly, by Newton's method: (..., n, k), (k,) -> (..., k).

    Examples
    --------
    >>> posteriors = np.array([[0.8, 0.2], [0.2, 0.8], [0.2, 0.8]])
    >>> prevalences, unsettled = maximum_likelihood(posteriors, np.array([0.5, 0.5]))
    >>> prevalences.round(4), unsettled
    (array([0.2222, 0.7778]), 0)
    """
    return mixture_weights(posteriors, prior, scale=1 / prior, tol=tol, max_iter=max_iter)
