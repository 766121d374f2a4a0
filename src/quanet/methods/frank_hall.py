"""Ordered classes by methods for two: one quantifier for each split of the order."""

from collections.abc import Sequence
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
from quanet.methods.order import monotone


class FrankHall(Quantifier):
    r"""Frank and Hall's decomposition: ordered classes by methods for two.

    A quantifier estimates how much lies at or below each class, as [1]_ do for classification. Differences of these
    estimates, made monotone, are prevalences:

    .. math:: \hat p_c = \hat P_c - \hat P_{c - 1}, \qquad \hat P_c \approx P(y \le c)

    Parameters
    ----------
    quantifier : any quantifier; it is fitted to labels True (at or below a class) and False (above). If its classifier
        is "precomputed", X has a posterior for every class, and each copy gets their sums.
    order : see `OACC`.

    Attributes
    ----------
    quantifiers_ : one for each class but the highest.

    Notes
    -----
    Cumulated prevalences that fall are corrected as in quantificationlib 0.1, after [2]_.

    References
    ----------
    .. [1] E. Frank and M. Hall, "A simple approach to ordinal classification", ECML 2001.
    .. [2] S. Destercke and G. Yang, "Cautious ordinal classification by binary decomposition", ECML PKDD 2014.

    Examples
    --------
    >>> from quanet import PACC, Gaussians
    >>> X, y = Gaussians(k=3, distance=4).draw([0.2, 0.3, 0.5], 1000, rng=0)
    >>> FrankHall(PACC()).fit(X, y).predict(X).round(1)
    array([0.2, 0.3, 0.5])
    """

    about: ClassVar[About] = About(
        "ordered", "Frank and Hall (2001)", "ordered", "posteriors", "k - 1 times the quantifier's"
    )

    ladder_: IntArray
    quantifiers_: list[Any]
    widths_: IntArray

    def __init__(self, quantifier: Any, *, order: Sequence[Any] | None = None) -> None:
        self.quantifier = quantifier
        self.order = order

    def _fit(self, X: Any, y: ArrayLike) -> None:
        """Fit a copy of the quantifier to every split of the labels y (n,)."""
        X, y = self._learnable(X, y)
        codes = self._learn_labels(X, y)
        step = np.argsort(self.ladder_)[codes]
        views = self._views(X)
        with members_are_quiet():
            self.quantifiers_ = [clone(self.quantifier).fit(view, step <= at) for at, view in enumerate(views)]
        self.shrinkage_ = shrinkage_of_members(self.quantifiers_)
        firsts = [one.represent(_safe_indexing(view, [0])) for one, view in zip(self.quantifiers_, views, strict=True)]
        self.widths_ = np.array([first.shape[1] for first in firsts])

    def _views(self, X: Any) -> list[Any]:
        """The input of each copy: X, or the posteriors above and up to its class."""
        k = len(self.classes_)
        if getattr(self.quantifier, "classifier", None) != "precomputed":
            return [X] * (k - 1)
        reached = np.clip(precomputed_posteriors(X, self.classes_)[:, self.ladder_].cumsum(axis=1), 0, 1)
        return [np.column_stack([1 - reached[:, at], reached[:, at]]) for at in range(k - 1)]

    def _read(self, X: Any) -> FloatArray:
        """The rows of all quantifiers side by side: (n, d1 + d2 + ...)."""
        check_is_fitted(self, "quantifiers_")
        views = self._views(X)
        return np.concatenate([one.represent(view) for one, view in zip(self.quantifiers_, views, strict=True)], axis=1)

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """Each quantifier its columns, made to rise, then differences: (..., n, d1 + d2 + ...) -> (..., k)."""
        parts = np.split(check_rows(rows, width=self.widths_.sum()), self.widths_.cumsum()[:-1], axis=-1)
        found = [one.aggregate(part)[..., 1] for one, part in zip(self.quantifiers_, parts, strict=True)]
        shares = np.diff(monotone(np.stack(found, axis=-1)), axis=-1, prepend=0.0, append=1.0)
        prevalences = np.empty_like(shares)
        prevalences[..., self.ladder_] = shares
        return prevalences
