"""Friedman's two methods: counts at each class's prior, and the mean posterior corrected for its pull to the prior."""

import warnings
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.errors import QuanetWarning
from quanet.methods.about import About
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.methods.counting import SINGULAR, is_singular, mean_posterior, open_directions
from quanet.methods.solvers import simplex_least_squares


def share_above(posteriors: FloatArray, prior: FloatArray) -> FloatArray:
    """Share of instances whose posterior of each class is at least its prior: (..., n, k), (k,) -> (..., k).

    Examples
    --------
    >>> share_above(np.array([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.1, 0.9]]), np.array([0.8, 0.2]))
    array([0.25, 0.75])
    """
    return mean_posterior((posteriors >= prior).astype(float))


class Friedman(AggregativeQuantifier):
    r"""Friedman's method: adjusted counts of the instances that are more probable than in training.

    An instance counts for every class whose posterior is at least the training prevalence :math:`\rho_c`. Friedman [1]_
    shows that of all ways to split instances in two this has the least variance near the training prevalences. With
    :math:`F_{cj}` the share of class j that counts for c, and f these shares in the bag,

    .. math:: \hat p = \arg\min_{p \in \Delta} \| F p - f \|^2

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.

    Attributes
    ----------
    rates_ : (k, k), F above.

    References
    ----------
    .. [1] J. H. Friedman, "Class counts in future unlabeled samples", presentation at the MIT CSAIL Big Data Event,
           2014.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.7, 0.3], [0.6, 0.4], [0.2, 0.8]], ["no", "no", "no", "yes"]
    >>> Friedman("precomputed").fit(posteriors, labels).predict([[0.4, 0.6], [0.7, 0.3], [0.8, 0.2]])
    array([1., 0.])
    """

    about: ClassVar[About] = About("counting", "Friedman (2014)", "any", "posteriors", "O(n k + k^3)")

    rates_: FloatArray

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        k = posteriors.shape[1]
        self.rates_ = np.stack([share_above(posteriors[codes == c], self.prior_) for c in range(k)], axis=1)
        if is_singular(self.rates_):
            warnings.warn(
                "Friedman cannot separate all classes with this classifier: its rates are linearly dependent. Where it "
                "cannot, it returns the training prevalences. Use a better classifier.",
                QuanetWarning,
                stacklevel=4,
            )

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Count above the priors, then adjust: (..., n, k) -> (..., k)."""
        counted = share_above(check_rows(rows, width=len(self.classes_)), self.prior_)
        if not is_singular(self.rates_):
            return simplex_least_squares(self.rates_, counted)
        pull = open_directions(self.rates_)
        wanted = np.broadcast_to(pull @ self.prior_, counted.shape)
        return simplex_least_squares(np.vstack([self.rates_, pull]), np.concatenate([counted, wanted], axis=-1))


class DeBias(AggregativeQuantifier):
    r"""De-biased mean posterior: freed of its pull to the training prevalence [1]_.

    .. math:: \hat p = \rho + \frac{\bar \pi - \rho}{V}, \qquad
        V = \frac{\tfrac1m \sum_i (\pi_i - \rho)^2}{\rho (1 - \rho)}

    where :math:`\bar\pi` is the bag's mean posterior of the second class, :math:`\rho` its training prevalence and V
    the share of the labels' variance that out-of-fold posteriors explain. Of calibrated ones it is tpr - fpr of `PACC`.

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.

    Attributes
    ----------
    explained_ : V.

    References
    ----------
    .. [1] J. H. Friedman, "Class counts in future unlabeled samples", presentation at the MIT CSAIL Big Data Event,
           2014.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.1, 0.9]], ["no", "no", "yes", "yes"]
    >>> quantifier = DeBias("precomputed").fit(posteriors, labels)
    >>> quantifier.explained_, quantifier.predict([[0.3, 0.7], [0.5, 0.5]])
    (0.4, array([0.25, 0.75]))
    """

    about: ClassVar[About] = About("counting", "Friedman (2014)", "two", "posteriors", "O(n)")

    explained_: float

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:  # noqa: ARG002
        spread = np.square(posteriors[:, 1] - self.prior_[1]).mean()
        self.explained_ = float(spread / (self.prior_[0] * self.prior_[1]))
        if self.explained_ < SINGULAR:
            warnings.warn(
                "DeBias cannot separate the classes: all posteriors equal the training prevalence. It returns "
                "their mean. Use a better classifier.",
                QuanetWarning,
                stacklevel=4,
            )

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Average, then stretch about the prior: (..., n, 2) -> (..., 2)."""
        mean = mean_posterior(check_rows(rows, width=2))
        if self.explained_ < SINGULAR:
            return mean
        positive = np.clip(self.prior_[1] + (mean[..., 1] - self.prior_[1]) / self.explained_, 0, 1)
        return np.stack([1 - positive, positive], axis=-1)
