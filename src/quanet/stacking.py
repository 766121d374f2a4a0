"""Several classifiers as one: their logits are averaged, by what each adds on instances they have not seen."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _num_samples, check_is_fitted

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.calibration import TINY, fit_weights, smooth_zeros, zero_floor
from quanet.classifiers import check_labels, fit_in_folds, posteriors_of
from quanet.errors import InvalidSetting
from quanet.simplex import classes_of, encode


def _has_plain_embedding(classifier: Any) -> bool:
    # One that is learnt from labels would differ from fold to fold, and fit its own texts too well.
    return hasattr(classifier, "transform") and hasattr(classifier, "fit_out_of_fold")


class StackedClassifier(ClassifierMixin, BaseEstimator):
    r"""Several classifiers, their logits averaged (stacking; Wolpert 1992, with weights as of Breiman 1996).

    .. math:: p(x) = \text{softmax}\left(\sum_v w_v \log p_v(x)\right), \quad w_v \ge 0, \quad \sum_v w_v = 1

    Where a quantifier cross-fits it, the weights are those under which out-of-fold posteriors tell the classes apart
    best; fitted alone, all classifiers count the same. `transform` puts side by side the embeddings of those
    whose embedding knows no labels.

    Parameters
    ----------
    classifiers : two or more that read the same instances, such as a `TextClassifier` and a `SentenceClassifier`.

    Attributes
    ----------
    classes_ : (k,) sorted labels.
    members_ : the fitted classifiers.
    shares_ : (m,) their weights.
    floors_ : what smooths each classifier's posteriors of zero (`quanet.calibration.zero_floor`), or None for it.

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
        """Fit all classifiers to instances X and labels y (n,); they count the same."""
        self.fit_out_of_fold(X, y, [])
        return self

    def fit_out_of_fold(self, X: Any, y: ArrayLike, folds: list[tuple[IntArray, IntArray]]) -> list[FloatArray]:
        """Fit on everything; return each fold's posteriors, from classifiers that have not seen its labels.

        Only the few weights are learnt from all folds.
        """
        if len(self.classifiers) < 2:
            raise InvalidSetting(f"a stack needs two classifiers or more; got {list(self.classifiers)}.")
        mute = [one for one in self.classifiers if not hasattr(one, "predict_proba")]
        if mute:
            raise InvalidSetting(f"a stack averages posteriors, and {mute[0]} has no predict_proba.")
        labels = check_labels(y, _num_samples(X))
        self.classes_: LabelArray = classes_of(labels)
        fits = [fit_in_folds(one, X, labels, self.classes_, folds) for one in self.classifiers]
        self.members_ = [member for member, _ in fits]
        self.shares_ = np.full(len(fits), 1 / len(fits))
        self.floors_: list[FloatArray | None] = [None] * len(fits)
        if folds:
            # An instance that a later fold holds out again counts once.
            held, first = np.unique(np.concatenate([held for _, held in folds]), return_index=True)
            unseen, codes = [np.concatenate(parts)[first] for _, parts in fits], encode(labels, self.classes_)[held]
            self.floors_ = [zero_floor(posteriors, codes) for posteriors in unseen]
            self.shares_ = fit_weights([_logs(*pair) for pair in zip(unseen, self.floors_, strict=True)], codes)
        return [self._averaged([parts[at] for _, parts in fits]) for at in range(len(folds))]

    def predict_proba(self, X: Any) -> FloatArray:
        """Posteriors (n, k), in the order of `classes_`."""
        check_is_fitted(self, "members_")
        return self._averaged([posteriors_of(member, X, self.classes_) for member in self.members_])

    def predict(self, X: Any) -> LabelArray:
        """The most probable class of every instance (n,)."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def transform(self, X: Any) -> FloatArray:
        """Embeddings (n, e), side by side; of no columns where no classifier has one."""
        check_is_fitted(self, "members_")
        parts = [member.transform(X) for member in self.members_ if _has_plain_embedding(member)]
        return np.hstack([np.empty((_num_samples(X), 0)), *parts])

    def _averaged(self, posteriors: list[FloatArray]) -> FloatArray:
        floors = getattr(self, "floors_", [None] * len(posteriors))  # models saved by 0.1.0 have none
        members = zip(self.shares_, posteriors, floors, strict=True)
        weighted = (share * _logs(part, floor) for share, part, floor in members)
        return np.asarray(softmax(sum(weighted, np.zeros(1)), axis=1))


def _logs(posteriors: FloatArray, floor: FloatArray | None) -> FloatArray:
    return np.log(np.clip(smooth_zeros(posteriors, floor), TINY, 1))
