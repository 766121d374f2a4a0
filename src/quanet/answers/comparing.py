"""Many methods on the same bags, with one classifier for all that read posteriors: what `quanet compare` answers."""

import inspect
import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.frozen import FrozenEstimator

from quanet.answers.drawing import Drawn
from quanet.answers.evaluation import Comparison, known_limit
from quanet.arrays import FloatArray, LabelArray
from quanet.bags import Bags
from quanet.base import AggregativeQuantifier, Quantifier
from quanet.classifiers import cross_fit, posteriors_of, resolve_classifier
from quanet.errors import InvalidData, InvalidSetting, MissingExtra
from quanet.evaluation.results import Results
from quanet.evaluation.significance import holm, paired_t_test
from quanet.methods.listing import all_methods, find_method
from quanet.simplex import classes_of, count, encode, prevalence_of
from quanet.text import is_text

METRICS = ("ae", "rae", "kld")
SETS = ("quick", "all")
NETWORKS = "quanet.nn."
SEARCH = "AutoQuantifier"  # which tries the others itself
SLOW = ("KDEyHD",)  # of those that read posteriors: with more than two classes it draws many points for every bag
# Rough times of a method, in units of one that reads posteriors, to say how much is left.
NETWORK_COST, SLOW_COST = 200.0, 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """What methods learn from and are tried on.

    Attributes
    ----------
    X, labels : instances to learn from, and their labels (n,).
    X_test, test_labels : those that bags are drawn from.
    classes : (k,) sorted.
    classifier : fitted to all of X.
    held : posteriors (m, k) of instances that their classifier had not seen, and its embedding beside them, if any.
    held_labels : (m,) labels of those.
    pool : (n, ...) the same of X_test.
    seconds : that all this took.
    """

    X: Any
    labels: LabelArray
    X_test: Any
    test_labels: LabelArray
    classes: LabelArray
    classifier: Any
    held: FloatArray
    held_labels: LabelArray
    pool: FloatArray
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """One method's results, or why there are none; `left` are the seconds that the others may take."""

    method: str
    results: Results | None
    seconds: float
    reason: str = ""
    left: float = 0.0


def share_classifier(
    X: Any, labels: ArrayLike, X_test: Any, test_labels: ArrayLike, *, classifier: Any = None, cv: Any = 5
) -> Shared:
    """Fit one classifier, out of fold too, and read both files with it.

    Parameters
    ----------
    X, labels : instances to learn from: texts, or numbers (n, d); and their labels (n,).
    X_test, test_labels : those to draw bags from.
    classifier, cv : as in `AggregativeQuantifier`.
    """
    started = time.perf_counter()
    given, given_test = np.asarray(labels), np.asarray(test_labels)
    classes = classes_of(given)
    if len(classes) < 2:
        raise InvalidData(f"all instances to learn from are {classes.tolist()[0]!r}; shares need at least two classes.")
    codes = encode(given, classes)
    encode(given_test, classes)  # a label that training does not know is told before the work
    chosen = resolve_classifier(classifier, X, classes)
    fitted, posteriors, held = cross_fit(chosen, X, codes, classes, cv=cv)
    rows, pool = [posteriors], [posteriors_of(fitted, X_test, classes)]
    if hasattr(fitted, "transform") and hasattr(fitted, "fit_out_of_fold"):
        rows.append(fitted.transform(X)[held])
        pool.append(fitted.transform(X_test))
    return Shared(
        X,
        given,
        X_test,
        given_test,
        classes,
        fitted,
        np.hstack(rows),
        given[held],
        np.hstack(pool),
        time.perf_counter() - started,
    )


def choose_methods(asked: Sequence[str]) -> list[str]:
    """Names of methods, quickest first.

    Parameters
    ----------
    asked : names, in any case; or one of "quick", those that read the shared posteriors and take seconds, and "all".

    Examples
    --------
    >>> choose_methods(["emq", "CC", "hdx"])
    ['CC', 'EMQ', 'HDx']
    >>> "QuaNet" in choose_methods(["quick"]), "QuaNet" in choose_methods(["all"])
    (False, True)
    """
    if len(asked) == 1 and asked[0].lower() in SETS:
        quick = asked[0].lower() == "quick"
        whole = [name for name, kind in all_methods().items() if not _needed(kind) and name != SEARCH]
        return sorted((name for name in whole if not quick or _cost(name) <= 1), key=_order)
    wanted = [name for name in asked if name.lower() not in SETS]
    if len(wanted) < len(asked):
        raise InvalidSetting("quick and all stand alone. Name the methods, or take one of these.")
    return sorted({find_method(name) for name in wanted}, key=_order)


