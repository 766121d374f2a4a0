"""Many quantifiers as one: medians over settings, and ensembles trained at many prevalences."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.classifiers.cross_fitting import cross_fit, posteriors_of, resolve_classifier
from quanet.errors import InvalidData, InvalidSetting
from quanet.held_out import joint_shrinkage, members_are_quiet, shrinkage_of_members
from quanet.methods.about import About
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.methods.multiclass import share_out
from quanet.metrics import find_metric
from quanet.parameters import Constraints, at_least, one_of, settings_of, whole
from quanet.protocols import APP
from quanet.simplex import count, draw_uniformly

Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]
POLICIES = ("average", "prevalence", "distribution", "accuracy")
BINS = 8  # of the histograms of posteriors that "distribution" compares, as in QuaPy


class _Many(Quantifier):
    """Base of both: fitted members with their rows side by side, or once if they are the same for all."""

    members_: list[Any]
    widths_: IntArray
    shared_: bool

    def _keep(self, members: list[Any], X: Any) -> None:
        first = _safe_indexing(X, [0])
        self.members_ = members
        self.shared_ = all(_passes_on(member) for member in members)
        distinct = members[:1] if self.shared_ else members
        self.widths_ = np.array([member.represent(first).shape[1] for member in distinct])

    def _read(self, X: Any) -> FloatArray:
        """The rows of all members side by side: (n, d1 + d2 + ...)."""
        check_is_fitted(self, "members_")
        distinct = self.members_[:1] if self.shared_ else self.members_
        return np.concatenate([member.represent(X) for member in distinct], axis=1)

    def _estimates(self, rows: FloatArray) -> FloatArray:
        """The estimates of each member from its columns: (..., n, d1 + d2 + ...) -> (..., m, k)."""
        parts = [rows] * len(self.members_) if self.shared_ else np.split(rows, self.widths_.cumsum()[:-1], axis=-1)
        found = [member.aggregate(part) for member, part in zip(self.members_, parts, strict=True)]
        return np.stack(found, axis=-2)


def _passes_on(member: Any) -> bool:
    """Whether a member's rows are the posteriors of a classifier that was given, so that its copies have the same."""
    given = getattr(member, "classifier", None)
    kind = type(member)
    plain = all(
        getattr(kind, name, None) is getattr(AggregativeQuantifier, name) for name in ("represent", "rows", "_read")
    )
    return plain and (isinstance(given, FrozenEstimator) or (isinstance(given, str) and given == "precomputed"))


class Median(_Many):
    r"""Median over a grid of settings, so that none of several equally good ones has to be chosen.

    .. math:: \hat p_c \propto \operatorname{median}_s \hat p_c^{(s)}

    for settings s. `HDy` is published as such a median over numbers of bins [1]_.

    Parameters
    ----------
    quantifier : the quantifier whose parameters vary.
    grid : names of parameters and values, or a list of such.

    Attributes
    ----------
    members_ : one fitted copy for each setting.
    settings_ : those settings.

    References
    ----------
    .. [1] V. González-Castro, R. Alaiz-Rodríguez and E. Alegre, "Class distribution estimation based on the Hellinger
           distance", Information Sciences 218, 2013.

    Examples
    --------
    >>> from quanet import TAC, Gaussians
    >>> X, y = Gaussians(distance=3).draw([0.6, 0.4], 500, rng=0)
    >>> Median(TAC(), {"threshold": [0.3, 0.5, 0.7]}).fit(X, y).predict(X).round(1)
    array([0.6, 0.4])
    """

    about: ClassVar[About] = About(
        "composed",
        "González-Castro, Alaiz-Rodríguez and Alegre (2013)",
        "any",
        "posteriors",
        "m times the quantifier's",
    )

    def __init__(self, quantifier: Any, grid: Grid) -> None:
        self.quantifier = quantifier
        self.grid = grid

    def _fit(self, X: Any, y: ArrayLike) -> None:
        """Fit a copy for every setting to instances X and labels y (n,)."""
        X, y = self._learnable(X, y)
        codes = self._learn_labels(X, y)
        self.settings_: list[dict[str, Any]] = settings_of(self.quantifier, self.grid)
        with members_are_quiet():
            members = [clone(self.quantifier).set_params(**one).fit(X, self.classes_[codes]) for one in self.settings_]
        self._keep(members, X)
        self.shrinkage_ = shrinkage_of_members(members)

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """The median of the members' estimates: (..., n, d1 + d2 + ...) -> (..., k)."""
        estimates = self._estimates(check_rows(rows, width=self.widths_.sum()))
        return share_out(np.median(estimates, axis=-2), self.prior_)


