"""Rows [posteriors | embedding] of instances, and where the ones to learn from are held out."""

from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.base import Quantifier
from quanet.classifiers.calibration import calibrate
from quanet.classifiers.cross_fitting import (
    check_posteriors,
    cross_fit_with_gap,
    fit_classifier,
    is_given,
    posteriors_of,
    read_left_out,
    resolve_classifier,
)
from quanet.classifiers.folds import make_folds, split_in_folds
from quanet.classifiers.text import TextClassifier
from quanet.data.duplicates import Distinct, find_distinct
from quanet.data.instances import posterior_columns
from quanet.errors import InvalidData, InvalidSetting

DIRECTIONS = 16  # of the embedding, by variance, that are kept when it is reduced
READER_GAIN = 3.0  # standard errors by which reading the embedding must improve posteriors to be kept
READER_FOLDS = 10
HELD_OUT = 0.4  # as in the paper, if the embedding is learned from labels


class RowMaker:
    """A classifier and its embedding, as one table; fitted once, then a function of X.

    Parameters
    ----------
    classifier, cv : see `quanet.nn.set_networks.SetQuantifier`.
    refine : whether the embedding is reduced to its directions of largest variance, and posteriors are replaced by a
        reader's, a logistic regression on log posteriors and embedding, where out-of-fold ones are clearly better.
        Otherwise the embedding is only standardised. Cross-fitted posteriors are never replaced: they differ from those
        of a fit to everything by what their own labels would have added, so that a reader could read these off.

    Attributes
    ----------
    reader : the regression in use, or None.
    fold_gap : of the classifier, as in `HeldOut`; None with a reader, which changes posteriors.
    """

    def __init__(self, classifier: Any, *, cv: Any, refine: bool) -> None:
        self.given = classifier
        self.cv = cv
        self.refine = refine
        self.reader: Any = None
        self.fold_gap: FloatArray | None = None

    def fit(self, X: Any, codes: IntArray, classes: LabelArray) -> tuple[FloatArray, IntArray, IntArray | None]:
        """Rows (m, k + e) of instances their classifier has not seen, whose they are, and groups of copies (m,)."""
        self.classes = classes
        labels = classes[codes]
        if isinstance(self.given, str) and self.given == "precomputed":
            self.classifier: Any = None
            posteriors, embedding = self._split(X)
            held = np.arange(len(codes))
            cross_fitted = not isinstance(self.cv, float)
        else:
            classifier = resolve_classifier(self.given, X, classes)
            cross_fitted = False
            if not hasattr(classifier, "predict_proba"):
                raise InvalidSetting(
                    f"Networks over bags need posteriors, but {classifier} has no predict_proba. "
                    f"Wrap it: CalibratedClassifierCV({type(classifier).__name__}())."
                )
            if isinstance(classifier, FrozenEstimator):
                self.classifier, held = classifier, np.arange(len(codes))
                posteriors = posteriors_of(classifier, X, classes)
            elif isinstance(self.cv, float) or (
                hasattr(classifier, "transform") and not hasattr(classifier, "fit_out_of_fold")
            ):
                share = self.cv if isinstance(self.cv, float) else HELD_OUT
                seen, held = make_folds(X, codes, classes, share)[0]
                self.classifier = fit_classifier(classifier, _safe_indexing(X, seen), labels[seen])
                posteriors = posteriors_of(self.classifier, _safe_indexing(X, held), classes)
            else:
                found = cross_fit_with_gap(classifier, X, codes, classes, cv=self.cv)
                self.classifier, self.fold_gap, cross_fitted = found.classifier, found.fold_gap, True
                posteriors, held = found.posteriors, found.positions
            embedding = self._embed(_safe_indexing(X, held))
        distinct = find_distinct(_safe_indexing(X, held)) if embedding.shape[1] or self.classifier is not None else None
        if not cross_fitted:
            posteriors = self._learn_reader(posteriors, embedding, codes[held], distinct)
        self._learn_directions(embedding)
        return self._joined(posteriors, embedding), held, None if distinct is None else distinct.owner

    def transform(self, X: Any) -> FloatArray:
        """Rows of new instances: (n, k + e)."""
        if self.classifier is None:
            posteriors, embedding = self._split(X)
        else:
            posteriors, embedding = self._read(X)
        if embedding.shape[1] != len(self.centre):
            raise InvalidData(f"the embedding has {embedding.shape[1]} columns, but had {len(self.centre)} in fit.")
        if self.reader is not None:
            posteriors = check_posteriors(
                self.reader.predict_proba(_features(posteriors, embedding)), len(self.classes)
            )
        return self._joined(posteriors, embedding)

    def left_out(self, X: Any, codes: IntArray, folds: list[tuple[IntArray, IntArray]]) -> list[FloatArray] | None:
        """Rows of the held-out instances of each fold, by classifiers that have not seen them.

        None if the embedding or the reader is learned from labels, because it has then seen them.
        """
        if self.classifier is None or isinstance(self.classifier, FrozenEstimator):
            return [self.transform(_safe_indexing(X, held_out)) for _, held_out in folds]
        if self.reader is not None or (hasattr(self.classifier, "transform") and not self.shares_folds()):
            return None
        classifier = resolve_classifier(self.given, X, self.classes)
        posteriors = read_left_out(classifier, X, codes, self.classes, folds)
        parts = [_safe_indexing(X, held_out) for _, held_out in folds]
        return [self._joined(read, self._embed(part)) for read, part in zip(posteriors, parts, strict=True)]

    def shares_folds(self) -> bool:
        """Whether the classifier fits several folds in shared passes."""
        return hasattr(self.classifier, "fit_out_of_fold")

    def _split(self, X: Any) -> tuple[FloatArray, FloatArray]:
        k = len(self.classes)
        posteriors, embedding = posterior_columns(X, self.classes)
        if posteriors.ndim != 2 or posteriors.shape[1] < k:
            raise InvalidData(
                f"precomputed rows are [posteriors | embedding], at least {k} columns; got {posteriors.shape}."
            )
        return check_posteriors(posteriors, k), _finite(embedding)

    def _read(self, X: Any) -> tuple[FloatArray, FloatArray]:
        if isinstance(self.classifier, TextClassifier):  # gives both at once
            posteriors, embedding = self.classifier.read(X)
            return check_posteriors(posteriors, len(self.classes)), embedding
        return posteriors_of(self.classifier, X, self.classes), self._embed(X)

    def _embed(self, X: Any) -> FloatArray:
        if not hasattr(self.classifier, "transform"):
            return np.empty((len(X) if not hasattr(X, "shape") else X.shape[0], 0))
        return _finite(np.asarray(self.classifier.transform(X), dtype=float))

    def _learn_reader(
        self, posteriors: FloatArray, embedding: FloatArray, codes: IntArray, distinct: Distinct | None
    ) -> FloatArray:
        """Posteriors of the held-out rows: out-of-fold ones of a reader, if that is clearly better, or as they were."""
        if not self.refine or not embedding.shape[1]:
            return posteriors
        different = codes if distinct is None else distinct.representatives(codes)
        if np.bincount(different, minlength=len(self.classes)).min() < READER_FOLDS:
            return posteriors
        reader = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
        features = _features(posteriors, embedding)
        shuffled = StratifiedKFold(READER_FOLDS, shuffle=True, random_state=0)
        folds = split_in_folds(codes, self.classes, shuffled, distinct)
        read = check_posteriors(
            cross_val_predict(reader, features, codes, cv=folds, method="predict_proba"), len(self.classes)
        )
        gain = _balanced_surprise(posteriors, codes) - _balanced_surprise(read, codes)
        if gain.mean() < READER_GAIN * gain.std() / np.sqrt(len(gain)):
            return posteriors
        self.reader, self.fold_gap = reader.fit(features, codes), None
        return read

    def _learn_directions(self, embedding: FloatArray) -> None:
        width = embedding.shape[1]
        self.centre = embedding.mean(axis=0)
        self.directions = np.diag(1 / np.maximum(embedding.std(axis=0), 1e-9)) if width else np.eye(0)
        if self.refine and width:
            _, spread, directions = np.linalg.svd(embedding - self.centre, full_matrices=False)
            kept = min(DIRECTIONS, int((spread > 1e-9 * max(spread[0], 1e-300)).sum()))
            self.directions = (directions[:kept] / (spread[:kept, None] / np.sqrt(len(embedding)))).T
        self.width = len(self.classes) + self.directions.shape[1]

    def _joined(self, posteriors: FloatArray, embedding: FloatArray) -> FloatArray:
        return np.hstack([posteriors, (embedding - self.centre) @ self.directions])


