r"""A structural support vector machine with one slack, by cutting planes (Joachims 2005; Joachims, Finley and Yu 2009).

.. math:: \min_w \tfrac12 |w|^2 + C \xi \quad \text{s.t.} \quad
    \frac{50}{n} \sum_i (y_i - y'_i)\, w \cdot [x_i, 1] \ge \Delta(y, y') - \xi \quad \text{for all labellings } y'

Each labelling is a plane under the slack. The planes found so far give a lower bound (the dual, solved exactly), every
w an upper one (the primal); the difference is the gap, and the w with the lowest primal is the answer.

The next plane is that of the labelling which violates the margin most under a loss on the contingency table. Losses are
those of svm_perf's quantification variants, in its scale: per cent, except for KLD. A labelling without loss other than
`y` itself is never returned, as there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.kernels import compiled
from quanet.parameters import one_of

Search = Callable[[FloatArray], tuple[float, BoolArray]]
Features = FloatArray | csr_matrix
Values = NDArray[Any]  # as scipy has them: floats and whole numbers of 32 or 64 bits
SECOND_LOOK = 0.3  # how far from the best weights towards those that were no better
OLD = 30  # steps after which a plane that holds nothing up is dropped
LEAF = 64  # tables in a rectangle that is scanned rather than cut
STACK = 512  # rectangles waiting: each level of cuts leaves one, and 2^40 tables have 40 levels


@compiled
def _sparse_scores(data: Values, indices: Values, starts: Values, weights: FloatArray, out: FloatArray) -> None:
    for i in range(len(out)):
        total = 0.0
        for position in range(starts[i], starts[i + 1]):
            total += data[position] * weights[indices[position]]
        out[i] = total


@compiled
def _sparse_sum(data: Values, indices: Values, starts: Values, signs: FloatArray, out: FloatArray) -> None:
    for i in range(len(signs)):
        sign = signs[i]
        if sign != 0.0:
            for position in range(starts[i], starts[i + 1]):
                out[indices[position]] += sign * data[position]


def scores_of(X: Features, weights: FloatArray) -> FloatArray:
    """Score of every instance: (n, d), (d + 1,) -> (n,); the last weight is the intercept."""
    if not isinstance(X, csr_matrix):
        return np.asarray(X @ weights[:-1] + weights[-1])
    out = np.empty(X.shape[0])
    _sparse_scores(X.data, X.indices, X.indptr, weights, out)
    out += weights[-1]
    return out


def plane_of(X: Features, positive: BoolArray, labelling: BoolArray) -> FloatArray:
    """How the margin to a labelling grows with the weights: (n, d), (n,), (n,) -> (d + 1,)."""
    signs = positive.astype(np.float64) - labelling
    out = np.zeros(X.shape[1] + 1)
    if isinstance(X, csr_matrix):
        _sparse_sum(X.data, X.indices, X.indptr, signs, out)
    else:
        out[:-1] = signs @ X
    out[-1] = signs.sum()
    out *= 100.0 / X.shape[0]
    return out


@compiled
def solve_dual(quadratic: FloatArray, losses: FloatArray, shares: FloatArray) -> None:
    r"""Move `shares` (m,) to the maximum of l'x - x'Qx / 2 over the simplex: an active-set method that ends on the gap.

    On the support the maximum has a closed form; where a share would turn negative on the way there it leaves the
    support, and at the end of the way the plane that rises highest joins it. There may be more planes than dimensions,
    so Q may be singular: a ridge bounds each way, not where it ends, and a constant added to Q, which changes nothing
    where shares sum to one, lets a plane be zero.
    """
    m = len(losses)
    largest = max(np.diag(quadratic).max(), 1e-12 * losses.max())
    support = shares > 0.0
    heights = losses - quadratic @ shares
    for _ in range(20 * m + 20):
        level = (shares * heights).sum()
        if heights.max() - level <= 1e-11 * losses.max():
            break
        support[heights.argmax()] = True
        while True:
            members = np.flatnonzero(support)
            size = len(members)
            block = np.empty((size, size))
            right = np.ones((size, 2))
            for i in range(size):
                right[i, 0] = heights[members[i]] - level
                for j in range(size):
                    block[i, j] = quadratic[members[i], members[j]] + largest
                block[i, i] += 1e-10 * largest
            solved = np.linalg.solve(block, right)
            way = solved[:, 0] - solved[:, 0].sum() / solved[:, 1].sum() * solved[:, 1]
            step, blocking = 1.0, -1
            for i in range(size):
                if way[i] < 0.0 and shares[members[i]] <= -step * way[i]:
                    step, blocking = -shares[members[i]] / way[i], members[i]
            for i in range(size):
                shares[members[i]] = max(shares[members[i]] + step * way[i], 0.0)
            if blocking >= 0:
                shares[blocking] = 0.0
                support[blocking] = False
            shares /= shares.sum()
            heights = losses - quadratic @ shares
            level = (shares * heights).sum()
            if blocking < 0:
                break


class Planes:
    """The planes found so far, their products with one another, and their shares: what a warm start needs.

    The first is that of the true labelling, which keeps the slack at or above zero. Planes do not depend on C, so those
    found for one C are planes for every other.
    """

    def __init__(self, width: int) -> None:
        self._room = np.zeros((4, width))  # grown by doubling, so that a new plane does not copy the others
        self.gram: FloatArray = np.zeros((1, 1))
        self.losses: FloatArray = np.zeros(1)
        self.shares: FloatArray = np.ones(1)
        self._idle: IntArray = np.zeros(1, dtype=np.intp)

    def __len__(self) -> int:
        return len(self.losses)

    @property
    def directions(self) -> FloatArray:
        """One plane a row: (m, d + 1)."""
        return self._room[: len(self)]

    def add(self, direction: FloatArray, loss: float) -> None:
        """Take in a plane: (d + 1,); it has no share yet."""
        m = len(self)
        if m == len(self._room):
            self._room = np.concatenate([self._room, np.empty_like(self._room)])
        self._room[m] = direction
        products = self._room[: m + 1] @ direction
        self.gram = np.pad(self.gram, (0, 1))
        self.gram[m], self.gram[:, m] = products, products
        self.losses = np.append(self.losses, loss)
        self.shares = np.append(self.shares, 0.0)
        self._idle = np.append(self._idle, 0)

    def drop_old(self) -> None:
        """Forget the planes that have held nothing up for long."""
        self._idle = np.where(self.shares > 0, 0, self._idle + 1)
        self._idle[0] = 0
        kept = np.flatnonzero(self._idle <= OLD)
        if len(kept) < len(self):
            self._room[: len(kept)] = self._room[kept]
            self.gram = self.gram[np.ix_(kept, kept)]
            self.losses, self.shares, self._idle = self.losses[kept], self.shares[kept], self._idle[kept]

    def lift(self, C: float) -> tuple[FloatArray, float]:
        """The weights that minimise the primal over these planes alone, (d + 1,), and that minimum: the dual."""
        if len(self) > 1:
            solve_dual(C * self.gram, self.losses, self.shares)
        multipliers = C * self.shares
        dual = self.losses @ multipliers - multipliers @ self.gram @ multipliers / 2
        return multipliers @ self.directions, float(dual)


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Weights (d + 1,), the intercept last, and the bounds that they were found between."""

    weights: FloatArray
    dual: float
    primal: float
    n_iter: int

    @property
    def gap(self) -> float:
        """How far the primal may lie above the optimum."""
        return max(self.primal - self.dual, 0.0)  # rounding may put one past the other


