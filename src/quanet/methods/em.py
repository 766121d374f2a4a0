"""Maximum likelihood under prior shift: only the prevalences differ from the training data."""

import warnings
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.classifiers.calibration import METHODS, TINY, Calibration, calibrate
from quanet.errors import QuanetWarning
from quanet.methods.about import About
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.methods.solvers import maximum_likelihood
from quanet.parameters import Constraints, none_or, one_of

FIRST_STOP = 12  # EM's first steps can be short far from the optimum; QuaPy stops no earlier either


def expectation_maximization(
    posteriors: FloatArray, prior: FloatArray, *, tol: float = 1e-4, max_iter: int = 1000
) -> tuple[FloatArray, int]:
    r"""Prevalences by expectation maximization: (..., n, k), (k,) -> (..., k) (Saerens, Latinne and Decaestecker 2002).

    From the prior on, posteriors are re-weighted by the prevalences found so far and averaged again:

    .. math:: p_c \leftarrow \frac1n \sum_i \frac{p_c\, \pi_{ic} / \rho_c}{\sum_{c'} p_{c'}\, \pi_{ic'} / \rho_{c'}}

    Each bag stops when the mean change over classes falls below `tol`, after 12 steps at the earliest. The
    second value returned is the number of bags that did not settle within `max_iter` steps.

    Examples
    --------
    >>> posteriors = np.array([[0.8, 0.2], [0.2, 0.8], [0.2, 0.8]])
    >>> prevalences, unsettled = expectation_maximization(posteriors, np.array([0.5, 0.5]), tol=1e-9)
    >>> prevalences.round(4), unsettled
    (array([0.2222, 0.7778]), 0)
    """
    from quanet import kernels

    n, k = posteriors.shape[-2:]
    bags = np.ascontiguousarray(posteriors).reshape(-1, n, k)
    prevalences = np.tile(prior, (len(bags), 1))
    scale = 1 / prior  # p(x | y) ∝ p(y | x) / p(y)
    stops = tol, FIRST_STOP, max_iter
    if k == 2:
        unsettled = kernels.binary_expectation_maximization(bags, scale, prevalences, *stops)
    else:
        unsettled = kernels.expectation_maximization(bags, scale, np.ones(len(bags)), prevalences, *stops)
    return prevalences.reshape(*posteriors.shape[:-2], k), unsettled


SOLVERS = {"newton": maximum_likelihood, "em": expectation_maximization}


class Calibrated(AggregativeQuantifier):
    """Base of the methods that need calibrated posteriors: they are calibrated on out-of-fold ones first."""

    allowed_values: ClassVar[Constraints] = {"calibration": none_or(one_of(*METHODS))}

    _ridge: ClassVar[float] = 0.0  # of the calibration

    calibration_: Calibration

    def __init__(self, classifier: Any = None, *, cv: Any = 5, calibration: str | None = "bcts") -> None:
        super().__init__(classifier, cv=cv)
        self.calibration = calibration

    def _learns_from_posteriors(self) -> bool:
        return self.calibration is not None

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        if self.calibration is not None:
            self.calibration_ = calibrate(posteriors, codes, method=str(self.calibration), ridge=self._ridge)

    def _calibrated(self, posteriors: FloatArray) -> FloatArray:
        return posteriors if self.calibration is None else self.calibration_(posteriors)

    def rows(self, inputs: ArrayLike) -> FloatArray:
        """Calibrated posteriors: (n, k) -> (n, k)."""
        return self._calibrated(super().rows(inputs))


class EMQ(Calibrated):
    r"""Expectation maximization quantifier (SLD): the prevalences under which the bag is most likely.

    .. math:: \hat p = \arg\max_{p \in \Delta} \sum_{i=1}^n \log \sum_c \frac{p_c\, \pi_{ic}}{\rho_c}

    The default of quanet for prior shift. Saerens, Latinne and Decaestecker [1]_ find the maximum by EM; the likelihood
    is concave, so Newton's method finds the same point, exactly and sooner. It needs calibrated posteriors, so they are
    calibrated on out-of-fold ones first [2]_.

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.
    calibration : "bcts", "platt", "temperature", "vector", "nbvs" (see `quanet.calibrate`), or None for no calibration.
    prior : what posteriors are divided by: "labels", the training prevalences, or "posteriors", the mean of out-of-fold
        posteriors, which [2]_ prefers. The two are the same after "bcts" and "vector".
    solver : "newton", exact, or "em", which stops short of the optimum when its steps are small.
    tol : a bag has converged when its prevalences change by less in one step.
    max_iter : maximum number of steps.

    Attributes
    ----------
    calibration_ : the fitted `quanet.calibrate` map, if posteriors are calibrated.
    mean_posterior_ : (k,) what posteriors are divided by, if `prior` is "posteriors".

    Notes
    -----
    ``EMQ(classifier, calibration=None, solver="em", tol=1e-4)`` is the EMQ of QuaPy 0.2, stopping rule included.

    References
    ----------
    .. [1] M. Saerens, P. Latinne and C. Decaestecker, "Adjusting the outputs of a classifier to new a priori
           probabilities: a simple procedure", Neural Computation 14, 2002.
    .. [2] A. M. Alexandari, A. Kundaje and A. Shrikumar, "Maximum likelihood with bias-corrected calibration is
           hard-to-beat at label shift adaptation", ICML 2020.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]], ["no", "no", "yes", "yes"]
    >>> quantifier = EMQ("precomputed", calibration=None).fit(posteriors, labels)
    >>> quantifier.predict([[0.8, 0.2], [0.2, 0.8], [0.2, 0.8]])
    array([0.222, 0.778])
    """

    about: ClassVar[About] = About(
        "likelihood", "Saerens, Latinne and Decaestecker (2002)", "any", "posteriors", "O(n k^2) a step"
    )

    allowed_values: ClassVar[Constraints] = {"solver": one_of(*SOLVERS), "prior": one_of("labels", "posteriors")}

    def __init__(
        self,
        classifier: Any = None,
        *,
        cv: Any = 5,
        calibration: str | None = "bcts",
        prior: Literal["labels", "posteriors"] = "labels",
        solver: Literal["newton", "em"] = "newton",
        tol: float = 1e-6,
        max_iter: int = 1000,
    ) -> None:
        super().__init__(classifier, cv=cv, calibration=calibration)
        self.prior = prior
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter

    mean_posterior_: FloatArray

    def _learns_from_posteriors(self) -> bool:
        return self.calibration is not None or self.prior == "posteriors"

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        super()._fit_aggregation(posteriors, codes)
        if self.prior == "posteriors":
            # A class that is never named has a mean of 0, by which nothing can be divided.
            self.mean_posterior_ = np.maximum(self._calibrated(posteriors).mean(axis=0), TINY)

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Maximise the likelihood of every bag: (..., n, k) -> (..., k)."""
        posteriors = check_rows(rows, width=len(self.classes_))
        prior = self.prior_ if self.prior == "labels" else self.mean_posterior_
        prevalences, unsettled = SOLVERS[self.solver](posteriors, prior, tol=self.tol, max_iter=self.max_iter)
        if unsettled:
            warnings.warn(
                f"EMQ did not settle within {self.max_iter} steps on {unsettled} bags. "
                "Raise max_iter or tol, or use solver='newton'.",
                QuanetWarning,
                stacklevel=2,
            )
        return prevalences
