r"""Classes in order, such as stars: neighbouring classes have similar shares, and errors count by their distance.

Smoothness is Tikhonov's: with C the second differences of shares in the classes' order,

.. math:: \frac{\tau}{2} \| C p \|^2, \qquad (C p)_c = - p_{c-1} + 2 p_c - p_{c+1}

is added to what a method minimises (Bunse et al. 2022). It is zero where shares lie on a line. Numbers and booleans
have an order of their own; for all other labels it is given, from the lowest to the highest. Judge estimates by
`match_distance`, with shares in that order.
"""

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.bags import check_rows
from quanet.base import AggregativeQuantifier, Quantifier
from quanet.classifiers import check_posteriors
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning
from quanet.methods.about import About
from quanet.methods.counting import (
    SINGULAR,
    classify_and_count,
    hard_rates,
    is_singular,
    mean_posterior,
    soft_rates,
)
from quanet.methods.em import Calibrated
from quanet.shrinkage import members_are_quiet, shrinkage_of_members
from quanet.solvers import simplex_least_squares


def ladder_of(classes: LabelArray, order: Sequence[Any] | None, name: str) -> IntArray:
    """Positions of the classes from the lowest to the highest: (k,).

    Examples
    --------
    >>> ladder_of(np.array(["bad", "good", "ok"]), ["bad", "ok", "good"], "OACC")
    array([0, 2, 1])
    """
    known = classes.tolist()
    if order is None:
        if classes.dtype.kind not in "biuf":
            raise InvalidData(
                f"{name} needs classes in order, and {known[:4]} have none of their own. "
                f"Say it: {name}(order={known[:4]}), from the lowest to the highest."
            )
        return np.arange(len(known))
    given = list(order)
    if sorted(map(str, given)) != sorted(map(str, known)):
        raise InvalidSetting(f"order is {given}, but the classes are {known}. Name each of them once.")
    return np.array([known.index(one) for one in given])


def second_differences(k: int) -> FloatArray:
    """The matrix of second differences: (k - 2, k).

    Examples
    --------
    >>> second_differences(4)
    array([[-1.,  2., -1.,  0.],
           [ 0., -1.,  2., -1.]])
    """
    return 2 * np.eye(k - 2, k, 1) - np.eye(k - 2, k) - np.eye(k - 2, k, 2)


def smoothness(ladder: IntArray) -> FloatArray:
    """Second differences along the ladder of shares in the classes' own order: (k,) -> (k - 2, k).

    Examples
    --------
    >>> smoothness(np.array([0, 2, 1]))
    array([[-1., -1.,  2.]])
    """
    k = len(ladder)
    matrix = np.zeros((k - 2, k))
    matrix[:, ladder] = second_differences(k)
    return matrix


def check_strength(strength: float) -> None:
    """Say what is wrong with a weight of smoothness."""
    if not strength >= 0:
        raise InvalidSetting(f"strength is a number of at least 0; got {strength!r}.")


def monotone(cumulated: FloatArray) -> FloatArray:
    """Cumulated shares that rise: the mean of the least that lies above and the most that lies below.

    (..., k - 1) -> (..., k - 1) (Destercke and Yang 2014).

    Examples
    --------
    >>> monotone(np.array([0.3, 0.2, 0.6]))
    array([0.25, 0.25, 0.6 ])
    """
    above = np.maximum.accumulate(cumulated, axis=-1)
    below = np.minimum.accumulate(cumulated[..., ::-1], axis=-1)[..., ::-1]
    return (above + below) / 2


