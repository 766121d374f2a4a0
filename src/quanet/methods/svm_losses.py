r"""Losses on the contingency table, and the labelling that violates a margin most under each.

With labels :math:`y_i = \pm 1`, scores :math:`s_i` and another labelling :math:`y'`, the violation is

.. math:: \Delta(y, y') - \frac{50}{n} \sum_i (y_i - y'_i) s_i

Losses are those of svm_perf's quantification variants, in its scale: per cent, except for KLD. A labelling without loss
other than `y` itself is never returned, as there.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from quanet.arrays import BoolArray, FloatArray
from quanet.kernels import compiled
from quanet.parameters import one_of

Search = Callable[[FloatArray], tuple[float, BoolArray]]
LEAF = 64  # tables in a rectangle that is scanned rather than cut
STACK = 512  # rectangles waiting: each level of cuts leaves one, and 2^40 tables have 40 levels


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
