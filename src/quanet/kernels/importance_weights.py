"""Weights of at least minus one, and means of table entries."""

import numpy as np

from quanet.arrays import FloatArray
from quanet.kernels.compiler import compiled

SWEEPS = 2000  # coordinate descent settles far earlier unless classes cannot be separated
SETTLED = 1e-11


@compiled
def bounded_ridge(quadratic: FloatArray, linear: FloatArray, ridge: float, point: FloatArray) -> None:
    """Move `point` to the minimum of x'Qx / 2 + ridge x'x / 2 - l'x over x >= -1, one coordinate at a time."""
    k = len(point)
    for _ in range(SWEEPS):
        largest = 0.0
        for c in range(k):
            slope = ridge * point[c] - linear[c]
            for a in range(k):
                slope += quadratic[c, a] * point[a]
            moved = max(point[c] - slope / (quadratic[c, c] + ridge), -1.0)
            largest = max(largest, abs(moved - point[c]))
            point[c] = moved
        if largest < SETTLED:
            break


@compiled
def bounded_shifts(
    joint: FloatArray, targets: FloatArray, rho: float, low: float, high: float, steps: int, out: FloatArray
) -> None:
    """Fill `out` (b, k) with the minima of |C x - t| + rho |x| over x >= -1, for targets t (b, k).

    The minimum is that of a ridge regression whose ridge equals rho |C x - t| / |x|; bisection of its logarithm finds
    it, between `low` and `high`.
    """
    quadratic = joint.T @ joint
    for i in range(len(targets)):
        linear = joint.T @ targets[i]
        below, above = low, high
        for _ in range(steps):
            ridge = np.exp(0.5 * (below + above))
            bounded_ridge(quadratic, linear, ridge, out[i])
            residual = joint @ out[i] - targets[i]
            if ridge * np.sqrt((out[i] ** 2).sum()) < rho * np.sqrt((residual**2).sum()):
                below = np.log(ridge)
            else:
                above = np.log(ridge)


@compiled
def mean_entries(profiles: FloatArray, tables: FloatArray, out: FloatArray) -> None:
    """Fill out (b, m, k) with the means over instances of the rows of `tables` that profiles (b, n, m) name."""
    b, n, m = profiles.shape
    k = tables.shape[1]
    out[:] = 0.0
    for i in range(b):
        for j in range(n):
            for s in range(m):
                entry = int(profiles[i, j, s])
                for c in range(k):
                    out[i, s, c] += tables[entry, c]
    out /= n
