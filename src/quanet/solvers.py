"""Minimisation over the simplex, for a whole stack of bags at once."""

import numpy as np

from quanet.arrays import FloatArray
from quanet.simplex import project


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
    quadratic = matrix.T @ matrix
    linear = np.atleast_2d(targets @ matrix)
    # Stationarity with the sum held at one: x = Q^-1 l - multiplier Q^-1 1.
    inverse_ones = np.linalg.solve(quadratic, np.ones(len(quadratic)))
    free = np.asarray(np.linalg.solve(quadratic, linear.reshape(-1, len(quadratic)).T).T, dtype=np.float64)
    free -= np.outer((free.sum(axis=1) - 1) / inverse_ones.sum(), inverse_ones)
    outside = (free < 0).any(axis=1)
    if outside.any():
        from quanet import kernels

        corrected = project(free[outside])
        kernels.simplex_quadratics(quadratic, linear.reshape(-1, len(quadratic))[outside], corrected)
        free[outside] = corrected
    return free.reshape(*targets.shape[:-1], -1)


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
    from quanet import kernels

    n, k = rows.shape[-2:]
    bags = np.ascontiguousarray(rows).reshape(-1, n, k)
    weights = np.tile(start, (len(bags), 1))
    maximise = kernels.binary_likelihood if k == 2 else kernels.mixture_likelihood
    unsettled = maximise(bags, np.ones(k) if scale is None else scale, weights, tol, max_iter)
    return weights.reshape(*rows.shape[:-2], k), unsettled
