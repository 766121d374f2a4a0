"""Fit a classifier to all data and, fold by fold, get posteriors of instances that it has not seen (cross-fitting).

The fold gap: how much better a classifier fitted to all data is than the classifiers of the folds.

Out-of-fold posteriors come from classifiers fitted to a part of the data, say four fifths, but new instances are
classified by one fitted to all data, which is a little better. One more classifier, fitted to three fifths, measures
what a fifth of the data is worth. Errors shrink roughly with the square root of the training size, so the last fifth
is worth two thirds of that.

Intervals are computed from posteriors with the gap closed. So are the rates of `PACC`, if enough instances show the
gap. Likelihoods and densities are not: their estimates hardly depend on the gap, and closing it adds its error.
"""

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
from quanet.classifiers.calibration import MIN_POSTERIOR, centred_logs, zero_floor
from quanet.classifiers.folds import is_number, split_in_folds
from quanet.classifiers.text import TextClassifier
from quanet.data.duplicates import canonical_order, find_distinct, first_copies, take_instances
from quanet.data.instances import check_labels as check_labels
from quanet.data.instances import check_matrix, column_names, is_text, posterior_columns
from quanet.data.instances import check_posteriors as check_posteriors
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning
from quanet.simplex import classes_of, count, encode

MIN_OF_CLASS = 20  # instances of each class, to measure the fold gap
FOLDS = 5  # as usual
MORE_FOLDS = 10  # where they cost little, and labels are few but not very few
FEW_LABELS = range(200, 2001)  # instances for which there are more folds
ENOUGH_OF_CLASS = 100  # instances of each class that show the gap, to learn rates from posteriors with the gap closed


class PrecomputedPosteriors(BaseEstimator):
    """A classifier for instances that already are posteriors. Columns of a table are matched to the classes by name."""

    def __init__(self, classes: LabelArray) -> None:
        self.classes = classes

    @property
    def classes_(self) -> LabelArray:
        """The class of each column."""
        return self.classes

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """The posteriors in the order of `classes`: (n, k) -> (n, k)."""
        posteriors, others = posterior_columns(X, self.classes)
        names = column_names(X)
        if others.shape[1] and names is not None:
            raise InvalidData(
                f"The posteriors have the columns {names[:8]}, but the classes are {self.classes.tolist()[:8]}. "
                "Remove the other columns."
            )
        return np.hstack([posteriors, others]) if others.shape[1] else posteriors


def precomputed_posteriors(X: Any, classes: LabelArray) -> FloatArray:
    """Checked posteriors (n, k) in the order of `classes`; columns of a table are matched by name."""
    return check_posteriors(PrecomputedPosteriors(classes).predict_proba(X), len(classes))


def resolve_classifier(classifier: Any, X: Any, classes: LabelArray) -> Any:
    """The classifier for the parameter `classifier` of a quantifier and this data, not fitted unless it is frozen."""
    if isinstance(classifier, str):
        if classifier != "precomputed":
            raise InvalidSetting(f"classifier must be an estimator, None or 'precomputed'; got {classifier!r}.")
        return FrozenEstimator(PrecomputedPosteriors(classes))
    if classifier is None:
        if is_text(X):
            return TextClassifier()
        check_matrix(X)
        # Centring would make sparse columns dense.
        return make_pipeline(StandardScaler(with_mean=not hasattr(X, "tocsr")), LogisticRegression(max_iter=1000))
    if isinstance(classifier, FrozenEstimator):
        if not hasattr(classifier, "classes_"):
            raise InvalidSetting(f"{classifier} is not fitted. Fit it first, or pass it without FrozenEstimator.")
        known = np.asarray(classifier.classes_)
        if sorted(known.tolist()) != classes.tolist():
            raise InvalidData(
                f"The frozen classifier was fitted to the classes {known.tolist()}, but y has {classes.tolist()}. "
                "Pass instances of exactly these classes."
            )
    return classifier


