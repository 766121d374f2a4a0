"""Relatives of maximum likelihood: with a prior on prevalences, and label by label."""

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.methods.about import About
from quanet.methods.em import Calibrated, expectation_maximization
from quanet.parameters import Constraints, between, none_or, one_of
from quanet.simplex import count

SHARE = between(0, 1, including="both")
STEPS = 100  # of EM, as in the authors' experiments


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
    from quanet import kernels

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
    from quanet import kernels

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
