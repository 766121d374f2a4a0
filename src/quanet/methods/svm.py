"""Support vector machines that minimise a quantification error, and classify and count with them."""

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_array, check_is_fitted

from quanet.arrays import BoolArray, FloatArray, LabelArray, check_rows
from quanet.base import Quantifier
from quanet.classifiers.cross_fitting import check_labels
from quanet.classifiers.text import check_texts, fit_terms, is_text
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning
from quanet.methods.about import About
from quanet.methods.multiclass import share_out
from quanet.methods.svm_solver import Planes, minimise, scores_of, search_for
from quanet.parameters import Constraints, at_least, check_parameters, one_of, positive, whole
from quanet.simplex import classes_of

LOSSES = ("kld", "nkld", "q", "ae", "rae")
SOLVER_VALUES: Constraints = {"C": positive(finite=True), "tol": at_least(0, finite=True), "max_iter": whole(1)}


class QuantificationSVC(ClassifierMixin, BaseEstimator):
    r"""Support vector classifier of two classes that minimises a quantification loss on its training set.

    A structural support vector machine [1]_ with the losses of [2]_, kld, nkld, ae and rae, or of [3]_, q:

    .. math:: \min_w \tfrac12 |w|^2 + C \max_{y'} \left[ \Delta(y, y')
        - \frac{50}{n} \sum_i (y_i - y'_i)\, w \cdot [x_i, 1] \right]

    It gives no probabilities; ``CalibratedClassifierCV(QuantificationSVC())`` does. Features count by their size, so
    numbers in different units are best scaled first.

    Parameters
    ----------
    loss : "kld", "nkld", "q", "ae" or "rae", in the scale of svm_perf: per cent, but kld in nats.
    C : weight of the loss against the length of w.
    tol : the fit stops once the objective is at most C * tol above the optimum.
    max_iter : maximum number of steps; a fit that needs more warns with the remaining gap.
    positive : the class whose recall q asks for, which makes no difference to the other losses. None means the rarer
        class, and of two equally frequent classes that of the first instance.

    Attributes
    ----------
    coef_, intercept_ : (1, d) and (1,), as in scikit-learn's linear classifiers.
    primal_, dual_, gap_ : the objective reached, a lower bound of the optimum, and the difference.
    n_iter_ : steps made.

    References
    ----------
    .. [1] T. Joachims, "A support vector method for multivariate performance measures", ICML 2005.
    .. [2] A. Esuli and F. Sebastiani, "Optimizing text quantifiers for multivariate loss functions", ACM Transactions
           on Knowledge Discovery from Data 9(4), 2015.
    .. [3] J. Barranquero, J. Díez and J. J. del Coz, "Quantification-oriented learning based on reliable classifiers",
           Pattern Recognition 48, 2015.

    Examples
    --------
    >>> classifier = QuantificationSVC(loss="nkld").fit([[0.0], [0.1], [0.9], [1.0]], ["no", "no", "yes", "yes"])
    >>> classifier.predict([[0.2], [0.8]]).tolist(), classifier.gap_ <= 0.1
    (['no', 'yes'], True)
    """

    allowed_values: ClassVar[Constraints] = {"loss": one_of(*LOSSES), **SOLVER_VALUES}

    classes_: LabelArray
    coef_: FloatArray
    intercept_: FloatArray

    def __init__(
        self, loss: str = "kld", C: float = 1.0, tol: float = 0.1, *, max_iter: int = 1000, positive: Any = None
    ) -> None:
        self.loss = loss
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.positive = positive

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn weights from instances X (n, d), dense or sparse, and labels y (n,) of two classes."""
        return self._fit_copies([self], X, y)[0]

    def fit_path(self, X: Any, y: ArrayLike, C: Sequence[float]) -> list[Self]:
        """Fitted copies, one for every C: what is found for one C is where the next starts."""
        return self._fit_copies([clone(self).set_params(C=value) for value in C], X, y)

    def _fit_copies(self, copies: list[Self], X: Any, y: ArrayLike) -> list[Self]:
        for copy in copies:
            check_parameters(copy)
        features = check_features(X)
        values = features.data if isinstance(features, csr_matrix) else features
        if not values.any():
            raise InvalidData("all features are zero, so the classes cannot be separated. Check X.")
        labels = check_labels(y, features.shape[0])
        classes = classes_of(labels)
        positive = labels == self._positive_class(labels, classes)

        planes = Planes(features.shape[1] + 1)
        for copy in sorted(copies, key=lambda one: one.C):
            copy.classes_ = classes
            _solve(copy, features, positive, planes)
            if positive[labels == classes[0]].any():  # a positive score means the second class
                copy.coef_, copy.intercept_ = -copy.coef_, -copy.intercept_
        return copies

    def decision_function(self, X: Any) -> FloatArray:
        """Score of every instance, above 0 for the second class: (n, d) -> (n,)."""
        check_is_fitted(self, "coef_")
        features = check_features(X)
        if features.shape[1] != self.n_features_in_:
            raise InvalidData(
                f"X has {features.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input, as in fit."
            )
        return scores_of(features, np.append(self.coef_, self.intercept_))

    def predict(self, X: Any) -> LabelArray:
        """The class of every instance: (n, d) -> (n,)."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(np.intp)]

    def _positive_class(self, labels: LabelArray, classes: LabelArray) -> Any:
        if len(classes) == 1:
            raise InvalidData(f"y has one class only, {classes.tolist()[0]!r}. Add labelled instances of the other.")
        if len(classes) != 2:
            raise InvalidData(
                f"Only binary classification is supported, and y has {len(classes)} classes, such as "
                f"{classes.tolist()[:3]}. For more, use a quantifier such as SVMKLD, or OneVsRestClassifier."
            )
        if self.positive is None:
            second = int((labels == classes[1]).sum())
            if 2 * second == len(labels):
                return labels[0]
            return classes[int(2 * second < len(labels))]
        if self.positive not in classes.tolist():
            raise InvalidSetting(f"positive is {self.positive!r}, but the classes are {classes.tolist()}.")
        return self.positive


def _solve(
    classifier: QuantificationSVC, features: FloatArray | csr_matrix, positive: BoolArray, planes: Planes
) -> None:
    """Set what a fit learns, the positive class's scores being above 0; `planes` are those of smaller C."""
    C, tol, search = float(classifier.C), float(classifier.tol), search_for(classifier.loss, positive)
    solution = minimise(features, positive, search, C=C, tol=tol, max_iter=classifier.max_iter, planes=planes)
    classifier.n_features_in_ = features.shape[1]
    classifier.coef_, classifier.intercept_ = solution.weights[None, :-1], solution.weights[-1:]
    classifier.primal_, classifier.dual_, classifier.gap_ = solution.primal, solution.dual, solution.gap
    classifier.n_iter_ = solution.n_iter
    if solution.gap > C * tol:
        warnings.warn(
            f"{classifier} stopped after {solution.n_iter} steps with a gap of {solution.gap:.3g}, above C * tol = "
            f"{C * tol:.3g}. A larger max_iter or tol, or a smaller C, lets it converge.",
            QuanetWarning,
            stacklevel=4,
        )


def check_features(X: Any) -> FloatArray | csr_matrix:
    """X as a matrix of finite numbers (n, d): sparse rows of floats as they are, all else dense."""
    try:
        if issparse(X):
            return csr_matrix(check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32]))
        return np.asarray(check_array(X, dtype=np.float64))
    except ValueError as error:
        raise InvalidData(f"X is not a matrix of numbers (n, d): {' '.join(str(error).split())}") from error


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