@dataclass(frozen=True, slots=True, eq=False)
class CrossFit:
    """A classifier fitted to all data, and posteriors of instances that it was not fitted to.

    Attributes
    ----------
    classifier : fitted to all data.
    posteriors : (m, k) by classifiers fitted without the instance's fold.
    positions : (m,) the positions of these instances in X.
    fold_gap : (k, k + 1) how much better the classifier is than those of the folds (`measure_fold_gap`), or None if
        it was not measured.
    groups : (m,) equal for copies of the same instance (`quanet.data.duplicates`), or None if there are no copies.
    rarest : number of different instances of the rarest class from which the fold gap was measured.
    growth : logarithm of how much larger log posteriors of the classifier are than those of the folds
        (`measure_growth`); 0 if it was not measured.
    """

    classifier: Any
    posteriors: FloatArray
    positions: IntArray
    fold_gap: FloatArray | None = None
    groups: IntArray | None = None
    rarest: int = 0
    growth: float = 0.0

    def as_full_fit(self, codes: IntArray) -> FloatArray:
        """Posteriors with the fold gap closed if enough instances show it, else as they are; classes (m,) -> (m, k)."""
        if self.fold_gap is None or self.rarest < ENOUGH_OF_CLASS:
            return self.posteriors
        return close_fold_gap(self.posteriors, codes, self.fold_gap)


def cross_fit(
    classifier: Any, X: Any, codes: IntArray, classes: LabelArray, *, cv: Any
) -> tuple[Any, FloatArray, IntArray]:
    """Fit a classifier to all data; also return out-of-fold posteriors (m, k) and positions of their instances (m,).

    Each posterior comes from a copy of the classifier that was fitted without the instance. A frozen classifier returns
    its posteriors of all instances. A classifier with `fit_out_of_fold` does both at once and shares the work that
    needs no labels. Unless `cv` is a splitter, the order of the instances does not matter. None: `usual_folds`.
    """
    fit = _cross_fit(classifier, X, codes, classes, cv=cv, measure=False)
    return fit.classifier, fit.posteriors, fit.positions


def cross_fit_with_gap(classifier: Any, X: Any, codes: IntArray, classes: LabelArray, *, cv: Any) -> CrossFit:
    """As `cross_fit`; also measure the fold gap if one more fold costs little (`fit_out_of_fold`)."""
    return _cross_fit(classifier, X, codes, classes, cv=cv, measure=True)


