"""Quantifiers whose rows are posteriors of a classifier: the base class of most methods."""

from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray
from quanet.base import Quantifier
from quanet.classifiers.cross_fitting import (
    check_posteriors,
    cross_fit_with_gap,
    fit_classifier,
    is_given,
    posteriors_of,
    read_left_out,
    resolve_classifier,
)
from quanet.errors import InvalidData, InvalidSetting
from quanet.held_out import HeldOut
from quanet.simplex import count, one_hot


class AggregativeQuantifier(Quantifier):
    """Base class of quantifiers whose rows are posteriors of a classifier.

    Derive your own method from it: define `_aggregate`, and `_fit_aggregation` if it learns from out-of-fold
    posteriors. If a subclass defines `aggregate` instead of `_aggregate`, its estimates are never shrunk.

    Parameters
    ----------
    classifier : any scikit-learn classifier. None means logistic regression for numbers and `TextClassifier` for texts.
        ``FrozenEstimator(classifier)`` is not fitted again; X should then be data it has not seen. "precomputed" means
        that X is the matrix of posteriors (n, k). Columns of a table are matched to the classes by name; those of an
        array are in the sorted order of the labels, as in `classes_`.
    cv : how out-of-fold posteriors are computed: a number of folds, a held-out fraction between 0 and 1, or a
        scikit-learn splitter. The final classifier is fitted to all data. Folds do not depend on the order of the
        data, and copies of the same instance are always in the same fold (`quanet.data.duplicates`). A splitter gets
        the data in their order: to see how posteriors are on new products or days, pass one that leaves these out.
        None: five folds, or ten with 200 to 2,000 texts if the classifier is `TextClassifier`.

    Attributes
    ----------
    classifier_ : the classifier, fitted to all data.

    See Also
    --------
    Quantifier : attributes and functions of all quantifiers.

    Examples
    --------
    The mean posterior as a method of three lines; `quanet.PCC` is the one in the library:

    >>> class MeanPosterior(AggregativeQuantifier):
    ...     def _aggregate(self, rows):
    ...         return np.asarray(rows).mean(axis=-2)
    >>> MeanPosterior("precomputed").fit([[0.9, 0.1], [0.2, 0.8]], ["no", "yes"]).predict([[0.4, 0.6], [0.8, 0.2]])
    array([0.6, 0.4])
    """

    # Whether one-hot rows of predicted labels are enough, for a classifier without posteriors.
    _counts_labels: ClassVar[bool] = False
    # Whether perfect posteriors of 0 and 1 give the true prevalences; False if the method regularises its estimates.
    _exact: ClassVar[bool] = True
    reads_posteriors: ClassVar[bool] = True

    def __init__(self, classifier: Any = None, *, cv: Any = 5) -> None:
        self.classifier = classifier
        self.cv = cv

    def _fit(self, X: Any, y: ArrayLike) -> None:
        """Fit the classifier to instances X and labels y (n,), and learn the errors of its posteriors."""
        X, y = self._learnable(X, y)
        codes = self._learn_labels(X, y)
        classifier = resolve_classifier(self.classifier, X, self.classes_)
        if not (hasattr(classifier, "predict_proba") or self._counts_labels):
            raise InvalidSetting(
                f"{type(self).__name__} needs posteriors, but {classifier} has no predict_proba. "
                f"Wrap it: CalibratedClassifierCV({type(classifier).__name__}())."
            )
        if not self._learns_from_posteriors():
            self.classifier_ = fit_classifier(classifier, X, self.classes_[codes])
            return
        fitted = cross_fit_with_gap(classifier, X, codes, self.classes_, cv=self.cv)
        self.classifier_, posteriors, held = fitted.classifier, fitted.posteriors, fitted.positions
        unseen = count(codes[held], len(self.classes_)) == 0
        if unseen.any():
            raise InvalidData(
                f"class {self.classes_[unseen].tolist()[0]!r} has no instance in the held-out part that "
                f"{type(self).__name__} learns from. Hold out a larger fraction, or pass a number of folds as cv."
            )
        self._fit_aggregation(fitted.as_full_fit(codes[held]) if self._closes_fold_gap() else posteriors, codes[held])
        k = len(self.classes_)
        self._keep_held_out(HeldOut(posteriors, codes[held], k, fitted.groups, fitted.fold_gap, fitted.growth))

    def left_out_inputs(self, X: Any, codes: IntArray, folds: list[tuple[IntArray, IntArray]]) -> Any:
        """Posteriors of the held-out instances of each fold, by classifiers that have not seen them."""
        classifier = resolve_classifier(self.classifier, X, self.classes_)
        if not (hasattr(classifier, "predict_proba") and self._learns_from_posteriors()):
            return None
        return read_left_out(classifier, X, codes, self.classes_, folds)

    def shares_folds(self) -> bool:
        """Whether the classifier fits several folds in shared passes, so that more of them cost little."""
        return hasattr(self.classifier_, "fit_out_of_fold")

    def _read(self, X: Any) -> FloatArray:
        check_is_fitted(self, "classifier_")
        return posteriors_of(self.classifier_, X, self.classes_)

    def rows(self, inputs: ArrayLike) -> FloatArray:
        """Checked posteriors: (n, k) -> (n, k)."""
        return check_posteriors(np.asarray(inputs, dtype=float), len(self.classes_))

    def relearn(self, inputs: FloatArray, codes: IntArray) -> Quantifier:
        """A copy that has learned from other held-out posteriors (m, k) of classes (m,)."""
        if not self._learns_from_posteriors():
            return self
        return copy(self).fit_aggregation(inputs, codes)

    def _readings(self, posteriors: FloatArray) -> FloatArray:
        return one_hot(posteriors) if self._counts_labels else posteriors

    def needs_folds(self) -> bool:
        """Whether `fit` uses folds: if the method learns from posteriors and the classifier is not already fitted."""
        return self._learns_from_posteriors() and not is_given(self.classifier)

    def _learns_from_posteriors(self) -> bool:
        return not self._fit_aggregation.__qualname__.startswith("AggregativeQuantifier.")

    def _closes_fold_gap(self) -> bool:
        return False  # True: `fit` learns from posteriors as the final classifier would give them

    def fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> Self:
        """Learn the errors of posteriors from held-out posteriors (m, k) and their classes (m,), in place."""
        self._fit_aggregation(posteriors, codes)
        return self

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        """Learn from posteriors (m, k) of instances that the classifier has not seen, and their classes (m,)."""
