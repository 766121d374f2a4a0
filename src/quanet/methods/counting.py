"""Counting: classify and count, its probabilistic version, and both adjusted for the classifier's known errors.

The equations are those of Esuli, Moreo and Sebastiani (CIKM 2018), section 2, in their order there: (1) is CC, (2) the
relation of its estimate to the truth, (3) ACC, (4) PCC, (5) PACC.
"""

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.errors import QuanetWarning
from quanet.methods.about import About
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.methods.solvers import simplex_least_squares
from quanet.simplex import count

SINGULAR = 1e-6  # rates whose smallest singular value is below this cannot be separated
PULL = 1e-4  # weight of the plain count in directions that rates leave open: small, and far above rounding errors


def classify_and_count(posteriors: FloatArray) -> FloatArray:
    r"""Share of instances assigned to each class, equation (1): (..., n, k) -> (..., k).

    Examples
    --------
    >>> classify_and_count(np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.7, 0.3]]))
    array([0.75, 0.25])
    """
    from quanet import kernels

    n, k = posteriors.shape[-2:]
    bags = np.ascontiguousarray(posteriors).reshape(-1, n, k)
    counts = np.zeros((len(bags), k))
    kernels.count_argmax(bags, counts)
    return counts.reshape(*posteriors.shape[:-2], k) / n


def mean_posterior(posteriors: FloatArray) -> FloatArray:
    r"""Expected share of each class, equation (4): (..., n, k) -> (..., k).

    Examples
    --------
    >>> mean_posterior(np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.7, 0.3]]))
    array([0.6, 0.4])
    """
    n = posteriors.shape[-2]
    # A product with ones is summed bag by bag, as `mean` is, and many times faster over so short a last axis.
    return np.matmul(np.ones((1, n)), posteriors)[..., 0, :] / n


def hard_rates(posteriors: FloatArray, codes: IntArray) -> FloatArray:
    """Share of the instances of class j that are classified as i: (m, k), (m,) -> (k, k)."""
    return soft_rates(np.eye(posteriors.shape[1])[posteriors.argmax(axis=1)], codes)


def soft_rates(posteriors: FloatArray, codes: IntArray) -> FloatArray:
    """Mean posterior of class i over the instances of class j: (m, k), (m,) -> (k, k)."""
    k = posteriors.shape[1]
    members = np.eye(k)[codes]
    return np.asarray((posteriors.T @ members) / count(codes, k))


def adjust(counted: FloatArray, rates: FloatArray) -> FloatArray:
    r"""Prevalences that the rates turn into what was counted: (..., k), (k, k) -> (..., k).

    For two classes, equations (3) and (5), clipped to [0, 1]:

    .. math:: \hat p = \frac{c - fpr}{tpr - fpr}

    For more, the point of the simplex whose expected counts are nearest. Where the rates leave directions undetermined
    (tpr = fpr, or a class that is never predicted), the solution nearest to the plain count.

    Examples
    --------
    >>> adjust(np.array([0.55, 0.45]), np.array([[0.9, 0.2], [0.1, 0.8]]))
    array([0.5, 0.5])
    """
    if len(rates) == 2:
        false_positive, true_positive = rates[1]
        if is_singular(rates):
            return counted.copy()
        positive = np.clip((counted[..., 1] - false_positive) / (true_positive - false_positive), 0, 1)
        return np.stack([1 - positive, positive], axis=-1)
    if not is_singular(rates):
        return simplex_least_squares(rates, counted)
    pull = open_directions(rates)
    return simplex_least_squares(np.vstack([rates, pull]), np.concatenate([counted, counted @ pull], axis=-1))


def is_singular(rates: FloatArray) -> bool:
    """Whether some mixture of classes looks to the classifier like another one."""
    return bool(np.linalg.svd(rates, compute_uv=False)[-1] < SINGULAR)


