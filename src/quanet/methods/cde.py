"""Class distribution estimation: count, take the count for the prior, count again."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, check_rows
from quanet.methods.about import About
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.parameters import Constraints, whole

EMPTY = 1e-12  # the least share, so that costs stay finite


def iterate_counts(scores: FloatArray, prior: float, *, tol: float = 1e-4, max_iter: int = 100) -> FloatArray:
    r"""Share of positives by repeated counting at a moving threshold: (..., n) -> (...) (Xue and Weiss 2009).

    With p the share counted so far, at first at 0.5, a false positive costs
    :math:`r = \frac{\rho}{1 - \rho} \frac{1 - p}{p}` times a false negative, so that scores above
    :math:`r / (1 + r)` are counted next. Threshold and count move one way only, so every bag settles.

    Examples
    --------
    >>> float(iterate_counts(np.array([0.9, 0.8, 0.7, 0.45, 0.1]), 0.5))
    0.8
    """
    counted = np.count_nonzero(scores > 0.5, axis=-1) / scores.shape[-1]
    odds = max(prior, EMPTY) / max(1 - prior, EMPTY)
    for _ in range(max_iter - 1):
        cost = odds * np.maximum(1 - counted, EMPTY) / np.maximum(counted, EMPTY)
        updated = np.count_nonzero(scores > (cost / (1 + cost))[..., None], axis=-1) / scores.shape[-1]
        change, counted = np.abs(updated - counted), updated
        if (change < tol).all():
            break
    return np.asarray(counted)


class CDE(AggregativeQuantifier):
    r"""Class distribution estimation: repeated counts at the costs that the last count implies.

    With p the share counted so far, at first at the threshold 0.5, and :math:`\rho` the training prevalence of the
    second class, a false positive costs r times a false negative, and

    .. math:: \hat p \leftarrow \frac1n \sum_i \Big[ \pi_i > \frac{r}{1 + r} \Big], \qquad
        r = \frac{\rho}{1 - \rho} \cdot \frac{1 - \hat p}{\hat p}

    The published method [1]_ retrains a cost-sensitive classifier in each round; with posteriors that is a threshold.
    It corrects `CC` without held-out instances, but not fully.

    Parameters
    ----------
    classifier : see `AggregativeQuantifier`.
    tol : a bag has converged when its prevalence changes by less.
    max_iter : maximum number of rounds.

    References
    ----------
    .. [1] J. C. Xue and G. M. Weiss, "Quantification and semi-supervised classification methods for handling changes in
           class distribution", KDD 2009.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]], ["no", "no", "yes", "yes"]
    >>> bag = [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.55, 0.45], [0.9, 0.1]]
    >>> CDE("precomputed").fit(posteriors, labels).predict(bag)
    array([0.2, 0.8])
    """

    about: ClassVar[About] = About("counting", "Xue and Weiss (2009)", "two", "posteriors", "O(n) a round")
    allowed_values: ClassVar[Constraints] = {"max_iter": whole(1)}

    def __init__(self, classifier: Any = None, *, tol: float = 1e-4, max_iter: int = 100) -> None:
        self.classifier = classifier
        self.tol = tol
        self.max_iter = max_iter

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Count, move the threshold, count again: (..., n, 2) -> (..., 2)."""
        scores = check_rows(rows, width=2)[..., 1]
        positive = iterate_counts(scores, float(self.prior_[1]), tol=self.tol, max_iter=self.max_iter)
        return np.stack([1 - positive, positive], axis=-1)
