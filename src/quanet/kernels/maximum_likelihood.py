"""Mixture likelihoods over the simplex, by Newton's method and by EM.

Likelihoods are L = rows * scale: rows (b, n, k) stay as they are gathered, and `scale` (k,) takes out their prior.
"""

import numpy as np

from quanet.arrays import FloatArray
from quanet.kernels.compiler import compiled
from quanet.kernels.quadratic import newton_target

INDISTINCT = 1e-12  # likelihoods that differ by less differ by rounding alone
WARM_UP = 6  # EM steps before Newton's: cheap while far from the optimum


@compiled
def contrasts(rows: FloatArray, scale: FloatArray, out: FloatArray) -> float:
    """Fill `out` with the instances' (L1 - L0) / (L1 + L0), all that two classes need; returns its mean square."""
    total = 0.0
    for j in range(len(out)):
        negative, positive = rows[j, 0] * scale[0], rows[j, 1] * scale[1]
        out[j] = (positive - negative) / (positive + negative)
        total += out[j] * out[j]
    return total / len(out)


@compiled
def binary_likelihood(rows: FloatArray, scale: FloatArray, out: FloatArray, tol: float, max_iter: int) -> int:
    """Maximise every bag's two-class likelihood by Newton's method; returns how many bags did not settle.

    With the log-likelihood written as sum(log(1 + s t)), where t in [-1, 1] is an instance's contrast and s = 2 p - 1,
    the problem is symmetric in the classes and strictly concave in s.
    """
    n = rows.shape[1]
    contrast = np.empty(n)
    unsettled = 0
    for i in range(rows.shape[0]):
        settled = contrasts(rows[i], scale, contrast) <= INDISTINCT * INDISTINCT
        low, high, s = -1.0, 1.0, 2.0 * out[i, 1] - 1.0
        step = 0
        while not settled and step < max_iter:
            step += 1
            slope, curvature = 0.0, 0.0
            for j in range(n):
                u = contrast[j] / (1.0 + s * contrast[j])
                slope += u
                curvature += u * u
            if slope > 0.0:
                low = s
            else:
                high = s
            target = s + slope / curvature
            if target != s and not low < target < high:  # Newton overshot: the end is the answer, or lies beyond it
                end = high if slope > 0.0 else low
                outward = 0.0
                for j in range(n):
                    outward += contrast[j] / (1.0 + end * contrast[j])
                settled = outward * slope >= 0.0
                target = end if settled else s + 0.9 * (end - s)
            settled = settled or abs(target - s) < tol
            s = target
        unsettled += not settled
        out[i, 1] = 0.5 * (1.0 + s)
        out[i, 0] = 0.5 * (1.0 - s)
    return unsettled


@compiled
def binary_expectation_maximization(
    rows: FloatArray, scale: FloatArray, out: FloatArray, tol: float, min_iter: int, max_iter: int
) -> int:
    """Do as `expectation_maximization`, for two classes and with one division an instance."""
    n = rows.shape[1]
    contrast = np.empty(n)
    unsettled = 0
    for i in range(rows.shape[0]):
        contrasts(rows[i], scale, contrast)
        positive = out[i, 1]
        settled = False
        step = 0
        while not settled and step < max_iter:
            step += 1
            total = 0.0
            for j in range(n):
                total += (1.0 + contrast[j]) / (1.0 + (2.0 * positive - 1.0) * contrast[j])
            updated = positive * total / n
            settled = step >= min_iter and abs(updated - positive) < tol
            positive = updated
        unsettled += not settled
        out[i, 0] = 1.0 - positive
        out[i, 1] = positive
    return unsettled


