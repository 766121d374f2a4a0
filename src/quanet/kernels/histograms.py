"""Distribution matching: counting in bins, and the nearest mixture of two classes."""

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.kernels.compiler import compiled

HELLINGER, TOPSOE, LIKELIHOOD = 0, 1, 2  # the divergences that have a compiled search


@compiled
def count_cells(cells: FloatArray, first: IntArray, out: FloatArray) -> None:
    """Add to ``out[i, first[c] + cells[i, j, c]]`` one for every instance `j` of bag `i` and column `c`."""
    b, n, columns = cells.shape
    for i in range(b):
        for j in range(n):
            for c in range(columns):
                out[i, first[c] + np.int64(cells[i, j, c])] += 1.0


@compiled
def add_cells(cells: FloatArray, bins: IntArray, out: FloatArray) -> None:
    """Add the counts of cells (b, g) to the bins that they are in, one in each of several divisions (s, g)."""
    for i in range(cells.shape[0]):
        for g in range(cells.shape[1]):
            if cells[i, g] > 0.0:
                for s in range(bins.shape[0]):
                    out[i, bins[s, g]] += cells[i, g]


@compiled
def count_cubic(values: FloatArray, step: float, out: FloatArray) -> None:
    """Spread every value (b, n) over the four cells around it, as cubic interpolation weighs them; cell 1 is at 0."""
    b, n = values.shape
    last = out.shape[1] - 4
    for i in range(b):
        for j in range(n):
            place = values[i, j] / step
            whole = min(max(np.int64(place), 0), last)
            part = place - whole
            out[i, whole] -= part * (part - 1.0) * (part - 2.0) / 6.0
            out[i, whole + 1] += (part + 1.0) * (part - 1.0) * (part - 2.0) / 2.0
            out[i, whole + 2] -= (part + 1.0) * part * (part - 2.0) / 2.0
            out[i, whole + 3] += (part + 1.0) * part * (part - 1.0) / 6.0


@compiled
def slope_and_curvature(
    point: float, one: FloatArray, step: FloatArray, target: FloatArray, bins: int, kind: int
) -> tuple[float, float]:
    """First and second derivative of a divergence from the mixture ``one + point * step``, less a constant slope."""
    slope, curvature = 0.0, 0.0
    for j in range(bins):
        mixed = one[j] + point * step[j]
        if kind == HELLINGER:
            ratio = np.sqrt(target[j] / mixed)
            slope -= ratio * step[j]
            curvature += 0.5 * ratio / mixed * step[j] * step[j]
        elif kind == TOPSOE:
            total = mixed + target[j]
            slope += np.log(mixed / total) * step[j]
            curvature += target[j] / (mixed * total) * step[j] * step[j]
        else:
            ratio = target[j] / mixed
            slope -= ratio * step[j]
            curvature += ratio / mixed * step[j] * step[j]
    return slope, curvature


@compiled
def nearest_of_two(
    templates: FloatArray, targets: FloatArray, kind: int, start: float, tol: float, max_iter: int, out: FloatArray
) -> None:
    """Share of the second of two templates (J, 2) in the mixture nearest to every target (b, J): out (b,).

    The divergences are convex in the share, so Newton's method between two brackets finds its only minimum. A bin that
    the bag leaves empty adds a constant slope, and one that both classes leave empty has no effect.
    """
    width = templates.shape[0]
    one, step, target = np.empty(width), np.empty(width), np.empty(width)
    constant = np.log(2.0) if kind == TOPSOE else 1.0
    drift, distance = 0.0, 0.0
    for j in range(width):
        drift += constant * (templates[j, 1] - templates[j, 0])
        distance += abs(templates[j, 1] - templates[j, 0])
    for i in range(targets.shape[0]):
        bins = 0
        for j in range(width):
            if targets[i, j] > 0.0 and templates[j, 0] + templates[j, 1] > 0.0:
                one[bins] = templates[j, 0]
                step[bins] = templates[j, 1] - templates[j, 0]
                target[bins] = targets[i, j]
                bins += 1
        out[i] = start
        if distance <= 1e-12 or bins == 0:
            continue
        at_zero = drift + slope_and_curvature(0.0, one, step, target, bins, kind)[0]
        at_one = drift + slope_and_curvature(1.0, one, step, target, bins, kind)[0]
        if at_zero >= 0.0 or at_one <= 0.0:
            if not (at_zero >= 0.0 and at_one <= 0.0):  # flat from end to end: nothing to tell, so the start
                out[i] = 0.0 if at_zero >= 0.0 else 1.0
            continue
        low, high, point = 0.0, 1.0, start if 0.0 < start < 1.0 else 0.5
        for _ in range(max_iter):
            slope, curvature = slope_and_curvature(point, one, step, target, bins, kind)
            slope += drift
            if slope > 0.0:
                high = point
            else:
                low = point
            moved = point - slope / curvature
            if not low < moved < high and moved != point:
                moved = 0.5 * (low + high)
            settled = abs(moved - point) < tol
            point = moved
            if settled:
                break
        out[i] = point


