"""Quantifiers in three steps: `read` (the classifier), `rows` (per instance), `aggregate` (prevalences of bags)."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from quanet.arrays import FloatArray, IntArray, LabelArray, check_not_empty
from quanet.bags import Bags
from quanet.classifiers.cross_fitting import check_labels, without_single
from quanet.classifiers.folds import is_number
from quanet.data.columns import describe_variants
from quanet.data.copies import content_hashes
from quanet.data.duplicates import canonical_order, hash_instances, take_instances
from quanet.data.instances import Inputs, posterior_columns
from quanet.drift.scale import DriftScale, check_groups, is_wanted, learn_scale
from quanet.errors import InvalidData, QuanetWarning
from quanet.held_out import HeldOut, shrinkage_of, warn_of_shrinkage
from quanet.metrics import absolute_error
from quanet.parameters import Constraints, check_level, check_parameters, one_of, whole
from quanet.simplex import classes_of, count, encode, prevalence_of

if TYPE_CHECKING:
    from quanet.uncertainty.regions import Interval


class Quantifier(BaseEstimator, ABC):
    """Base class of all quantifiers. Subclass it to add a method without a classifier; others: `AggregativeQuantifier`.

    A quantifier works in three steps. `read` runs the classifier on each instance, once. `rows` turns its output into
    what the method needs. `aggregate` turns any stack of bags of rows into prevalences. A subclass defines `_fit`,
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
    drift_ : `DriftScale`, how many points of bias to expect on data that differ from the training data. None in models
        saved by older versions, and in members of other quantifiers.
    left_out_ : labels of classes with a single instance, which cannot be learned; they are not in `classes_`.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> X, y = Gaussians().draw([0.5, 0.5], 300, rng=0)
    >>> quantifier = EMQ().fit(X, y)
    >>> inputs = quantifier.read(X)
    >>> bool((quantifier.aggregate(quantifier.rows(inputs)) == quantifier.predict(X)).all())
    True
    """

    about: ClassVar[Any] = None  # facts about the method (`methods.about`), enforced by `fit`
    allowed_values: ClassVar[Constraints] = {}  # of its parameters, checked by `fit`
    classes_: LabelArray
    prior_: FloatArray
    n_instances_: int
    held_out_: HeldOut | None = None
    shrinkage_: float = 0.0  # a default for models saved by older versions
    left_out_: tuple[Any, ...] = ()
    drift_: DriftScale | None = None

    # Whether the first k columns of what `read` returns are posteriors.
    reads_posteriors: ClassVar[bool] = False
    # Share of the usual number of bags that conformal intervals are calibrated on; less if estimates take milliseconds.
    # Fewer bags give wider intervals, not less coverage.
    calibration_share: ClassVar[float] = 1.0

    def fit(self, X: Any, y: ArrayLike, *, groups: ArrayLike | None = None) -> Self:
        """Learn from labelled instances, and learn the drift scale (`quanet.drift.scale`).

        The order of the instances does not matter: they are first put into an order given by a hash of their content,
        from which folds and pools are drawn. A splitter passed as `cv` gets them as they are, and so does every method
        if they are neither texts nor a table or matrix, since they have no hash then.

        Parameters
        ----------
        X : instances: texts, a matrix of numbers (n, d), or what the classifier reads.
        y : (n,) their labels.
        groups : (n,) parts of the data that differ, such as products or months. Each is left out once, to see how large
            the bias is on data of a new kind. None finds such parts by clustering. With fewer than 1,000 instances, the
            typical bias of other datasets is used instead.
        """
        names = None if groups is None else check_groups(groups, _num_samples(X))
        order = self._fit_order(X, y, names)
        if order is None:
            self._fit(X, y)
        else:
            given = X, y
            y = check_labels(y, len(order))[order]
            X, names = take_instances(X, order), None if names is None else names[order]
            try:
                self._fit(X, y)
            except InvalidData:
                self._fit(*given)  # raises the same error, with the positions that the caller knows
                raise
        self.__dict__.pop("drift_", None)  # of an earlier fit
        if is_wanted():
            self.learn_drift(X, y, names)
        return self

    def _fit_order(self, X: Any, y: ArrayLike, groups: LabelArray | None) -> IntArray | None:
        """Positions (n,) of the instances in the order in which `fit` uses them; None for the order that they have."""
        passed = (value for name, value in self.get_params().items() if name.rpartition("__")[2] == "cv")
        if not all(value is None or isinstance(value, str) or is_number(value) for value in passed):
            return None  # a splitter may depend on the order
        labels = check_labels(y, _num_samples(X))
        classes = classes_of(labels)
        codes = encode(labels, classes)
        if not self.is_precomputed():
            return canonical_order(X, codes, groups)
        posteriors, others = posterior_columns(X, classes)
        if posteriors.shape[1:] != classes.shape:
            return None  # `_fit` raises
        # An order that does not depend on the names of the classes.
        own = np.take_along_axis(posteriors, codes[:, None], axis=1)
        content = np.hstack([own, np.sort(posteriors), others])
        return canonical_order(content, hash_instances(X), codes, groups, apart=True)

    def _fit(self, X: Any, y: ArrayLike) -> None:
        """What the method learns from instances X and their labels y (n,)."""
        raise NotImplementedError(f"{type(self).__name__} must define `_fit`: instances and labels.")

    def learn_drift(self, X: Any, y: ArrayLike, groups: ArrayLike | None = None) -> None:
        """Learn the drift scale `drift_` from the instances that the quantifier was fitted to; `fit` calls it."""
        labels = check_labels(y, _num_samples(X))
        names = None if groups is None else check_groups(groups, len(labels))
        kept = np.flatnonzero(np.isin(labels, self.classes_))
        if len(kept) < len(labels):  # classes with a single instance
            X, labels, names = _safe_indexing(X, kept), labels[kept], None if names is None else names[kept]
        self.drift_ = learn_scale(self, X, encode(labels, self.classes_), names)

    def read(self, X: Any) -> Inputs:
        """Run the classifier, once: its output for each instance, such as posteriors, (n, d).

        Every function that accepts instances also accepts the result. So one can estimate, compute intervals, diagnose
        and draw bags without running the classifier again.
        """
        if isinstance(X, Inputs):
            return X
        check_is_fitted(self, "classes_")
        values = self._read(X)
        described = None if self.drift_ is None else self.drift_.describe(X, values)
        return Inputs(values, described, None if self.is_precomputed() else content_hashes(X))

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
        return self.rows(X.values if isinstance(X, Inputs) else self._read(X))

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """Estimate the prevalences of any stack of bags of rows: (..., n, d) -> (..., k).

        The estimate of a bag depends neither on the order of its rows nor on other bags.
        """
        return self._shrunk(self._aggregate(rows))

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """The estimates of the method before shrinkage: (..., n, d) -> (..., k)."""
        raise NotImplementedError(f"{type(self).__name__} must define `_aggregate`: bags of rows -> prevalences.")

    def aggregate_quickly(self, rows: ArrayLike) -> FloatArray:
        """Estimates for the drift scale, which needs very many: those of `aggregate`, unless they take long."""
        return self.aggregate(rows)

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

    def predict(self, X: Any, weights: ArrayLike | None = None) -> FloatArray:
        """Prevalences (k,) of one bag of instances, in the order of `classes_`.

        With weights (n,), such as views, they are shares of the weight instead of shares of instances.
        """
        check_is_fitted(self, "classes_")
        n = _num_samples(X)
        check_not_empty(n)
        if weights is None:
            return self._as_output(self.aggregate(self.represent(X)))
        bags = Bags([np.arange(n)], pool_size=n, weights=weights)
        return self._as_output(self.aggregate_bags(self.represent(X), bags)[0])

    def predict_bags(self, X: Any, bags: Bags) -> FloatArray:
        """Prevalences (b, k) of bags of a pool X; the classifier reads the pool once."""
        bags.check_pool(_num_samples(X))
        check_is_fitted(self, "classes_")
        check_not_empty(_num_samples(X))
        return self._as_output(self.aggregate_bags(self.represent(X), bags), bags)

    def set_output(self, *, transform: Literal["default", "pandas"] | None = None) -> Self:
        """Choose what `predict` and `predict_bags` return; the name and values are those of scikit-learn.

        Parameters
        ----------
        transform : "pandas" for a Series or a DataFrame, with the classes as names and one row per bag; "default" for
            arrays; None leaves it unchanged. `clone` and `save` keep it; all other methods return what they always do.

        Examples
        --------
        >>> from quanet import CC
        >>> posteriors, labels = [[0.9, 0.1], [0.2, 0.8]], ["no", "yes"]
        >>> quantifier = CC("precomputed").fit(posteriors, labels).set_output(transform="pandas")
        >>> quantifier.predict([[0.8, 0.2], [0.7, 0.3], [0.1, 0.9], [0.6, 0.4]])
        no     0.75
        yes    0.25
        Name: prevalence, dtype: float64
        """
        if transform is not None:
            one_of("default", "pandas").check("transform", transform)
            self._sklearn_output_config = {"transform": transform}  # the name that scikit-learn's clone copies
        return self

    def _as_output(self, estimate: FloatArray, bags: Bags | None = None) -> Any:
        """Prevalences (k,) or (b, k) as `set_output` asks for."""
        if getattr(self, "_sklearn_output_config", {}).get("transform") != "pandas":
            return estimate
        import pandas as pd

        classes = pd.Index(self.classes_)
        if bags is None:
            return pd.Series(estimate, index=classes, name="prevalence")
        return pd.DataFrame(estimate, columns=classes, index=None if bags.labels is None else pd.Index(bags.labels))

    def score(self, X: Any, y: ArrayLike) -> float:
        """Minus the absolute error on one bag: higher is better, as scikit-learn's searches expect."""
        return -float(absolute_error(prevalence_of(y, self.classes_), np.asarray(self.predict(X))))

    def predict_interval(self, X: Any, level: float = 0.95, **options: Any) -> "Interval":
        """Prevalences of one bag with lower and upper ends; `quanet.predict_interval` describes the options."""
        return cast("Interval", import_module("quanet").predict_interval(self, X, level, **options))

    def predict_interval_bags(self, X: Any, bags: Bags, level: float = 0.95, **options: Any) -> "Interval":
        """Prevalences of bags of a pool X with lower and upper ends, as `quanet.predict_interval_bags`."""
        return cast("Interval", import_module("quanet").predict_interval_bags(self, X, bags, level, **options))

    def detection_limits(self, sizes: Sequence[int] = (500, 5_000), level: float = 0.95) -> FloatArray:
        """The smallest share of every class that can be told from 0 in bags of these sizes: (s, k).

        At this share, about four intervals of five exclude 0; of a bag with a smaller share, the estimate is often 0.
        It is computed from the held-out instances, for data that differ from the training data in class prevalences
        only. NaN if it is unknown, since the method keeps no held-out posteriors or less than ten of a class, or since
        there are more than 30 classes; 1 if no share can be told from 0.

        Parameters
        ----------
        sizes : numbers of instances.
        level : of the intervals.

        Examples
        --------
        >>> from quanet import EMQ, Gaussians
        >>> quantifier = EMQ().fit(*Gaussians().draw([0.9, 0.1], 1000, rng=0))
        >>> quantifier.detection_limits([100, 1000]).round(2)
        array([[0.11, 0.08],
               [0.08, 0.03]])
        """
        check_is_fitted(self, "classes_")
        check_level(level)
        for size in sizes:
            whole(1).check("sizes", size)
        return cast("FloatArray", import_module("quanet.uncertainty.closed_form").detection_limits(self, sizes, level))

    def relearn(self, inputs: FloatArray, codes: IntArray) -> "Quantifier":  # noqa: ARG002
        """A copy that has learned from other held-out inputs (m, d) of classes (m,) instead of `held_out_`.

        The classifier is not fitted again. Intervals use it to see how estimates vary with the held-out instances.
        Returns the quantifier itself if it learns nothing from held-out inputs.
        """
        return self

    def left_out_inputs(self, X: Any, codes: IntArray, folds: list[tuple[IntArray, IntArray]]) -> Any:  # noqa: ARG002
        """Inputs (m, d) of the held-out instances of each fold, read by classifiers that have not seen them.

        The drift scale is learned from them: a list with one array per fold. None if the method does not cross-fit a
        classifier.
        """
        return None

    def chosen(self) -> "Quantifier":
        """The quantifier that estimates: itself; for a search, the one that it has chosen."""
        return self

    def shares_folds(self) -> bool:
        """Whether the classifier fits several folds in shared passes, so that more of them cost little."""
        return False

    def is_precomputed(self) -> bool:
        """Whether the instances are posteriors, perhaps with further columns."""
        parameters = self.get_params().items()
        return any(name.rpartition("__")[2] == "classifier" and isinstance(value, str) for name, value in parameters)

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
