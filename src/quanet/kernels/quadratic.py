"""Quadratic functions over the simplex."""

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.kernels.compiler import compiled


@compiled
def solve_in_place(matrix: FloatArray, right: FloatArray) -> None:
    """Turn `right` (m, c) into the solution x of ``matrix @ x = right``, by elimination with pivots.

    numpy's own takes ten times as long to compile.
    """
    m, columns = right.shape
    for i in range(m):
        pivot = i
        for a in range(i + 1, m):
            if abs(matrix[a, i]) > abs(matrix[pivot, i]):
                pivot = a
        if pivot != i:
            for b in range(m):
                matrix[i, b], matrix[pivot, b] = matrix[pivot, b], matrix[i, b]
            for b in range(columns):
                right[i, b], right[pivot, b] = right[pivot, b], right[i, b]
        for a in range(i + 1, m):
            factor = matrix[a, i] / matrix[i, i]
            for b in range(i + 1, m):
                matrix[a, b] -= factor * matrix[i, b]
            for b in range(columns):
                right[a, b] -= factor * right[i, b]
    for i in range(m - 1, -1, -1):
        for c in range(columns):
            for b in range(i + 1, m):
                right[i, c] -= matrix[i, b] * right[b, c]
            right[i, c] /= matrix[i, i]


@compiled
def simplex_quadratic(quadratic: FloatArray, linear: FloatArray, point: FloatArray) -> None:
    """Move `point` to the minimum of x'Qx / 2 - l'x over the simplex; Q positive definite; an active-set method.

    As Lawson and Hanson's least squares, with the sum fixed to one: solve on the support, step back to the first
    coordinate that would turn negative and drop it, add the coordinate with the most negative multiplier, repeat.
    """
    k = len(point)
    support = point > 0.0
    for _ in range(20 * k):
        while True:
            members = np.flatnonzero(support)
            m = len(members)
            block = np.empty((m, m))
            right = np.empty((m, 2))
            for a in range(m):
                right[a, 0] = linear[members[a]]
                right[a, 1] = 1.0
                for b in range(m):
                    block[a, b] = quadratic[members[a], members[b]]
            solve_in_place(block, right)
            multiplier = (right[:, 0].sum() - 1.0) / right[:, 1].sum()
            step, blocking = 1.0, -1
            for a in range(m):
                target = right[a, 0] - multiplier * right[a, 1]
                current = point[members[a]]
                if target <= 0.0 and current - target > 0.0 and current / (current - target) < step:
                    step, blocking = current / (current - target), members[a]
            for a in range(m):
                target = right[a, 0] - multiplier * right[a, 1]
                point[members[a]] += step * (target - point[members[a]])
            if blocking < 0:
                break
            point[blocking] = 0.0
            support[blocking] = False
        entering, worst = -1, -1e-12
        for c in range(k):
            if not support[c]:
                slack = multiplier - linear[c]
                for a in range(m):
                    slack += quadratic[c, members[a]] * point[members[a]]
                if slack < worst:
                    entering, worst = c, slack
        if entering < 0:
            break
        support[entering] = True


@compiled
def newton_target(hessian: FloatArray, gradient: FloatArray, point: FloatArray, ridge: float) -> FloatArray:
    """Where a Newton step over the simplex leads from `point`, to maximise a concave function.

    `hessian` is minus its second derivatives; `ridge` times the mean of its diagonal is added to that diagonal.
    """
    k = len(point)
    added = ridge * np.trace(hessian) / k
    for c in range(k):
        hessian[c, c] += added
    target = point.copy()
    simplex_quadratic(hessian, gradient + hessian @ point, target)
    return target


@compiled
def simplex_quadratics(quadratic: FloatArray, linears: FloatArray, out: FloatArray) -> None:
    """Run `simplex_quadratic` on every row of `linears` and `out` with one and the same matrix."""
    for i in range(len(linears)):
        simplex_quadratic(quadratic, linears[i], out[i])


@compiled
def simplex_quadratics_of(quadratics: FloatArray, which: IntArray, linears: FloatArray, out: FloatArray) -> None:
    """Run `simplex_quadratic` on every row of `linears` and `out`, row i with ``quadratics[which[i]]``."""
    for i in range(len(linears)):
        simplex_quadratic(quadratics[which[i]], linears[i], out[i])