def minimise(
    X: Features,
    positive: BoolArray,
    search: Search,
    *,
    C: float,
    tol: float,
    max_iter: int,
    planes: Planes,
) -> Solution:
    """Minimise the primal until the gap is at most C * tol, or for `max_iter` steps; `planes` are used and added to.

    Parameters
    ----------
    X, positive : instances (n, d) and which of them are positive (n,).
    search : scores (n,) to the most violated labelling (n,) and its violation.
    C, tol, max_iter : the weight of the slack, the gap to reach in units of it, and the most steps.
    planes : of earlier solutions for the same data, with any C; empty at first.
    """
    best, best_scores, lowest, dual = np.zeros(X.shape[1] + 1), np.zeros(len(positive)), np.inf, 0.0
    for step in range(max_iter + 1):
        weights, dual = planes.lift(C)
        scores = scores_of(X, weights)
        planes.drop_old()
        for _ in range(2):
            violation, labelling = search(scores)
            primal = float(weights @ weights / 2 + C * max(violation, 0.0))
            better = primal < lowest
            if better:
                best, best_scores, lowest = weights, scores, primal
            if lowest - dual <= C * tol:
                return Solution(best, dual, lowest, step)
            plane = plane_of(X, positive, labelling)
            planes.add(plane, violation + float(plane @ weights))
            if better:
                break
            # These weights overshot. A second look, nearer to the best, costs a sort and no product with X.
            weights = best + SECOND_LOOK * (weights - best)
            scores = best_scores + SECOND_LOOK * (scores - best_scores)
    return Solution(best, dual, lowest, max_iter)


