"""Counting: classify and count, its probabilistic version, and both adjusted for the classifier's known errors.

The equations are those of Esuli, Moreo and Sebastiani (CIKM 2018), section 2, in their order there: (1) is CC, (2) the
relation of its estimate to the truth, (3) ACC, (4) PCC, (5) PACC. Friedman's methods and CDE correct counts otherwise;
`TrainPrevalence` is the baseline that counts nothing.
"""

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _num_samples

from quanet import kernels
from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.base import Quantifier
from quanet.errors import QuanetWarning
from quanet.methods.about import About
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.methods.solvers import simplex_least_squares
from quanet.parameters import Constraints, whole
from quanet.simplex import count

SINGULAR = 1e-6  # rates whose smallest singular value is below this cannot be separated
PULL = 1e-4  # weight of the plain count in directions that rates leave open: small, and far above rounding errors
EMPTY = 1e-12  # the least share, so that costs stay finite


def classify_and_count(posteriors: FloatArray) -> FloatArray:
    r"""Share of instances assigned to each class, equation (1): (..., n, k) -> (..., k).

    Examples
    --------
    >>> classify_and_count(np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.7, 0.3]]))
    array([0.75, 0.25])
    """
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


def share_above(posteriors: FloatArray, prior: FloatArray) -> FloatArray:
    """Share of instances whose posterior of each class is at least its prior: (..., n, k), (k,) -> (..., k).

    Examples
    --------
    >>> share_above(np.array([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.1, 0.9]]), np.array([0.8, 0.2]))
    array([0.25, 0.75])
    """
    return mean_posterior((posteriors >= prior).astype(float))


class Friedman(AggregativeQuantifier):
    r"""Friedman's method: adjusted counts of the instances that are more probable than in training.

    An instance counts for every class whose posterior is at least the training prevalence :math:`\rho_c`. Friedman [1]_
    shows that of all ways to split instances in two this has the least variance near the training prevalences. With
    :math:`F_{cj}` the share of class j that counts for c, and f these shares in the bag,

    .. math:: \hat p = \arg\min_{p \in \Delta} \| F p - f \|^2

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.

    Attributes
    ----------
    rates_ : (k, k), F above.

    References
    ----------
    .. [1] J. H. Friedman, "Class counts in future unlabeled samples", presentation at the MIT CSAIL Big Data Event,
           2014.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.7, 0.3], [0.6, 0.4], [0.2, 0.8]], ["no", "no", "no", "yes"]
    >>> Friedman("precomputed").fit(posteriors, labels).predict([[0.4, 0.6], [0.7, 0.3], [0.8, 0.2]])
    array([1., 0.])
    """

    about: ClassVar[About] = About("counting", "Friedman (2014)", "any", "posteriors", "O(n k + k^3)")

    rates_: FloatArray

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        k = posteriors.shape[1]
        self.rates_ = np.stack([share_above(posteriors[codes == c], self.prior_) for c in range(k)], axis=1)
        if is_singular(self.rates_):
            warnings.warn(
                "Friedman cannot separate all classes with this classifier: its rates are linearly dependent. Where it "
                "cannot, it returns the training prevalences. Use a better classifier.",
                QuanetWarning,
                stacklevel=4,
            )

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Count above the priors, then adjust: (..., n, k) -> (..., k)."""
        counted = share_above(check_rows(rows, width=len(self.classes_)), self.prior_)
        if not is_singular(self.rates_):
            return simplex_least_squares(self.rates_, counted)
        pull = open_directions(self.rates_)
        wanted = np.broadcast_to(pull @ self.prior_, counted.shape)
        return simplex_least_squares(np.vstack([self.rates_, pull]), np.concatenate([counted, wanted], axis=-1))


class DeBias(AggregativeQuantifier):
    r"""De-biased mean posterior: freed of its pull to the training prevalence [1]_.

    .. math:: \hat p = \rho + \frac{\bar \pi - \rho}{V}, \qquad
        V = \frac{\tfrac1m \sum_i (\pi_i - \rho)^2}{\rho (1 - \rho)}

    where :math:`\bar\pi` is the bag's mean posterior of the second class, :math:`\rho` its training prevalence and V
    the share of the labels' variance that out-of-fold posteriors explain. Of calibrated ones it is tpr - fpr of `PACC`.

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.

    Attributes
    ----------
    explained_ : V.

    References
    ----------
    .. [1] J. H. Friedman, "Class counts in future unlabeled samples", presentation at the MIT CSAIL Big Data Event,
           2014.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.1, 0.9]], ["no", "no", "yes", "yes"]
    >>> quantifier = DeBias("precomputed").fit(posteriors, labels)
    >>> quantifier.explained_, quantifier.predict([[0.3, 0.7], [0.5, 0.5]])
    (0.4, array([0.25, 0.75]))
    """

    about: ClassVar[About] = About("counting", "Friedman (2014)", "two", "posteriors", "O(n)")

    explained_: float

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:  # noqa: ARG002
        spread = np.square(posteriors[:, 1] - self.prior_[1]).mean()
        self.explained_ = float(spread / (self.prior_[0] * self.prior_[1]))
        if self.explained_ < SINGULAR:
            warnings.warn(
                "DeBias cannot separate the classes: all posteriors equal the training prevalence. It returns "
                "their mean. Use a better classifier.",
                QuanetWarning,
                stacklevel=4,
            )

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Average, then stretch about the prior: (..., n, 2) -> (..., 2)."""
        mean = mean_posterior(check_rows(rows, width=2))
        if self.explained_ < SINGULAR:
            return mean
        positive = np.clip(self.prior_[1] + (mean[..., 1] - self.prior_[1]) / self.explained_, 0, 1)
        return np.stack([1 - positive, positive], axis=-1)


