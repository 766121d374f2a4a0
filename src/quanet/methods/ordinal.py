r"""Classes in order, such as stars: neighbouring classes have similar shares, and errors count by their distance.

Smoothness is Tikhonov's: with C the second differences of shares in the classes' order,

.. math:: \frac{\tau}{2} \| C p \|^2, \qquad (C p)_c = - p_{c-1} + 2 p_c - p_{c+1}

is added to what a method minimises (Bunse et al. 2022). It is zero where shares lie on a line. Numbers and booleans
have an order of their own; for all other labels it is given, from the lowest to the highest. Judge estimates by
`match_distance`, with shares in that order.

Unfolding, as physicists measure spectra, is matching with that preference; without it (tau = 0) no order is needed.
"""

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from quanet import kernels
from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.base import Quantifier
from quanet.classifiers.cross_fitting import precomputed_posteriors
from quanet.errors import InvalidSetting, QuanetWarning
from quanet.held_out import members_are_quiet, shrinkage_of_members
from quanet.methods.about import About
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.methods.counting import (
    classify_and_count,
    hard_rates,
    is_singular,
    mean_posterior,
    open_directions,
    soft_rates,
)
from quanet.methods.divergences import Divergence
from quanet.methods.likelihood import Calibrated
from quanet.methods.matching import DMy, MatchingQuantifier
from quanet.methods.order import monotone, smoothness
from quanet.methods.representations import Labels, Representation
from quanet.methods.solvers import simplex_least_squares
from quanet.parameters import Constraints, at_least


