"""Choose the parameters of a quantifier by its error on bags of held-out training data."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from quanet.arrays import FloatArray, IntArray
from quanet.base import Quantifier
from quanet.classifiers.folds import make_folds
from quanet.drift.scale import without_drift
from quanet.errors import InvalidSetting
from quanet.evaluation.delegation import DelegatingSearch
from quanet.evaluation.evaluate import DrawsBags, evaluate
from quanet.held_out import members_are_quiet
from quanet.methods.about import About
from quanet.methods.ensemble import Grid
from quanet.metrics import find_metric
from quanet.parameters import settings_of
from quanet.protocols import APP, UPP

Setting = dict[str, Any]
BAG_SIZE = 500


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
