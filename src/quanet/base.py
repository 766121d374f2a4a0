"""Quantifiers in three steps: `read` (the classifier), `rows` (per instance), `aggregate` (prevalences of bags)."""

import warnings
from abc import ABC, abstractmethod
from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _num_samples, check_is_fitted

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.bags import Bags, check_not_empty
from quanet.classifiers.cross_fitting import (
    check_labels,
    check_posteriors,
    cross_fit_with_gap,
    fit_classifier,
    is_given,
    posteriors_of,
    resolve_classifier,
    without_single,
)
from quanet.data.columns import describe_variants
from quanet.data.instances import Inputs
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning
from quanet.held_out import HeldOut, shrinkage_of, warn_of_shrinkage
from quanet.metrics import absolute_error
from quanet.parameters import Constraints, check_parameters
from quanet.simplex import classes_of, count, encode, one_hot, prevalence_of

if TYPE_CHECKING:
    from quanet.uncertainty.regions import Interval


class Quantifier(BaseEstimator, ABC):
    """Base class of all quantifiers.

    A quantifier works in three steps. `read` runs the classifier on each instance, once. `rows` turns its output into
    what the method needs. `aggregate` turns any stack of bags of rows into prevalences. A subclass defines `fit`,
    `_read` and `_aggregate`, and `rows` if the method needs something other than the output of `read`.

    Attributes
    ----------
    classes_ : (k,) sorted labels. Every prevalence vector is in this order.
    prior_ : (k,) training prevalences.
    n_instances_ : number of labelled instances it was fitted to.
    held_out_ : `HeldOut`, the output of `read` for instances that the classifier was not fitted to, and their classes.
        Intervals are calibrated on them, and `relearn` replaces them. None if the method does not need any, such as CC.
    shrinkage_ : how far estimates are moved towards `prior_` because the classifier hardly separates the classes, from
        0 (not at all, the usual case) to 1 (`quanet.held_out`).
    left_out_ : labels of classes with a single instance, which cannot be learned; they are not in `classes_`.
    """

    about: ClassVar[Any] = None  # facts about the method (`methods.about`), enforced by `fit`
    allowed_values: ClassVar[Constraints] = {}  # of its parameters, checked by `fit`
    classes_: LabelArray
    prior_: FloatArray
    n_instances_: int
    held_out_: HeldOut | None = None
    shrinkage_: float = 0.0  # a default for models saved by older versions
    left_out_: tuple[Any, ...] = ()

    # Whether the first k columns of what `read` returns are posteriors.
    reads_posteriors: ClassVar[bool] = False

    @abstractmethod
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from instances X (n of them) and their labels y (n,)."""

    def read(self, X: Any) -> Inputs:
        """Run the classifier, once: its output for each instance, such as posteriors, (n, d).

        Every function that accepts instances also accepts the result. So one can estimate, compute intervals, diagnose
        and draw bags without running the classifier again.

        Examples
        --------
        >>> from quanet import EMQ, Gaussians
        >>> X, y = Gaussians().draw([0.5, 0.5], 300, rng=0)
        >>> quantifier = EMQ().fit(X, y)
        >>> inputs = quantifier.read(X)
        >>> bool((quantifier.predict(inputs) == quantifier.predict(X)).all())
        True
        >>> bool((quantifier.rows(inputs) == quantifier.represent(X)).all())
        True
        """
        if isinstance(X, Inputs):
            return X
        check_is_fitted(self, "classes_")
        return Inputs(self._read(X))

    @abstractmethod
    def _read(self, X: Any) -> FloatArray:
        """The classifier's output as an array (n, d); `read` wraps it."""

    def rows(self, inputs: ArrayLike) -> FloatArray:
        """Turn the output of `read` into the rows that `aggregate` needs, one per instance: (n, d) -> (n, d').

        This is the place for what needs no other instance of the bag, such as calibration. By default rows are inputs.
        """
        return np.asarray(inputs)

    def represent(self, X: Any) -> FloatArray:
        """One row per instance: ``rows(read(X))``, (n, d)."""
        return self.rows(self.read(X).values)

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """Estimate the prevalences of any stack of bags of rows: (..., n, d) -> (..., k).

        The estimate of a bag depends neither on the order of its rows nor on other bags.
        """
        return self._shrunk(self._aggregate(rows))

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """The estimates of the method before shrinkage: (..., n, d) -> (..., k)."""
        raise NotImplementedError(f"{type(self).__name__} must define `_aggregate`: bags of rows -> prevalences.")

    def _shrunk(self, estimates: FloatArray) -> FloatArray:
        if not self.shrinkage_:
            return estimates
        return estimates + self.shrinkage_ * (self.prior_ - estimates)

    def aggregate_bags(self, rows: FloatArray, bags: Bags) -> FloatArray:
        """Prevalences (b, k) of bags of rows (n, d), a bounded number of bags at a time."""
        estimates = np.empty((len(bags), len(self.classes_)))
        for positions, stack in bags.gather(rows):
            estimates[positions] = self.aggregate(stack)
        return estimates

    def predict(self, X: Any) -> FloatArray:
        """Prevalences (k,) of one bag of instances, in the order of `classes_`."""
        check_is_fitted(self, "classes_")
        check_not_empty(_num_samples(X))
        return self.aggregate(self.represent(X))

    def predict_bags(self, X: Any, bags: Bags) -> FloatArray:
        """Prevalences (b, k) of bags of a pool X; the classifier reads the pool once."""
        bags.check_pool(_num_samples(X))
        check_is_fitted(self, "classes_")
        check_not_empty(_num_samples(X))
        return self.aggregate_bags(self.represent(X), bags)

    def score(self, X: Any, y: ArrayLike) -> float:
        """Minus the absolute error on one bag: higher is better, as scikit-learn's searches expect."""
        return -float(absolute_error(prevalence_of(y, self.classes_), self.predict(X)))

    def predict_interval(self, X: Any, level: float = 0.95, **options: Any) -> "Interval":
        """Prevalences of one bag with lower and upper ends; `quanet.predict_interval` describes the options."""
        return cast("Interval", import_module("quanet").predict_interval(self, X, level, **options))

    def predict_interval_bags(self, X: Any, bags: Bags, level: float = 0.95, **options: Any) -> "Interval":
        """Prevalences of bags of a pool X with lower and upper ends, as `quanet.predict_interval_bags`."""
        return cast("Interval", import_module("quanet").predict_interval_bags(self, X, bags, level, **options))

    def relearn(self, inputs: FloatArray, codes: IntArray) -> "Quantifier":  # noqa: ARG002
        """A copy that has learned from other held-out inputs (m, d) of classes (m,) instead of `held_out_`.

        The classifier is not fitted again. Intervals use it to see how estimates vary with the held-out instances.
        Returns the quantifier itself if it learns nothing from held-out inputs.
        """
        return self

    def _keep_held_out(self, held_out: HeldOut) -> None:
        """Set `held_out_`, and set `shrinkage_` from how well the classifier separates the held-out instances."""
        self.held_out_ = held_out.compact()
        self.shrinkage_ = 0.0
        if type(self).aggregate is Quantifier.aggregate:
            distinct = held_out.each_once()
            scores = self._readings(distinct.inputs[:, : held_out.k])
            self.shrinkage_ = shrinkage_of(self, scores, distinct.inputs, distinct.codes)
            warn_of_shrinkage(self.shrinkage_)

    def _readings(self, posteriors: FloatArray) -> FloatArray:
        """What the estimate is made of: posteriors (m, k), or one-hot rows if the method counts labels."""
        return posteriors

    def needs_folds(self) -> bool:
        """Whether `fit` uses folds, which need at least two instances of every class."""
        member = getattr(self, "quantifier", None)
        return isinstance(member, Quantifier) and member.needs_folds()

    def _learnable(self, X: Any, y: ArrayLike) -> tuple[Any, ArrayLike]:
        """Instances and labels, without classes of one instance if `fit` uses folds; sets `left_out_` and warns."""
        self.left_out_ = ()
        if not self.needs_folds():
            return X, y
        X, labels, self.left_out_ = without_single(X, check_labels(y, _num_samples(X)))
        return X, labels

    def _learn_labels(self, X: Any, y: ArrayLike) -> IntArray:
        """Set `classes_` and `prior_`; return the class of every instance, as a position in `classes_`."""
        check_parameters(self)
        labels = check_labels(y, _num_samples(X))
        self.classes_ = classes_of(labels)
        if len(self.classes_) < 2:
            raise InvalidData(
                f"y has one class only, {self.classes_.tolist()[0]!r}; at least two are needed. "
                "Add labelled instances of another class."
            )
        if self.about is not None and self.about.classes != "any":
            self.about.check_classes(self)
        variants = describe_variants(self.classes_.tolist())
        if variants:
            advice = "If so, use one spelling: quanet.normalize_labels, or --normalize-labels."
            warnings.warn(f"{variants} {advice}", QuanetWarning, stacklevel=3)
        codes = encode(labels, self.classes_)
        self.prior_ = count(codes, len(self.classes_)) / len(codes)
        self.n_instances_ = len(codes)
        return codes


