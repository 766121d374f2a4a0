"""Stacking: average the logits of several classifiers, weighted by their performance on held-out instances."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _num_samples, check_is_fitted

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.classifiers.calibration import TINY, fit_weights, smooth_zeros, zero_floor
from quanet.classifiers.cross_fitting import check_labels, fit_in_folds, posteriors_of
from quanet.errors import InvalidSetting
from quanet.simplex import classes_of, encode


def _has_plain_embedding(classifier: Any) -> bool:
    # An embedding learned from labels would differ between folds, and overfit its training texts.
    return hasattr(classifier, "transform") and hasattr(classifier, "fit_out_of_fold")


class StackedClassifier(ClassifierMixin, BaseEstimator):
    r"""Stacked classifier: the weighted average of the logits of several classifiers [1]_, with weights as in [2]_.

    .. math:: p(x) = \text{softmax}\left(\sum_v w_v \log p_v(x)\right), \quad w_v \ge 0, \quad \sum_v w_v = 1

    When a quantifier cross-fits it, the weights maximise the likelihood of out-of-fold posteriors; fitted alone, all
    classifiers have the same weight. `transform` concatenates the embeddings that are learned without labels.

    Parameters
    ----------
    classifiers : two or more classifiers of the same instances, such as a `TextClassifier` and a `SentenceClassifier`.

    Attributes
    ----------
    classes_ : (k,) sorted labels.
    members_ : the fitted classifiers.
    shares_ : (m,) their weights.
    floors_ : for each classifier, the floor of its posteriors (`zero_floor`), or None.

    References
    ----------
    .. [1] D. H. Wolpert, "Stacked generalization", Neural Networks 5, 1992.
    .. [2] L. Breiman, "Stacked regressions", Machine Learning 24, 1996.

    Examples
    --------
    >>> from quanet import TextClassifier
    >>> texts = ["good film", "a good one", "bad film", "a bad one"] * 3
    >>> both = StackedClassifier([TextClassifier(views=["words"]), TextClassifier(views=["characters"])])
    >>> both.fit(texts, ["yes", "yes", "no", "no"] * 3).predict(["so good", "so bad"])
    array(['yes', 'no'], dtype='<U3')
    """

    def __init__(self, classifiers: Sequence[Any] = ()) -> None:
        self.classifiers = classifiers

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit all classifiers to instances X and labels y (n,), with equal weights."""
        self.fit_out_of_fold(X, y, [])
        return self

    def fit_out_of_fold(self, X: Any, y: ArrayLike, folds: list[tuple[IntArray, IntArray]]) -> list[FloatArray]:
        """Fit to all data; return the posteriors of each fold, by classifiers fitted without it.

        Only the weights are learned from all folds.
        """
        if len(self.classifiers) < 2:
            raise InvalidSetting(f"StackedClassifier needs at least two classifiers; got {list(self.classifiers)}.")
        without = [classifier for classifier in self.classifiers if not hasattr(classifier, "predict_proba")]
        if without:
            raise InvalidSetting(f"StackedClassifier averages posteriors, but {without[0]} has no predict_proba.")
        labels = check_labels(y, _num_samples(X))
        self.classes_: LabelArray = classes_of(labels)
        fits = [fit_in_folds(classifier, X, labels, self.classes_, folds) for classifier in self.classifiers]
        self.members_ = [member for member, _ in fits]
        self.shares_ = np.full(len(fits), 1 / len(fits))
        self.floors_: list[FloatArray | None] = [None] * len(fits)
        if folds:
            # An instance that several folds hold out counts once.
            positions, first = np.unique(np.concatenate([held_out for _, held_out in folds]), return_index=True)
            unseen, codes = (
                [np.concatenate(parts)[first] for _, parts in fits],
                encode(labels, self.classes_)[positions],
            )
            self.floors_ = [zero_floor(posteriors, codes) for posteriors in unseen]
            self.shares_ = fit_weights([_logs(*pair) for pair in zip(unseen, self.floors_, strict=True)], codes)
        return [self._averaged([parts[at] for _, parts in fits]) for at in range(len(folds))]

    def predict_proba(self, X: Any) -> FloatArray:
        """Posteriors (n, k), in the order of `classes_`."""
        check_is_fitted(self, "members_")
        return self._averaged([posteriors_of(member, X, self.classes_) for member in self.members_])

    def predict(self, X: Any) -> LabelArray:
        """The most probable class of each instance (n,)."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def transform(self, X: Any) -> FloatArray:
        """Concatenated embeddings (n, e); without columns if no classifier has one."""
        check_is_fitted(self, "members_")
        parts = [member.transform(X) for member in self.members_ if _has_plain_embedding(member)]
        return np.hstack([np.empty((_num_samples(X), 0)), *parts])

    def _averaged(self, posteriors: list[FloatArray]) -> FloatArray:
        floors = getattr(self, "floors_", [None] * len(posteriors))  # missing in models saved by 0.1.0
        members = zip(self.shares_, posteriors, floors, strict=True)
        weighted = (share * _logs(part, floor) for share, part, floor in members)
        return np.asarray(softmax(sum(weighted, np.zeros(1)), axis=1))


def _logs(posteriors: FloatArray, floor: FloatArray | None) -> FloatArray:
    return np.log(np.clip(smooth_zeros(posteriors, floor), TINY, 1))
