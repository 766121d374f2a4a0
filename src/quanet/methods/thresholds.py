r"""Thresholds: adjusted counts of two classes, at a threshold whose rates are well known.

A threshold t splits the posteriors of the positive class. With c the share of a bag that reaches t, and tpr and fpr the
shares of the positive and of the negative training instances that do,

.. math:: \hat p = \frac{c - fpr}{tpr - fpr}, \text{ clipped to } [0, 1]

At 0.5 this is ACC. With few positive instances tpr - fpr is small there, and its error large; Forman (2006, 2008) moves
the threshold to where it is not. Candidates are all posteriors of out-of-fold training instances.
"""

import warnings
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from quanet import kernels
from quanet.arrays import BoolArray, FloatArray, IntArray, check_rows
from quanet.errors import InvalidSetting, QuanetWarning
from quanet.methods.about import About
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.parameters import Constraints, between

CLEAR = 0.25  # MS2 leaves out thresholds whose rates are nearer than this


class RateCurve(NamedTuple):
    """Thresholds, in ascending order, with the shares of positives and negatives that reach each: three times (m,)."""

    thresholds: FloatArray
    tpr: FloatArray
    fpr: FloatArray

    def where(self, kept: BoolArray) -> "RateCurve":
        """Some of the thresholds."""
        return RateCurve(self.thresholds[kept], self.tpr[kept], self.fpr[kept])


def rate_curve(scores: FloatArray, positive: BoolArray, thresholds: FloatArray | None = None) -> RateCurve:
    """Rates at every distinct score, or at given thresholds: (n,), (n,) -> a `RateCurve`.

    Examples
    --------
    >>> rate_curve(np.array([0.1, 0.4, 0.4, 0.9]), np.array([False, False, True, True]))
    RateCurve(thresholds=array([0.1, 0.4, 0.9]), tpr=array([1. , 1. , 0.5]), fpr=array([1. , 0.5, 0. ]))
    """
    at = np.unique(scores) if thresholds is None else thresholds
    sides = (np.sort(scores[positive]), np.sort(scores[~positive]))
    shares = [(len(side) - np.searchsorted(side, at)) / len(side) for side in sides]
    return RateCurve(at, *shares)


def share_reaching(scores: FloatArray, threshold: float) -> FloatArray:
    """Share of every bag's scores that are at least `threshold`: (..., n) -> (...).

    Examples
    --------
    >>> float(share_reaching(np.array([0.1, 0.4, 0.4, 0.9]), 0.4))
    0.75
    """
    return np.asarray(np.count_nonzero(scores >= threshold, axis=-1) / scores.shape[-1])


def median_sweep(scores: FloatArray, curve: RateCurve) -> FloatArray:
    """Median over all thresholds of the adjusted count: (..., n) -> (...).

    Examples
    --------
    Adjusted counts are 0.5, 1 and 0.5 at the three thresholds:

    >>> curve = RateCurve(np.array([0.2, 0.5, 0.8]), np.array([1.0, 0.75, 0.5]), np.array([0.5, 0.25, 0.0]))
    >>> float(median_sweep(np.array([0.1, 0.6, 0.6, 0.9]), curve))
    0.5
    """
    bags = np.ascontiguousarray(scores.reshape(-1, scores.shape[-1]))
    found = np.empty(len(bags))
    cells = np.empty(len(curve.thresholds), dtype=np.intp)
    kernels.cells_of(curve.thresholds, np.empty(len(cells)), cells)
    table = np.searchsorted(cells, np.arange(kernels.CELLS + 1))
    kernels.median_sweep(bags, curve.thresholds, table, curve.fpr, 1 / (curve.tpr - curve.fpr), found)
    return found.reshape(scores.shape[:-1])