class _SmoothCounts(AggregativeQuantifier):
    """Base of OACC and OPACC: counts explained by rates and smooth prevalences."""

    allowed_values: ClassVar[Constraints] = {"strength": at_least(0)}

    rates_: FloatArray
    ladder_: IntArray

    def __init__(
        self,
        classifier: Any = None,
        *,
        cv: Any = 5,
        strength: float = 0.01,
        order: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(classifier, cv=cv)
        self.strength = strength
        self.order = order

    def _keep_rates(self, rates: FloatArray) -> None:
        self.rates_ = rates
        if is_singular(rates):
            warnings.warn(
                f"{type(self).__name__} cannot separate all classes with this classifier. Where it cannot, "
                "smoothness decides, then the plain count. Use a better classifier or more labelled instances.",
                QuanetWarning,
                stacklevel=4,
            )

    def _adjust(self, counted: FloatArray) -> FloatArray:
        k = len(self.rates_)
        smooth = np.sqrt(self.strength / 2) * smoothness(self.ladder_)
        parts, targets = [self.rates_, smooth], [counted, np.zeros((*counted.shape[:-1], k - 2))]
        if is_singular(self.rates_):
            pull = open_directions(self.rates_)
            parts, targets = [*parts, pull], [*targets, counted @ pull]
        return simplex_least_squares(np.vstack(parts), np.concatenate(targets, axis=-1))


class OACC(_SmoothCounts):
    r"""Ordinal adjusted classify and count (o-ACC): `ACC` with smooth shares along ordered classes [1]_.

    .. math:: \hat p = \arg\min_{p \in \Delta} \| M p - \hat p^{CC} \|^2 + \frac{\tau}{2} \| C p \|^2, \qquad
        (C p)_c = - p_{c-1} + 2 p_c - p_{c+1}

    The penalty is zero where shares lie on a line. For stars, grades or ages, if neighbouring classes have similar
    shares.

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.
    strength : :math:`\tau`; 0 is `ACC`. ``GridSearchQ(OACC(), {"strength": [1e-4, 1e-3, 1e-2, 0.1]}, metric="md")``
        chooses it on held-out training data.
    order : the classes from the lowest to the highest; None takes numbers as they are.

    Attributes
    ----------
    rates_ : (k, k), as in `ACC`.
    ladder_ : (k,) positions in `classes_`, from the lowest class to the highest.

    See Also
    --------
    match_distance : the error for ordered classes.

    References
    ----------
    .. [1] M. Bunse, A. Moreo, F. Sebastiani and M. Senz, "Ordinal quantification through regularization", ECML PKDD
           2022.

    Examples
    --------
    >>> stars = [1, 2, 3, 4, 5] * 4
    >>> OACC("precomputed").fit(np.eye(5)[np.tile(np.arange(5), 4)], stars).predict(np.eye(5)).round(2)
    array([0.2, 0.2, 0.2, 0.2, 0.2])
    """

    about: ClassVar[About] = About("ordered", "Bunse et al. (2022)", "ordered", "posteriors", "O(n k + k^3)")
    _counts_labels: ClassVar[bool] = True

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        self._keep_rates(hard_rates(posteriors, codes))

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Count, then adjust smoothly: (..., n, k) -> (..., k)."""
        return self._adjust(classify_and_count(check_rows(rows, width=len(self.classes_))))


class OPACC(_SmoothCounts):
    r"""Ordinal probabilistic adjusted classify and count (o-PACC): `PACC` with smooth shares [1]_.

    .. math:: \hat p = \arg\min_{p \in \Delta} \| M p - \hat p^{PCC} \|^2 + \frac{\tau}{2} \| C p \|^2

    with M as in `PACC` and C as in `OACC`.

    Parameters
    ----------
    classifier, cv, strength, order : see `OACC`.

    Attributes
    ----------
    rates_ : (k, k), as in `PACC`.
    ladder_ : as in `OACC`.

    References
    ----------
    .. [1] M. Bunse, A. Moreo, F. Sebastiani and M. Senz, "Ordinal quantification through regularization", ECML PKDD
           2022.

    Examples
    --------
    >>> sizes = ["S", "M", "L"] * 4
    >>> quantifier = OPACC("precomputed", order=["S", "M", "L"]).fit(np.eye(3)[[2, 1, 0] * 4], sizes)
    >>> quantifier.classes_.tolist(), quantifier.predict(np.eye(3)[[0, 1, 1, 2, 2, 2]]).round(2)
    (['L', 'M', 'S'], array([0.17, 0.33, 0.5 ]))
    """

    about: ClassVar[About] = About("ordered", "Bunse et al. (2022)", "ordered", "posteriors", "O(n k + k^3)")

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        self._keep_rates(soft_rates(posteriors, codes))

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Average, then adjust smoothly: (..., n, k) -> (..., k)."""
        return self._adjust(mean_posterior(check_rows(rows, width=len(self.classes_))))


class OEMQ(Calibrated):
    r"""Ordinal expectation maximization quantifier: `EMQ` with smooth shares along ordered classes.

    .. math:: \hat p = \arg\max_{p \in \Delta} \frac1n \sum_i \log \sum_c \frac{p_c \pi_{ic}}{\rho_c}
        - \frac{\tau}{2} \| C p \|^2

    with C as in `OACC`. New in quanet, after [1]_.

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.
    calibration : see `EMQ`.
    strength : :math:`\tau`; 0 is `EMQ`.
    order : see `OACC`.

    Attributes
    ----------
    ladder_ : as in `OACC`.
    calibration_ : as in `EMQ`.

    Notes
    -----
    The o-SLD of [1]_ fits a polynomial to EM's estimate after every step, so that what it ends at maximises nothing;
    here their penalty of o-ACC is put on the likelihood, and its one maximum is found.

    References
    ----------
    .. [1] M. Bunse, A. Moreo, F. Sebastiani and M. Senz, "Ordinal quantification through regularization", ECML PKDD
           2022.

    Examples
    --------
    >>> posteriors = np.eye(3)[[0, 1, 2, 1]] * 0.7 + 0.1
    >>> quantifier = OEMQ("precomputed", calibration=None, strength=100.0).fit(posteriors, [1, 2, 3, 2])
    >>> quantifier.predict(posteriors[[0, 0, 2]]).round(2)
    array([0.49, 0.33, 0.18])
    """

    about: ClassVar[About] = About("ordered", "after Bunse et al. (2022)", "ordered", "posteriors", "O(n k^2) a step")
    allowed_values: ClassVar[Constraints] = {"strength": at_least(0)}

    ladder_: IntArray

    def __init__(
        self,
        classifier: Any = None,
        *,
        cv: Any = 5,
        calibration: str | None = "bcts",
        strength: float = 0.01,
        order: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(classifier, cv=cv, calibration=calibration)
        self.strength = strength
        self.order = order

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Maximise the penalised likelihood of every bag: (..., n, k) -> (..., k)."""
        posteriors = check_rows(rows, width=len(self.classes_))
        n, k = posteriors.shape[-2:]
        bags = np.ascontiguousarray(posteriors).reshape(-1, n, k)
        smooth = smoothness(self.ladder_)
        prevalences = np.tile(self.prior_, (len(bags), 1))
        kernels.smooth_likelihood(bags, 1 / self.prior_, self.strength * smooth.T @ smooth, prevalences, 1e-8, 200)
        return prevalences.reshape(*posteriors.shape[:-2], k)


class ODMy(DMy):
    r"""Ordinal distribution matching of posteriors (o-HDy): `DMy` with smooth shares along ordered classes [1]_.

    .. math:: \hat p = \arg\min_{p \in \Delta} \sum_j D\Big(\sum_c p_c H_{jc}, h_j\Big) + \frac{\tau}{2} \| C p \|^2

    with H the histograms of the classes' posteriors, h the bag's, and C as in `OACC`.

    Parameters
    ----------
    classifier, bins, divergence, cumulative, cv : see `DMy`.
    strength : :math:`\tau`; 0 is `DMy`. ``GridSearchQ(ODMy(), {"strength": [1e-4, 1e-3, 1e-2, 0.1]}, metric="md")``
        chooses it on held-out training data.
    order : the classes from the lowest to the highest; None takes numbers as they are.

    Attributes
    ----------
    ladder_ : as in `OACC`.

    Notes
    -----
    Published with the mean of Hellinger distances, which is not convex; here they are squared and summed, as in `DMy`,
    so that the minimum is the only one.

    References
    ----------
    .. [1] M. Bunse, A. Moreo, F. Sebastiani and M. Senz, "Regularization-based methods for ordinal quantification",
           Data Mining and Knowledge Discovery 38, 2024.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(k=4, distance=1.5).draw([0.25] * 4, 2000, rng=0)
    >>> new, _ = Gaussians(k=4, distance=1.5).draw([0.1, 0.2, 0.3, 0.4], 1000, rng=1)
    >>> ODMy(strength=1.0).fit(X, y).predict(new).round(1)
    array([0.1, 0.2, 0.3, 0.4])
    """

    about: ClassVar[About] = About("ordered", "Bunse et al. (2024)", "ordered", "posteriors", "O(n k + bins k^3)")
    allowed_values: ClassVar[Constraints] = {"strength": at_least(0)}

    ladder_: IntArray

    def __init__(
        self,
        classifier: Any = None,
        *,
        bins: int | Sequence[int] = 8,
        divergence: str | Divergence = "hellinger",
        cumulative: bool = False,
        cv: Any = 5,
        strength: float = 0.01,
        order: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(classifier, bins=bins, divergence=divergence, cumulative=cumulative, cv=cv)
        self.strength = strength
        self.order = order

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Summarise every bag and find the nearest smooth mixture: (..., n, d) -> (..., k)."""
        matcher = self.matcher_
        summaries = matcher.representation.summarise(check_rows(rows, width=matcher.width))
        if self.strength == 0 or len(self.classes_) < 3:
            return matcher(summaries)
        smooth = smoothness(self.ladder_)
        return matcher(summaries, penalty=self.strength * smooth.T @ smooth)


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
