"""Median sweeps: adjusted counts of two classes at all thresholds, and their median."""

import warnings
from typing import ClassVar

from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray
from quanet.errors import QuanetWarning
from quanet.methods.about import About
from quanet.methods.rate_curve import RateCurve, median_sweep
from quanet.methods.thresholds import Thresholds

CLEAR = 0.25  # MS2 leaves out thresholds whose rates are nearer than this


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
