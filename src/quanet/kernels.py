"""The compiled loops, each over a whole stack of bags: numba's only door.

A kernel fills arrays that its caller made and checked; it neither validates nor allocates by the number of bags.
Likelihoods are L = rows * scale: rows (b, n, k) stay as they are gathered, and `scale` (k,) takes out their prior.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar, cast

import numba
import numpy as np

from quanet.arrays import FloatArray, IntArray

F = TypeVar("F", bound=Callable[..., object])

# Sums may be reordered to use vector units; infinities and NaN keep their meaning.
REORDER = {"reassoc", "contract", "arcp", "nsz"}
INDISTINCT = 1e-12  # likelihoods that differ by less say nothing but rounding
WARM_UP = 6  # EM steps before Newton's: cheap while far from the optimum


def compiled(function: F) -> F:
    """Compile `function`, keeping the machine code on disk where a folder for it can be written."""
    compiler = partial(numba.njit, error_model="numpy", fastmath=REORDER, nogil=True)
    try:
        return cast("F", compiler(cache=True)(function))
    except RuntimeError:  # no writable folder, as in a read-only container: compile in every process
        return cast("F", compiler()(function))


@compiled
def draw_by_class(pool: IntArray, starts: IntArray, counts: IntArray, uniforms: FloatArray, out: IntArray) -> None:
    """Draw ``counts[i, c]`` instances of every class `c` for every bag `i`, one bag after another into `out`.

    ``pool[starts[c]:starts[c + 1]]`` are the instances of class `c`; the slice is shuffled in place as far as a bag
    needs (Fisher and Yates), which leaves every later bag uniform too. A class with too few instances is drawn from
    with replacement.
    """
    position = 0
    for i in range(counts.shape[0]):
        for c in range(counts.shape[1]):
            first = starts[c]
            available = starts[c + 1] - first
            wanted = counts[i, c]
            for j in range(wanted):
                if wanted <= available:
                    other = first + j + np.int64(uniforms[position] * (available - j))
                    chosen = pool[other]
                    pool[other] = pool[first + j]
                    pool[first + j] = chosen
                else:
                    chosen = pool[first + np.int64(uniforms[position] * available)]
                out[position] = chosen
                position += 1


@compiled
def count_argmax(posteriors: FloatArray, out: FloatArray) -> None:
    """Add to ``out[i, c]`` the instances of bag `i` whose largest posterior is that of class `c`."""
    n, k = posteriors.shape[1:]
    for i in range(posteriors.shape[0]):
        if k == 2:  # without a branch, so that many instances are compared at once
            second = 0
            for j in range(n):
                second += posteriors[i, j, 1] > posteriors[i, j, 0]
            out[i, 0] += n - second
            out[i, 1] += second
        else:
            for j in range(n):
                best, top = 0, posteriors[i, j, 0]
                for c in range(1, k):
                    value = posteriors[i, j, c]
                    if value > top:
                        best, top = c, value
                out[i, best] += 1


@compiled
def pool_in_order(rows: FloatArray, order: IntArray, out: FloatArray) -> None:
    """Mean of the rows (b, n, d) in each of g equal parts of an order (b, n): out (b, g, d).

    A row that lies across the border of two parts counts in both, by its share; so bags smaller than g work too.
    """
    b, n, d = rows.shape
    g = out.shape[1]
    for i in range(b):
        out[i] = 0.0
        for j in range(n):
            start, end = j * g / n, (j + 1) * g / n  # where the row lies, in units of parts
            part = min(int(start), g - 1)
            while start < end - 1e-12:
                stop = min(end, part + 1.0)
                share = stop - start
                for c in range(d):
                    out[i, part, c] += share * rows[i, order[i, j], c]
                start = stop
                part = min(part + 1, g - 1)


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
    rows: FloatArray, scale: FloatArray, out: FloatArray, tol: float, min_iter: int, max_iter: int
) -> int:
    """Run EM on every bag from ``out[i]`` until the mean change over classes is below `tol`; returns the unsettled."""
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
                updated = out[i, c] * gradient[c]
                change += abs(updated - out[i, c])
                out[i, c] = updated
            settled = step >= min_iter and change < tol * k
        unsettled += not settled
    return unsettled


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
            solved = np.linalg.solve(block, right)
            multiplier = (solved[:, 0].sum() - 1.0) / solved[:, 1].sum()
            step, blocking = 1.0, -1
            for a in range(m):
                target = solved[a, 0] - multiplier * solved[a, 1]
                current = point[members[a]]
                if target <= 0.0 and current - target > 0.0 and current / (current - target) < step:
                    step, blocking = current / (current - target), members[a]
            for a in range(m):
                target = solved[a, 0] - multiplier * solved[a, 1]
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
def simplex_quadratics(quadratic: FloatArray, linears: FloatArray, out: FloatArray) -> None:
    """Run `simplex_quadratic` on every row of `linears` and `out` with one and the same matrix."""
    for i in range(len(linears)):
        simplex_quadratic(quadratic, linears[i], out[i])


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
            ridge = 1e-7 * np.trace(hessian) / k
            for c in range(k):
                hessian[c, c] += ridge
            target = prevalence.copy()
            simplex_quadratic(hessian, gradient + hessian @ prevalence, target)
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
