"""What a quantifier is: `represent` turns instances into rows, `aggregate` turns bags of rows into prevalences."""

import warnings
from abc import ABC, abstractmethod
from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import _num_samples, check_is_fitted

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.bags import Bags, check_rows
from quanet.classifiers import (
    PrecomputedPosteriors,
    check_labels,
    cross_fit_ahead,
    fit_classifier,
    is_given,
    posteriors_of,
    resolve_classifier,
    without_single,
)
from quanet.data.variants import describe_variants
from quanet.duplicates import first_copies
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning
from quanet.instances import ReadInstances
from quanet.metrics import absolute_error
from quanet.shrinkage import one_hot, shrinkage_of, warn_of_shrinkage
from quanet.simplex import classes_of, count, encode, prevalence_of

if TYPE_CHECKING:
    from quanet.uncertainty.regions import Interval


class Quantifier(BaseEstimator, ABC):
    """Base of all quantifiers. A subclass writes `fit`, `represent` and `aggregate`; the rest follows.

    One that keeps held-out rows writes `_aggregate` instead, so that estimates by a weak classifier are shrunk.

    Attributes
    ----------
    classes_ : (k,) sorted labels; every prevalence vector is in their order.
    prior_ : (k,) training prevalences.
    n_instances_ : how many labelled instances it has learnt from.
    held_rows_, held_codes_ : what it knows of instances that its classifier had not seen, and their classes, where it
        has such: intervals are calibrated on them.
    held_groups_ : which of these instances are copies of one another: equal numbers for copies (`quanet.duplicates`),
        or None where all are different. Copies are never split between what a classifier has seen and what it has not.
    lead_ : how much better its classifier is than those of the folds, which made the held-out rows (`quanet.lead`), or
        None where that is not known.
    shrinkage_ : how far estimates are moved towards `prior_` because the classifier hardly separates the classes, from
        0, not at all, as with every good classifier, to 1, all the way (`quanet.shrinkage`).
    left_out_ : labels of classes with one instance, which cannot be learnt; they are not in `classes_`.
    """

    classes_: LabelArray
    prior_: FloatArray
    n_instances_: int
    held_rows_: FloatArray
    held_codes_: IntArray
    held_groups_: IntArray | None
    lead_: FloatArray | None
    shrinkage_: float = 0.0  # also of models that older versions have saved
    left_out_: tuple[Any, ...] = ()

    # Whether the first k columns of `_inputs` are posteriors.
    _reads_posteriors: ClassVar[bool] = False

    @abstractmethod
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from instances X (n of them) and their labels y (n,)."""

    @abstractmethod
    def represent(self, X: Any) -> FloatArray:
        """One row for every instance: (n, d)."""

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """Prevalences of any stack of bags of rows: (..., n, d) -> (..., k)."""
        return self._shrunk(self._aggregate(rows))

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """The method's own arithmetic: (..., n, d) -> (..., k)."""
        raise NotImplementedError(f"{type(self).__name__} needs `aggregate`, from bags of rows to prevalences.")

    def _shrunk(self, estimates: FloatArray) -> FloatArray:
        if not self.shrinkage_:
            return estimates
        return estimates + self.shrinkage_ * (self.prior_ - estimates)

    def predict(self, X: Any) -> FloatArray:
        """Prevalences (k,) of one bag of instances, in the order of `classes_`."""
        check_is_fitted(self, "classes_")
        _check_not_empty(X)
        return self.aggregate(self._rows_of(X))

    def predict_bags(self, X: Any, bags: Bags) -> FloatArray:
        """Prevalences (b, k) of bags of a pool X, which is represented once."""
        bags.check_pool(_num_samples(X))
        check_is_fitted(self, "classes_")
        _check_not_empty(X)
        return self._aggregate_bags(self._rows_of(X), bags)

    def read(self, X: Any) -> ReadInstances:
        """Read instances once, to estimate, diagnose and draw from them as often as one likes.

        Examples
        --------
        >>> from quanet import EMQ, Gaussians
        >>> X, y = Gaussians().draw([0.5, 0.5], 300, rng=0)
        >>> quantifier = EMQ().fit(X, y)
        >>> read = quantifier.read(X)
        >>> bool((quantifier.predict(read) == quantifier.predict(X)).all())
        True
        """
        check_is_fitted(self, "classes_")
        return ReadInstances(self._inputs_of(X))

    def score(self, X: Any, y: ArrayLike) -> float:
        """Minus the absolute error on one bag, so that more is better, as scikit-learn's searches expect."""
        return -float(absolute_error(prevalence_of(y, self.classes_), self.predict(X)))

    def predict_interval(self, X: Any, level: float = 0.95, **options: Any) -> "Interval":
        """Prevalences of one bag with lower and upper ends: `quanet.predict_interval`, which has the options."""
        found: Interval = import_module("quanet").predict_interval(self, X, level, **options)
        return found

    def predict_interval_bags(self, X: Any, bags: Bags, level: float = 0.95, **options: Any) -> "Interval":
        """Prevalences of bags of a pool X with lower and upper ends: `quanet.predict_interval_bags`."""
        found: Interval = import_module("quanet").predict_interval_bags(self, X, bags, level, **options)
        return found

    def _aggregate_bags(self, rows: FloatArray, bags: Bags) -> FloatArray:
        """Prevalences (b, k) of bags of rows (n, d), a bounded number of them at a time."""
        estimates = np.empty((len(bags), len(self.classes_)))
        for positions, stack in bags.gather(rows):
            estimates[positions] = self.aggregate(stack)
        return estimates

    def _inputs(self, X: Any) -> FloatArray:
        """What `_relearnt` learns from: rows before anything that was learnt from held-out ones, (n, d)."""
        return self.represent(X)

    def _rows(self, inputs: FloatArray) -> FloatArray:
        """Rows of inputs: (n, d) -> (n, d)."""
        return inputs

    def _inputs_of(self, X: Any) -> FloatArray:
        return X.inputs if isinstance(X, ReadInstances) else self._inputs(X)

    def _rows_of(self, X: Any) -> FloatArray:
        return self._rows(X.inputs) if isinstance(X, ReadInstances) else self.represent(X)

    def _relearnt(self, inputs: FloatArray, codes: IntArray) -> "Quantifier":  # noqa: ARG002
        """A copy that has learnt from other held-out inputs (m, d); itself where it learns nothing from them."""
        return self

    def _keep_held(
        self, inputs: FloatArray, codes: IntArray, lead: FloatArray | None = None, groups: IntArray | None = None
    ) -> None:
        # Half the size of doubles, and far more exact than any estimate.
        self.held_rows_, self.held_codes_ = inputs.astype(np.float32), codes.astype(np.int32)
        self.held_groups_ = None if groups is None else groups.astype(np.int32)
        self.lead_ = lead
        self.shrinkage_ = 0.0
        if type(self).aggregate is Quantifier.aggregate:
            once = np.arange(len(codes)) if groups is None else first_copies(groups, codes)
            readings = self._readings(inputs[once, : len(self.classes_)])
            self.shrinkage_ = shrinkage_of(self, readings, inputs[once], codes[once])
            warn_of_shrinkage(self.shrinkage_)

    def _readings(self, posteriors: FloatArray) -> FloatArray:
        """What the estimate is made of: posteriors (m, k), or one-hot rows where labels are counted."""
        return posteriors

    def _needs_folds(self) -> bool:
        """Whether `fit` makes folds, which need two instances of every class."""
        member = getattr(self, "quantifier", None)
        return isinstance(member, Quantifier) and member._needs_folds()  # noqa: SLF001

    def _learnable(self, X: Any, y: ArrayLike) -> tuple[Any, ArrayLike]:
        """Instances and labels without classes of one instance, where folds are made; sets `left_out_`, and warns."""
        self.left_out_ = ()
        if not self._needs_folds():
            return X, y
        X, labels, self.left_out_ = without_single(X, check_labels(y, _num_samples(X)))
        return X, labels

    def _learn_labels(self, X: Any, y: ArrayLike) -> IntArray:
        """Set `classes_` and `prior_`; return the class of every instance, as a position in `classes_`."""
        labels = check_labels(y, _num_samples(X))
        self.classes_ = classes_of(labels)
        if len(self.classes_) < 2:
            raise InvalidData(
                f"y has one class only, {self.classes_.tolist()[0]!r}; shares need at least two. "
                "Add labelled instances of the others."
            )
        variants = describe_variants(self.classes_.tolist())
        if variants:
            advice = "If so, give them one spelling: quanet.data.variants.normalize_labels, or --normalize-labels."
            warnings.warn(f"{variants} {advice}", QuanetWarning, stacklevel=3)
        codes = encode(labels, self.classes_)
        self.prior_ = count(codes, len(self.classes_)) / len(codes)
        self.n_instances_ = len(codes)
        return codes


