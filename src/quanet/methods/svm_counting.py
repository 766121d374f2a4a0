"""Classify and count with support vector machines that minimise a quantification error."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, check_rows
from quanet.base import Quantifier
from quanet.classifiers.text import check_texts, fit_terms, is_text
from quanet.errors import InvalidSetting
from quanet.methods.about import About
from quanet.methods.multiclass import share_out
from quanet.methods.svm import SOLVER_VALUES, QuantificationSVC
from quanet.parameters import Constraints


class _SVM(Quantifier):
    """Base of the five: a `QuantificationSVC` for two classes, or one per class for more; rows are its decisions."""

    classifiers_: list[QuantificationSVC]
    terms_: Any
    _loss: ClassVar[str]
    path_parameter: ClassVar[str] = "C"  # what `fit_path` goes along

    allowed_values: ClassVar[Constraints] = SOLVER_VALUES

    def __init__(self, C: float = 1.0, *, tol: float = 0.1, max_iter: int = 1000) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def _fit(self, X: Any, y: ArrayLike) -> None:
        """Fit the SVM to instances X, texts or numbers (n, d), and labels y (n,)."""
        self.fit_with([], X, y)

    def fit_path(self, X: Any, y: ArrayLike, C: Sequence[float]) -> list[Self]:
        """Fitted copies, one for every C: texts are read once, and each fit starts from the one before."""
        first, *others = (clone(self).set_params(C=value) for value in C)
        return first.fit_with(others, X, y)

    def fit_with(self, others: list[Self], X: Any, y: ArrayLike) -> list[Self]:
        """Fit this quantifier and others that differ from it in C; returns all of them."""
        codes = self._learn_labels(X, y)
        copies, classes, prior = [self, *others], self.classes_, self.prior_
        terms, features = fit_terms(check_texts(X), longest=1) if is_text(X) else (None, X)
        problems = [classes[codes]] if len(classes) == 2 else [codes == one for one in range(len(classes))]
        classifier = self._classifier(len(classes))
        paths = [classifier.fit_path(features, labels, [copy.C for copy in copies]) for labels in problems]
        for copy, *classifiers in zip(copies, *paths, strict=True):
            copy.classes_, copy.prior_, copy.n_instances_ = classes, prior, len(codes)
            copy.terms_, copy.classifiers_ = terms, classifiers
        return copies

    def _classifier(self, k: int) -> QuantificationSVC:  # noqa: ARG002
        return QuantificationSVC(self._loss, tol=self.tol, max_iter=self.max_iter)

    def _read(self, X: Any) -> FloatArray:
        """Decisions, 1 where an instance is given to a class: (n, k)."""
        check_is_fitted(self, "classifiers_")
        features = X if self.terms_ is None else self.terms_.transform(check_texts(X))
        taken = np.stack([one.decision_function(features) > 0 for one in self.classifiers_], axis=1).astype(float)
        return np.hstack([1 - taken, taken]) if len(self.classes_) == 2 else taken

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """Count the decisions: (..., n, k) -> (..., k)."""
        counted = check_rows(rows, width=len(self.classes_)).mean(axis=-2)
        return share_out(counted, self.prior_)


class SVMKLD(_SVM):
    r"""SVM(KLD): support vector machine for the Kullback-Leibler divergence, whose decisions are counted.

    .. math:: \hat p_c = \frac1n \sum_i \big[ \hat y_i = c \big], \qquad
        \Delta = \sum_c p_c \ln \frac{p_c}{\hat p_c} \text{ on the training data}

    The decisions are those of a `QuantificationSVC` with the loss :math:`\Delta` of [1]_, one half added to each count.
    All five SVMs read numbers (n, d), dense or sparse, or texts, which become TF-IDF weighted words. Two classes need
    one SVM. For more, each class is separated from the rest, and the counts are scaled to sum to one.

    Parameters
    ----------
    C, tol, max_iter : see `QuantificationSVC`. The paper chose C among 0.001, 0.01, ..., 1000 on bags of held-out
        training data, as ``GridSearchQ(SVMKLD(), {"C": np.logspace(-3, 3, 7)})`` does.

    Attributes
    ----------
    classifiers_ : the fitted `QuantificationSVC`, or one for each of more than two classes.
    terms_ : the vectorizer of texts; None for numbers.

    References
    ----------
    .. [1] A. Esuli and F. Sebastiani, "Optimizing text quantifiers for multivariate loss functions", ACM Transactions
           on Knowledge Discovery from Data 9(4), 2015.

    Examples
    --------
    >>> texts = ["good film", "a good one", "bad film", "a bad one"] * 3
    >>> quantifier = SVMKLD(C=10).fit(texts, ["yes", "yes", "no", "no"] * 3)
    >>> quantifier.predict(["so good", "so bad", "good fun", "good plot"])
    array([0.25, 0.75])
    """

    about: ClassVar[About] = About("svm", "Esuli and Sebastiani (2015)", "any", "features", "O(n k)")

    _loss = "kld"


class SVMNKLD(_SVM):
    r"""SVM(NKLD): support vector machine for the normalised Kullback-Leibler divergence [1]_.

    As `SVMKLD`, with the loss

    .. math:: \Delta = 100 \left( 1 - \frac{2}{1 + e^{KLD}} \right)

    Parameters
    ----------
    C, tol, max_iter : see `SVMKLD`.

    Attributes
    ----------
    classifiers_, terms_ : as in `SVMKLD`.

    References
    ----------
    .. [1] A. Esuli and F. Sebastiani, "Explicit loss minimization in quantification applications", DART 2014.

    Examples
    --------
    >>> SVMNKLD().fit([[0.0], [0.1], [0.9], [1.0]], ["no", "no", "yes", "yes"]).predict([[0.2], [0.8]])
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About("svm", "Esuli and Sebastiani (2014)", "any", "features", "O(n k)")

    _loss = "nkld"