@compiled
def nearest_by_order(scores: FloatArray, shares: FloatArray, bags: FloatArray, start: float, out: FloatArray) -> None:
    """Share of the second class whose mixture of scores can be moved onto a bag's with the least work: out (b,).

    ``scores`` (m,) are sorted, ``shares`` (m, 2) the part of each class up to and with each of them; ``bags`` (b, n)
    are sorted too. The work is the area between two distribution functions, a sum of |a d - r| over the gaps between
    scores: its minimum is the median of r / d weighted by |d| times the gap, found here by narrowing down.
    """
    m, n = len(scores), bags.shape[1]
    points, weights = np.empty(m + n), np.empty(m + n)
    for i in range(bags.shape[0]):
        low_weight, high_weight, kept = 0.0, 0.0, 0
        a, b = 0, 0
        value = min(scores[0], bags[i, 0])
        while a < m or b < n:
            while a < m and scores[a] <= value:
                a += 1
            while b < n and bags[i, b] <= value:
                b += 1
            if a == m and b == n:
                break
            following = min(scores[a] if a < m else np.inf, bags[i, b] if b < n else np.inf)
            negative = shares[a - 1, 0] if a > 0 else 0.0
            step = (shares[a - 1, 1] if a > 0 else 0.0) - negative
            if step != 0.0:
                point = (b / n - negative) / step
                weight = abs(step) * (following - value)
                if point <= 0.0:
                    low_weight += weight
                elif point >= 1.0:
                    high_weight += weight
                else:
                    points[kept] = point
                    weights[kept] = weight
                    kept += 1
            value = following
        inside = weights[:kept].sum()
        if low_weight + high_weight + inside == 0.0:
            out[i] = start
            continue
        if low_weight >= high_weight + inside:
            out[i] = 0.0
            continue
        if high_weight >= low_weight + inside:
            out[i] = 1.0
            continue
        low, high = 0.0, 1.0
        while kept > 1 and high - low > 1e-15:
            pivot = 0.5 * (low + high)
            below = 0.0
            for j in range(kept):
                if points[j] <= pivot:
                    below += weights[j]
            left = low_weight + below >= high_weight + (inside - below)
            remaining = 0
            for j in range(kept):
                if (points[j] <= pivot) == left:
                    points[remaining] = points[j]
                    weights[remaining] = weights[j]
                    remaining += 1
            if left:
                high = pivot
                high_weight += inside - below
                inside = below
            else:
                low = pivot
                low_weight += below
                inside -= below
            kept = remaining
        out[i] = points[0] if kept == 1 else 0.5 * (low + high)


@compiled
def rank_quadratics(
    rows: FloatArray,
    table: FloatArray,
    above: FloatArray,
    beyond: FloatArray,
    quadratics: FloatArray,
    linears: FloatArray,
) -> None:
    """Squared differences of distribution functions, summed over the ranks of training and bag: (b, k, k) and (b, k).

    Rows (b, n, 3 c) are values, and how many training values are not above and how many are below them, column by
    column. ``table`` (c, m + 1, k) has the classes' distribution functions after so many training values, ``above`` and
    ``beyond`` their sums over the training values from there on, with and without the value itself counted. Both are
    added to `quadratics` and `linears`, which hold what the training values add to them for any bag.
    """
    b, n, width = rows.shape
    columns, k = width // 3, table.shape[2]
    for i in range(b):
        for c in range(columns):
            order = np.argsort(rows[i, :, c])
            first = 0
            while first < n:
                here = order[first]
                last = first
                while last < n and rows[i, order[last], c] == rows[i, here, c]:
                    last += 1
                upto = table[c, np.int64(rows[i, here, columns + c])]
                under = table[c, np.int64(rows[i, here, 2 * columns + c])]
                from_here = above[c, np.int64(rows[i, here, 2 * columns + c])]
                from_next = beyond[c, np.int64(rows[i, here, columns + c])]
                half = 0.5 * (last - first)
                for one in range(k):
                    linears[i, one] += (
                        half * (upto[one] * last + under[one] * first + from_here[one] + from_next[one]) / n
                    )
                    left, right = half * upto[one], half * under[one]
                    for other in range(one + 1):
                        quadratics[i, one, other] += left * upto[other] + right * under[other]
                first = last
        for one in range(k):
            for other in range(one):
                quadratics[i, other, one] = quadratics[i, one, other]
