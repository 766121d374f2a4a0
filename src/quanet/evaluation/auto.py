"""Choose a method, its calibration and a classifier on held-out training data, and say why."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.base import Quantifier
from quanet.classifiers import cross_fit, is_given, posteriors_of, resolve_classifier
from quanet.errors import InvalidSetting
from quanet.evaluation.chosen import Chooser
from quanet.evaluation.evaluate import DrawsBags, evaluate
from quanet.evaluation.selection import default_protocol
from quanet.folds import make_folds
from quanet.methods.about import About
from quanet.methods.baseline import TrainPrevalence
from quanet.methods.counting import ACC, CC, PACC
from quanet.methods.em import EMQ
from quanet.methods.kde import KDEyML
from quanet.methods.likelihood import MAPLS
from quanet.methods.matching import DyS
from quanet.methods.thresholds import MS
from quanet.metrics import find_metric
from quanet.shrinkage import members_are_quiet
from quanet.text import TextClassifier, is_text

if TYPE_CHECKING:
    import pandas as pd

STRENGTHS = (0.1, 1.0, 10.0)  # of the default classifiers: the inverse of their regularisation
CLEAR = 2.0  # standard errors from which a difference is called clear


def default_methods(k: int) -> list[Quantifier]:
    """The methods that are tried on `k` classes unless others are given: quick ones, of different families."""
    calibrated = [EMQ(calibration=calibration) for calibration in (None, "bcts", "platt", "temperature")]
    of_their_own = [MS(), DyS()] if k == 2 else [MAPLS()]
    return [TrainPrevalence(), CC(), ACC(), PACC(), *calibrated, *of_their_own, KDEyML()]


def default_classifiers(X: Any) -> list[Any]:
    """The classifiers that are tried on data like X unless others are given: linear ones of three strengths."""
    if is_text(X):
        return [TextClassifier(C=10 * C) for C in STRENGTHS]
    centred = not hasattr(X, "tocsr")
    return [make_pipeline(StandardScaler(with_mean=centred), LogisticRegression(C=C, max_iter=1000)) for C in STRENGTHS]


class AutoQuantifier(Chooser):
    """Chooses method, calibration and classifier by their error on bags of held-out training data, and says why.

    Every classifier is fitted once for all methods: they share its out-of-fold posteriors, and meet the same bags of
    the held-out part. The one with the least mean error is fitted again to all data; `explain()` tells what was
    compared and how clear the choice is. Test data play no part.

    Parameters
    ----------
    methods : quantifiers to try; their own `classifier` is replaced by each of `classifiers`, if they take one. None
        takes counting, adjusted counting, maximum likelihood with several calibrations, `KDEyML`, and for two classes
        `MS` and `DyS`, for more `MAPLS`.
    classifiers : to try, as `AggregativeQuantifier` takes them. None takes linear ones of three strengths.
    protocol : how bags are drawn; None takes the paper's `APP` for two classes, `UPP` for more.
    metric : the error, by name or function, averaged over bags; the least is best.
    cv : what is held out, see `AggregativeQuantifier`; by default 40 %.
    random_state : seed of the bags.

    Attributes
    ----------
    quantifier_ : the chosen one, fitted to all data.
    report_ : for each candidate, the best first: method, classifier, mean error, its standard error over the bags, and
        how it compares with the best bag by bag.

    Examples
    --------
    >>> from quanet import CC, EMQ, PACC, Gaussians
    >>> X, y = Gaussians(distance=1.5).draw([0.8, 0.2], 600, rng=0)
    >>> auto = AutoQuantifier([CC(), PACC(), EMQ()], [None]).fit(X, y)
    >>> auto.report_[-1]["method"], type(auto.quantifier_).__name__ in ("EMQ", "PACC")
    ('CC()', True)
    """

    about: ClassVar[About] = About("a search on held-out data", "any", "posteriors", "the chosen quantifier's")

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

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Try every method with every classifier on instances X and labels y (n,), and fit the best to all."""
        X, y = self._learnable(X, y)
        codes = self._learn_labels(X, y)
        labels = self.classes_[codes]
        methods = default_methods(len(self.classes_)) if self.methods is None else list(self.methods)
        classifiers = default_classifiers(X) if self.classifiers is None else list(self.classifiers)
        if not methods or not classifiers:
            raise InvalidSetting("there is nothing to choose from. Give at least one method and one classifier.")
        if find_metric(self.metric).per_class:
            raise InvalidSetting(f"{self.metric} is one number for each class; a choice needs one for a bag.")
        folds = make_folds(X, codes, self.classes_, self.cv)
        self.smallest_ = min(len(held) for _, held in folds)
        errors: dict[tuple[int, int | None], list[FloatArray]] = {}
        for seen, held in folds:
            for candidate, found in self._try(X, codes, (seen, held), methods, classifiers):
                errors.setdefault(candidate, []).append(found)
        joined = {candidate: np.concatenate(parts) for candidate, parts in errors.items()}
        ranked = sorted(joined, key=lambda candidate: float(joined[candidate].mean()))
        self._keep_report(ranked, joined, methods, classifiers)
        self.held_out_: int = sum(len(held) for _, held in folds)
        method, classifier = ranked[0]
        chosen = clone(methods[method])
        if classifier is not None:
            chosen.set_params(classifier=classifiers[classifier])
        self._answer_by(chosen.fit(X, labels))
        return self

    def _needs_folds(self) -> bool:
        return not any(map(is_given, self.classifiers or ()))

    def _try(
        self, X: Any, codes: IntArray, fold: tuple[IntArray, IntArray], methods: list[Any], classifiers: list[Any]
    ) -> Iterator[tuple[tuple[int, int | None], FloatArray]]:
        """Every candidate's errors on the bags of one held-out part."""
        (seen, held), (y_seen, y_held) = (_safe_indexing(X, part) for part in fold), (codes[part] for part in fold)
        labels = self.classes_[y_held]
        for at, method in enumerate(methods):
            if "classifier" not in method.get_params(deep=False):
                with members_are_quiet():
                    fitted = clone(method).fit(seen, self.classes_[y_seen])
                yield (at, None), self._errors(fitted, held, labels)
        for which, one in enumerate(classifiers):
            classifier = resolve_classifier(one, seen, self.classes_)
            fitted, posteriors, of = cross_fit(classifier, seen, y_seen, self.classes_, cv=5)
            rows = posteriors_of(fitted, held, self.classes_)
            for at, method in enumerate(methods):
                if "classifier" in method.get_params(deep=False):
                    quantifier = clone(method).set_params(classifier="precomputed")
                    with members_are_quiet():
                        quantifier.fit(posteriors, self.classes_[y_seen[of]])
                    yield (at, which), self._errors(quantifier, rows, labels)

    def _errors(self, quantifier: Quantifier, held: Any, labels: LabelArray) -> FloatArray:
        results = evaluate(quantifier, held, labels, self._protocol(), rng=self.random_state)
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
        """The report as a table, one row for each candidate."""
        import pandas as pd

        check_is_fitted(self, "report_")
        return pd.DataFrame(self.report_)

    def explain(self) -> str:
        """What was compared, what was chosen, and how clear the choice is, in a few plain sentences."""
        check_is_fitted(self, "report_")
        best, name = self.report_[0], find_metric(self.metric).name
        lines = [
            f"Chosen: {_named(best)}, with the least mean {name}, {best['error']:.4f}, on {best['bags']:,} bags that "
            f"{_one_line(self._protocol())} drew from {self.held_out_:,} held-out training instances. "
            f"{len(self.report_)} candidates met the same bags; the chosen one was then fitted to all "
            f"{self.n_instances_:,} instances."
        ]
        if len(self.report_) > 1:
            second = self.report_[1]
            sure = second["excess"] > CLEAR * second["excess_standard_error"]
            lines.append(
                f"Next: {_named(second)}, {second['error']:.4f}; it is worse on {second['worse_in']:.0%} of the bags, "
                f"by {second['excess']:.4f} ± {second['excess_standard_error']:.4f} on average: "
                + ("a clear difference." if sure else "no clear difference, either would do.")
            )
        for key, word in (("classifier", "By classifier"), ("method", "By method")):
            leaders: dict[str, float] = {}
            for entry in self.report_:
                leaders.setdefault(entry[key], entry["error"])
            leaders.pop("", None)
            if len(leaders) > 1:
                told = "; ".join(f"{one} {error:.4f}" for one, error in leaders.items())
                lines.append(f"{word}, each at its best: {told}.")
        return "\n".join(lines)


def _standard_error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _named(entry: dict[str, Any]) -> str:
    return entry["method"] + (f" on {entry['classifier']}" if entry["classifier"] else "")


def _one_line(thing: Any) -> str:
    return " ".join(repr(thing).split())
