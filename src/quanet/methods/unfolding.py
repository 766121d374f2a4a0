r"""Unfolding, as physicists measure spectra: matching with a preference for smooth prevalences of ordered classes.

The penalty is Tikhonov's, as in `quanet.methods.ordinal`. Without it (tau = 0) no order of the classes is needed.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.errors import InvalidSetting
from quanet.methods.about import About
from quanet.methods.divergences import Divergence
from quanet.methods.matching import MatchingQuantifier
from quanet.methods.order import smoothness
from quanet.methods.representations import Labels, Representation
from quanet.parameters import Constraints, at_least


class _Unfolding(MatchingQuantifier):
    """Base of RUN and Tikhonov: a representation, and the weight of smoothness."""

    allowed_values: ClassVar[Constraints] = {"tau": at_least(0, finite=True)}

    ladder_: IntArray
    order: Sequence[Any] | None = None  # models saved by 0.1.0 have neither

    def __init__(
        self,
        classifier: Any = None,
        *,
        tau: float = 0.0,
        representation: Representation | None = None,
        cv: Any = 5,
        order: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(classifier, cv=cv)
        self.tau = tau
        self.representation = representation
        self.order = order

    @property
    def needs_order(self) -> bool:
        """Whether `fit` needs the order of the classes: it is given, or the estimate depends on it."""
        return self._is_smooth() or self.order is not None

    def _is_smooth(self) -> bool:
        """Whether the order of the classes matters."""
        return self.tau > 0 and len(self.classes_) > 2

    @abstractmethod
    def _divergence(self) -> str:
        """The name of the divergence."""

    def _parts(self) -> tuple[Representation, str | Divergence]:
        return (Labels() if self.representation is None else self.representation), self._divergence()

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        super()._fit_aggregation(posteriors, codes)
        if self.matcher_.representation.blocks_ is not None and len(self.matcher_.representation.blocks_) > 1:
            raise InvalidSetting(f"{type(self).__name__} needs one number of bins, not several.")

    def _smoothest(self, rows: ArrayLike, weight: float) -> FloatArray:
        matcher = self.matcher_
        if not self._is_smooth():
            return super()._aggregate(rows)
        summaries = matcher.representation.summarise(check_rows(rows, width=matcher.width))
        bends = smoothness(getattr(self, "ladder_", np.arange(len(self.classes_))))
        return matcher(summaries, penalty=weight * bends.T @ bends)


class RUN(_Unfolding):
    r"""Regularised unfolding: the likelihood of a bag's counts, and smooth prevalences [1]_.

    .. math:: \hat p = \arg\min_p \sum_j \big( \lambda_j - n h_j \ln \lambda_j \big) + \tfrac\tau2 p^\top R p,
        \quad \lambda = n M p

    with n h the bag's counts, which are taken for Poisson numbers, M what they are in each class, and R the squared
    second differences of neighbouring classes, for classes in order. Physicists measure spectra with it. Without the
    second term it is maximum likelihood.

    Parameters
    ----------
    classifier : see `AggregativeQuantifier`.
    tau : weight of smoothness; `GridSearchQ` can choose it. It has no effect for two classes.
    representation : what is counted: the predicted labels if None, or as in `Matching`, such as ``Histogram(8)``.
    cv : see `AggregativeQuantifier`.
    order : the classes from the lowest to the highest; None uses numbers as they are. Other labels need it if tau
        is above 0.

    References
    ----------
    .. [1] V. Blobel, "Unfolding methods in high-energy physics experiments", CERN School of Computing, CERN 85-09,
           1985.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(k=4, distance=1.5).draw([0.25] * 4, 2000, rng=0)
    >>> new, _ = Gaussians(k=4, distance=1.5).draw([0.1, 0.2, 0.3, 0.4], 1000, rng=1)
    >>> RUN(tau=1000.0).fit(X, y).predict(new).round(1)
    array([0.1, 0.2, 0.3, 0.4])
    """

    about: ClassVar[About] = About("ordered", "Blobel (1985)", "ordered", "posteriors", "O(n k + J k^2)")

    def _divergence(self) -> str:
        return "likelihood"

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Count, and find the likeliest smooth prevalences: (..., n, d) -> (..., k)."""
        return self._smoothest(rows, self.tau / max(1, np.shape(rows)[-2]))


class Tikhonov(_Unfolding):
    r"""Tikhonov-regularised unfolding: least squares, and smooth prevalences [1]_ [2]_.

    .. math:: \hat p = \arg\min_p \| M p - h \|^2 + \tfrac\tau2 p^\top R p

    with h the bag's shares, M those of each class, and R as in `RUN`. Without the second term it is `ACC`.

    Parameters
    ----------
    classifier, tau, representation, cv, order : see `RUN`.

    References
    ----------
    .. [1] A. Höcker and V. Kartvelishvili, "SVD approach to data unfolding", Nuclear Instruments and Methods in Physics
           Research A 372, 1996.
    .. [2] M. Bunse, "Unification of algorithms for quantification and unfolding", INFORMATIK 2022.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(k=4, distance=1.5).draw([0.25] * 4, 2000, rng=0)
    >>> new, _ = Gaussians(k=4, distance=1.5).draw([0.1, 0.2, 0.3, 0.4], 1000, rng=1)
    >>> Tikhonov(tau=1.0).fit(X, y).predict(new).round(1)
    array([0.1, 0.2, 0.3, 0.4])
    """

    about: ClassVar[About] = About(
        "ordered", "Höcker and Kartvelishvili (1996); Bunse (2022)", "ordered", "posteriors", "O(n k + k^3)"
    )

    def _divergence(self) -> str:
        return "l2"

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Count, and find the nearest smooth prevalences: (..., n, d) -> (..., k)."""
        return self._smoothest(rows, self.tau)