def by_first_appearance(codes: IntArray, k: int) -> IntArray:
    """Classes renumbered by where they first occur, so that what is drawn does not depend on their names: (n,) -> (n,).

    Examples
    --------
    >>> by_first_appearance(np.array([2, 0, 2, 1]), 3)
    array([0, 1, 0, 2])
    """
    first = np.array([np.flatnonzero(codes == c)[0] for c in range(k)])
    return np.argsort(np.argsort(first))[codes]


def histograms(posteriors: FloatArray) -> FloatArray:
    """Shares of each class's posteriors in equal bins: (..., n, k) -> (..., k, bins).

    Examples
    --------
    >>> histograms(np.array([[0.95, 0.05], [0.9, 0.1]]))[0]
    array([0., 0., 0., 0., 0., 0., 0., 1.])
    """
    cells = np.minimum((posteriors * BINS).astype(np.intp), BINS - 1)
    return count(np.moveaxis(cells, -1, -2), BINS) / posteriors.shape[-2]


class Ensemble(_Many):
    r"""Ensemble of copies of a quantifier, each trained on a bag of another prevalence [1]_.

    .. math:: \hat p = \frac{1}{|S|} \sum_{s \in S} \hat p^{(s)}

    `policy` decides which copies S are used [1]_ [2]_:

    - "average": all;
    - "prevalence": those trained at prevalences nearest to the mean estimate of all (squared error);
    - "distribution": those trained on posteriors most like the bag's: Hellinger distance of histograms of 8 bins, of
      one classifier for all, averaged over classes; for two classes as in QuaPy 0.2 and mlquantify 0.5;
    - "accuracy": those that do best on the other members' training bags, the same for every bag.

    Parameters
    ----------
    quantifier : the quantifier to copy.
    size : number of copies.
    policy : as above.
    kept : number of copies that are used, unless all are.
    least : instances of every class in a training bag, at least.
    metric : the error that "accuracy" compares, by name or function.
    random_state : seed of the training bags.

    Attributes
    ----------
    members_ : the copies, fitted.
    prevalences_ : (m, k) their training prevalences.

    References
    ----------
    .. [1] P. Pérez-Gállego, J. R. Quevedo and J. J. del Coz, "Using ensembles for problems with characterizable changes
           in data distribution: a case study on quantification", Information Fusion 34, 2017.
    .. [2] P. Pérez-Gállego, A. Castaño, J. R. Quevedo and J. J. del Coz, "Dynamic ensemble selection for quantification
           tasks", Information Fusion 45, 2019.

    Examples
    --------
    >>> from quanet import PACC, Gaussians
    >>> X, y = Gaussians(distance=3).draw([0.6, 0.4], 500, rng=0)
    >>> Ensemble(PACC(), size=10, policy="prevalence", kept=5).fit(X, y).predict(X).round(1)
    array([0.6, 0.4])
    """

    about: ClassVar[About] = About(
        "composed", "Pérez-Gállego et al. (2017, 2019)", "any", "posteriors", "m times the quantifier's"
    )

    allowed_values: ClassVar[Constraints] = {
        "policy": one_of(*POLICIES),
        "size": whole(1),
        "kept": whole(1),
        "least": at_least(1),
    }

    def __init__(
        self,
        quantifier: Any,
        *,
        size: int = 50,
        policy: Literal["average", "prevalence", "distribution", "accuracy"] = "average",
        kept: int = 25,
        least: int = 5,
        metric: str | Callable[..., FloatArray] = "ae",
        random_state: int = 0,
    ) -> None:
        self.quantifier = quantifier
        self.size = size
        self.policy = policy
        self.kept = kept
        self.least = least
        self.metric = metric
        self.random_state = random_state

    def _fit(self, X: Any, y: ArrayLike) -> None:
        """Draw training bags from instances X and labels y (n,), and fit a copy to each."""
        X, y = self._learnable(X, y)
        codes = self._learn_labels(X, y)
        if self.policy == "accuracy" and find_metric(self.metric).per_class:
            raise InvalidSetting(f"{self.metric} is one number per class; policy 'accuracy' needs one per bag.")
        bags = self._draw(codes)
        y = self.classes_[codes]
        with members_are_quiet():
            members = [clone(self.quantifier).fit(_safe_indexing(X, bag), y[bag]) for bag in bags.indices]
        self.shrinkage_ = joint_shrinkage(members)
        self.prevalences_: FloatArray = np.stack([member.prior_ for member in members])
        self._keep(members, X)
        self.classifier_: Any = None
        if self.policy == "distribution":
            classifier = resolve_classifier(getattr(self.quantifier, "classifier", None), X, self.classes_)
            self.classifier_, posteriors, held = cross_fit(classifier, X, codes, self.classes_, cv=5)
            of_all = np.zeros((len(codes), len(self.classes_)))
            of_all[held] = posteriors
            self.histograms_: FloatArray = histograms(of_all[bags.indices])
        elif self.policy == "accuracy":
            self._keep_best(X, bags)

    def _draw(self, codes: IntArray) -> Bags:
        """Training bags of all sizes' worth, at prevalences uniform but for `least` instances of every class."""
        n, k = len(codes), len(self.classes_)
        rare = self.least / n
        if rare * k >= 1:
            raise InvalidData(
                f"{n} instances cannot have {self.least} of each of {k} classes in a bag. Add some, or lower `least`."
            )
        rng = np.random.default_rng(self.random_state)
        prevalences = rare + (1 - k * rare) * draw_uniformly(self.size, k, rng=rng)
        protocol = APP(bag_size=n, repeats=1, prevalences=prevalences)
        return protocol.draw(by_first_appearance(codes, k), rng=rng)

    def _keep_best(self, X: Any, bags: Bags) -> None:
        """Keep the members with the least error on the bags that the others were trained on."""
        metric = find_metric(self.metric)
        settings: dict[str, Any] = {"eps": 1 / (2 * bags.sizes)} if metric.smoothed else {}
        errors = np.stack(
            [
                metric.function(self.prevalences_, np.asarray(member.predict_bags(X, bags)), **settings)
                for member in self.members_
            ]
        )
        np.fill_diagonal(errors, 0)
        best = np.sort(np.argsort(errors.sum(axis=1), kind="stable")[: self.kept])
        self.prevalences_ = self.prevalences_[best]
        self._keep([self.members_[at] for at in best], X)

    def _read(self, X: Any) -> FloatArray:
        """The rows of all members side by side, and the common classifier's if distributions are compared: (n, d)."""
        rows = super()._read(X)
        if self.classifier_ is None:
            return rows
        return np.concatenate([rows, posteriors_of(self.classifier_, X, self.classes_)], axis=1)

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """The mean of the chosen members' estimates: (..., n, d) -> (..., k)."""
        own = int(self.widths_.sum())
        common = 0 if self.classifier_ is None else len(self.classes_)
        values = check_rows(rows, width=own + common)
        estimates = self._estimates(values[..., :own])
        if self.policy in {"average", "accuracy"} or self.kept >= len(self.members_):
            return np.asarray(estimates.mean(axis=-2))
        if self.policy == "prevalence":
            middle = estimates.mean(axis=-2, keepdims=True)
            distance = np.square(self.prevalences_ - middle).sum(axis=-1)
        else:
            overlap = np.sqrt(histograms(values[..., own:])[..., None, :, :] * self.histograms_).sum(axis=-1)
            distance = np.sqrt(np.maximum(1 - overlap, 0)).mean(axis=-1)
        nearest = np.argsort(distance, axis=-1, kind="stable")[..., : self.kept]
        return np.asarray(np.take_along_axis(estimates, nearest[..., None], axis=-2).mean(axis=-2))
