"""Searches on held-out training data: parameters of a quantifier, or a method with its calibration and classifier."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.classifiers.cross_fitting import cross_fit, is_given, posteriors_of, resolve_classifier
from quanet.classifiers.folds import make_folds
from quanet.classifiers.text import TextClassifier, is_text
from quanet.data.instances import Inputs
from quanet.drift.scale import DriftScale, without_drift
from quanet.errors import InvalidSetting
from quanet.evaluation.evaluate import DrawsBags, evaluate
from quanet.held_out import HeldOut, members_are_quiet
from quanet.methods.about import About
from quanet.methods.counting import ACC, CC, PACC, TrainPrevalence
from quanet.methods.ensemble import Grid
from quanet.methods.kde import KDEyML
from quanet.methods.likelihood import EMQ, MAPLS
from quanet.methods.matching import DyS
from quanet.methods.thresholds import MS
from quanet.metrics import find_metric
from quanet.parameters import settings_of
from quanet.protocols import APP, UPP
from quanet.wording import percent

if TYPE_CHECKING:
    import pandas as pd

Setting = dict[str, Any]
BAG_SIZE = 500
STRENGTHS = (0.1, 1.0, 10.0)  # C of the default classifiers, relative to the default
CLEAR = 2.0  # standard errors of a clear difference


class DelegatingSearch(Quantifier):
    """Base of the searches. A subclass writes `_fit`, which ends with `_answer_by`.

    A fitted search can do what the chosen quantifier can. Methods that every quantifier has are passed on one by one
    below; any other attribute that the search itself does not have, such as `classifier_`, is
    looked up in the chosen quantifier.

    Attributes
    ----------
    quantifier_ : the fitted quantifier that was chosen.
    search_ : the fitted search that chose it, where searches were searched; otherwise there is none.
    """

    quantifier_: Quantifier

    def __getattr__(self, name: str) -> Any:
        """An attribute of the chosen quantifier, once there is one."""
        chosen = vars(self).get("quantifier_")
        if chosen is None or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(chosen, name)

    def read(self, X: Any) -> Inputs:
        """What the chosen quantifier reads."""
        return self.quantifier_.read(X)

    def _read(self, X: Any) -> FloatArray:
        return self.quantifier_.read(X).values

    def learn_drift(self, X: Any, y: ArrayLike, groups: ArrayLike | None = None) -> None:
        """Learn the drift scale of the chosen quantifier."""
        self.quantifier_.learn_drift(X, y, groups)

    def rows(self, inputs: ArrayLike) -> FloatArray:
        """The rows of the chosen quantifier: (n, d) -> (n, d')."""
        return self.quantifier_.rows(inputs)

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """What the chosen quantifier makes of bags of rows: (..., n, d) -> (..., k)."""
        check_is_fitted(self, "quantifier_")
        return self.quantifier_.aggregate(rows)

    def chosen(self) -> Quantifier:
        """The chosen quantifier, once there is one."""
        return self.quantifier_ if "quantifier_" in vars(self) else self

    @property
    def reads_posteriors(self) -> bool:  # type: ignore[override]
        """Whether the chosen quantifier reads posteriors."""
        return "quantifier_" in vars(self) and self.quantifier_.reads_posteriors

    @property
    def held_out_(self) -> HeldOut | None:  # type: ignore[override]
        """Held-out instances of the chosen quantifier."""
        return self.quantifier_.held_out_ if "quantifier_" in vars(self) else None

    @property
    def drift_(self) -> DriftScale | None:  # type: ignore[override]
        """The drift scale of the chosen quantifier."""
        return self.quantifier_.drift_ if "quantifier_" in vars(self) else None

    def _answer_by(self, chosen: Quantifier) -> None:
        """Use a fitted quantifier from now on; what the search has learnt itself gives way to what that has learnt."""
        if isinstance(chosen, DelegatingSearch):
            self.search_, chosen = chosen, chosen.quantifier_
        self.quantifier_ = chosen
        self.classes_, self.prior_, self.n_instances_ = chosen.classes_, chosen.prior_, chosen.n_instances_

    def aggregate_bags(self, rows: FloatArray, bags: Bags) -> FloatArray:
        """Prevalences of bags by the chosen quantifier: (b, k)."""
        return self.quantifier_.aggregate_bags(rows, bags)

    def relearn(self, inputs: FloatArray, codes: IntArray) -> Quantifier:
        """The chosen quantifier, relearned from other held-out inputs."""
        return self.quantifier_.relearn(inputs, codes)


class GridSearchQ(DelegatingSearch):
    r"""Grid search for a quantifier: find the parameters with the smallest error on bags of held-out data [1]_.

    .. math:: \hat \theta = \arg\min_\theta \frac1b \sum_{j=1}^b \text{error}\big(p_j, \hat p_j(\theta)\big)

    scikit-learn's GridSearchCV would score one bag, the held-out part, at one prevalence. Here a protocol draws b bags
    from it at many prevalences. A fitted search is a quantifier: it delegates to the chosen one.

    Settings that differ only in the parameter of a regularisation path (`fit_path`, such as the C of an SVM) are fitted
    together, each starting from the previous solution.

    Parameters
    ----------
    quantifier : the quantifier to tune.
    grid : names of parameters and values to try, or a list of such grids.
    protocol : how bags are drawn. Default: the `APP` of the paper for two classes, `UPP` for more.
    metric : the error to minimise, by name or function, averaged over bags and folds.
    cv : what is held out, see `AggregativeQuantifier`; by default 40 %, as in the paper.
    refit : whether to fit the best setting again to all data; otherwise the fit without the held-out part is used.
    n_jobs : number of parallel fits, see joblib.
    random_state : seed of the bags, which are the same for all settings.

    Attributes
    ----------
    quantifier_ : the fitted quantifier with the best parameters.
    best_setting_, best_error_ : these parameters, and their mean error on held-out bags.
    settings_, errors_ : all settings, in the order of the grid, and their mean errors (s,).

    References
    ----------
    .. [1] A. Moreo and F. Sebastiani, "Re-assessing the 'classify and count' quantification method", ECIR 2021.

    Examples
    --------
    >>> from quanet import SVMNKLD, Gaussians
    >>> X, y = Gaussians(distance=3).draw([0.7, 0.3], 500, rng=0)
    >>> search = GridSearchQ(SVMNKLD(), {"C": [0.001, 1.0, 100.0]}).fit(X, y)
    >>> search.best_setting_, bool(search.best_error_ < 0.1)
    ({'C': 100.0}, True)
    """

    about: ClassVar[About] = About(
        "composed", "Moreo and Sebastiani (2021)", "any", "posteriors", "the chosen quantifier's"
    )

    def __init__(
        self,
        quantifier: Any,
        grid: Grid,
        *,
        protocol: DrawsBags | None = None,
        metric: str | Callable[..., FloatArray] = "ae",
        cv: Any = 0.4,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.quantifier = quantifier
        self.grid = grid
        self.protocol = protocol
        self.metric = metric
        self.cv = cv
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Any, y: ArrayLike) -> None:
        """Try each setting on instances X and labels y (n,), and fit the best."""
        X, y = self._learnable(X, y)
        codes = self._learn_labels(X, y)
        labels = self.classes_[codes]
        settings = settings_of(self.quantifier, self.grid)
        metric = find_metric(self.metric)
        if metric.per_class:
            raise InvalidSetting(
                f"{metric.name} is computed per class, but a search needs one number per bag, such as ae."
            )
        folds = make_folds(X, codes, self.classes_, self.cv)
        if not self.refit and len(folds) > 1:
            raise InvalidSetting(
                f"refit=False needs one fit, but cv={self.cv} makes {len(folds)} folds. Set cv to a held-out fraction."
            )
        groups = along_paths(self.quantifier, settings)
        jobs = [(fold, group) for fold in folds for group in groups]
        done = Parallel(n_jobs=self.n_jobs)(
            delayed(self._try)(X, labels, fold, [settings[at] for at in group]) for fold, group in jobs
        )
        errors = np.zeros(len(settings))
        fitted: dict[int, Quantifier] = {}
        for (_, group), (found, means) in zip(jobs, done, strict=True):
            errors[group] += np.array(means) / len(folds)
            fitted.update(zip(group, found, strict=not self.refit))
        self.settings_, self.errors_ = settings, errors
        best = int(np.argmin(errors))
        self.best_setting_, self.best_error_ = settings[best], float(errors[best])
        chosen = clone(self.quantifier).set_params(**self.best_setting_)
        with without_drift():  # `fit` learns it next
            self._answer_by(chosen.fit(X, labels) if self.refit else fitted[best])

    def _try(
        self, X: Any, labels: Any, fold: tuple[IntArray, IntArray], settings: list[Setting]
    ) -> tuple[list[Quantifier], list[float]]:
        """Fit a group of settings to one fold; return the fits, if they will be used, and their mean errors."""
        seen, held_out = (_safe_indexing(X, part) for part in fold)
        with members_are_quiet():
            fitted = fit_group(self.quantifier, settings, seen, labels[fold[0]])
        protocol = self.protocol
        if protocol is None:
            protocol = default_protocol(len(self.classes_), len(fold[1]))
        results = [evaluate(each, held_out, labels[fold[1]], protocol, rng=self.random_state) for each in fitted]
        order = getattr(self.quantifier, "order", None)
        means = [float(result.error(self.metric, order=order).mean()) for result in results]
        return [] if self.refit else fitted, means


def default_protocol(k: int, n: int) -> DrawsBags:
    """The `APP` of the paper for two classes, `UPP` for more, with bags of at most n instances."""
    size = min(BAG_SIZE, n)
    return APP(bag_size=size) if k == 2 else UPP(bag_size=size)


def along_paths(quantifier: Any, settings: list[Setting]) -> list[list[int]]:
    """Positions of settings that are fitted together: those that differ only in the parameter of the path."""
    name = getattr(quantifier, "path_parameter", None)
    groups: list[tuple[Setting, list[int]]] = []
    for at, setting in enumerate(settings):
        others = {key: value for key, value in setting.items() if key != name}
        same = next((group for known, group in groups if known == others and name in setting), None)
        if name is None or same is None:
            groups.append((others, [at]))
        else:
            same.append(at)
    return [group for _, group in groups]


def fit_group(quantifier: Any, settings: list[Setting], X: Any, y: Any) -> list[Quantifier]:
    """Fitted copies of a quantifier, one per setting; several are fitted along a path."""
    if len(settings) == 1:
        return [clone(quantifier).set_params(**settings[0]).fit(X, y)]
    name = quantifier.path_parameter
    others = {key: value for key, value in settings[0].items() if key != name}
    path = clone(quantifier).set_params(**others)
    fitted: list[Quantifier] = path.fit_path(X, y, [setting[name] for setting in settings])
    return fitted


def default_methods(k: int) -> list[Quantifier]:
    """The default methods to try on `k` classes: fast ones from different families."""
    calibrated = [EMQ(calibration=calibration) for calibration in (None, "bcts", "platt", "temperature")]
    specific = [MS(), DyS()] if k == 2 else [MAPLS()]
    return [TrainPrevalence(), CC(), ACC(), PACC(), *calibrated, *specific, KDEyML()]


def default_classifiers(X: Any) -> list[Any]:
    """The default classifiers to try on X: linear ones with three strengths of regularisation."""
    if is_text(X):
        return [TextClassifier(C=10 * C) for C in STRENGTHS]
    centred = not hasattr(X, "tocsr")
    return [make_pipeline(StandardScaler(with_mean=centred), LogisticRegression(C=C, max_iter=1000)) for C in STRENGTHS]


class AutoQuantifier(DelegatingSearch):
    r"""Automatic choice of method, calibration and classifier, by their error on bags of held-out training data.

    .. math:: \hat q = \arg\min_q \frac1b \sum_{j=1}^b \text{error}\big(p_j, \hat p_j^{(q)}\big)

    over candidates q and bags j. New in quanet. Each classifier is fitted once: all methods share its out-of-fold
    posteriors, and are evaluated on the same bags of held-out instances. The best candidate is fitted again to all
    data. `explain()` describes what was compared and how clear the choice is. Test data are not used.

    Parameters
    ----------
    methods : quantifiers to try; each of `classifiers` replaces their `classifier`, if they have one. Default:
        counting, adjusted counting, maximum likelihood with several calibrations, `KDEyML`, and `MS` and `DyS` for two
        classes or `MAPLS` for more.
    classifiers : classifiers to try, see `AggregativeQuantifier`. Default: linear ones with three strengths of
        regularisation.
    protocol : how bags are drawn. Default: the `APP` of the paper for two classes, `UPP` for more.
    metric : the error to minimise, by name or function, averaged over bags.
    cv : what is held out, see `AggregativeQuantifier`; by default 40 %.
    random_state : seed of the bags.

    Attributes
    ----------
    quantifier_ : the chosen quantifier, fitted to all data.
    report_ : for each candidate, the best first: method, classifier, mean error, its standard error over the bags, and
        a comparison with the best candidate, bag by bag.

    Examples
    --------
    >>> from quanet import CC, EMQ, PACC, Gaussians
    >>> X, y = Gaussians(distance=1.5).draw([0.8, 0.2], 600, rng=0)
    >>> auto = AutoQuantifier([CC(), PACC(), EMQ()], [None]).fit(X, y)
    >>> auto.report_[-1]["method"], type(auto.quantifier_).__name__ in ("EMQ", "PACC")
    ('CC()', True)
    """

    about: ClassVar[About] = About(
        "composed", "a search on held-out data", "any", "posteriors", "the chosen quantifier's"
    )

    quantifier_: Quantifier
    report_: list[dict[str, Any]]

    def __init__(
        self,
        methods: Sequence[Any] | None = None,
        classifiers: Sequence[Any] | None = None,
        *,
        protocol: DrawsBags | None = None,
        metric: str | Callable[..., FloatArray] = "ae",
        cv: Any = 0.4,
        random_state: int = 0,
    ) -> None:
        self.methods = methods
        self.classifiers = classifiers
        self.protocol = protocol
        self.metric = metric
        self.cv = cv
        self.random_state = random_state

    def _fit(self, X: Any, y: ArrayLike) -> None:
        """Try each method with each classifier on instances X and labels y (n,), and fit the best to all data."""
        X, y = self._learnable(X, y)
        codes = self._learn_labels(X, y)
        labels = self.classes_[codes]
        methods = default_methods(len(self.classes_)) if self.methods is None else list(self.methods)
        classifiers = default_classifiers(X) if self.classifiers is None else list(self.classifiers)
        if not methods or not classifiers:
            raise InvalidSetting("methods or classifiers is empty. Pass at least one of each.")
        if find_metric(self.metric).per_class:
            raise InvalidSetting(f"{self.metric} is computed per class. Use a metric per bag, such as ae.")
        folds = make_folds(X, codes, self.classes_, self.cv)
        self.smallest_ = min(len(held_out) for _, held_out in folds)
        errors: dict[tuple[int, int | None], list[FloatArray]] = {}
        for fold in folds:
            for candidate, found in self._try(X, codes, fold, methods, classifiers):
                errors.setdefault(candidate, []).append(found)
        joined = {candidate: np.concatenate(parts) for candidate, parts in errors.items()}
        ranked = sorted(joined, key=lambda candidate: float(joined[candidate].mean()))
        self._keep_report(ranked, joined, methods, classifiers)
        self.n_held_out_: int = sum(len(held_out) for _, held_out in folds)
        method, classifier = ranked[0]
        chosen = clone(methods[method])
        if classifier is not None:
            chosen.set_params(classifier=classifiers[classifier])
        with without_drift():  # `fit` learns it next
            self._answer_by(chosen.fit(X, labels))

    def needs_folds(self) -> bool:
        """Whether `fit` needs folds: not if a classifier is already fitted."""
        return not any(map(is_given, self.classifiers or ()))

    def _try(
        self, X: Any, codes: IntArray, fold: tuple[IntArray, IntArray], methods: list[Any], classifiers: list[Any]
    ) -> Iterator[tuple[tuple[int, int | None], FloatArray]]:
        """The errors of each candidate on the bags of one fold."""
        (seen, held_out), (y_seen, y_held_out) = (
            (_safe_indexing(X, part) for part in fold),
            (codes[part] for part in fold),
        )
        labels = self.classes_[y_held_out]
        for at, method in enumerate(methods):
            if "classifier" not in method.get_params(deep=False):
                with members_are_quiet():
                    fitted = clone(method).fit(seen, self.classes_[y_seen])
                yield (at, None), self._errors(fitted, held_out, labels)
        for which, given in enumerate(classifiers):
            classifier = resolve_classifier(given, seen, self.classes_)
            fitted, posteriors, positions = cross_fit(classifier, seen, y_seen, self.classes_, cv=5)
            rows = posteriors_of(fitted, held_out, self.classes_)
            for at, method in enumerate(methods):
                if "classifier" in method.get_params(deep=False):
                    quantifier = clone(method).set_params(classifier="precomputed")
                    with members_are_quiet():
                        quantifier.fit(posteriors, self.classes_[y_seen[positions]])
                    yield (at, which), self._errors(quantifier, rows, labels)

    def _errors(self, quantifier: Quantifier, X: Any, labels: LabelArray) -> FloatArray:
        results = evaluate(quantifier, X, labels, self._protocol(), rng=self.random_state)
        return results.error(self.metric)

    def _protocol(self) -> DrawsBags:
        if self.protocol is not None:
            return self.protocol
        return default_protocol(len(self.classes_), self.smallest_)

    def _keep_report(
        self,
        ranked: list[tuple[int, int | None]],
        errors: dict[tuple[int, int | None], FloatArray],
        methods: list[Any],
        classifiers: list[Any],
    ) -> None:
        best = errors[ranked[0]]
        self.report_ = []
        for method, classifier in ranked:
            found = errors[method, classifier]
            excess = found - best
            self.report_.append(
                {
                    "method": " ".join(repr(methods[method]).split()),
                    "classifier": "" if classifier is None else " ".join(repr(classifiers[classifier]).split()),
                    "error": float(found.mean()),
                    "standard_error": _standard_error(found),
                    "excess": float(excess.mean()),
                    "excess_standard_error": _standard_error(excess),
                    "worse_in": float((excess > 0).mean()),
                    "bags": len(found),
                }
            )

    def frame(self) -> "pd.DataFrame":
        """The report as a table, one row per candidate."""
        import pandas as pd

        check_is_fitted(self, "report_")
        return pd.DataFrame(self.report_)

    def explain(self) -> str:
        """Describe in a few sentences what was compared, what was chosen, and how clear the choice is."""
        check_is_fitted(self, "report_")
        best, name = self.report_[0], find_metric(self.metric).name
        lines = [
            f"Chosen: {_named(best)}. It has the smallest mean {name}, {best['error']:.4f}, on {best['bags']:,} bags "
            f"that {_one_line(self._protocol())} drew from {self.n_held_out_:,} held-out training instances. "
            f"{len(self.report_)} candidates were evaluated on the same bags; the chosen one was then fitted to all "
            f"{self.n_instances_:,} instances."
        ]
        if len(self.report_) > 1:
            second = self.report_[1]
            clear = second["excess"] > CLEAR * second["excess_standard_error"]
            worse = (
                f"It is worse on {percent(second['worse_in'], digits=0)} of the bags, by {second['excess']:.4f} ± "
                f"{second['excess_standard_error']:.4f} on average: {'a' if clear else 'no'} clear difference."
                if second["excess"] >= 0.00005
                else "It is as good on average."
            )
            lines.append(f"Second: {_named(second)}, {second['error']:.4f}. {worse}")
        for key, word in (("classifier", "By classifier"), ("method", "By method")):
            best_errors: dict[str, float] = {}
            for entry in self.report_:
                best_errors.setdefault(entry[key], entry["error"])
            best_errors.pop("", None)
            if len(best_errors) > 1:
                listed = "; ".join(f"{name} {error:.4f}" for name, error in best_errors.items())
                lines.append(f"{word} (smallest error of each): {listed}.")
        return "\n".join(lines)


def _standard_error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _named(entry: dict[str, Any]) -> str:
    return entry["method"] + (f" on {entry['classifier']}" if entry["classifier"] else "")


def _one_line(thing: Any) -> str:
    return " ".join(repr(thing).split())