class AggregativeQuantifier(Quantifier):
    """Base of the quantifiers whose rows are a classifier's posteriors.

    A subclass writes `_aggregate`, and `_fit_aggregation` if it learns from out-of-fold posteriors. One that writes
    `aggregate` itself works too; its estimates stay as it makes them.

    Parameters
    ----------
    classifier : any scikit-learn classifier. None takes logistic regression for numbers and `TextClassifier` for texts;
        a fitted one stays as it is in ``FrozenEstimator(classifier)``, and X should then be data it has not seen;
        "precomputed" means that X is the matrix of posteriors (n, k). Columns of a table are matched to the classes by
        name; those of an array are in the sorted order of the labels, as in `classes_`.
    cv : how posteriors for learning are made: a number of folds, a held-out share between 0 and 1, or a scikit-learn
        splitter. In the end the classifier is fitted to all data. Folds follow the order of the data: neighbours
        (reviews of one product, posts of one day) stay together, so posteriors are as good as on new products and days.
        Where new data mix with the old ones at random, ``StratifiedKFold(5, shuffle=True)`` matches better.
        Copies of the same instance are always in the same fold (`quanet.duplicates`).
    """

    # Whether predicted labels will do, as one-hot rows, for a classifier that has no posteriors.
    _counts_labels: ClassVar[bool] = False
    # Whether posteriors of 0 and 1 that are right give the true shares; not where an estimate is pulled elsewhere.
    _exact: ClassVar[bool] = True
    _reads_posteriors: ClassVar[bool] = True

    def __init__(self, classifier: Any = None, *, cv: Any = 5) -> None:
        self.classifier = classifier
        self.cv = cv

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the classifier to instances X and labels y (n,), and learn how its posteriors err."""
        X, y = self._learnable(X, y)
        codes = self._learn_labels(X, y)
        classifier = resolve_classifier(self.classifier, X, self.classes_)
        if not (hasattr(classifier, "predict_proba") or self._counts_labels):
            raise InvalidSetting(
                f"{type(self).__name__} needs posteriors, and {classifier} has no predict_proba. "
                f"Wrap it: CalibratedClassifierCV({type(classifier).__name__}())."
            )
        if not self._learns_from_posteriors():
            self.classifier_ = fit_classifier(classifier, X, self.classes_[codes])
            return self
        fitted = cross_fit_ahead(classifier, X, codes, self.classes_, cv=self.cv)
        self.classifier_, posteriors, held = fitted.classifier, fitted.posteriors, fitted.held
        unseen = count(codes[held], len(self.classes_)) == 0
        if unseen.any():
            raise InvalidData(
                f"class {self.classes_[unseen].tolist()[0]!r} has no instance in the held-out part that "
                f"{type(self).__name__} learns from. Hold out a larger share, or give a number of folds as cv."
            )
        self._fit_aggregation(posteriors, codes[held])
        self._keep_held(posteriors, codes[held], fitted.lead, fitted.groups)
        return self

    def represent(self, X: Any) -> FloatArray:
        """Posteriors of every instance: (n, k)."""
        check_is_fitted(self, "classifier_")
        return posteriors_of(self.classifier_, X, self.classes_)

    def _inputs(self, X: Any) -> FloatArray:
        return AggregativeQuantifier.represent(self, X)

    def _rows(self, inputs: FloatArray) -> FloatArray:
        reader = copy(self)
        reader.classifier_ = FrozenEstimator(PrecomputedPosteriors(self.classes_))
        return reader.represent(inputs)

    def _relearnt(self, inputs: FloatArray, codes: IntArray) -> Quantifier:
        if not self._learns_from_posteriors():
            return self
        relearnt = copy(self)
        relearnt._fit_aggregation(inputs, codes)  # noqa: SLF001
        return relearnt

    def _readings(self, posteriors: FloatArray) -> FloatArray:
        return one_hot(posteriors) if self._counts_labels else posteriors

    def _needs_folds(self) -> bool:
        return self._learns_from_posteriors() and not is_given(self.classifier)

    def _learns_from_posteriors(self) -> bool:
        return type(self)._fit_aggregation is not AggregativeQuantifier._fit_aggregation  # noqa: SLF001

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        """Learn from posteriors (m, k) of instances that their classifier had not seen, and their classes (m,)."""


def _check_not_empty(X: Any) -> None:
    if _num_samples(X) == 0:
        check_rows(np.empty((0, 1)))