class SVMQ(_SVM):
    r"""SVM(Q): support vector machine for the harmonic mean of recall and of the count's nearness [1]_.

    As `SVMKLD`, with the loss

    .. math:: \Delta = 100 \left( 1 - \frac{2 q r}{q + r} \right), \qquad q = 1 - \frac{|P - \hat P|}{\max(P, N)}

    with the recall r, P positive and N negative instances, and :math:`\hat P` predicted positives.

    Parameters
    ----------
    C, tol, max_iter : see `SVMKLD`.
    positive : the class whose recall counts if there are two, see `QuantificationSVC`; for more, each class in turn.

    Attributes
    ----------
    classifiers_, terms_ : as in `SVMKLD`.

    References
    ----------
    .. [1] J. Barranquero, J. Díez and J. J. del Coz, "Quantification-oriented learning based on reliable classifiers",
           Pattern Recognition 48, 2015.

    Examples
    --------
    >>> SVMQ().fit([[0.0], [0.1], [0.9], [1.0]], ["no", "no", "yes", "yes"]).predict([[0.2], [0.8]])
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About("svm", "Barranquero, Díez and del Coz (2015)", "any", "features", "O(n k)")

    _loss = "q"

    def __init__(self, C: float = 1.0, *, tol: float = 0.1, max_iter: int = 1000, positive: Any = None) -> None:
        super().__init__(C, tol=tol, max_iter=max_iter)
        self.positive = positive

    def _classifier(self, k: int) -> QuantificationSVC:
        if k > 2 and self.positive is not None:
            raise InvalidSetting(f"positive is only for two classes, but y has {k}. Leave it out.")
        return super()._classifier(k).set_params(positive=self.positive if k == 2 else True)


class SVMAE(_SVM):
    r"""SVM(AE): support vector machine for the absolute error [1]_.

    As `SVMKLD`, with the loss

    .. math:: \Delta = 100\, |\hat p - p|

    Parameters
    ----------
    C, tol, max_iter : see `SVMKLD`.

    Attributes
    ----------
    classifiers_, terms_ : as in `SVMKLD`.

    References
    ----------
    .. [1] A. Moreo and F. Sebastiani, "Re-assessing the 'classify and count' quantification method", ECIR 2021.

    Examples
    --------
    >>> SVMAE().fit([[0.0], [0.1], [0.9], [1.0]], ["no", "no", "yes", "yes"]).predict([[0.2], [0.8]])
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About("svm", "Moreo and Sebastiani (2021)", "any", "features", "O(n k)")

    _loss = "ae"


class SVMRAE(_SVM):
    r"""SVM(RAE): support vector machine for the relative absolute error [1]_.

    As `SVMKLD`, with the loss

    .. math:: \Delta = 50 \left( \frac{|\hat P - P|}{P + 1/2} + \frac{|\hat P - P|}{N + 1/2} \right)

    with P positive and N negative instances, and :math:`\hat P` predicted positives.

    Parameters
    ----------
    C, tol, max_iter : see `SVMKLD`.

    Attributes
    ----------
    classifiers_, terms_ : as in `SVMKLD`.

    References
    ----------
    .. [1] A. Moreo and F. Sebastiani, "Re-assessing the 'classify and count' quantification method", ECIR 2021.

    Examples
    --------
    >>> SVMRAE().fit([[0.0], [0.1], [0.9], [1.0]], ["no", "no", "yes", "yes"]).predict([[0.2], [0.8]])
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About("svm", "Moreo and Sebastiani (2021)", "any", "features", "O(n k)")

    _loss = "rae"
