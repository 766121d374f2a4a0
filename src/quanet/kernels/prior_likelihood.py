"""Likelihoods with a prior, and labels given one instance after another."""

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.kernels.compiler import compiled
from quanet.kernels.maximum_likelihood import expectation_step
from quanet.kernels.quadratic import newton_target

NEVER = 1e-12  # the share of a class that no instance was given to yet


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


@compiled
def smooth_likelihood(
    rows: FloatArray, scale: FloatArray, penalty: FloatArray, out: FloatArray, tol: float, max_iter: int
) -> int:
    """Maximise every bag's mean log-likelihood less p'Kp / 2 from ``out[i]``; returns how many did not settle.

    As `mixture_likelihood`, sequential quadratic programming, with a penalty K (k, k) that is positive semidefinite.
    """
    n, k = rows.shape[1:]
    scaled = np.empty((n, k))
    gradient, trial_gradient = np.empty(k), np.empty(k)
    unsettled = 0
    for i in range(rows.shape[0]):
        bag, prevalence = rows[i], out[i]
        pulled = penalty @ prevalence
        height = expectation_step(bag, scale, prevalence, gradient) - 0.5 * (prevalence * pulled).sum()
        gradient -= pulled
        settled = False
        for _ in range(max_iter):
            weights = prevalence * scale
            for j in range(n):
                mixture = 0.0
                for c in range(k):
                    mixture += bag[j, c] * weights[c]
                for c in range(k):
                    scaled[j, c] = bag[j, c] * scale[c] / mixture
            hessian = scaled.T @ scaled / n + penalty
            direction = newton_target(hessian, gradient, prevalence, 1e-9) - prevalence
            slope = (gradient * direction).sum()
            length = 1.0
            while True:
                trial = prevalence + length * direction
                pulled = penalty @ trial
                trial_height = expectation_step(bag, scale, trial, trial_gradient) - 0.5 * (trial * pulled).sum()
                if trial_height >= height + 1e-4 * length * slope - 1e-14 or length < 1e-9:
                    break
                length *= 0.5
            settled = np.abs(trial - prevalence).max() < tol
            prevalence[:] = trial
            gradient[:] = trial_gradient - pulled
            height = trial_height
            if settled:
                break
        unsettled += not settled
    return unsettled
