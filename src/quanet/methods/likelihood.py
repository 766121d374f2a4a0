"""Maximum likelihood under prior shift, where only the prevalences differ from the training data, and its relatives."""

import warnings
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from quanet import kernels
from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.classifiers.calibration import METHODS, TINY, Calibration, calibrate
from quanet.errors import QuanetWarning
from quanet.methods.about import About
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.methods.solvers import maximum_likelihood
from quanet.parameters import Constraints, between, none_or, one_of
from quanet.simplex import count

FIRST_STOP = 12  # EM's first steps can be short far from the optimum; QuaPy stops no earlier either
SHARE = between(0, 1, including="both")
STEPS = 100  # of EM, as in the authors' experiments


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


def divergence(p: FloatArray, q: FloatArray) -> FloatArray:
    """Kullback-Leibler divergence of p from q, none of q zero: (..., k), (k,) -> (...).

    Examples
    --------
    >>> float(divergence(np.array([1.0, 0.0]), np.array([0.5, 0.5])))
    0.693
    """
    return (p * np.log(np.where(p > 0, p, 1) / q)).sum(axis=-1)


def adaptive_trust(estimate: FloatArray, prior: FloatArray) -> FloatArray:
    r"""How far a bag is to be believed, from 0 to 1: (..., k), (k,) -> (...) (Ye et al. 2024).

    With divergences t of a first estimate from uniform prevalences u and from the prior s,

    .. math:: \lambda = 0.9\, c(KL(t, u)) + 0.1\, (1 - c(KL(t, s))), \qquad c(d) = \frac{4 d}{KL(s, u) + 4 d}

    Examples
    --------
    >>> adaptive_trust(np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([0.7, 0.3])).round(2)
    array([0.87, 0.02])
    """
    uniform = np.full(len(prior), 1 / len(prior))
    spread = max(float(divergence(prior, uniform)), 1e-12)

    def confidence(distance: FloatArray) -> FloatArray:
        return 4 * distance / (spread + 4 * distance)

    far_from_uniform, far_from_prior = divergence(estimate, uniform), divergence(estimate, prior)
    return 0.9 * confidence(far_from_uniform) + 0.1 * (1 - confidence(far_from_prior))


def maximum_a_posteriori(
    posteriors: FloatArray, prior: FloatArray, *, trust: float | None = None, tol: float = 1e-8, max_iter: int = STEPS
) -> FloatArray:
    r"""Prevalences under a Dirichlet prior around uniform ones, by EM: (..., n, k), (k,) -> (..., k) (Ye et al. 2024).

    Every step of EM is pulled to uniform prevalences, by a trust :math:`\lambda` of its own for each bag:

    .. math:: p \leftarrow \lambda\, EM(p) + (1 - \lambda) / k

    Examples
    --------
    >>> posteriors = np.array([[0.8, 0.2], [0.2, 0.8], [0.2, 0.8]])
    >>> maximum_a_posteriori(posteriors, np.array([0.5, 0.5]), trust=0.5).round(3)
    array([0.427, 0.573])
    """
    n, k = posteriors.shape[-2:]
    bags = np.ascontiguousarray(posteriors).reshape(-1, n, k)
    if trust is None:
        first, _ = expectation_maximization(bags, prior, tol=0.0, max_iter=max_iter)
        trusts = adaptive_trust(first, prior)
    else:
        trusts = np.full(len(bags), float(trust))
    prevalences = np.tile(prior, (len(bags), 1))
    kernels.expectation_maximization(bags, 1 / prior, trusts, prevalences, tol, 1, max_iter)
    return prevalences.reshape(*posteriors.shape[:-2], k)