class _SmoothCounts(AggregativeQuantifier):
    """What OACC and OPACC share: counts explained by rates, and by shares that are smooth."""

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

    def _learn_labels(self, X: Any, y: ArrayLike) -> IntArray:
        codes = super()._learn_labels(X, y)
        self.ladder_ = ladder_of(self.classes_, self.order, type(self).__name__)
        check_strength(self.strength)
        return codes

    def _keep_rates(self, rates: FloatArray) -> None:
        self.rates_ = rates
        if is_singular(rates):
            warnings.warn(
                f"{type(self).__name__} cannot tell all classes apart by this classifier's errors; where it cannot, "
                "smoothness decides, and then the plain count. A better classifier or more labelled instances help.",
                QuanetWarning,
                stacklevel=4,
            )

    def _adjust(self, counted: FloatArray) -> FloatArray:
        k = len(self.rates_)
        smooth = np.sqrt(self.strength / 2) * smoothness(self.ladder_)
        parts, targets = [self.rates_, smooth], [counted, np.zeros((*counted.shape[:-1], k - 2))]
        if is_singular(self.rates_):
            parts, targets = [*parts, SINGULAR * np.eye(k)], [*targets, SINGULAR * counted]
        return simplex_least_squares(np.vstack(parts), np.concatenate(targets, axis=-1))


class OACC(_SmoothCounts):
    r"""Ordinal adjusted classify and count: ACC with smooth shares (o-ACC, Bunse et al. 2022).

    .. math:: \hat p = \arg\min_{p \in \Delta} \| M p - c \|^2 + \frac{\tau}{2} \| C p \|^2

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.
    strength : :math:`\tau`; 0 is `ACC`. ``GridSearchQ(OACC(), {"strength": [1e-4, 1e-3, 1e-2, 0.1]}, metric="md")``
        chooses it on held-out training data.
    order : the classes from the lowest to the highest; None takes numbers as they are.

    Attributes
    ----------
    rates_ : (k, k), as in `ACC`.

    Examples
    --------
    >>> stars = [1, 2, 3, 4, 5] * 4
    >>> OACC("precomputed").fit(np.eye(5)[np.tile(np.arange(5), 4)], stars).predict(np.eye(5)).round(2)
    array([0.2, 0.2, 0.2, 0.2, 0.2])
    """

    about: ClassVar[About] = About("Bunse et al. (2022)", "ordered", "posteriors", "O(n k + k^3)")
    _counts_labels: ClassVar[bool] = True

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        self._keep_rates(hard_rates(posteriors, codes))

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Count, then adjust smoothly: (..., n, k) -> (..., k)."""
        return self._adjust(classify_and_count(check_rows(rows, width=len(self.classes_))))


class OPACC(_SmoothCounts):
    """Ordinal probabilistic adjusted classify and count: PACC with smooth shares (o-PACC, Bunse et al. 2022).

    Parameters
    ----------
    classifier, cv, strength, order : see `OACC`.

    Attributes
    ----------
    rates_ : (k, k), as in `PACC`.

    Examples
    --------
    >>> sizes = ["S", "M", "L"] * 4
    >>> quantifier = OPACC("precomputed", order=["S", "M", "L"]).fit(np.eye(3)[[2, 1, 0] * 4], sizes)
    >>> quantifier.classes_.tolist(), quantifier.predict(np.eye(3)[[0, 1, 1, 2, 2, 2]]).round(2)
    (['L', 'M', 'S'], array([0.17, 0.33, 0.5 ]))
    """

    about: ClassVar[About] = About("Bunse et al. (2022)", "ordered", "posteriors", "O(n k + k^3)")

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        self._keep_rates(soft_rates(posteriors, codes))

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Average, then adjust smoothly: (..., n, k) -> (..., k)."""
        return self._adjust(mean_posterior(check_rows(rows, width=len(self.classes_))))