def _cross_fit(classifier: Any, X: Any, codes: IntArray, classes: LabelArray, *, cv: Any, measure: bool) -> CrossFit:
    if isinstance(classifier, FrozenEstimator):
        # Equal posteriors are not copies: different instances may have the same posteriors.
        distinct = None if isinstance(classifier.estimator, PrecomputedPosteriors) else find_distinct(X)
        groups = None if distinct is None else distinct.owner
        return CrossFit(classifier, posteriors_of(classifier, X, classes), np.arange(len(codes)), groups=groups)
    order = canonical_order(X, codes) if cv is None or is_number(cv) else None
    if order is not None:
        X, codes = take_instances(X, order), codes[order]
    labels, distinct = classes[codes], find_distinct(X)
    if cv is None:
        cv = usual_folds(
            classifier, count(codes if distinct is None else distinct.representatives(codes), len(classes))
        )
    folds = split_in_folds(codes, classes, cv, distinct)
    positions = np.concatenate([held_out for _, held_out in folds])
    places = positions if order is None else order[positions]
    groups = None if distinct is None else distinct.owner[positions]
    # To measure the gap, one classifier leaves out two folds, provided that the folds are a partition.
    partition = len(folds) > 2 and len(np.unique(positions)) == len(positions) == len(codes)
    both = (
        np.concatenate([folds[0][1], folds[len(folds) // 2][1]])
        if measure and partition
        else np.empty(0, dtype=np.intp)
    )
    rest = np.setdiff1d(positions, both)
    if not len(both) or not hasattr(classifier, "fit_out_of_fold") or count(codes[rest], len(classes)).min() == 0:
        fitted, parts = fit_in_folds(classifier, X, labels, classes, folds)
        return CrossFit(fitted, np.concatenate(parts), places, groups=groups)
    fitted, (*parts, of_both) = fit_in_folds(classifier, X, labels, classes, [*folds, (rest, both)])
    more = np.concatenate([parts[0], parts[len(folds) // 2]])
    shares = len(rest) / len(codes), (len(codes) + len(rest)) / (2 * len(codes))
    gap = measure_fold_gap(of_both, more, codes[both], shares)
    once = both if distinct is None else both[first_copies(distinct.owner[both], codes[both])]
    rarest = int(count(codes[once], len(classes)).min())
    growth = measure_growth(of_both, more, codes[both], shares)
    return CrossFit(fitted, np.concatenate(parts), places, gap, groups, rarest, growth)


def usual_folds(classifier: Any, sizes: IntArray) -> int:
    """Number of folds for classes of these numbers of different instances (k,), if the caller does not choose it.

    Classifiers of ten folds are closer to the final one than those of five. That is worth most with few instances,
    where it costs milliseconds if the classifier fits all folds in shared passes. With fewer still, `QuaNet` knows
    better what the classifiers of five folds are worth.
    """
    fits = int(sizes.sum()) in FEW_LABELS and sizes.min() >= MORE_FOLDS
    return MORE_FOLDS if fits and hasattr(classifier, "fit_out_of_fold") else FOLDS


def fit_in_folds(
    classifier: Any, X: Any, labels: LabelArray, classes: LabelArray, folds: list[tuple[IntArray, IntArray]]
) -> tuple[Any, list[FloatArray]]:
    """A classifier fitted to all data, and the posteriors (m, k) of each fold, by a copy fitted without it."""
    if hasattr(classifier, "fit_out_of_fold"):
        fitted = clone(classifier)
        return fitted, [check_posteriors(part, len(classes)) for part in fitted.fit_out_of_fold(X, labels, folds)]
    fitted = fit_classifier(classifier, X, labels)
    return fitted, [_fold_posteriors(classifier, X, labels, classes, fold) for fold in folds]


def read_left_out(
    classifier: Any, X: Any, codes: IntArray, classes: LabelArray, folds: list[tuple[IntArray, IntArray]]
) -> list[FloatArray]:
    """Posteriors (m, k) of the held-out instances of each fold, by a classifier that was fitted without them."""
    if isinstance(classifier, FrozenEstimator):
        return [posteriors_of(classifier, _safe_indexing(X, held_out), classes) for _, held_out in folds]
    labels = classes[codes]
    if hasattr(classifier, "fit_out_of_fold"):
        return fit_in_folds(classifier, X, labels, classes, folds)[1]
    return [_fold_posteriors(classifier, X, labels, classes, fold) for fold in folds]


def _fold_posteriors(
    classifier: Any,
    X: Any,
    labels: LabelArray,
    classes: LabelArray,
    fold: tuple[IntArray, IntArray],
) -> FloatArray:
    seen, held_out = fold
    fitted = fit_classifier(classifier, _safe_indexing(X, seen), labels[seen])
    return posteriors_of(fitted, _safe_indexing(X, held_out), classes)


def is_given(classifier: Any) -> bool:
    """Whether a classifier is already fitted, so that no folds are needed: frozen, or "precomputed"."""
    return isinstance(classifier, str | FrozenEstimator)


def without_single(X: Any, labels: LabelArray) -> tuple[Any, LabelArray, tuple[Any, ...]]:
    """Drop classes with one instance, with a warning: instances, labels (n,), and the dropped classes.

    If fewer than two classes would remain, nothing is dropped.
    """
    classes = classes_of(labels)
    codes = encode(labels, classes)
    single = count(codes, len(classes)) == 1
    if not single.any() or (~single).sum() < 2:
        return X, labels, ()
    names = tuple(classes[single].tolist())
    few = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    warnings.warn(
        f"Dropped {len(names)} of {len(classes)} classes that have only one instance: {few}. Their prevalence is not "
        "estimated. Label more instances of them, or merge them with other classes.",
        QuanetWarning,
        stacklevel=4,
    )
    kept = np.flatnonzero(~single[codes])
    return _safe_indexing(X, kept), labels[kept], names


def fit_classifier(classifier: Any, X: Any, labels: LabelArray) -> Any:
    """A fitted copy of a classifier; a frozen classifier unchanged."""
    if isinstance(classifier, FrozenEstimator):
        return classifier
    try:
        return clone(classifier).fit(X, labels)
    except ValueError as error:
        raise _explained(classifier, error) from error


def posteriors_of(classifier: Any, X: Any, classes: LabelArray) -> FloatArray:
    """Checked posteriors (n, k) of a fitted classifier, in the order of `classes`; one-hot without `predict_proba`."""
    if getattr(X, "ndim", 1) == 1 and hasattr(classifier, "n_features_in_") and is_text(X):
        raise InvalidData("X contains texts, but the model was fitted to numbers. Pass a matrix (n, d).")
    try:
        if hasattr(classifier, "predict_proba"):
            posteriors = np.asarray(classifier.predict_proba(X), dtype=float)
            order = np.argsort(np.asarray(classifier.classes_), kind="stable")
            return check_posteriors(posteriors, len(classes))[:, order]
        # Its own labels: those of the quantifier may have been renamed.
        return np.eye(len(classes))[encode(classifier.predict(X), np.sort(getattr(classifier, "classes_", classes)))]
    except InvalidData:
        raise
    except ValueError as error:
        raise _explained(classifier, error) from error


def _explained(classifier: Any, error: ValueError) -> Exception:
    """An error of scikit-learn about the data, on one line and with the name of the classifier."""
    if isinstance(error, InvalidData):
        return error
    what = "y" if "label type" in str(error) else "X"
    return InvalidData(f"{type(classifier).__name__} cannot use {what}: {' '.join(str(error).split())}")


def measure_fold_gap(
    less: FloatArray, more: FloatArray, codes: IntArray, shares: tuple[float, float]
) -> FloatArray | None:
    """Extrapolate from posteriors of the same instances by two classifiers, (n, k) each, to a full fit: (k, k + 1).

    For the instances of each class: the change of their mean log posteriors (k), and the factor by which their spread
    grows. None if a class has too few instances.

    Parameters
    ----------
    less, more : posteriors by classifiers fitted to less and to more of the data.
    codes : classes of the instances.
    shares : of all data, to which the two classifiers were fitted.

    Examples
    --------
    >>> less, more = np.repeat([[0.7, 0.3], [0.3, 0.7]], 20, 0), np.repeat([[0.8, 0.2], [0.2, 0.8]], 20, 0)
    >>> gap = measure_fold_gap(less, more, np.repeat([0, 1], 20), (0.6, 0.8))
    >>> gap.round(2)
    array([[ 0.18, -0.18,  1.  ],
           [-0.18,  0.18,  1.  ]])
    """
    k = less.shape[1]
    if count(codes, k).min() < MIN_OF_CLASS:
        return None
    factor, gap = extrapolation(shares), np.empty((k, k + 1))
    floor = zero_floor(np.concatenate([less, more]), np.tile(codes, 2))
    logs_less, logs_more = centred_logs(less, floor), centred_logs(more, floor)
    for c in range(k):
        first, second = logs_less[codes == c], logs_more[codes == c]
        gap[c, :k] = factor * (second.mean(axis=0) - first.mean(axis=0))
        gap[c, k] = (spread_of(second) / spread_of(first)) ** factor
    return gap


def measure_growth(less: FloatArray, more: FloatArray, codes: IntArray, shares: tuple[float, float]) -> float:
    """By how much the spread of log posteriors within classes grows up to a full fit: the mean of its logarithm.

    The mean is over the classes with enough instances; 0 if there is none. Parameters as in `measure_fold_gap`.

    Examples
    --------
    >>> less, more = (1 / (1 + np.exp(-np.outer(np.linspace(0, size, 20), [1, -1]))) for size in (2.0, 2.2))
    >>> round(measure_growth(less, more, np.zeros(20, dtype=int), (0.6, 0.8)), 2)
    0.08
    """
    floor = zero_floor(np.concatenate([less, more]), np.tile(codes, 2))
    logs_less, logs_more = centred_logs(less, floor), centred_logs(more, floor)
    enough = np.flatnonzero(count(codes, less.shape[1]) >= MIN_OF_CLASS)
    ratios = [spread_of(logs_more[codes == c]) / spread_of(logs_less[codes == c]) for c in enough]
    return extrapolation(shares) * float(np.mean(np.log(ratios))) if ratios else 0.0


def extrapolation(shares: tuple[float, float]) -> float:
    """A change from the second of these shares of the data to all of it, in changes from the first to the second.

    Errors decrease with the root of the number of instances.
    """
    error_less, error_more = 1 / np.sqrt(shares[0]), 1 / np.sqrt(shares[1])
    return float((error_more - 1) / (error_less - error_more))


def spread_of(logs: FloatArray) -> float:
    """How far log posteriors (n, k) vary, at least a little."""
    return max(float(np.sqrt(logs.var(axis=0).sum())), MIN_POSTERIOR)


def close_fold_gap(posteriors: FloatArray, codes: IntArray, gap: FloatArray) -> FloatArray:
    """Out-of-fold posteriors (m, k) of instances of classes (m,), distributed like those of the full fit.

    Zeros stay zero: calibration learns from the result how far to trust them.
    """
    k = posteriors.shape[1]
    logs = centred_logs(posteriors, zero_floor(posteriors, codes))
    for c in range(k):
        members = codes == c
        centre = logs[members].mean(axis=0)
        logs[members] = centre + gap[c, :k] + gap[c, k] * (logs[members] - centre)
    moved = np.exp(logs - logs.max(axis=1, keepdims=True)) * (posteriors > 0)
    return np.asarray(moved / moved.sum(axis=1, keepdims=True))