def search_for(loss: str, positive: BoolArray) -> Search:
    """The search for the most violated labelling: a function of scores (n,), for a loss and the true labels (n,).

    Examples
    --------
    >>> search_for("ae", np.array([False, True]))(np.array([0.3, 0.1]))
    (65.0, array([ True,  True]))
    """
    if loss == "q":
        return partial(worst_by_table, positive=positive)
    losses = count_losses(loss, int(positive.sum()), len(positive))
    return partial(worst_by_count, positive=positive, losses=losses)


def count_losses(loss: str, positives: int, n: int) -> FloatArray:
    r"""Loss of predicting 0, 1, ..., n positives where there are `positives`: (n + 1,).

    .. math::
        kld = \sum_c p_c \ln \frac{p_c}{p'_c}, \quad p = \frac{count + 1/2}{n + 1}, \qquad
        nkld = 100 \left(1 - \frac{2}{1 + e^{kld}}\right)

        ae = 100 \frac{|k - P|}{n}, \qquad rae = 50 \left(\frac{|k - P|}{P + 1/2} + \frac{|k - P|}{N + 1/2}\right)

    Examples
    --------
    >>> count_losses("ae", 1, 4)
    array([25.,  0., 25., 50., 75.])
    """
    counts = np.arange(n + 1)
    distance = np.abs(counts - positives)
    if loss == "ae":
        return 100.0 * distance / n
    if loss == "rae":
        return 50.0 * (distance / (positives + 0.5) + distance / (n - positives + 0.5))
    one_of("kld", "nkld", "ae", "rae").check("loss", loss)
    true, predicted = (np.stack([k + 0.5, n - k + 0.5]) / (n + 1) for k in (positives, counts))
    divergence = np.maximum((true[:, None] * np.log(true[:, None] / predicted)).sum(axis=0), 0.0)
    divergence[positives] = 0.0
    return divergence if loss == "kld" else 100.0 * np.tanh(divergence / 2)


@compiled
def q_loss(true_positives: int, false_positives: int, positives: int, negatives: int) -> float:
    r"""Loss of a contingency table: :math:`100 (1 - 2 q r / (q + r))` (Barranquero, Díez and del Coz 2015).

    r is the recall and :math:`q = 1 - |P - k| / \max(P, N)` how near the k predicted positives come to P.

    Examples
    --------
    >>> q_loss(1, 1, 2, 2)
    33.333
    """
    recall = true_positives / positives
    quality = 1.0 - abs(positives - true_positives - false_positives) / max(positives, negatives)
    return 100.0 - 200.0 * quality * recall / (quality + recall) if quality * recall > 0.0 else 100.0