def open_directions(rates: FloatArray) -> FloatArray:
    """Rows that weigh the directions in which the rates do not change, by `PULL`: (k, k) -> (k, k), symmetric.

    Added to a least-squares problem they decide where the rates do not, and change nothing elsewhere.

    Examples
    --------
    >>> open_directions(np.array([[0.5, 0.5], [0.5, 0.5]])) / PULL
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    _, strengths, directions = np.linalg.svd(rates)
    null = directions[strengths < SINGULAR]
    return PULL * null.T @ null


class CC(AggregativeQuantifier):
    r"""Classify and count: the share of instances that the classifier assigns to each class.

    .. math:: \hat p_c = \frac1n \sum_{i=1}^n \big[ \hat y_i = c \big]

    The baseline [1]_ that every method must beat: its errors do not cancel when prevalences change. The classifier
    needs no `predict_proba`. It learns nothing from held-out instances, so its estimates are never shrunk
    (`quanet.held_out`).

    Parameters
    ----------
    classifier : see `AggregativeQuantifier`.

    References
    ----------
    .. [1] G. Forman, "Quantifying counts and costs via classification", Data Mining and Knowledge Discovery 17, 2008.

    Examples
    --------
    >>> CC("precomputed").fit([[0.9, 0.1], [0.2, 0.8]], ["no", "yes"]).predict([[0.4, 0.6], [0.7, 0.3]])
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About("counting", "Forman (2008)", "any", "posteriors", "O(n k)")

    _counts_labels: ClassVar[bool] = True

    def __init__(self, classifier: Any = None) -> None:
        self.classifier = classifier

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Count the most probable classes: (..., n, k) -> (..., k)."""
        return classify_and_count(check_rows(rows, width=len(self.classes_)))


class PCC(AggregativeQuantifier):
    r"""Probabilistic classify and count: the mean posterior of each class [1]_.

    .. math:: \hat p_c = \frac1n \sum_{i=1}^n \pi_{ic}

    Correct if posteriors are calibrated in the bag itself, so where its prevalences are those of the training data. Its
    estimates are never shrunk, as with `CC`.

    Parameters
    ----------
    classifier : see `AggregativeQuantifier`.

    References
    ----------
    .. [1] A. Bella, C. Ferri, J. Hernández-Orallo and M. J. Ramírez-Quintana, "Quantification via probability
           estimators", ICDM 2010.

    Examples
    --------
    >>> PCC("precomputed").fit([[0.9, 0.1], [0.2, 0.8]], ["no", "yes"]).predict([[0.4, 0.6], [0.8, 0.2]])
    array([0.6, 0.4])
    """

    about: ClassVar[About] = About("counting", "Bella et al. (2010)", "any", "posteriors", "O(n k)")

    def __init__(self, classifier: Any = None) -> None:
        self.classifier = classifier

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Average the posteriors: (..., n, k) -> (..., k)."""
        return mean_posterior(check_rows(rows, width=len(self.classes_)))


class _Adjusted(AggregativeQuantifier):
    """Base of ACC and PACC: the warning if the rates cannot separate the classes."""

    rates_: FloatArray

    def _keep_rates(self, rates: FloatArray, plain: str) -> None:
        self.rates_ = rates
        if is_singular(rates):
            found = f"tpr = fpr = {rates[1, 1]:.3g}" if len(rates) == 2 else "its rates are linearly dependent"
            warnings.warn(
                f"{type(self).__name__} cannot separate all classes with this classifier ({found}). Where it "
                f"cannot, it returns {plain}'s estimate. Use a better classifier or more labelled instances.",
                QuanetWarning,
                stacklevel=4,
            )


class ACC(_Adjusted):
    r"""Adjusted classify and count: `CC` corrected by the rates at which classes are confused [1]_.

    .. math:: \hat p = \arg\min_{p \in \Delta} \| M p - \hat p^{CC} \|^2, \qquad
        k = 2: \quad \hat p = \frac{\hat p^{CC} - fpr}{tpr - fpr}

    clipped to [0, 1], with :math:`M_{ij}` the share of class j that is classified as i, counted on out-of-fold
    predictions. For classifiers without `predict_proba`; with posteriors, `PACC` usually has less variance.

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.

    Attributes
    ----------
    rates_ : (k, k), the share of class j (column) that is classified as i (row).

    References
    ----------
    .. [1] G. Forman, "Quantifying counts and costs via classification", Data Mining and Knowledge Discovery 17, 2008.

    Examples
    --------
    Half of the "no" are classified as "yes", so only the surplus counts:

    >>> posteriors, labels = [[0.9, 0.1], [0.1, 0.9], [0.1, 0.9], [0.2, 0.8]], ["no", "no", "yes", "yes"]
    >>> ACC("precomputed").fit(posteriors, labels).predict([[0.3, 0.7], [0.1, 0.9], [0.4, 0.6], [0.8, 0.2]])
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About("counting", "Forman (2008)", "any", "posteriors", "O(n k + k^3)")

    _counts_labels: ClassVar[bool] = True

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        self._keep_rates(hard_rates(posteriors, codes), "CC")

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Count, then adjust: (..., n, k) -> (..., k)."""
        return adjust(classify_and_count(check_rows(rows, width=len(self.classes_))), self.rates_)


class PACC(_Adjusted):
    r"""Probabilistic adjusted classify and count: `PCC` corrected by the mean posteriors of each class [1]_.

    .. math:: \hat p = \arg\min_{p \in \Delta} \| M p - \hat p^{PCC} \|^2

    with :math:`M_{ij}` the mean posterior of class i over the out-of-fold instances of class j. Posteriors need not be
    calibrated.

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.

    Attributes
    ----------
    rates_ : (k, k), the mean posterior of class i (row) over the instances of class j (column). For texts they are
        those of the final classifier instead of the folds', if the fold gap is known
        (`quanet.classifiers.cross_fitting`).

    References
    ----------
    .. [1] A. Bella, C. Ferri, J. Hernández-Orallo and M. J. Ramírez-Quintana, "Quantification via probability
           estimators", ICDM 2010.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]], ["no", "no", "yes", "yes"]
    >>> PACC("precomputed").fit(posteriors, labels).predict([[0.4, 0.6], [0.7, 0.3]])
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About("counting", "Bella et al. (2010)", "any", "posteriors", "O(n k + k^3)")

    def _closes_fold_gap(self) -> bool:
        return True

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        self._keep_rates(soft_rates(posteriors, codes), "PCC")

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Average, then adjust: (..., n, k) -> (..., k)."""
        return adjust(mean_posterior(check_rows(rows, width=len(self.classes_))), self.rates_)
