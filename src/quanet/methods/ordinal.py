r"""Classes in order, such as stars: neighbouring classes have similar shares, and errors count by their distance.

Smoothness is Tikhonov's: with C the second differences of shares in the classes' order,

.. math:: \frac{\tau}{2} \| C p \|^2, \qquad (C p)_c = - p_{c-1} + 2 p_c - p_{c+1}

is added to what a method minimises (Bunse et al. 2022). It is zero where shares lie on a line. Numbers and booleans
have an order of their own; for all other labels it is given, from the lowest to the highest. Judge estimates by
`match_distance`, with shares in that order.
"""

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.errors import QuanetWarning
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
from quanet.methods.em import Calibrated
from quanet.methods.order import smoothness
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
        from quanet import kernels

        posteriors = check_rows(rows, width=len(self.classes_))
        n, k = posteriors.shape[-2:]
        bags = np.ascontiguousarray(posteriors).reshape(-1, n, k)
        smooth = smoothness(self.ladder_)
        prevalences = np.tile(self.prior_, (len(bags), 1))
        kernels.smooth_likelihood(bags, 1 / self.prior_, self.strength * smooth.T @ smooth, prevalences, 1e-8, 200)
        return prevalences.reshape(*posteriors.shape[:-2], k)