class Thresholds(AggregativeQuantifier):
    """Base of all: the positive class, its rate curve, and plain counting if no threshold separates the classes."""

    positive_: int

    def __init__(self, classifier: Any = None, *, cv: Any = 5, positive: Any = None) -> None:
        super().__init__(classifier, cv=cv)
        self.positive = positive

    def _learn_labels(self, X: Any, y: ArrayLike) -> IntArray:
        """Also choose the positive class: here, once, so that replicates count the same class."""
        codes = super()._learn_labels(X, y)
        known = self.classes_.tolist()
        if self.positive is not None and self.positive not in known:
            raise InvalidSetting(f"positive is {self.positive!r}, but the classes are {known}.")
        if self.positive is not None:
            self.positive_ = known.index(self.positive)
        else:  # the names of the classes must not matter, so of equals it is that of the first instance
            self.positive_ = int(codes[0]) if self.prior_[0] == self.prior_[1] else int(self.prior_.argmin())
        return codes

    def _curve(self, posteriors: FloatArray, codes: IntArray, thresholds: FloatArray | None = None) -> RateCurve:
        """The curve at thresholds whose rates differ; of none, one that leaves the plain count, with a warning."""
        curve = rate_curve(posteriors[:, self.positive_], codes == self.positive_, thresholds)
        curve = curve.where(curve.tpr != curve.fpr)
        if len(curve.thresholds):
            return curve
        at = "every threshold" if thresholds is None else f"the threshold of {thresholds[0]:.3g}"
        warnings.warn(
            f"{type(self).__name__} cannot correct this classifier's counts (tpr = fpr at {at}) and returns CC's "
            "estimate. Use a better classifier or more labelled instances.",
            QuanetWarning,
            stacklevel=4,
        )
        return RateCurve(np.array([0.5]), np.array([1.0]), np.array([0.0]))

    def _scores(self, rows: ArrayLike) -> FloatArray:
        return check_rows(rows, width=2)[..., self.positive_]

    def _shares(self, positive: FloatArray) -> FloatArray:
        """Prevalences (..., 2) from those of the positive class (...)."""
        pair = [1 - positive, positive]
        return np.stack(pair if self.positive_ else pair[::-1], axis=-1)


