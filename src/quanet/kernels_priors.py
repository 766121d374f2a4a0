"""The compiled loops of likelihoods with a prior, and of labels given one instance after another."""

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.kernels import compiled, expectation_step

NEVER = 1e-12  # the share of a class that no instance was given to yet


@compiled
def pulled_expectation_maximization(
    rows: FloatArray, scale: FloatArray, trust: FloatArray, out: FloatArray, tol: float, max_iter: int
) -> int:
    """Run EM on every bag from ``out[i]``, each step pulled to uniform by 1 - trust[i]; returns the unsettled."""
    k = rows.shape[2]
    gradient = np.empty(k)
    unsettled = 0
    for i in range(rows.shape[0]):
        settled = False
        step = 0
        while not settled and step < max_iter:
            step += 1
            expectation_step(rows[i], scale, out[i], gradient)
            change = 0.0
            for c in range(k):
                updated = trust[i] * out[i, c] * gradient[c] + (1.0 - trust[i]) / k
                change += abs(updated - out[i, c])
                out[i, c] = updated
            settled = change < tol * k
        unsettled += not settled
    return unsettled


@compiled
def likeliest(row: FloatArray, weights: FloatArray) -> int:
    """The class with the largest weighted posterior; of equals the first."""
    best, top = 0, -1.0
    for c in range(len(row)):
        value = row[c] * weights[c]
        if value > top:
            best, top = c, value
    return best


@compiled
def incremental_prior(rows: FloatArray, order: IntArray, kept: IntArray, prior: FloatArray, out: FloatArray) -> None:
    """Fill `out` (b, k) with LEIP's shares: label the `kept` surest, then each next one by the shares so far.

    ``order[i]`` are the instances of bag i, the surest first.
    """
    b, n, k = rows.shape
    plain, weights, counts = np.ones(k), np.empty(k), np.empty(k)
    for i in range(b):
        counts[:] = 0.0
        for j in range(kept[i]):
            counts[likeliest(rows[i, order[i, j]], plain)] += 1.0
        for j in range(kept[i], n + 1):
            for c in range(k):
                share = counts[c] / j if j else prior[c]
                weights[c] = max(share, NEVER) / prior[c]
            if j < n:
                counts[likeliest(rows[i, order[i, j]], weights)] += 1.0
        out[i] = 0.0
        for j in range(n):
            out[i, likeliest(rows[i, j], weights)] += 1.0 / n