class AggregativeQuantifier(Quantifier):
    """Base class of quantifiers whose rows are posteriors of a classifier.

    A subclass defines `_aggregate`, and `_fit_aggregation` if it learns from out-of-fold posteriors. If it defines
    `aggregate` instead of `_aggregate`, its estimates are never shrunk.

    Parameters
    ----------
    classifier : any scikit-learn classifier. None means logistic regression for numbers and `TextClassifier` for texts.
        ``FrozenEstimator(classifier)`` is not fitted again; X should then be data it has not seen. "precomputed" means
        that X is the matrix of posteriors (n, k). Columns of a table are matched to the classes by name; those of an
        array are in the sorted order of the labels, as in `classes_`.
    cv : how out-of-fold posteriors are computed: a number of folds, a held-out fraction between 0 and 1, or a
        scikit-learn splitter. The final classifier is fitted to all data. Folds follow the order of the data:
        neighbours (reviews of one product, posts of one day) stay together, so that posteriors are as good as on new
        products and days. If new data resemble a random part of the old data, ``StratifiedKFold(5, shuffle=True)`` is
        better. Copies of the same instance are always in the same fold (`quanet.data.duplicates`).
    """

    # Whether one-hot rows of predicted labels are enough, for a classifier without posteriors.
    _counts_labels: ClassVar[bool] = False
    # Whether perfect posteriors of 0 and 1 give the true prevalences; False if the method regularises its estimates.
    _exact: ClassVar[bool] = True
    reads_posteriors: ClassVar[bool] = True

    def __init__(self, classifier: Any = None, *, cv: Any = 5) -> None:
        self.classifier = classifier
        self.cv = cv

    def fit(self, X: Any, y: ArrayLike) -> Self:
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
            return self
        fitted = cross_fit_with_gap(classifier, X, codes, self.classes_, cv=self.cv)
        self.classifier_, posteriors, held = fitted.classifier, fitted.posteriors, fitted.positions
        unseen = count(codes[held], len(self.classes_)) == 0
        if unseen.any():
            raise InvalidData(
                f"class {self.classes_[unseen].tolist()[0]!r} has no instance in the held-out part that "
                f"{type(self).__name__} learns from. Hold out a larger fraction, or pass a number of folds as cv."
            )
        self._fit_aggregation(posteriors, codes[held])
        self._keep_held_out(HeldOut(posteriors, codes[held], len(self.classes_), fitted.groups, fitted.fold_gap))
        return self

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

    def fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> Self:
        """Learn the errors of posteriors from held-out posteriors (m, k) and their classes (m,), in place."""
        self._fit_aggregation(posteriors, codes)
        return self

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        """Learn from posteriors (m, k) of instances that the classifier has not seen, and their classes (m,)."""