class _OneThreshold(Thresholds):
    """Base of T50, MAX, X and TAC: the adjusted count at one threshold."""

    threshold_: float
    tpr_: float
    fpr_: float

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Count at the threshold, then adjust: (..., n, 2) -> (..., 2)."""
        counted = share_reaching(self._scores(rows), self.threshold_)
        return self._shares(np.clip((counted - self.fpr_) / (self.tpr_ - self.fpr_), 0, 1))


class _ChosenThreshold(_OneThreshold):
    """Base of T50, MAX and X: a threshold chosen by its rates."""

    @abstractmethod
    def _miss(self, curve: RateCurve) -> FloatArray:
        """How far each threshold is from the wanted one: (m,)."""

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        curve = self._curve(posteriors, codes)
        # Of thresholds equally near the one with the larger denominator, the more stable one.
        best = np.lexsort((curve.fpr - curve.tpr, self._miss(curve).round(12)))[0]
        self.threshold_, self.tpr_, self.fpr_ = (float(part[best]) for part in curve)


class T50(_ChosenThreshold):
    r"""Threshold 50: the adjusted count at the threshold that half of the positives reach [1]_.

    .. math:: t = \arg\min_t |tpr_t - \tfrac12|, \qquad
        \hat p = \frac{c_t - fpr_t}{tpr_t - fpr_t}, \text{ clipped to } [0, 1]

    with :math:`c_t` the share of the bag whose posterior of the positive class reaches t, and :math:`tpr_t` and
    :math:`fpr_t` those of the positive and the negative out-of-fold instances. For rare classes, of which `ACC` finds
    too few at 0.5. Candidates are all posteriors of out-of-fold training instances.

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.
    positive : the class that is counted. None means the rarer one, as in Forman's papers; of two equally frequent
        classes, that of the first training instance. Intervals use the class chosen by fit.

    Attributes
    ----------
    positive_ : the position of that class in `classes_`.
    threshold_, tpr_, fpr_ : the threshold and its rates.

    Notes
    -----
    QuaPy 0.2's, and those of `MAX`, `X`, `MS` and `MS2`, are the same with the second class as the positive one; of
    thresholds that fit equally well it takes any, and here it is the one with the largest tpr - fpr.
    mlquantify 0.5 tries the multiples of 0.01 instead of all scores, which Forman sweeps.

    References
    ----------
    .. [1] G. Forman, "Quantifying trends accurately despite classifier error and class imbalance", KDD 2006.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.3, 0.7], [0.2, 0.8], [0.4, 0.6]], ["no", "no", "yes", "yes"]
    >>> quantifier = T50("precomputed", positive="yes").fit(posteriors, labels)
    >>> quantifier.threshold_, quantifier.predict([[0.9, 0.1], [0.1, 0.9], [0.7, 0.3], [0.6, 0.4]])
    (0.8, array([0.5, 0.5]))
    """

    about: ClassVar[About] = About("thresholds", "Forman (2006)", "two", "posteriors", "O(n)")

    def _miss(self, curve: RateCurve) -> FloatArray:
        return np.abs(curve.tpr - 0.5)


class MAX(_ChosenThreshold):
    r"""Maximum: the adjusted count at the threshold with the largest denominator of the adjustment [1]_.

    .. math:: t = \arg\max_t \, (tpr_t - fpr_t), \qquad
        \hat p = \frac{c_t - fpr_t}{tpr_t - fpr_t}, \text{ clipped to } [0, 1]

    The notation is that of `T50`.

    Parameters
    ----------
    classifier, cv, positive : see `T50`.

    Attributes
    ----------
    positive_, threshold_, tpr_, fpr_ : as in `T50`.

    References
    ----------
    .. [1] G. Forman, "Quantifying trends accurately despite classifier error and class imbalance", KDD 2006.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.3, 0.7], [0.2, 0.8], [0.4, 0.6]], ["no", "no", "yes", "yes"]
    >>> quantifier = MAX("precomputed", positive="yes").fit(posteriors, labels)
    >>> quantifier.threshold_, quantifier.predict([[0.9, 0.1], [0.1, 0.9], [0.3, 0.7], [0.2, 0.8]])
    (0.6, array([0.5, 0.5]))
    """

    about: ClassVar[About] = About("thresholds", "Forman (2006)", "two", "posteriors", "O(n)")

    def _miss(self, curve: RateCurve) -> FloatArray:
        return curve.fpr - curve.tpr


class X(_ChosenThreshold):
    r"""Crossing (X): the adjusted count at the threshold where the two errors are equal [1]_.

    .. math:: t = \arg\min_t |1 - tpr_t - fpr_t|, \qquad
        \hat p = \frac{c_t - fpr_t}{tpr_t - fpr_t}, \text{ clipped to } [0, 1]

    The notation is that of `T50`.

    Parameters
    ----------
    classifier, cv, positive : see `T50`.

    Attributes
    ----------
    positive_, threshold_, tpr_, fpr_ : as in `T50`.

    References
    ----------
    .. [1] G. Forman, "Quantifying trends accurately despite classifier error and class imbalance", KDD 2006.

    Examples
    --------
    >>> quantifier = X("precomputed", positive=1).fit([[0.9, 0.1], [0.3, 0.7], [0.2, 0.8], [0.4, 0.6]], [0, 0, 1, 1])
    >>> quantifier.predict([[0.9, 0.1], [0.1, 0.9], [0.3, 0.7], [0.2, 0.8]])
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About("thresholds", "Forman (2006)", "two", "posteriors", "O(n)")

    def _miss(self, curve: RateCurve) -> FloatArray:
        return np.abs(1 - curve.tpr - curve.fpr)