@compiled
def expectation_step(rows: FloatArray, scale: FloatArray, prevalence: FloatArray, gradient: FloatArray) -> float:
    """Fill `gradient` with the mean of L_ij / (L q)_i over a bag's instances; returns the mean log-likelihood."""
    n, k = rows.shape
    weights = prevalence * scale
    gradient[:] = 0.0
    log_likelihood = 0.0
    whole = n - n % 4
    for i in range(0, whole, 4):  # four instances at a time keep the processor's pipelines full
        one, two, three, four = 0.0, 0.0, 0.0, 0.0
        for c in range(k):
            weight = weights[c]
            one += rows[i, c] * weight
            two += rows[i + 1, c] * weight
            three += rows[i + 2, c] * weight
            four += rows[i + 3, c] * weight
        product = one * two * three * four
        if 1e-300 < product < 1e300:
            log_likelihood += np.log(product)
        else:
            log_likelihood += np.log(one) + np.log(two) + np.log(three) + np.log(four)
        one, two, three, four = 1.0 / one, 1.0 / two, 1.0 / three, 1.0 / four
        for c in range(k):
            gradient[c] += rows[i, c] * one + rows[i + 1, c] * two + rows[i + 2, c] * three + rows[i + 3, c] * four
    for i in range(whole, n):
        mixture = 0.0
        for c in range(k):
            mixture += rows[i, c] * weights[c]
        log_likelihood += np.log(mixture)
        for c in range(k):
            gradient[c] += rows[i, c] / mixture
    for c in range(k):
        gradient[c] *= scale[c] / n
    return log_likelihood / n


@compiled
def expectation_maximization(
    rows: FloatArray, scale: FloatArray, trust: FloatArray, out: FloatArray, tol: float, min_iter: int, max_iter: int
) -> int:
    """Run EM on every bag from ``out[i]`` until the mean change over classes is below `tol`; returns the unsettled.

    Each step is pulled to uniform shares by ``1 - trust[i]``; a trust of one is plain EM.
    """
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
            settled = step >= min_iter and change < tol * k
        unsettled += not settled
    return unsettled


@compiled
def mixture_likelihood(rows: FloatArray, scale: FloatArray, out: FloatArray, tol: float, max_iter: int) -> int:
    """Maximise every bag's mixture likelihood over the simplex from ``out[i]``; returns how many did not settle.

    Sequential quadratic programming (Kim, Carbonetto, Stephens and Anitescu 2020): the second-order model is minimised
    exactly over the simplex, and a line search keeps the likelihood rising.
    """
    n, k = rows.shape[1:]
    scaled = np.empty((n, k), dtype=np.float32)  # for curvature alone, which steers the steps but not where they end
    gradient, trial_gradient = np.empty(k), np.empty(k)
    unsettled = 0
    for i in range(rows.shape[0]):
        bag, prevalence = rows[i], out[i]
        height = expectation_step(bag, scale, prevalence, gradient)
        for _ in range(WARM_UP):
            if gradient.max() - 1.0 > INDISTINCT:
                prevalence *= gradient
                height = expectation_step(bag, scale, prevalence, gradient)
        settled = gradient.max() - 1.0 <= INDISTINCT
        step = 0
        while not settled and step < max_iter:
            step += 1
            weights = prevalence * scale
            for j in range(n):
                mixture = 0.0
                for c in range(k):
                    mixture += bag[j, c] * weights[c]
                inverse = 1.0 / mixture
                for c in range(k):
                    scaled[j, c] = bag[j, c] * scale[c] * inverse
            hessian = (scaled.T @ scaled).astype(np.float64) / n
            target = newton_target(hessian, gradient, prevalence, 1e-7)
            direction = target - prevalence
            slope = (gradient * direction).sum()
            length = 1.0
            trial = target
            trial_height = expectation_step(bag, scale, trial, trial_gradient)
            while not trial_height >= height + 1e-4 * length * slope - 1e-14 and length > 1e-9:
                length *= 0.5
                trial = prevalence + length * direction
                trial_height = expectation_step(bag, scale, trial, trial_gradient)
            change = np.abs(trial - prevalence).max()
            prevalence[:] = trial
            gradient[:] = trial_gradient
            height = trial_height
            # The slope bounds what a further step could gain, so that the last one need not be tried.
            settled = change < tol or gradient.max() - 1.0 < 0.1 * tol
        unsettled += not settled
    return unsettled