def run_methods(names: Sequence[str], shared: Shared, bags: Bags, *, rng: int = 0) -> Iterator[Outcome]:
    """Fit methods and estimate the bags, one after the other; one that cannot run on these data says why.

    Parameters
    ----------
    names : of methods, as `choose_methods` gives them.
    shared : see `share_classifier`.
    bags : of ``shared.X_test``.
    rng : seed of methods that have one.
    """
    spent, worked = 0.0, 0.0
    ahead = sum(map(_cost, names))
    for name in names:
        started = time.perf_counter()
        results, reason = None, _obstacle(name, shared)
        if not reason:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a bound that was hit in one of many bags changes no ranking
                    results = _results(name, shared, bags, rng)
            except MissingExtra as error:
                reason = str(error)
            except Exception as error:  # noqa: BLE001 - whatever a method raises, the others go on
                reason = " ".join(str(error).split()) or type(error).__name__
        seconds = time.perf_counter() - started
        ahead -= _cost(name)
        if results is not None:
            spent, worked = spent + seconds, worked + _cost(name)
        yield Outcome(name, results, seconds, reason, ahead * spent / worked if worked else math.nan)


def rank_methods(
    outcomes: Sequence[Outcome],
    shared: Shared,
    drawn: Drawn,
    *,
    metric: str = "ae",
    train: str = "",
    test: str = "",
) -> Comparison:
    """Outcomes as one comparison, best first by the mean of a metric.

    Each method is tested against the best one by a paired t-test over bags, two-tailed, and the probabilities are
    raised by Holm's rule. Bags of one pool share instances, so this says whether the order would be the same on other
    bags of this file, and not on other files.
    """
    done = [one for one in outcomes if one.results is not None]
    if not done:
        reasons = "; ".join(f"{one.method}: {one.reason}" for one in outcomes)
        raise InvalidData(f"no method could run on these data. {reasons}")
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
    """Against the method with the least mean: (methods, b) -> (methods,); NaN for that one, and for a single bag."""
    p = np.full(len(errors), np.nan)
    best = int(errors.mean(axis=1).argmin())
    others = np.arange(len(errors)) != best
    if errors.shape[1] > 1 and others.any():
        p[others] = holm(paired_t_test(errors[others], errors[best]))
    return p


def _obstacle(name: str, shared: Shared) -> str:
    """What keeps a method from running on these data, as far as its entry in the catalogue says; "" if nothing does."""
    kind = _kind(name)
    if kind is None:
        return ""
    k, needed = len(shared.classes), _needed(kind)
    if needed:
        return f"it is made of other methods: it needs {' and '.join(needed)}, which only Python can say."
    if kind.about.classes == "two" and k > 2:
        return f"it is for two classes; these data have {k}."
    if kind.about.classes == "ordered" and k == 2:
        return "it is for three ordered classes and more; of two it knows no more than others."
    if kind.about.classes == "ordered" and shared.classes.dtype.kind not in "biuf":
        return "it is for ordered classes; these labels are names, which have no order of their own."
    if kind.about.needs == "text" and not is_text(shared.X):
        return "it reads texts; these instances are numbers."
    return ""


def _results(name: str, shared: Shared, bags: Bags, rng: int) -> Results:
    kind: Any = getattr(import_module("quanet"), name)
    parameters = inspect.signature(kind).parameters
    settings: dict[str, Any] = {}
    if "random_state" in parameters:
        settings["random_state"] = rng
    X, labels, X_test = shared.X, shared.labels, shared.X_test
    if "classifier" in parameters:
        width = len(shared.classes) if issubclass(kind, AggregativeQuantifier) else shared.held.shape[1]
        settings["classifier"] = "precomputed"
        X, labels, X_test = shared.held[:, :width], shared.held_labels, shared.pool[:, :width]
    elif "features" in parameters and is_text(X) and hasattr(shared.classifier, "transform"):
        settings["features"] = FrozenEstimator(shared.classifier)
    quantifier: Quantifier = kind(**settings).fit(X, labels)
    estimate = quantifier.predict_bags(X_test, bags)
    return Results(bags.prevalences, estimate, shared.classes, bags.sizes, bags.labels)


def _needed(kind: Any) -> list[str]:
    """Parameters without a default, which stand for other methods."""
    parameters: Mapping[str, inspect.Parameter] = inspect.signature(kind).parameters
    return [name for name, one in parameters.items() if one.default is one.empty]


def _kind(name: str) -> Any:
    """The class of a method; None for one of an extra that is not installed, as its use will say."""
    try:
        return getattr(import_module("quanet"), name)
    except MissingExtra:
        return None


def _cost(name: str) -> float:
    kind = _kind(name)
    if kind is None:
        return 0.0
    if kind.__module__.startswith(NETWORKS):
        return NETWORK_COST
    slow = kind.about.needs in ("features", "text") or name in (SEARCH, *SLOW)
    return SLOW_COST if slow else 1.0


def _order(name: str) -> tuple[float, str]:
    return _cost(name), name
