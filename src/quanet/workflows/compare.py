"""Compare methods on the same bags, with one classifier for all: the answer of `quanet compare`."""

import inspect
import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.frozen import FrozenEstimator

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.bags import Bags
from quanet.classifiers.cross_fitting import cross_fit, posteriors_of, resolve_classifier
from quanet.classifiers.text import is_text
from quanet.errors import InvalidData, MissingExtra
from quanet.evaluation.evaluate import Results, fit_for_estimates
from quanet.evaluation.limits import Limit
from quanet.evaluation.significance import paired_t_test
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.simplex import classes_of, count, encode, prevalence_of
from quanet.uncertainty.differences import holm
from quanet.workflows.drawing import LabelledBags
from quanet.workflows.evaluate import known_limit
from quanet.workflows.method_choice import method_class, obstacle, relative_cost

if TYPE_CHECKING:
    from quanet.base import Quantifier

METRICS = ("ae", "rae", "kld")


@dataclass(frozen=True, slots=True, eq=False)
class SharedData:
    """Training and test data of all methods, read by one classifier.

    Attributes
    ----------
    X, labels : training instances and their labels (n,).
    X_test, test_labels : the pool that bags are drawn from.
    classes : (k,) sorted.
    classifier : fitted to all of X.
    held_out : (m, ...) posteriors of held-out training instances, followed by the classifier's embedding if it has one.
    held_out_labels : (m,) labels of these instances.
    pool : (n, ...) the same for X_test.
    seconds : time for fitting and reading.
    """

    X: Any
    labels: LabelArray
    X_test: Any
    test_labels: LabelArray
    classes: LabelArray
    classifier: Any
    held_out: FloatArray
    held_out_labels: LabelArray
    pool: FloatArray
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class MethodOutcome:
    """Results of one method, or the reason why there are none; `left`: estimated seconds for the remaining methods."""

    method: str
    results: Results | None
    seconds: float
    reason: str = ""
    left: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Errors of methods on the same bags, best first.

    Attributes
    ----------
    results : results by method.
    errors : metric -> (methods,) mean errors, in the order of `results`.
    p_values : metric -> (methods,) p-values of a paired test against the best method, corrected for the number of
        methods; NaN for the best.
    seconds : (methods,) time to fit and to estimate.
    failed : method -> reason why it could not run on these data.
    prior, counts : (k,) training prevalences, and instances of each class in the test file.
    limit : smallest possible error with the shared classifier; None if unknown.
    protocol, train, test : how the bags were drawn, and the names of the files.
    """

    classes: LabelArray
    results: dict[str, Results]
    errors: dict[str, FloatArray]
    p_values: dict[str, FloatArray]
    seconds: FloatArray
    failed: dict[str, str]
    prior: FloatArray
    counts: IntArray
    limit: Limit | None
    protocol: str
    train: str
    test: str

    def with_classes(self, names: LabelArray) -> "Comparison":
        """The same answer with other names of the classes, (k,); the results keep the labels, which may be ordered."""
        return replace(self, classes=names)


def share_classifier(
    X: Any, labels: ArrayLike, X_test: Any, test_labels: ArrayLike, *, classifier: Any = None, cv: Any = 5
) -> SharedData:
    """Cross-fit one classifier and read both files with it.

    Parameters
    ----------
    X, labels : training instances, texts or numbers (n, d), and their labels (n,).
    X_test, test_labels : the pool that bags are drawn from.
    classifier, cv : as in `AggregativeQuantifier`.
    """
    started = time.perf_counter()
    given, given_test = np.asarray(labels), np.asarray(test_labels)
    classes = classes_of(given)
    if len(classes) < 2:
        raise InvalidData(f"all training instances are {classes.tolist()[0]!r}. Add instances of another class.")
    codes = encode(given, classes)
    encode(given_test, classes)  # raises for an unknown label before the work
    chosen = resolve_classifier(classifier, X, classes)
    fitted, posteriors, held_out = cross_fit(chosen, X, codes, classes, cv=cv)
    rows, pool = [posteriors], [posteriors_of(fitted, X_test, classes)]
    if hasattr(fitted, "transform") and hasattr(fitted, "fit_out_of_fold"):
        rows.append(fitted.transform(X)[held_out])
        pool.append(fitted.transform(X_test))
    return SharedData(
        X,
        given,
        X_test,
        given_test,
        classes,
        fitted,
        np.hstack(rows),
        given[held_out],
        np.hstack(pool),
        time.perf_counter() - started,
    )


def run_methods(names: Sequence[str], shared: SharedData, bags: Bags, *, rng: int = 0) -> Iterator[MethodOutcome]:
    """Fit each method and estimate the bags. A method that cannot run on these data yields the reason.

    Parameters
    ----------
    names : methods, as returned by `choose_methods`.
    shared : see `share_classifier`.
    bags : bags of ``shared.X_test``.
    rng : seed for methods that have one.
    """
    spent, worked = 0.0, 0.0
    ahead = sum(map(relative_cost, names))
    for name in names:
        started = time.perf_counter()
        results, reason = None, obstacle(name, shared.X, shared.classes)
        if not reason:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a warning about one of many bags does not change the ranking
                    results = _results(name, shared, bags, rng)
            except MissingExtra as error:
                reason = str(error)
            except Exception as error:  # noqa: BLE001 - the other methods still run
                reason = " ".join(str(error).split()) or type(error).__name__
        seconds = time.perf_counter() - started
        ahead -= relative_cost(name)
        if results is not None:
            spent, worked = spent + seconds, worked + relative_cost(name)
        yield MethodOutcome(name, results, seconds, reason, ahead * spent / worked if worked else math.nan)


def rank_methods(
    outcomes: Sequence[MethodOutcome],
    shared: SharedData,
    drawn: LabelledBags,
    *,
    metric: str = "ae",
    train: str = "",
    test: str = "",
) -> Comparison:
    """Compare the outcomes, ordered by the mean of a metric.

    Each method is tested against the best one by a two-tailed paired t-test over bags with Holm's correction. The bags
    come from one pool, so the test is about other bags of this file, not about other files.
    """
    done = [one for one in outcomes if one.results is not None]
    if not done:
        reasons = "; ".join(f"{one.method}: {one.reason}" for one in outcomes)
        raise InvalidData(f"No method could run on these data. {reasons}")
    first = metric.lower()
    by_bag = {name: np.array([one.results.error(name) for one in done]) for name in dict.fromkeys([first, *METRICS])}  # type: ignore[union-attr]
    order = np.argsort(by_bag[first].mean(axis=1), kind="stable")
    k = len(shared.classes)
    return Comparison(
        classes=shared.classes,
        results={done[i].method: done[i].results for i in order},
        errors={name: errors[order].mean(axis=1) for name, errors in by_bag.items()},
        p_values={name: _p_values(errors[order]) for name, errors in by_bag.items()},
        seconds=np.array([done[i].seconds for i in order]),
        failed={one.method: one.reason for one in outcomes if one.results is None},
        prior=prevalence_of(shared.labels, shared.classes),
        counts=count(encode(shared.test_labels, shared.classes), k),
        limit=known_limit(shared.pool[:, :k], shared.test_labels, shared.classes, drawn.bag_size),
        protocol=drawn.protocol,
        train=train,
        test=test,
    )


def _p_values(errors: FloatArray) -> FloatArray:
    """p-values against the method with the smallest mean: (methods, b) -> (methods,); NaN for it and for one bag."""
    p = np.full(len(errors), np.nan)
    best = int(errors.mean(axis=1).argmin())
    others = np.arange(len(errors)) != best
    if errors.shape[1] > 1 and others.any():
        p[others] = holm(paired_t_test(errors[others], errors[best]))
    return p


def _results(name: str, shared: SharedData, bags: Bags, rng: int) -> Results:
    kind: Any = method_class(name)
    parameters = inspect.signature(kind).parameters
    settings: dict[str, Any] = {}
    if "random_state" in parameters:
        settings["random_state"] = rng
    X, labels, X_test = shared.X, shared.labels, shared.X_test
    if "classifier" in parameters:
        width = len(shared.classes) if issubclass(kind, AggregativeQuantifier) else shared.held_out.shape[1]
        settings["classifier"] = "precomputed"
        X, labels, X_test = shared.held_out[:, :width], shared.held_out_labels, shared.pool[:, :width]
    elif "features" in parameters and is_text(X) and hasattr(shared.classifier, "transform"):
        settings["features"] = FrozenEstimator(shared.classifier)
    quantifier: Quantifier = fit_for_estimates(kind(**settings), X, labels)
    estimate = quantifier.predict_bags(X_test, bags)
    return Results(bags.prevalences, estimate, shared.classes, bags.sizes, bags.labels)