class OEMQ(Calibrated):
    r"""Ordinal maximum likelihood: EMQ with smooth shares.

    .. math:: \hat p = \arg\max_{p \in \Delta} \frac1n \sum_i \log \sum_c \frac{p_c \pi_{ic}}{\rho_c}
        - \frac{\tau}{2} \| C p \|^2

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.
    calibration : see `EMQ`.
    strength : :math:`\tau`; 0 is `EMQ`.
    order : see `OACC`.

    Notes
    -----
    The o-SLD of Bunse et al. (2022) fits a polynomial to EM's estimate after every step, so that what it ends at
    maximises nothing; here their penalty of o-ACC is put on the likelihood, and its one maximum is found.

    Examples
    --------
    >>> posteriors = np.eye(3)[[0, 1, 2, 1]] * 0.7 + 0.1
    >>> quantifier = OEMQ("precomputed", calibration=None, strength=100.0).fit(posteriors, [1, 2, 3, 2])
    >>> quantifier.predict(posteriors[[0, 0, 2]]).round(2)
    array([0.49, 0.33, 0.18])
    """

    about: ClassVar[About] = About("after Bunse et al. (2022)", "ordered", "posteriors", "O(n k^2) a step")

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

    def _learn_labels(self, X: Any, y: ArrayLike) -> IntArray:
        codes = super()._learn_labels(X, y)
        self.ladder_ = ladder_of(self.classes_, self.order, "OEMQ")
        check_strength(self.strength)
        return codes

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Maximise the penalised likelihood of every bag: (..., n, k) -> (..., k)."""
        from quanet import kernels

        posteriors = check_rows(rows, width=len(self.classes_))
        n, k = posteriors.shape[-2:]
        bags = np.ascontiguousarray(posteriors).reshape(-1, n, k)
        smooth = smoothness(self.ladder_)
        prevalences = np.tile(self.prior_, (len(bags), 1))
        kernels.smooth_likelihood(bags, 1 / self.prior_, self.strength * smooth.T @ smooth, prevalences, 1e-8, 200)
        return prevalences.reshape(*posteriors.shape[:-2], k)


class FrankHall(Quantifier):
    """Ordered classes by methods for two: how much lies at or below each class (after Frank and Hall 2001).

    A quantifier is fitted for every split of the ladder; what they say, made to rise, gives shares by differences.

    Parameters
    ----------
    quantifier : any quantifier; it is fitted to labels True (at or below a class) and False (above). If its classifier
        is "precomputed", X has a posterior for every class, and each copy is given their sums.
    order : see `OACC`.

    Attributes
    ----------
    quantifiers_ : one for each class but the highest.

    Notes
    -----
    Cumulated shares that fall are mended as in quantificationlib 0.1, after Destercke and Yang (2014).

    Examples
    --------
    >>> from quanet import PACC, Gaussians
    >>> X, y = Gaussians(k=3, distance=4).draw([0.2, 0.3, 0.5], 1000, rng=0)
    >>> FrankHall(PACC()).fit(X, y).predict(X).round(1)
    array([0.2, 0.3, 0.5])
    """

    about: ClassVar[About] = About("Frank and Hall (2001)", "ordered", "posteriors", "k - 1 times the quantifier's")

    ladder_: IntArray
    quantifiers_: list[Any]
    widths_: IntArray

    def __init__(self, quantifier: Any, *, order: Sequence[Any] | None = None) -> None:
        self.quantifier = quantifier
        self.order = order

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit a copy of the quantifier to every split of the labels y (n,)."""
        X, y = self._learnable(X, y)
        codes = self._learn_labels(X, y)
        self.ladder_ = ladder_of(self.classes_, self.order, "FrankHall")
        step = np.argsort(self.ladder_)[codes]
        views = self._views(X)
        with members_are_quiet():
            self.quantifiers_ = [clone(self.quantifier).fit(view, step <= at) for at, view in enumerate(views)]
        self.shrinkage_ = shrinkage_of_members(self.quantifiers_)
        firsts = [one.represent(_safe_indexing(view, [0])) for one, view in zip(self.quantifiers_, views, strict=True)]
        self.widths_ = np.array([first.shape[1] for first in firsts])
        return self

    def _views(self, X: Any) -> list[Any]:
        """What each copy is given: X, or the posteriors above and up to its class."""
        k = len(self.classes_)
        if getattr(self.quantifier, "classifier", None) != "precomputed":
            return [X] * (k - 1)
        reached = np.clip(check_posteriors(X, k)[:, self.ladder_].cumsum(axis=1), 0, 1)
        return [np.column_stack([1 - reached[:, at], reached[:, at]]) for at in range(k - 1)]

    def represent(self, X: Any) -> FloatArray:
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