class TAC(_OneThreshold):
    r"""Threshold adjusted count: the adjusted count at a threshold of your choice [1]_.

    .. math:: \hat p = \frac{c_t - fpr_t}{tpr_t - fpr_t}, \text{ clipped to } [0, 1]

    The notation is that of `T50`.

    Parameters
    ----------
    classifier, cv, positive : see `T50`.
    threshold : the posterior that counts as positive; 0.5 gives `ACC`.

    Attributes
    ----------
    positive_, threshold_, tpr_, fpr_ : as in `T50`.

    References
    ----------
    .. [1] G. Forman, "Counting positives accurately despite inaccurate classification", ECML 2005.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.3, 0.7], [0.2, 0.8], [0.4, 0.6]], ["no", "no", "yes", "yes"]
    >>> TAC("precomputed", threshold=0.75, positive="yes").fit(posteriors, labels).predict([[0.2, 0.8]] + [[1, 0]] * 3)
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About("thresholds", "Forman (2005)", "two", "posteriors", "O(n)")
    allowed_values: ClassVar[Constraints] = {"threshold": between(0, 1, including="both")}

    def __init__(self, classifier: Any = None, *, cv: Any = 5, positive: Any = None, threshold: float = 0.5) -> None:
        super().__init__(classifier, cv=cv, positive=positive)
        self.threshold = threshold

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        curve = self._curve(posteriors, codes, np.array([float(self.threshold)]))
        self.threshold_, self.tpr_, self.fpr_ = (float(part[0]) for part in curve)

    def _readings(self, posteriors: FloatArray) -> FloatArray:
        return np.eye(2)[(posteriors[:, self.positive_] >= self.threshold_).astype(np.intp)]


class MS(Thresholds):
    r"""Median sweep: the median of the adjusted counts at all thresholds [1]_.

    .. math:: \hat p = \operatorname{median}_t \frac{c_t - fpr_t}{tpr_t - fpr_t}, \text{ each clipped to } [0, 1]

    The notation is that of `T50`. No single threshold has to be good, so it is stable for rare classes.

    Parameters
    ----------
    classifier, cv, positive : see `T50`.

    Attributes
    ----------
    positive_ : the position of the class that is counted in `classes_`.
    thresholds_, tpr_, fpr_ : the thresholds whose rates differ, and their rates: (m,) each.

    References
    ----------
    .. [1] G. Forman, "Quantifying counts and costs via classification", Data Mining and Knowledge Discovery 17, 2008.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.3, 0.7], [0.2, 0.8], [0.4, 0.6]], ["no", "no", "yes", "yes"]
    >>> MS("precomputed", positive="yes").fit(posteriors, labels).predict([[0.1, 0.9], [0.4, 0.6], [0.8, 0.2]])
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About(
        "thresholds", "Forman (2008)", "two", "posteriors", "O(n log m + m), m training instances"
    )

    thresholds_: FloatArray
    tpr_: FloatArray
    fpr_: FloatArray

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        self.thresholds_, self.tpr_, self.fpr_ = self._kept(self._curve(posteriors, codes))

    def _kept(self, curve: RateCurve) -> RateCurve:
        return curve

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Count at all thresholds, adjust each, take the median: (..., n, 2) -> (..., 2)."""
        return self._shares(median_sweep(self._scores(rows), RateCurve(self.thresholds_, self.tpr_, self.fpr_)))


class MS2(MS):
    r"""Median sweep 2: the median sweep over clear thresholds only [1]_.

    .. math:: \hat p = \operatorname{median}_{t :\, tpr_t - fpr_t > 1/4} \frac{c_t - fpr_t}{tpr_t - fpr_t}

    The notation is that of `T50`.

    Parameters
    ----------
    classifier, cv, positive : see `T50`.

    Attributes
    ----------
    positive_, thresholds_, tpr_, fpr_ : as in `MS`, of clear thresholds.

    Notes
    -----
    If no threshold is clear, it uses all of them and warns; QuaPy 0.2 falls back to plain counting.

    References
    ----------
    .. [1] G. Forman, "Quantifying counts and costs via classification", Data Mining and Knowledge Discovery 17, 2008.

    Examples
    --------
    >>> quantifier = MS2("precomputed", positive=1).fit([[0.9, 0.1], [0.3, 0.7], [0.2, 0.8], [0.4, 0.6]], [0, 0, 1, 1])
    >>> quantifier.predict([[0.1, 0.9], [0.4, 0.6], [0.8, 0.2]])
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About(
        "thresholds", "Forman (2008)", "two", "posteriors", "O(n log m + m), m training instances"
    )

    def _kept(self, curve: RateCurve) -> RateCurve:
        clear = curve.tpr - curve.fpr > CLEAR
        if clear.any():
            return curve.where(clear)
        most = (curve.tpr - curve.fpr).max()
        warnings.warn(
            f"MS2 uses thresholds with tpr - fpr above {CLEAR}, but the largest difference is {most:.3g}. "
            "It uses all thresholds, as MS does. Use a better classifier.",
            QuanetWarning,
            stacklevel=4,
        )
        return curve
