"""More than two classes by methods for two: each class against the rest."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.base import Quantifier
from quanet.classifiers.cross_fitting import precomputed_posteriors
from quanet.held_out import members_are_quiet, shrinkage_of_members
from quanet.methods.about import About


def share_out(shares: FloatArray, prior: FloatArray) -> FloatArray:
    """Scale shares estimated class by class so that they sum to one: (..., k) -> (..., k).

    Where every share is zero nothing was found, and the answer is the prior.

    Examples
    --------
    >>> share_out(np.array([[0.6, 0.3, 0.3], [0.0, 0.0, 0.0]]), np.array([0.5, 0.25, 0.25]))
    array([[0.5 , 0.25, 0.25],
           [0.5 , 0.25, 0.25]])
    """
    total = shares.sum(axis=-1, keepdims=True)
    return np.where(total > 0, shares / np.where(total > 0, total, 1.0), prior)


class OneVsRest(Quantifier):
    r"""One against the rest: a quantifier for every class, whose shares are scaled to sum to one.

    .. math:: \hat p_c = \frac{q_c}{\sum_j q_j}

    with :math:`q_c` the estimate of the quantifier of class c. For methods made for two classes, as in [1]_. Two
    classes need one quantifier, which is then used as it is.

    Parameters
    ----------
    quantifier : any quantifier; it is fitted to labels True (the class) and False (the rest). If its classifier is
        "precomputed", X has a posterior for every class, and each copy is given its own and the rest.

    Attributes
    ----------
    quantifiers_ : one for each class; a single one for two classes.
    widths_ : the columns that each of them reads.

    References
    ----------
    .. [1] G. Forman, "Quantifying counts and costs via classification", Data Mining and Knowledge Discovery 17, 2008.

    Examples
    --------
    >>> from quanet import CC, Gaussians
    >>> X, y = Gaussians(k=3, distance=6).draw([0.2, 0.3, 0.5], 1000, rng=0)
    >>> OneVsRest(CC()).fit(X, y).predict(X).round(1)
    array([0.2, 0.3, 0.5])
    """

    about: ClassVar[About] = About("composed", "Forman (2008)", "any", "posteriors", "k times the quantifier's")

    def __init__(self, quantifier: Any) -> None:
        self.quantifier = quantifier

    def _fit(self, X: Any, y: ArrayLike) -> None:
        """Fit a copy of the quantifier to every class of labels y (n,)."""
        X, y = self._learnable(X, y)
        codes = self._learn_labels(X, y)
        k = len(self.classes_)
        ones = [1] if k == 2 else range(k)
        views = self._views(X)
        with members_are_quiet():
            self.quantifiers_ = [
                clone(self.quantifier).fit(view, codes == one) for one, view in zip(ones, views, strict=True)
            ]
        self.shrinkage_ = shrinkage_of_members(self.quantifiers_)
        firsts = [_safe_indexing(view, [0]) for view in views]
        self.widths_: IntArray = np.array(
            [quantifier.represent(first).shape[1] for quantifier, first in zip(self.quantifiers_, firsts, strict=True)]
        )

    def _views(self, X: Any) -> list[Any]:
        """What each copy is given: X, or its class's posterior and the rest."""
        k = len(self.classes_)
        if getattr(self.quantifier, "classifier", None) != "precomputed":
            return [X] if k == 2 else [X] * k
        posteriors = precomputed_posteriors(X, self.classes_)
        if k == 2:
            return [posteriors]
        return [np.column_stack([1 - posteriors[:, c], posteriors[:, c]]) for c in range(k)]

    def _read(self, X: Any) -> FloatArray:
        """The rows of all quantifiers side by side: (n, d1 + d2 + ...)."""
        check_is_fitted(self, "quantifiers_")
        views = self._views(X)
        return np.concatenate([one.represent(view) for one, view in zip(self.quantifiers_, views, strict=True)], axis=1)

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """Each quantifier its columns, then to sum to one: (..., n, d1 + d2 + ...) -> (..., k)."""
        parts = np.split(check_rows(rows, width=self.widths_.sum()), self.widths_.cumsum()[:-1], axis=-1)
        found = [quantifier.aggregate(part) for quantifier, part in zip(self.quantifiers_, parts, strict=True)]
        if len(found) == 1:
            return found[0]
        return share_out(np.stack([estimate[..., 1] for estimate in found], axis=-1), self.prior_)
