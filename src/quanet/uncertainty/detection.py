r"""Detection limits: the smallest share of a class that can be told from 0, computed from what `fit` has held out.

Maximum likelihood ends at exactly 0 when a bag has slightly fewer instances that look like the class than chance gives.
So 0 is a usual estimate of a class whose share is small, and does not mean that the class is absent. The limit states
how large a share must be, so that the interval excludes 0 in four bags of five.

Typical bags are made of held-out instances: of every class, those at evenly spaced ranks of its posterior. Bisection
finds the share t at which the lower end of the interval of such a bag leaves 0. About half of the bags at this share
have an interval without 0. One bag in five has an estimate that is too small by more than .84 standard deviations:

.. math:: t + \frac{z_{.8}}{z_{level}} (u_t - t), \qquad u_t \text{ the upper end at } t.

`benchmarks/detection_limits.py` compares the limits with how often intervals exclude 0.
"""

import warnings
from collections.abc import Sequence
from typing import cast

import numpy as np
from scipy.stats import norm

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.drift.scale import without_drift
from quanet.errors import QuanetWarning
from quanet.methods.em import EMQ
from quanet.simplex import to_counts
from quanet.uncertainty.closed_form import closed_form_intervals, closed_form_of
from quanet.uncertainty.relearning import IntervalRequest, as_full_fit

POWER = 0.8  # probability that an interval excludes 0 at the limit
CONFORMAL_POWER = 0.9  # instead, for methods whose intervals are conformal: these exclude 0 less often than formulas
ROWS = 2_000  # of a typical bag, and of a class of the pool that they are drawn from
FEWEST = 10  # held-out instances of every class; with fewer, the limits are unknown
MOST_CLASSES = 30  # the work grows with the cube of their number
BISECTIONS = 9  # of the logarithm of a share between 1 / `ROWS` and 1: exact to 2 %


def detection_limits(quantifier: Quantifier, sizes: Sequence[int], level: float = 0.95) -> FloatArray:
    """Smallest shares (s, k) that can be told from 0 in bags of these sizes; NaN if unknown, 1 if no share can.

    `Quantifier.detection_limits` describes them. A method without a formula for its intervals gets the limits of
    maximum likelihood on its posteriors.
    """
    quantifier = cast("Quantifier", getattr(quantifier, "quantifier_", quantifier))  # of a search
    described, k = _with_formula(quantifier), len(quantifier.classes_)
    if described is None:
        return np.full((len(sizes), k), np.nan)
    if quantifier.shrinkage_ == 1:  # every interval is 0 to 1
        return np.ones((len(sizes), k))
    bags = _TypicalBags(described, np.tile(np.arange(k), len(sizes)), np.repeat(sizes, k), level)
    low, high = np.full(len(bags.classes), np.log(1 / ROWS)), np.zeros(len(bags.classes))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        seen = bags.ends(np.exp(middle))[0] > 0
        low, high = np.where(seen, low, middle), np.where(seen, middle, high)
    share = np.exp(high)
    conformal = described is not as_full_fit(quantifier) or hasattr(quantifier, "corrects_")  # as `choose_kinds` does
    quantile = norm.ppf(CONFORMAL_POWER if conformal else POWER)
    unlucky = quantile / norm.ppf((1 + level) / 2) * (bags.ends(share)[1] - share)
    limits = np.where(high < 0, share + np.maximum(unlucky, 0), 1.0)
    return np.clip(limits, 1 / bags.sizes, 1).reshape(len(sizes), k)


class _TypicalBags:
    """Bags of held-out instances with a typical estimate, one for each class (b,) and size (b,)."""

    def __init__(self, quantifier: Quantifier, classes: IntArray, sizes: IntArray, level: float) -> None:
        assert quantifier.held_out_ is not None
        self.quantifier, self.classes, self.sizes, self.level = quantifier, classes, sizes, level
        self.held_out = quantifier.held_out_.doubles()
        parts = []
        for c, members in enumerate(self.held_out.by_class()):
            ranked = members[np.argsort(self.held_out.inputs[members, c], kind="stable")]
            parts.append(ranked[_evenly(len(ranked), min(len(ranked), ROWS))])
        self.inputs = self.held_out.inputs[np.concatenate(parts)]
        self.members = np.split(np.arange(len(self.inputs)), np.cumsum([len(part) for part in parts])[:-1])

    def ends(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends (b,) of the intervals of the classes, if each has this share (b,) in its bag."""
        bags = Bags(self._rows(shares))
        request = IntervalRequest(
            quantifier=self.quantifier,
            inputs=self.inputs,
            bags=bags,
            positions=np.arange(len(bags)),
            estimate=self.quantifier.aggregate_bags(self.quantifier.rows(self.inputs), bags),
            sizes=self.sizes,  # all bags have `ROWS` rows, and count as many as these
            held_out=self.held_out,
            level=self.level,
            target_is_bag=True,
            resamples=None,
            seed=0,
            held_out_from_fit=True,
        )
        lower, upper, _ = closed_form_intervals(request)
        at = np.arange(len(bags)), self.classes
        return lower[at], upper[at]

    def _rows(self, shares: FloatArray) -> IntArray:
        """Positions (b, `ROWS`) in the inputs; the other classes have their training proportions."""
        at = np.arange(len(self.classes)), self.classes
        truth = np.tile(self.held_out.counts.astype(float), (len(self.classes), 1))
        truth[at] = 0
        truth *= ((1 - shares) / truth.sum(axis=1))[:, None]
        truth[at] = shares
        bags = (zip(self.members, row, strict=True) for row in to_counts(truth, ROWS).tolist())
        return np.stack([np.concatenate([part[_evenly(len(part), n)] for part, n in bag]) for bag in bags])


def _with_formula(quantifier: Quantifier) -> Quantifier | None:
    """The quantifier as a full fit, or maximum likelihood on its posteriors; None without enough held-out ones."""
    held_out = quantifier.held_out_
    few = held_out is None or held_out.distinct.min() < FEWEST
    if few or not quantifier.reads_posteriors or len(quantifier.classes_) > MOST_CLASSES:
        return None
    described = as_full_fit(quantifier)
    if closed_form_of(described) is not None:
        return described
    assert described.held_out_ is not None
    held = described.held_out_.doubles()
    with warnings.catch_warnings(), without_drift():
        warnings.simplefilter("ignore", QuanetWarning)  # fit has already warned
        return EMQ("precomputed").fit(held.inputs[:, : held.k], quantifier.classes_[held.codes])


def _evenly(n: int, wanted: int) -> IntArray:
    """So many of n ranks, evenly spaced: the middles of as many equal parts.

    Examples
    --------
    >>> _evenly(10, 2), _evenly(2, 3)
    (array([2, 7]), array([0, 1, 1]))
    """
    return ((np.arange(wanted) + 0.5) * n / wanted).astype(np.intp)
