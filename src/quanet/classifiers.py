"""Which classifier a parameter means, and how it is fitted: checked labels, cross-fitting, checked posteriors."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit, check_cv
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning
from quanet.lead import measure_lead
from quanet.simplex import classes_of, count, encode
from quanet.text import TextClassifier, is_text


class PrecomputedPosteriors(BaseEstimator):
    """A classifier whose instances are posteriors already."""

    def __init__(self, classes: LabelArray) -> None:
        self.classes = classes

    @property
    def classes_(self) -> LabelArray:
        """The labels of the columns."""
        return self.classes

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """The posteriors as they are: (n, k) -> (n, k)."""
        return np.asarray(X, dtype=float)


def resolve_classifier(classifier: Any, X: Any, classes: LabelArray) -> Any:
    """The classifier that the parameter means for this data, unfitted unless it is frozen."""
    if isinstance(classifier, str):
        if classifier != "precomputed":
            raise InvalidSetting(f"classifier is an estimator, None or 'precomputed'; got {classifier!r}.")
        return FrozenEstimator(PrecomputedPosteriors(classes))
    if classifier is None:
        if is_text(X):
            return TextClassifier()
        if np.ndim(X) == 1 and not hasattr(X, "tocsr"):
            raise InvalidData("X is one column, and not of texts. Texts are strings; numbers need a matrix (n, d).")
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
    """

    classifier: Any
    posteriors: FloatArray
    held: IntArray
    lead: FloatArray | None = None


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
        return CrossFit(classifier, posteriors_of(classifier, X, classes), np.arange(len(codes)))
    folds = make_folds(codes, classes, cv)
    held = np.concatenate([held for _, held in folds])
    # Two folds that one classifier has seen neither of, where they are parts of a whole.
    whole = len(folds) > 2 and len(np.unique(held)) == len(held) == len(codes)
    both = np.concatenate([folds[0][1], folds[len(folds) // 2][1]]) if measure and whole else np.empty(0, dtype=np.intp)
    rest = np.setdiff1d(held, both)
    if not len(both) or not hasattr(classifier, "fit_out_of_fold") or count(codes[rest], len(classes)).min() == 0:
        fitted, parts = fit_in_folds(classifier, X, labels, classes, folds)
        return CrossFit(fitted, np.concatenate(parts), held)
    fitted, (*parts, of_both) = fit_in_folds(classifier, X, labels, classes, [*folds, (rest, both)])
    more = np.concatenate([parts[0], parts[len(folds) // 2]])
    shares = len(rest) / len(codes), (len(codes) + len(rest)) / (2 * len(codes))
    lead = measure_lead(of_both, more, codes[both], shares)
    return CrossFit(fitted, np.concatenate(parts), held, lead)


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


def make_folds(codes: IntArray, classes: LabelArray, cv: Any) -> list[tuple[IntArray, IntArray]]:
    """Training and held-out instances of every fold; `cv` as in `AggregativeQuantifier`."""
    counts = count(codes, len(classes))
    rarest = int(counts.argmin())
    name = classes.tolist()[rarest]
    if counts[rarest] < 2:
        raise InvalidData(
            f"class {name!r} has one instance, so a classifier cannot be fitted without it. "
            "Add instances, or give a fitted classifier: FrozenEstimator(classifier)."
        )
    if isinstance(cv, float):
        if not 0 < cv < 1:
            raise InvalidSetting(f"cv as a held-out share lies between 0 and 1; got {cv}.")
        splitter: Any = StratifiedShuffleSplit(n_splits=1, test_size=cv, random_state=0)
    elif isinstance(cv, int | np.integer):
        if cv < 2:
            raise InvalidSetting(f"cv needs at least 2 folds, or a share between 0 and 1; got {cv}.")
        if counts[rarest] < cv:
            warnings.warn(
                f"class {name!r} has {counts[rarest]} instances, fewer than the {cv} folds; "
                f"{counts[rarest]} folds are used.",
                QuanetWarning,
                stacklevel=4,
            )
        # Not shuffled: neighbours in a file, such as reviews of one day or author, stay in one fold.
        splitter = StratifiedKFold(min(int(cv), int(counts[rarest])))
    else:
        splitter = check_cv(cv)
    try:
        return list(splitter.split(np.zeros(len(codes)), codes))
    except ValueError as error:
        raise InvalidSetting(f"cv={cv} cannot split {len(codes)} instances: {error}") from error


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


def check_posteriors(posteriors: ArrayLike, k: int) -> FloatArray:
    """Return posteriors (n, k) with rows that sum to one exactly, or say which row is no probability vector."""
    values = np.asarray(posteriors, dtype=float)
    if values.ndim != 2 or values.shape[1] != k:
        raise InvalidData(
            f"posteriors need one column for each of the {k} classes; their shape is {values.shape}."
            + (" Stack [1 - p, p] for two classes." if values.ndim == 1 and k == 2 else "")
        )
    total = values @ np.ones(k)  # as `sum`, and faster over so short an axis
    # A NaN fails every comparison, so it is caught here too.
    wrong = ~(np.abs(total - 1) <= 1e-3)
    if values.size and not values.min() >= 0:
        wrong |= (values < 0).any(axis=1)
    if wrong.any():
        first = int(wrong.argmax())
        raise InvalidData(
            f"row {first} of the posteriors is {values[first].tolist()}, which is no probability vector: "
            f"values are at least 0 and sum to 1. {int(wrong.sum())} of {len(values)} rows are like that."
        )
    return values / total[:, None]


def check_labels(y: ArrayLike, n: int) -> LabelArray:
    """Return the labels (n,) as an array, or say what keeps them from naming one class for every instance."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise InvalidData(f"y is one label for each instance, of shape (n,); its shape is {labels.shape}.")
    if len(labels) != n:
        raise InvalidData(f"X has {n} instances but y has {len(labels)} labels. Give one for each.")
    if n == 0:
        raise InvalidData("X and y are empty. Give labelled instances to learn from.")
    complete = labels.dtype.kind in "biuUS"  # the others can hold NaN, NaT or None
    missing = [] if complete else [at for at, label in enumerate(labels.tolist()) if _is_missing(label)]
    if missing:
        raise InvalidData(f"y has {len(missing)} missing labels, the first at position {missing[0]}. Drop those rows.")
    if labels.dtype.kind == "f" and (labels != np.round(labels)).any():
        raise InvalidData("y has fractions, so it looks like a measurement; labels name classes. Bin it first.")
    return labels


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA, which neither is nor is not itself
        return True