def worst_by_count(scores: FloatArray, positive: BoolArray, losses: FloatArray) -> tuple[float, BoolArray]:
    """The violation of the most violated labelling and that labelling, for a loss that counts positives: (n,) -> (n,).

    Of all labellings with k positives the one with the k highest scores violates most: one sort and one sum for all k.

    Examples
    --------
    >>> worst_by_count(np.array([0.3, 0.1]), np.array([False, True]), count_losses("ae", 1, 2))
    (65.0, array([ True,  True]))
    """
    n = len(scores)
    order = np.argsort(-scores)
    violations = np.concatenate([[0.0], np.cumsum(scores[order])])
    violations -= scores[positive].sum()
    violations *= 100.0 / n
    violations += losses
    violations[losses <= 0.0] = -np.inf
    k = int(violations.argmax())
    labelling = np.zeros(n, dtype=bool)
    labelling[order[:k]] = True
    return float(violations[k]), labelling


def worst_by_table(scores: FloatArray, positive: BoolArray) -> tuple[float, BoolArray]:
    """The violation of the most violated labelling and that labelling, under Q: (n,) -> (n,).

    Of all labellings with a table the one with the highest scores on its positive side, among true positives and true
    negatives apart, violates most; `worst_table` finds the table.

    Examples
    --------
    >>> worst_by_table(np.array([0.3, 0.1]), np.array([False, True]))
    (115.0, array([ True,  True]))
    """
    n = len(scores)
    members = np.flatnonzero(positive), np.flatnonzero(~positive)
    sides = [side[np.argsort(-scores[side])] for side in members]
    gains = [np.concatenate([[0.0], np.cumsum(scores[side])]) * (100.0 / n) for side in sides]
    gains[0] -= gains[0][-1]
    violation, *counts = worst_table(gains[0], gains[1])
    labelling = np.zeros(n, dtype=bool)
    for side, taken in zip(sides, counts, strict=True):
        labelling[side[:taken]] = True
    return violation, labelling


@compiled
def worst_table(own: FloatArray, other: FloatArray) -> tuple[float, int, int]:
    """The table (a, b) with the largest Q loss + own[a] + other[b], and that sum; both gains are concave.

    Branch and bound over rectangles of tables. The loss is largest where recall is least and the count is farthest from
    P, which a corner has; a concave gain is largest at its peak, or at the end nearest to it.
    """
    positives, negatives = len(own) - 1, len(other) - 1
    own_peak, other_peak = own.argmax(), other.argmax()
    farthest = max(positives, negatives)
    best, best_a, best_b = -np.inf, 0, 0
    bounds = np.empty(STACK)
    waiting = np.empty((STACK, 4), dtype=np.int64)
    bounds[0] = np.inf
    waiting[0] = (0, positives, 0, negatives)
    size = 1
    while size:
        size -= 1
        if bounds[size] <= best:
            continue
        a_low, a_high, b_low, b_high = waiting[size]
        if (a_high - a_low + 1) * (b_high - b_low + 1) <= LEAF:
            for a in range(a_low, a_high + 1):
                for b in range(b_low, b_high + 1):
                    if a == positives and b == 0:
                        continue  # the true labelling, which has no loss
                    value = q_loss(a, b, positives, negatives) + own[a] + other[b]
                    if value > best:
                        best, best_a, best_b = value, a, b
            continue
        for half in range(2):
            a0, a1, b0, b1 = a_low, a_high, b_low, b_high
            if a_high - a_low > b_high - b_low:
                middle = (a_low + a_high) // 2
                a0, a1 = (a_low, middle) if half == 0 else (middle + 1, a_high)
            else:
                middle = (b_low + b_high) // 2
                b0, b1 = (b_low, middle) if half == 0 else (middle + 1, b_high)
            recall = a0 / positives
            quality = 1.0 - max(abs(positives - a0 - b0), abs(positives - a1 - b1)) / farthest
            bound = own[min(max(own_peak, a0), a1)] + other[min(max(other_peak, b0), b1)] + 100.0
            if quality * recall > 0.0:
                bound -= 200.0 * quality * recall / (quality + recall)
            bounds[size + half] = bound
            waiting[size + half] = (a0, a1, b0, b1)
        if bounds[size] > bounds[size + 1]:  # the more promising half goes on top
            for column in range(4):
                waiting[size, column], waiting[size + 1, column] = waiting[size + 1, column], waiting[size, column]
            bounds[size], bounds[size + 1] = bounds[size + 1], bounds[size]
        size += 2
    return best, best_a, best_b
