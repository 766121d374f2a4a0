r"""Importance weights: how much more frequent each class is than in training, from a classifier's predictions.

With C the joint distribution of predicted (row) and true class (column) on out-of-fold training instances, and q the
predictions' shares in a bag, the weights :math:`w_y = p(y) / \rho(y)` of a prior shift satisfy :math:`C w = q`. The
prevalences are :math:`p \propto w \rho`.
"""

import warnings
from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from quanet import kernels
from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.errors import QuanetWarning
from quanet.methods.about import About
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.methods.counting import classify_and_count, hard_rates, is_singular, mean_posterior, soft_rates
from quanet.methods.multiclass import share_out
from quanet.parameters import Constraints, at_least, between, one_of
from quanet.simplex import count, one_hot

STEPS = 60  # halvings of an interval of logarithms: more than floats can tell
COUNTS = {"hard": classify_and_count, "soft": mean_posterior}
RATES = {"hard": hard_rates, "soft": soft_rates}


def black_box_weights(counted: FloatArray, joint: FloatArray) -> FloatArray:
    r"""Weights of the classes: (..., k), (k, k) -> (..., k) (Lipton, Wang and Smola 2018).

    .. math:: w = \max(C^{-1} q, 0)

    Where C is singular, of all solutions the one nearest to no shift at all, :math:`w = 1`.

    Examples
    --------
    >>> black_box_weights(np.array([0.55, 0.45]), np.array([[0.45, 0.1], [0.05, 0.4]]))
    array([1., 1.])
    """
    if not is_singular(joint * len(joint)):
        return np.maximum(np.linalg.solve(joint, counted[..., None])[..., 0], 0)
    shift = (counted - joint.sum(axis=1)) @ np.linalg.pinv(joint, rcond=1e-6).T
    return np.maximum(1 + shift, 0)


def regularised_weights(counted: FloatArray, joint: FloatArray, rho: float) -> FloatArray:
    r"""Weights of the classes, held near one: (..., k), (k, k) -> (..., k) (Azizzadenesheli et al. 2019).

    .. math:: w = 1 + \arg\min_{\theta \ge -1} \| C \theta - (q - C 1) \|_2 + \rho \| \theta \|_2

    Both norms are plain, not squared: the solution is that of a ridge regression whose strength is
    :math:`\rho \|C\theta - b\| / \|\theta\|`, found by bisection from one singular value decomposition for all bags.

    Examples
    --------
    >>> joint = np.array([[0.45, 0.1], [0.05, 0.4]])
    >>> regularised_weights(np.array([0.325, 0.675]), joint, 0.01).round(4), regularised_weights(
    ...     np.array([0.325, 0.675]), joint, 1.0).round(4)
    (array([0.3571, 1.6429]), array([1., 1.]))
    """
    targets = (counted - joint.sum(axis=1)).reshape(-1, len(joint))
    left, sizes, right = np.linalg.svd(joint)
    along = targets @ left
    ends = float(2 * np.log(sizes[0])) - 36, 36.0  # of the ridge's logarithm: as good as none, and nothing but ridge
    low, high = (np.full((len(targets), 1), end) for end in ends)
    for _ in range(STEPS):
        middle = (low + high) / 2
        ridge = np.exp(middle)
        damped = along / (sizes**2 + ridge)
        # Too small a ridge leaves a residual that counts for more than the length of the shift.
        small = np.linalg.norm(sizes * damped, axis=1) < rho * np.linalg.norm(damped, axis=1)
        low, high = np.where(small[:, None], middle, low), np.where(small[:, None], high, middle)
    shifts = (sizes * along / (sizes**2 + np.exp(high))) @ right
    outside = (shifts < -1).any(axis=1)
    if outside.any():
        bounded = np.zeros((int(outside.sum()), len(joint)))
        kernels.bounded_shifts(joint, targets[outside], rho, *ends, STEPS, bounded)
        shifts[outside] = bounded
    return (1 + shifts).reshape(counted.shape)