class MAPLS(Calibrated):
    r"""Maximum a posteriori under label shift: `EMQ` with a prior that pulls to uniform prevalences [1]_.

    .. math:: \hat p \leftarrow \lambda\, EM(\hat p) + \frac{1 - \lambda}{k}

    with EM a step of expectation maximization. For many classes and small bags, where maximum likelihood gives some
    classes nothing.

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.
    calibration : see `EMQ`.
    trust : :math:`\lambda`; 1 is `EMQ`, 0 uniform prevalences. None lets every bag decide by its own first estimate, as
        published: the nearer to uniform that is, the more it is pulled there.

    Attributes
    ----------
    calibration_ : as in `EMQ`.

    References
    ----------
    .. [1] C. Ye, R. Tsuchida, L. Petersson and N. Barnes, "Label shift estimation for class-imbalance problem: a
           Bayesian approach", WACV 2024.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]], ["no", "no", "yes", "yes"]
    >>> MAPLS("precomputed", calibration=None, trust=0.5).fit(posteriors, labels).predict(
    ...     [[0.8, 0.2], [0.2, 0.8], [0.2, 0.8]]).round(3)
    array([0.427, 0.573])
    """

    about: ClassVar[About] = About("likelihood", "Ye et al. (2024)", "any", "posteriors", "O(n k) a step")
    _exact: ClassVar[bool] = False

    allowed_values: ClassVar[Constraints] = {"trust": none_or(SHARE)}

    def __init__(
        self,
        classifier: Any = None,
        *,
        cv: Any = 5,
        calibration: str | None = "bcts",
        trust: float | None = None,
    ) -> None:
        super().__init__(classifier, cv=cv, calibration=calibration)
        self.trust = trust

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Maximise the posterior of every bag: (..., n, k) -> (..., k)."""
        return maximum_a_posteriori(check_rows(rows, width=len(self.classes_)), self.prior_, trust=self.trust)


def incremental_prior(posteriors: FloatArray, prior: FloatArray, retained: float) -> FloatArray:
    r"""Prevalences by labels given one after another: (..., n, k), (k,) -> (..., k) (Zhang, Batista and Kanhere 2025).

    The `retained` share of instances with the largest posteriors get the class of that. Every other one, the surest
    first, gets the class of the largest :math:`\pi_{ic}\, p_c / \rho_c`, where p are the shares of the labels given so
    far. At the end all instances are labelled again with the last p, and counted.

    Examples
    --------
    >>> posteriors = np.array([[0.1, 0.9], [0.2, 0.8], [0.15, 0.85], [0.6, 0.4]])
    >>> incremental_prior(posteriors, np.array([0.5, 0.5]), 0.5)
    array([0., 1.])
    """
    n, k = posteriors.shape[-2:]
    bags = np.ascontiguousarray(posteriors).reshape(-1, n, k)
    surest = bags.max(axis=-1)
    if 0 < retained < 1:
        kept = (surest >= np.quantile(surest, 1 - retained, axis=-1, keepdims=True)).sum(axis=-1)
    else:
        kept = np.full(len(bags), n if retained > 0 else 0)
    # Equally sure instances go by class, so that their order in the bag does not matter.
    order = np.lexsort((bags.argmax(axis=-1), -surest), axis=-1)
    found = np.empty((len(bags), k))
    kernels.incremental_prior(bags, order, kept, prior, found)
    return found.reshape(*posteriors.shape[:-2], k)


class LEIP(Calibrated):
    r"""Label shift estimation with incremental prior update: classify and count, the surest instances first [1]_.

    Every label that is given shifts the prior under which the next one is chosen. With p the shares of the labels so
    far, instance i gets the class

    .. math:: \hat y_i = \arg\max_c \frac{p_c\, \pi_{ic}}{\rho_c}

    At the end all instances are labelled again with the last p, and counted.

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.
    calibration : see `EMQ`; None as published, since only the order of posteriors and their argmax are used.
    retained : the share of a bag that keeps its first labels: a number, or "recall" or "precision", the least of any
        class on out-of-fold instances.

    Attributes
    ----------
    retained_ : that share.

    References
    ----------
    .. [1] Y. Zhang, G. Batista and S. S. Kanhere, "Label shift estimation with incremental prior update", SDM 2025.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]], ["no", "no", "yes", "yes"]
    >>> quantifier = LEIP("precomputed", retained=0.5).fit(posteriors, labels)
    >>> quantifier.predict([[0.1, 0.9], [0.2, 0.8], [0.15, 0.85], [0.6, 0.4]])
    array([0., 1.])
    """

    about: ClassVar[About] = About(
        "likelihood", "Zhang, Batista and Kanhere (2025)", "any", "posteriors", "O(n k + n log n)"
    )

    retained_: float

    allowed_values: ClassVar[Constraints] = {"retained": SHARE | one_of("recall", "precision")}

    def __init__(
        self,
        classifier: Any = None,
        *,
        cv: Any = 5,
        calibration: str | None = None,
        retained: float | Literal["recall", "precision"] = "recall",
    ) -> None:
        super().__init__(classifier, cv=cv, calibration=calibration)
        self.retained = retained

    def _learns_from_posteriors(self) -> bool:
        return True

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        super()._fit_aggregation(posteriors, codes)
        if not isinstance(self.retained, str):
            self.retained_ = float(self.retained)
            return
        k = posteriors.shape[1]
        predicted = self._calibrated(posteriors).argmax(axis=1)
        totals = count(codes if self.retained == "recall" else predicted, k)
        right = count(codes[predicted == codes], k)
        self.retained_ = float((right[totals > 0] / totals[totals > 0]).min())

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Label the surest, then the rest one by one, then count: (..., n, k) -> (..., k)."""
        return incremental_prior(check_rows(rows, width=len(self.classes_)), self.prior_, self.retained_)