def iterate_counts(scores: FloatArray, prior: float, *, tol: float = 1e-4, max_iter: int = 100) -> FloatArray:
    r"""Share of positives by repeated counting at a moving threshold: (..., n) -> (...) (Xue and Weiss 2009).

    With p the share counted so far, at first at 0.5, a false positive costs
    :math:`r = \frac{\rho}{1 - \rho} \frac{1 - p}{p}` times a false negative, so that scores above
    :math:`r / (1 + r)` are counted next. Threshold and count move one way only, so every bag settles.

    Examples
    --------
    >>> float(iterate_counts(np.array([0.9, 0.8, 0.7, 0.45, 0.1]), 0.5))
    0.8
    """
    counted = np.count_nonzero(scores > 0.5, axis=-1) / scores.shape[-1]
    odds = max(prior, EMPTY) / max(1 - prior, EMPTY)
    for _ in range(max_iter - 1):
        cost = odds * np.maximum(1 - counted, EMPTY) / np.maximum(counted, EMPTY)
        updated = np.count_nonzero(scores > (cost / (1 + cost))[..., None], axis=-1) / scores.shape[-1]
        change, counted = np.abs(updated - counted), updated
        if (change < tol).all():
            break
    return np.asarray(counted)


class CDE(AggregativeQuantifier):
    r"""Class distribution estimation: repeated counts at the costs that the last count implies.

    With p the share counted so far, at first at the threshold 0.5, and :math:`\rho` the training prevalence of the
    second class, a false positive costs r times a false negative, and

    .. math:: \hat p \leftarrow \frac1n \sum_i \Big[ \pi_i > \frac{r}{1 + r} \Big], \qquad
        r = \frac{\rho}{1 - \rho} \cdot \frac{1 - \hat p}{\hat p}

    The published method [1]_ retrains a cost-sensitive classifier in each round; with posteriors that is a threshold.
    It corrects `CC` without held-out instances, but not fully.

    Parameters
    ----------
    classifier : see `AggregativeQuantifier`.
    tol : a bag has converged when its prevalence changes by less.
    max_iter : maximum number of rounds.

    References
    ----------
    .. [1] J. C. Xue and G. M. Weiss, "Quantification and semi-supervised classification methods for handling changes in
           class distribution", KDD 2009.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]], ["no", "no", "yes", "yes"]
    >>> bag = [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.55, 0.45], [0.9, 0.1]]
    >>> CDE("precomputed").fit(posteriors, labels).predict(bag)
    array([0.2, 0.8])
    """

    about: ClassVar[About] = About("counting", "Xue and Weiss (2009)", "two", "posteriors", "O(n) a round")
    allowed_values: ClassVar[Constraints] = {"max_iter": whole(1)}

    def __init__(self, classifier: Any = None, *, tol: float = 1e-4, max_iter: int = 100) -> None:
        self.classifier = classifier
        self.tol = tol
        self.max_iter = max_iter

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Count, move the threshold, count again: (..., n, 2) -> (..., 2)."""
        scores = check_rows(rows, width=2)[..., 1]
        positive = iterate_counts(scores, float(self.prior_[1]), tol=self.tol, max_iter=self.max_iter)
        return np.stack([1 - positive, positive], axis=-1)


class TrainPrevalence(Quantifier):
    r"""The training prevalences, for every bag; a method that does no better has learned nothing.

    .. math:: \hat p_c = \rho_c = \frac{m_c}{m}

    with :math:`m_c` of m training instances in class c. Also known as maximum likelihood prevalence estimation (MLPE)
    [1]_.

    Parameters
    ----------
    classifier : not used; accepted so that all methods can be built alike.

    References
    ----------
    .. [1] A. Esuli, A. Fabris, A. Moreo and F. Sebastiani, Learning to Quantify, Springer, 2023.

    Examples
    --------
    >>> TrainPrevalence().fit(["x", "y", "z"], ["spam", "ham", "ham"]).predict(["w"])
    array([0.667, 0.333])
    """

    about: ClassVar[About] = About("baseline", "the training prevalences", "any", "nothing", "O(1)")

    def __init__(self, classifier: Any = None) -> None:
        self.classifier = classifier

    def _fit(self, X: Any, y: ArrayLike) -> None:
        """Count the labels y (n,)."""
        self._learn_labels(X, y)

    def _read(self, X: Any) -> FloatArray:
        """Rows of no columns: (n, 0)."""
        return np.empty((_num_samples(X), 0))

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """The training prevalences, for every bag: (..., n, 0) -> (..., k)."""
        return np.tile(self.prior_, (*check_rows(rows).shape[:-2], 1))