class _Weighted(AggregativeQuantifier):
    """Base of BBSE and RLLS: the joint distribution of predictions and classes, and prevalences from weights."""

    joint_: FloatArray
    shares_: FloatArray

    allowed_values: ClassVar[Constraints] = {"outputs": one_of(*COUNTS)}

    def __init__(self, classifier: Any = None, *, cv: Any = 5, outputs: Literal["hard", "soft"] = "soft") -> None:
        super().__init__(classifier, cv=cv)
        self.outputs = outputs

    def _closes_fold_gap(self) -> bool:
        return self.outputs == "soft"

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        self.shares_ = count(codes, posteriors.shape[1]) / len(codes)
        self.joint_ = RATES[self.outputs](posteriors, codes) * self.shares_

    def _readings(self, posteriors: FloatArray) -> FloatArray:
        return one_hot(posteriors) if self.outputs == "hard" else posteriors

    @abstractmethod
    def _weights_of(self, counted: FloatArray) -> FloatArray:
        """The same from what was counted: (..., k) -> (..., k)."""

    def weights(self, rows: ArrayLike) -> FloatArray:
        """How many times more frequent each class is than in training: (..., n, k) -> (..., k)."""
        return self._weights_of(COUNTS[self.outputs](check_rows(rows, width=len(self.classes_))))

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Weigh the training prevalences: (..., n, k) -> (..., k)."""
        return share_out(self.weights(rows) * self.shares_, self.prior_)


class BBSE(_Weighted):
    r"""Black box shift estimation: weights of the classes that explain the classifier's predictions [1]_.

    .. math:: \hat p_c \propto w_c\, \rho_c, \qquad w = \max(C^{-1} q, 0)

    with :math:`C_{ij}` the share of all out-of-fold instances of class j that are predicted as i, and q the shares of
    the predictions in the bag. Use it where you need the weights themselves; `weights` returns them.

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.
    outputs : "hard" counts predicted classes, as in the paper's main text, "soft" averages posteriors.

    Attributes
    ----------
    joint_ : (k, k), how often class j (column) is predicted as i (row), of all instances.
    shares_ : (k,) the classes' shares among them.

    Notes
    -----
    The weights are the inverse's, negative ones set to zero, as published: QuaPy 0.2 with ``solver="exact-raise"``. By
    default QuaPy looks for non-negative weights of least residual by a general optimiser, another definition where some
    weight is zero. For two classes this is `ACC` ("hard") and `PACC` ("soft").

    References
    ----------
    .. [1] Z. C. Lipton, Y.-X. Wang and A. Smola, "Detecting and correcting for label shift with black box predictors",
           ICML 2018.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]], ["no", "no", "yes", "yes"]
    >>> quantifier = BBSE("precomputed", outputs="soft").fit(posteriors, labels)
    >>> quantifier.predict([[0.4, 0.6], [0.7, 0.3]]), quantifier.weights([[0.4, 0.6], [0.7, 0.3]])
    (array([0.5, 0.5]), array([1., 1.]))
    """

    about: ClassVar[About] = About("weights", "Lipton, Wang and Smola (2018)", "any", "posteriors", "O(n k + k^2)")

    def __init__(self, classifier: Any = None, *, cv: Any = 5, outputs: Literal["hard", "soft"] = "hard") -> None:
        super().__init__(classifier, cv=cv, outputs=outputs)

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        super()._fit_aggregation(posteriors, codes)
        if is_singular(self.joint_ * len(self.joint_)):
            warnings.warn(
                "BBSE cannot separate all classes: the matrix of predicted and true classes is singular. Of the "
                "weights that explain a bag it returns those nearest to 1. Use a better classifier, more labelled "
                "instances, or RLLS, which is regularised.",
                QuanetWarning,
                stacklevel=4,
            )

    def _weights_of(self, counted: FloatArray) -> FloatArray:
        return black_box_weights(counted, self.joint_)


class RLLS(_Weighted):
    r"""Regularised learning under label shift: weights as in `BBSE`, held near one [1]_.

    .. math:: \hat p_c \propto w_c\, \rho_c, \qquad
        w = 1 + \arg\min_{\theta \ge -1} \| C \theta - (q - C 1) \|_2 + \rho \| \theta \|_2

    The strength :math:`\rho = 3 \alpha \left(\frac{2 \ln(2k/\delta)}{3 m} + \sqrt{\frac{2 \ln(2k/\delta)}{m}}\right)`
    falls with the number m of labelled instances: with few of them it is safer to see no shift.

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.
    outputs : "soft" averages posteriors, "hard" counts predicted classes.
    alpha : how strongly weights are held near one; 0.01 in the authors' experiments.
    delta : the probability with which the bound behind the strength may fail.

    Attributes
    ----------
    joint_, shares_ : see `BBSE`.
    rho_ : the strength.

    References
    ----------
    .. [1] K. Azizzadenesheli, A. Liu, F. Yang and A. Anandkumar, "Regularized learning for domain adaptation under
           label shifts", ICLR 2019.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]], ["no", "no", "yes", "yes"]
    >>> RLLS("precomputed").fit(posteriors, labels).predict([[0.4, 0.6], [0.7, 0.3]])
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About("weights", "Azizzadenesheli et al. (2019)", "any", "posteriors", "O(n k + k^2)")
    _exact: ClassVar[bool] = False

    rho_: float

    allowed_values: ClassVar[Constraints] = {"alpha": at_least(0), "delta": between(0, 1)}

    def __init__(
        self,
        classifier: Any = None,
        *,
        cv: Any = 5,
        outputs: Literal["hard", "soft"] = "soft",
        alpha: float = 0.01,
        delta: float = 0.05,
    ) -> None:
        super().__init__(classifier, cv=cv, outputs=outputs)
        self.alpha = alpha
        self.delta = delta

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        super()._fit_aggregation(posteriors, codes)
        m, k = posteriors.shape
        spread = 2 * np.log(2 * k / self.delta) / m
        self.rho_ = float(3 * self.alpha * (spread / 3 + np.sqrt(spread)))

    def _weights_of(self, counted: FloatArray) -> FloatArray:
        return regularised_weights(counted, self.joint_, self.rho_)