class NetworkQuantifier(Quantifier):
    """Base class of networks over bags: their rows come from a `RowMaker`."""

    classifier: Any
    rows_: RowMaker

    def left_out_inputs(self, X: Any, codes: IntArray, folds: list[tuple[IntArray, IntArray]]) -> Any:
        """Rows of the held-out instances of each fold, by classifiers that have not seen them."""
        return self.rows_.left_out(X, codes, folds)

    def shares_folds(self) -> bool:
        """Whether the classifier fits several folds in shared passes, so that more of them cost little."""
        return self.rows_.shares_folds()

    def needs_folds(self) -> bool:
        """Whether `fit` makes folds."""
        return not is_given(self.classifier)


def _features(posteriors: FloatArray, embedding: FloatArray) -> FloatArray:
    return np.hstack([np.log(np.clip(posteriors, 1e-6, 1)), embedding])


def _balanced_surprise(posteriors: FloatArray, codes: IntArray) -> FloatArray:
    """Cross-entropy of every instance, after calibration, if all classes were equally common: their likelihoods' worth.

    Rare classes count as much as common ones, because bags may be full of them.
    """
    prior = np.bincount(codes) / len(codes)
    likelihoods = calibrate(posteriors, codes, method="bcts")(posteriors) / prior
    right = likelihoods[np.arange(len(codes)), codes] / likelihoods.sum(axis=1)
    surprise: FloatArray = -np.log(np.maximum(right, 1e-12)) / (prior[codes] * len(prior))
    return surprise


def _finite(embedding: FloatArray) -> FloatArray:
    wrong = ~np.isfinite(embedding).all(axis=1)
    if wrong.any():
        first, others = int(wrong.argmax()), int(wrong.sum()) - 1
        raise InvalidData(f"the embedding of instance {first} contains NaN or infinity, and so do {others} others.")
    return embedding
