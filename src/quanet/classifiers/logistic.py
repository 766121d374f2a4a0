r"""Fit many logistic regressions on one sparse matrix at once, such as those of all folds (dual coordinate descent).

.. math:: \min_w \sum_i \log(1 + e^{-y_i z_i}) + \frac{1}{2C} |w|^2, \qquad z_i = \sum_j x_{ij} s_j w_j + w_0

Each column is a separate regression with labels y of 1 and -1, or 0 for instances to ignore, and scales s of the
features. A pass visits each instance once, in random order, and sets its dual variable to the optimum (Yu, Huang and
Lin 2011). About ten passes suffice. A pass over many columns costs little more than over one, because reading the
matrix dominates. The result is v = s w; its last row is the intercept w_0.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from quanet.arrays import IntArray
from quanet.kernels import compiled

Floats = NDArray[np.float32]
Numbers = NDArray[Any]  # integers of 32 or 64 bits, as in scipy
TOLERANCE = 1e-4  # stop when posteriors change by less than this in a pass, on average
MAX_PASSES = 50


def fit_logistic(
    X: csr_matrix,
    signs: Floats,
    C: float,
    *,
    scale: Floats | None = None,
    start: Floats | None = None,
    random_state: int = 0,
) -> tuple[Floats, Floats]:
    """Weights (d + 1, b) and dual variables (n, b) of b regressions on X (n, d), float32.

    Parameters
    ----------
    signs : (n, b) 1 and -1 for the two classes, 0 for instances to ignore.
    C : inverse strength of the regularisation.
    scale : (d + 1, b) scales of the features; None: 1.
    start : (n, b) or (n, 1) initial dual variables, such as those of a fit to more instances. The problem is strictly
        convex, so the optimum is the same from any start.

    Examples
    --------
    >>> X = csr_matrix(np.array([[1.0], [2.0], [-1.0], [-2.0]], dtype=np.float32))
    >>> weights, _ = fit_logistic(X, np.array([[1.0], [1.0], [-1.0], [-1.0]], dtype=np.float32), 1.0)
    >>> scores(X, weights).ravel().round(1)
    array([ 1.,  2., -1., -2.], dtype=float32)
    """
    n, d = X.shape
    b = signs.shape[1]
    matrix = X.data, X.indices, X.indptr
    squares = np.ones((1, 1), dtype=np.float32) if scale is None else scale**2
    lengths = np.empty((n, b), dtype=np.float32)
    _square_lengths(*matrix, squares, scale is not None, lengths)
    weights = np.zeros((d + 1, b), dtype=np.float32)
    dual = np.zeros((n, b), dtype=np.float32)
    if start is not None:
        dual[:] = start * (signs != 0)
        weights = sums(X, dual * signs)
        if scale is not None:
            weights *= squares
    rng = np.random.default_rng(random_state)
    enough = TOLERANCE * C * np.abs(signs).sum(axis=0)
    for _ in range(MAX_PASSES):
        moved = np.zeros(b)
        order = rng.permutation(n)
        _descend(*matrix, order, signs, lengths, C, squares, scale is not None, dual, weights, moved)
        if (moved <= enough).all():
            break
    return weights, dual


def scores(X: csr_matrix, weights: Floats) -> Floats:
    """X (n, d) times weights (d + 1, b), the last row of which is the intercept: (n, b)."""
    out = np.empty((X.shape[0], weights.shape[1]), dtype=np.float32)
    _scores(X.data, X.indices, X.indptr, np.ascontiguousarray(weights), out)
    return out


def sums(X: csr_matrix, shares: Floats) -> Floats:
    """Weighted sums of the rows of X (n, d), and of a column of ones, with weights `shares` (n, b): (d + 1, b)."""
    out = np.zeros((X.shape[1] + 1, shares.shape[1]), dtype=np.float32)
    _sums(X.data, X.indices, X.indptr, np.ascontiguousarray(shares), out)
    return out


@compiled
def _scores(data: Floats, indices: Numbers, starts: Numbers, weights: Floats, out: Floats) -> None:
    for i in range(len(out)):
        row = weights[-1].copy()
        for position in range(starts[i], starts[i + 1]):
            value, j = data[position], indices[position]
            for b in range(len(row)):
                row[b] += value * weights[j, b]
        out[i] = row


@compiled
def _sums(data: Floats, indices: Numbers, starts: Numbers, shares: Floats, out: Floats) -> None:
    for i in range(len(shares)):
        row = shares[i]
        for position in range(starts[i], starts[i + 1]):
            value, j = data[position], indices[position]
            for b in range(len(row)):
                out[j, b] += value * row[b]
        out[-1] += row


@compiled
def _square_lengths(
    data: Floats, indices: Numbers, starts: Numbers, squares: Floats, scaled: bool, out: Floats
) -> None:
    for i in range(len(out)):
        out[i] = squares[-1]
        for position in range(starts[i], starts[i + 1]):
            value, j = data[position], indices[position] if scaled else 0
            for b in range(out.shape[1]):
                out[i, b] += value * value * squares[j, b if scaled else 0]


@compiled
def _best_dual(margin: float, old: float, length: float, C: float) -> float:
    """The optimal dual variable a, given the others: a = C / (1 + exp t), t = margin + length (a - old).

    Newton's method on t, with shrinking bounds.
    """
    low, high = margin - length * old, margin + length * (C - old)
    t = margin
    for _ in range(50):
        share = 1 / (1 + np.exp(t))
        excess = t - margin - length * (C * share - old)
        if excess > 0:
            high = t
        else:
            low = t
        step = excess / (1 + length * C * share * (1 - share))
        t -= step
        if not low < t < high:
            t = (low + high) / 2
        if abs(step) < 1e-4:
            break
    return C / (1 + np.exp(t))


@compiled
def _descend(
    data: Floats,
    indices: Numbers,
    starts: Numbers,
    order: IntArray,
    signs: Floats,
    lengths: Floats,
    C: float,
    squares: Floats,
    scaled: bool,
    dual: Floats,
    weights: Floats,
    moved: Numbers,
) -> None:
    """One pass over the instances; `moved` (b,) sums the absolute changes of the dual variables."""
    width = weights.shape[1]
    z = np.empty(width, dtype=np.float32)
    change = np.empty(width, dtype=np.float32)
    for i in order:
        z[:] = weights[-1]
        for position in range(starts[i], starts[i + 1]):
            value, j = data[position], indices[position]
            for b in range(width):
                z[b] += value * weights[j, b]
        for b in range(width):
            change[b] = 0
            sign = signs[i, b]
            if sign != 0:
                old = np.float64(dual[i, b])
                new = _best_dual(np.float64(z[b] * sign), old, np.float64(lengths[i, b]), C)
                dual[i, b] = new
                change[b] = (new - old) * sign
                moved[b] += abs(new - old)
        if scaled:
            for position in range(starts[i], starts[i + 1]):
                value, j = data[position], indices[position]
                for b in range(width):
                    weights[j, b] += value * change[b] * squares[j, b]
            weights[-1] += change * squares[-1]
        else:
            for position in range(starts[i], starts[i + 1]):
                value, j = data[position], indices[position]
                for b in range(width):
                    weights[j, b] += value * change[b]
            weights[-1] += change
