"""Which classifier a parameter means, and how it is fitted: checked labels, cross-fitting, checked posteriors."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.duplicates import find_distinct
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning
from quanet.folds import split_in_folds
from quanet.instances import check_labels as check_labels
from quanet.instances import check_matrix, column_names, is_text, posterior_columns
from quanet.instances import check_posteriors as check_posteriors
from quanet.lead import measure_lead
from quanet.simplex import classes_of, count, encode
from quanet.text import TextClassifier


class PrecomputedPosteriors(BaseEstimator):
    """A classifier whose instances are posteriors already; columns of a table are matched to the classes by name."""

    def __init__(self, classes: LabelArray) -> None:
        self.classes = classes

    @property
    def classes_(self) -> LabelArray:
        """The labels of the columns."""
        return self.classes

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """The posteriors in the order of `classes`: (n, k) -> (n, k)."""
        posteriors, others = posterior_columns(X, self.classes)
        names = column_names(X)
        if others.shape[1] and names is not None:
            raise InvalidData(
                f"The posteriors have the columns {names[:8]}, but the classes are {self.classes.tolist()[:8]}. "
                "Leave out the columns that are no class."
            )
        return np.hstack([posteriors, others]) if others.shape[1] else posteriors


def precomputed_posteriors(X: Any, classes: LabelArray) -> FloatArray:
    """Checked posteriors (n, k) in the order of `classes`; columns of a table are matched by name."""
    return check_posteriors(PrecomputedPosteriors(classes).predict_proba(X), len(classes))


def resolve_classifier(classifier: Any, X: Any, classes: LabelArray) -> Any:
    """The classifier that the parameter means for this data, unfitted unless it is frozen."""
    if isinstance(classifier, str):
        if classifier != "precomputed":
            raise InvalidSetting(f"classifier is an estimator, None or 'precomputed'; got {classifier!r}.")
        return FrozenEstimator(PrecomputedPosteriors(classes))
    if classifier is None:
        if is_text(X):
            return TextClassifier()
        check_matrix(X)
        # Sparse columns cannot be centred without filling them.
        return make_pipeline(StandardScaler(with_mean=not hasattr(X, "tocsr")), LogisticRegression(max_iter=1000))
    if isinstance(classifier, FrozenEstimator):
        if not hasattr(classifier, "classes_"):
            raise InvalidSetting(f"{classifier} is not fitted. Fit it first, or give it without FrozenEstimator.")
        known = np.asarray(classifier.classes_)
        if sorted(known.tolist()) != classes.tolist():
            raise InvalidData(
                f"the frozen classifier knows the classes {known.tolist()}, but y has {classes.tolist()}. "
                "Give it instances of all its classes and of no other."
            )
    return classifier


@dataclass(frozen=True, slots=True, eq=False)
class CrossFit:
    """A classifier fitted to all data, and what copies of it say of instances that they have not seen.

    Attributes
    ----------
    classifier : the fitted one.
    posteriors : (m, k) out of fold.
    held : (m,) whose they are.
    lead : (k, k + 1), how much better the classifier is than its copies (`quanet.lead`), or None where that was not
        asked for, or is not known.
    groups : (m,) equal for copies of the same instance (`quanet.duplicates`), or None where all are different.
    """

    classifier: Any
    posteriors: FloatArray
    held: IntArray
    lead: FloatArray | None = None
    groups: IntArray | None = None


def cross_fit(
    classifier: Any, X: Any, codes: IntArray, classes: LabelArray, *, cv: Any
) -> tuple[Any, FloatArray, IntArray]:
    """Fit a classifier to all data; also return posteriors (m, k) made without it, and whose they are (m,).

    Every posterior comes from a copy of the classifier that has not seen its instance. A frozen classifier gives its
    posteriors of all instances. A classifier with `fit_out_of_fold` does both at once, sharing what needs no labels.
    """
    found = cross_fit_ahead(classifier, X, codes, classes, cv=cv, measure=False)
    return found.classifier, found.posteriors, found.held


def cross_fit_ahead(
    classifier: Any, X: Any, codes: IntArray, classes: LabelArray, *, cv: Any, measure: bool = True
) -> CrossFit:
    """As `cross_fit`; where one more fold costs little, by `fit_out_of_fold`, also measure the classifier's lead."""
    labels = classes[codes]
    if isinstance(classifier, FrozenEstimator):
        # Equal posteriors are no copies: different instances may have the same.
        distinct = None if isinstance(classifier.estimator, PrecomputedPosteriors) else find_distinct(X)
        groups = None if distinct is None else distinct.owner
        return CrossFit(classifier, posteriors_of(classifier, X, classes), np.arange(len(codes)), groups=groups)
    distinct = find_distinct(X)
    folds = split_in_folds(codes, classes, cv, distinct)
    held = np.concatenate([held for _, held in folds])
    groups = None if distinct is None else distinct.owner[held]
    # Two folds that one classifier has seen neither of, where they are parts of a whole.
    whole = len(folds) > 2 and len(np.unique(held)) == len(held) == len(codes)
    both = np.concatenate([folds[0][1], folds[len(folds) // 2][1]]) if measure and whole else np.empty(0, dtype=np.intp)
    rest = np.setdiff1d(held, both)
    if not len(both) or not hasattr(classifier, "fit_out_of_fold") or count(codes[rest], len(classes)).min() == 0:
        fitted, parts = fit_in_folds(classifier, X, labels, classes, folds)
        return CrossFit(fitted, np.concatenate(parts), held, groups=groups)
    fitted, (*parts, of_both) = fit_in_folds(classifier, X, labels, classes, [*folds, (rest, both)])
    more = np.concatenate([parts[0], parts[len(folds) // 2]])
    shares = len(rest) / len(codes), (len(codes) + len(rest)) / (2 * len(codes))
    lead = measure_lead(of_both, more, codes[both], shares)
    return CrossFit(fitted, np.concatenate(parts), held, lead, groups)


def fit_in_folds(
    classifier: Any, X: Any, labels: LabelArray, classes: LabelArray, folds: list[tuple[IntArray, IntArray]]
) -> tuple[Any, list[FloatArray]]:
    """A classifier fitted to all data, and every fold's posteriors (m, k), made by a copy that has not seen it."""
    if hasattr(classifier, "fit_out_of_fold"):
        fitted = clone(classifier)
        return fitted, [check_posteriors(part, len(classes)) for part in fitted.fit_out_of_fold(X, labels, folds)]
    fitted = fit_classifier(classifier, X, labels)
    return fitted, [_fold_posteriors(classifier, X, labels, classes, fold) for fold in folds]


def _fold_posteriors(
    classifier: Any,
    X: Any,
    labels: LabelArray,
    classes: LabelArray,
    fold: tuple[IntArray, IntArray],
) -> FloatArray:
    seen, held = fold
    fitted = fit_classifier(classifier, _safe_indexing(X, seen), labels[seen])
    return posteriors_of(fitted, _safe_indexing(X, held), classes)


def is_given(classifier: Any) -> bool:
    """Whether a classifier is not fitted here, so that no folds are made: a frozen one, or "precomputed"."""
    return isinstance(classifier, str | FrozenEstimator)


def without_single(X: Any, labels: LabelArray) -> tuple[Any, LabelArray, tuple[Any, ...]]:
    """Instances and labels (n,) without the classes of one instance, and these classes, with a warning that names them.

    Where fewer than two classes would remain, nothing is left out.
    """
    classes = classes_of(labels)
    codes = encode(labels, classes)
    single = count(codes, len(classes)) == 1
    if not single.any() or (~single).sum() < 2:
        return X, labels, ()
    names = tuple(classes[single].tolist())
    few = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    warnings.warn(
        f"Left out {len(names)} of {len(classes)} classes, which have one instance each: {few}. No share is estimated "
        "for them. Label more instances of them, or merge them with other classes.",
        QuanetWarning,
        stacklevel=4,
    )
    kept = np.flatnonzero(~single[codes])
    return _safe_indexing(X, kept), labels[kept], names


def fit_classifier(classifier: Any, X: Any, labels: LabelArray) -> Any:
    """A fitted copy of a classifier; a frozen one as it is."""
    if isinstance(classifier, FrozenEstimator):
        return classifier
    try:
        return clone(classifier).fit(X, labels)
    except ValueError as error:
        raise _explained(classifier, error) from error


def posteriors_of(classifier: Any, X: Any, classes: LabelArray) -> FloatArray:
    """Checked posteriors (n, k) of a fitted classifier, in the order of `classes`; one-hot where it has none."""
    if getattr(X, "ndim", 1) == 1 and hasattr(classifier, "n_features_in_") and is_text(X):
        raise InvalidData("X contains texts, but the model was fitted to numbers. Pass a matrix (n, d).")
    try:
        if hasattr(classifier, "predict_proba"):
            posteriors = np.asarray(classifier.predict_proba(X), dtype=float)
            order = np.argsort(np.asarray(classifier.classes_), kind="stable")
            return check_posteriors(posteriors, len(classes))[:, order]
        return np.eye(len(classes))[encode(classifier.predict(X), classes)]
    except InvalidData:
        raise
    except ValueError as error:
        raise _explained(classifier, error) from error


def _explained(classifier: Any, error: ValueError) -> Exception:
    """Scikit-learn's complaint about the data, on one line and with the classifier's name."""
    if isinstance(error, InvalidData):
        return error
    return InvalidData(f"{type(classifier).__name__} cannot use X: {' '.join(str(error).split())}")
