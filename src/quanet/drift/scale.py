r"""The drift scale: how many points of bias to expect at a given distance from the training data.

`fit` learns it. Parts of the training data that differ from the rest are left out once each. The squared bias of the
quantifier on a part, divided by the part's distance from the rest, is the rate. A bag at distance D then has a bias
whose variance is

.. math:: v\, p\, (1 - p), \qquad v = \frac{r D^\gamma}{1 + r D^\gamma / 2} + \epsilon \sum_c \frac{p_c^2}{n_c}

as if its prevalences p had been estimated from 1 / v labels. The first term grows somewhat slower than the distance
(:math:`\gamma` is `POWER`), up to `LARGEST`. The second term is for drift that cannot be seen: a class with :math:`n_c`
training instances is itself known only up to a distance of about :math:`1 / n_c`.

Few parts say little about the rate r, so it is shrunk towards `TYPICAL_RATES`, which other datasets show, as if these
were `PRIOR_PARTS` more parts. `docs/experiments/drift.md` shows how these numbers were found.

Parts of the training data that differ from the rest: clusters of descriptions, or groups that the user names.

A classifier that has not seen a part shows how large the bias of a quantifier is on data like it.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from sklearn.cluster import KMeans
from sklearn.utils import _safe_indexing

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.bags import Bags
from quanet.drift.descriptions import Describer, Descriptions, PosteriorDescriber, describe_left_out, fit_describer
from quanet.drift.profile import BagDistances, BagMeans, Profile, share_between
from quanet.errors import InvalidData, QuanetWarning
from quanet.simplex import count, order_of_appearance, to_counts
from quanet.wording import points

TYPICAL_RATES = {"contents": 0.5, "posteriors": 1.2}
POWER = 0.75  # of the distance
PRIOR_PARTS = 8
LARGEST = 2.0  # variance of the bias, relative to p (1 - p), at any distance
HIGHEST_RATE = 100.0
UNSEEN = 0.5  # variance of the bias at distances that cannot be seen, relative to 1 / (instances of a class)
MOST_IN_FOLDS = 6000  # instances that parts are made of, if the classifier fits all folds in shared passes
MOST = 3000  # otherwise
NO_DESCRIPTION = "the instances are neither texts nor numbers, or are all alike"
NO_CLUSTERS = "clusters of posteriors would differ in their classes"
NO_PROFILE = "a class has too few training instances"
NO_SCALE = "the model has no drift scale: an older version saved it, or it was fitted without one; fit it again"
PARTS = 8
MIN_INSTANCES = 1000  # of the training data; with fewer, parts are too small to show a bias
MIN_OF_CLASS = 10  # instances of a class in a part
MIN_PARTS = 3
MISSING = ("nan", "NaT", "<NA>")  # how missing groups are written
SPLITS, REPEATS, SIZE = 2, 2, 400  # halves of a part, bags from each half at each prevalence, and instances per bag
MANY = 10  # classes, above which bags are drawn at the prevalences of some classes only


@dataclass(frozen=True, slots=True, eq=False)
class TrainingParts:
    """Disjoint parts of the training data.

    Attributes
    ----------
    used : (m,) positions of the instances that parts are made of.
    members : (m,) the part of each of them; -1 for instances that are never left out.
    kind : "clusters" or "groups".
    """

    used: IntArray
    members: IntArray
    kind: str

    def folds(self, codes: IntArray, k: int) -> list[tuple[IntArray, IntArray]]:
        """For each part that can be left out: the other instances, and its own, as positions in `used`."""
        found = []
        for part in np.unique(self.members[self.members >= 0]).tolist():
            seen, held_out = np.flatnonzero(self.members != part), np.flatnonzero(self.members == part)
            present = count(codes[self.used[held_out]], k) >= MIN_OF_CLASS
            if count(codes[self.used[seen]], k).min() >= MIN_OF_CLASS and present.sum() >= 2:
                found.append((seen, held_out))
        return found


def find_parts(descriptions: Descriptions, codes: IntArray, k: int, groups: Any, most: int) -> TrainingParts | str:
    """Parts of the training data, from at most so many instances; or why there are none.

    Parameters
    ----------
    descriptions : (n, e) of the instances, which are clustered if there are no groups.
    codes : (n,) their classes.
    k : number of classes.
    groups : (n,) the group of every instance, such as its product or month, "" if it has none; None for clusters.
    most : number of instances used.
    """
    n, rng = len(codes), np.random.default_rng(0)
    if n < MIN_INSTANCES:
        return f"there are {n:,} training instances, fewer than {MIN_INSTANCES:,}"
    used = np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
    if groups is not None:
        names = check_groups(groups, n)[used]
        values, members, sizes = np.unique(names, return_inverse=True, return_counts=True)
        largest = np.argsort(-sizes, kind="stable")[:PARTS]
        # The other groups are in no part that is left out.
        members = np.where(np.isin(members, largest) & (names != ""), members, -1)
        named = values[values != ""]
        return TrainingParts(used, members, "groups") if len(named) > 1 else f"there is one group only{_only(named)}"
    # Without the difference between classes, so that every part contains all of them.
    values = np.asarray(descriptions, dtype=float)[used]
    means = np.array([values[codes[used] == c].mean(axis=0) for c in range(k)])
    values = values - means[codes[used]]
    values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-9)
    if len(np.unique(values[:: max(1, len(values) // 1000)], axis=0)) < 10 * PARTS:
        return "too many instances are alike"
    return TrainingParts(used, KMeans(PARTS, n_init=2, random_state=0).fit_predict(values), "clusters")


def _only(names: LabelArray) -> str:
    return f", {names[0]!s:.40}" if len(names) else ""


def check_groups(groups: Any, n: int) -> LabelArray:
    """The groups as an array (n,) of strings, "" where one is missing; `InvalidData` if their number is wrong."""
    values = np.asarray(groups, dtype=object)
    if values.shape != (n,):
        raise InvalidData(f"groups must have shape ({n},), one group per instance; its shape is {values.shape}.")
    return np.array(["" if value is None or str(value) in MISSING else str(value) for value in values])


def bias_variance(quantifier: Any, rows: FloatArray, codes: IntArray, rng: np.random.Generator) -> float:
    r"""The squared bias of a quantifier on a part, relative to p (1 - p), without the noise of the part's size.

    Bags are drawn from two random halves of the part at the same prevalences p. The noise of the halves is independent,
    so that the product of their mean errors estimates the squared bias:

    .. math:: v = \frac{\sum_p \sum_c b_c b'_c}{\sum_p \sum_c p_c (1 - p_c)}

    Parameters
    ----------
    quantifier : fitted.
    rows : (m, d) of the part's instances, by a classifier that has not seen it.
    codes : (m,) their classes.
    rng : random numbers.
    """
    k = len(quantifier.classes_)
    present = _present(codes, k)
    counts = counts_to_try(present, k)
    wanted = np.repeat(counts / SIZE, REPEATS, axis=0)
    products = []
    for _ in range(SPLITS):
        errors = []
        for half in _halves(codes, present, rng):
            positions = _draw(half, np.repeat(counts, REPEATS, axis=0), present, rng)
            found = quantifier.aggregate_quickly(rows[positions]) - wanted
            errors.append(found.reshape(len(counts), REPEATS, k).mean(axis=1))
        products.append(float((errors[0] * errors[1]).sum()))
    shares = counts / SIZE
    return float(np.mean(products)) / float((shares * (1 - shares)).sum())


def draw_bags_of_part(codes: IntArray, k: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Positions (b, n) of bags of a part with classes (m,), from few to many of each class; and prevalences (b, k)."""
    present = _present(codes, k)
    counts = np.repeat(counts_to_try(present, k), 2 * REPEATS, axis=0)
    return _draw([np.flatnonzero(codes == c) for c in present.tolist()], counts, present, rng), counts / SIZE


def _present(codes: IntArray, k: int) -> IntArray:
    """The classes with enough instances, in an order that does not depend on their names."""
    order = order_of_appearance(codes, k)
    return order[count(codes, k)[order] >= MIN_OF_CLASS]


def counts_to_try(present: IntArray, k: int) -> IntArray:
    """Numbers of instances (g, k) of the classes that are present: from few to many of each class.

    Examples
    --------
    >>> counts_to_try(np.array([0, 1]), 2)[:, 1] / SIZE
    array([0.1, 0.3, 0.5, 0.7, 0.9])
    """
    found = len(present)
    if found == 2:
        second = np.arange(0.1, 1, 0.2)
        among = np.column_stack([1 - second, second])
    else:
        corners = np.eye(found)[: min(found, MANY)]
        among = np.vstack([corners * (0.7 - 0.3 / (found - 1)) + 0.3 / (found - 1), np.full((1, found), 1 / found)])
    counts = np.zeros((len(among), k), dtype=np.intp)
    counts[:, present] = to_counts(among, SIZE)
    return counts


def _halves(codes: IntArray, present: IntArray, rng: np.random.Generator) -> list[list[IntArray]]:
    """Two random halves of a part: the positions of each class that is present."""
    shuffled = [rng.permutation(np.flatnonzero(codes == c)) for c in present.tolist()]
    return [[one[: len(one) // 2] for one in shuffled], [one[len(one) // 2 :] for one in shuffled]]


def _draw(half: list[IntArray], counts: IntArray, present: IntArray, rng: np.random.Generator) -> IntArray:
    """Positions (b, n) drawn with replacement from the classes of a half, to give the class counts (b, k)."""
    return np.array(
        [
            np.concatenate([rng.choice(one, number) for one, number in zip(half, row[present].tolist(), strict=True)])
            for row in counts
        ]
    )


@dataclass(frozen=True, slots=True, eq=False)
class DriftScale:
    """What `fit` has learned about drift.

    Attributes
    ----------
    describer : maps instances to descriptions; None if drift is unknown.
    profile : descriptions of the training classes; None if drift is unknown.
    rate : variance of the bias per distance.
    kind : where the rate comes from: "clusters" or "groups" of the training data, or "" for other datasets only.
    distances, variances : (m,) of the parts that were left out.
    unknown : why drift is unknown; empty if it is known.
    no_parts : why no parts were left out; empty if some were.
    """

    describer: Describer | None
    profile: Profile | None
    rate: float = TYPICAL_RATES["contents"]
    kind: str = ""
    distances: FloatArray = field(default_factory=lambda: np.empty(0))
    variances: FloatArray = field(default_factory=lambda: np.empty(0))
    unknown: str = ""
    no_parts: str = ""

    @property
    def sentence(self) -> str:
        """How the scale was learned, or what is unknown."""
        return drift_sentence(self.kind, self.variances, self.unknown, self.no_parts)

    @property
    def degrees(self) -> int:
        """Degrees of freedom of the rate."""
        return PRIOR_PARTS + len(self.distances)

    def quantile(self, level: float) -> float:
        """By how many standard deviations a bias may exceed 0 at this level: Student's t, as the rate is estimated."""
        return float(stats.t.ppf((1 + level) / 2, self.degrees))

    def describe(self, X: Any, values: FloatArray) -> Descriptions | None:
        """Descriptions (n, e) of instances X that the classifier reads as values (n, d); None if drift is unknown."""
        if self.describer is None or self.profile is None:
            return None
        return self.describer(values if self.describer.of_values else X)

    def compare(self, descriptions: Any, bags: Bags, hashes: Any = None) -> tuple[BagDistances, FloatArray]:
        """Distances of bags of a pool, as measured, and after sharing information, (b,).

        Descriptions are (n, e), or sums by group (`GroupDescriptions`) if the bags are whole groups. Copies are known
        by `hashes`, as in `Inputs`.
        """
        assert self.profile is not None
        whole = self.profile.compare(BagMeans.of(descriptions, bags.joined(), hashes))
        measured = self.profile.compare(BagMeans.of(descriptions, bags, hashes))  # of many bags, it needs much memory
        return measured, share_between(measured.distances, measured.deviations, float(whole.deviations[0]))

    def variance(self, distances: FloatArray, estimates: FloatArray, most_unseen: FloatArray) -> FloatArray:
        """The variance v (b,) of the bias of bags at these distances (b,) with these estimates (b, k).

        `most_unseen` (b,) limits what cannot be seen: for a classifier that hardly errs, it matters little.
        """
        return self.seen(distances) + np.minimum(self._unseen(estimates), most_unseen)

    def seen(self, distances: FloatArray) -> FloatArray:
        """The part of the variance (b,) that distances (b,) show."""
        return variance_at(distances, self.rate)

    def hidden(self, distances: FloatArray, sizes: IntArray, estimates: FloatArray) -> FloatArray:
        """The variance (b,) of a bias that chance may hide in bags of these effective sizes (b,) and estimates (b, k).

        That is at the distances (b,) that were measured before bags shared information, but at least at one standard
        error, which is subtracted as chance; with what the training data cannot show.
        """
        assert self.profile is not None
        return self.seen(np.maximum(distances, self.profile.noise / sizes)) + self._unseen(estimates)

    def _unseen(self, estimates: FloatArray) -> FloatArray:
        """The variance (b,) of a bias that the training data cannot show, at estimates (b, k)."""
        assert self.profile is not None
        return np.asarray(UNSEEN * (estimates**2 / self.profile.counts).sum(axis=1))


_wanted = ContextVar("wanted", default=True)


def is_wanted() -> bool:
    """Whether `fit` learns the drift scale."""
    return _wanted.get()


@contextmanager
def without_drift() -> Iterator[None]:
    """Fit quantifiers without a drift scale: members of a method, or if no interval is wanted."""
    token = _wanted.set(False)
    try:
        yield
    finally:
        _wanted.reset(token)


def variance_at(distances: FloatArray, rate: float) -> FloatArray:
    """Variance of the bias at distances, relative to p (1 - p).

    Examples
    --------
    >>> variance_at(np.array([0.0, 0.01, 100.0]), rate=0.5).round(2)
    array([0.  , 0.02, 1.78])
    """
    growing = rate * distances**POWER
    return growing / (1 + growing / LARGEST)


def fit_rate(distances: FloatArray, variances: FloatArray) -> float:
    """The rate at which the expected variances of parts at these distances (m,) have the sum of those found (m,).

    Examples
    --------
    >>> round(fit_rate(np.array([0.01, 0.03]), np.array([0.01, 0.05])), 2)
    0.59
    """
    total = float(variances.sum())
    if total <= 0:
        return 0.0

    def excess(rate: float) -> float:
        return float(variance_at(distances, rate).sum()) - total

    return HIGHEST_RATE if excess(HIGHEST_RATE) <= 0 else float(brentq(excess, 0.0, HIGHEST_RATE))


def learn_scale(quantifier: Any, X: Any, codes: IntArray, groups: Any = None) -> DriftScale:
    """Learn the drift scale of a fitted quantifier from its training data.

    Parameters
    ----------
    quantifier : fitted.
    X : training instances.
    codes : (n,) their classes, as positions in `classes_`.
    groups : (n,) named parts of the training data, such as products or months; None for clusters.
    """
    k = len(quantifier.classes_)
    precomputed = quantifier.is_precomputed()
    values = quantifier.read(X).values if precomputed else np.empty((len(codes), 0))
    describer = fit_describer(X, values, codes, precomputed=precomputed)
    descriptions = None if describer is None else describer(values if describer.of_values else X)
    profile = None if descriptions is None else Profile.fit(descriptions, codes, k)
    if describer is None or descriptions is None or profile is None:
        reason = NO_DESCRIPTION if describer is None else NO_PROFILE
        if groups is not None:
            _warn_of_groups(reason, "Intervals do not include drift.")
        return DriftScale(None, None, unknown=reason)
    of_posteriors = isinstance(describer, PosteriorDescriber)
    typical = TYPICAL_RATES["posteriors" if of_posteriors else "contents"]
    # Clusters of posteriors would differ in their classes, not in what the instances are about.
    weighted = descriptions * describer.weights.astype(np.float32)
    found: _LeftOut | str = NO_CLUSTERS
    if groups is not None or not of_posteriors:
        parts = find_parts(weighted, codes, k, groups, MOST_IN_FOLDS if quantifier.shares_folds() else MOST)
        found = parts if isinstance(parts, str) else _left_out(quantifier, X, values, codes, parts)
    if isinstance(found, str):
        if groups is not None:
            _warn_of_groups(found, "The bias that is typical of other datasets is used instead.")
        return DriftScale(describer, profile, typical, no_parts=found)
    kind, distances, variances = found
    own = fit_rate(distances, variances)
    rate = (PRIOR_PARTS * typical + len(distances) * own) / (PRIOR_PARTS + len(distances))
    return DriftScale(describer, profile, rate, kind, distances, variances)


_LeftOut = tuple[str, FloatArray, FloatArray]


def _left_out(quantifier: Any, X: Any, values: FloatArray, codes: IntArray, parts: TrainingParts) -> _LeftOut | str:
    """Kind, distances (m,) and variances of the bias (m,) of parts that are left out; or why there are too few."""
    k = len(quantifier.classes_)
    folds = parts.folds(codes, k)
    if len(folds) < MIN_PARTS:
        return (
            f"{len(folds)} of {len(np.unique(parts.members[parts.members >= 0]))} {parts.kind} can be left out, fewer "
            f"than {MIN_PARTS}: a part needs {MIN_OF_CLASS} instances of two classes, and the other data of every class"
        )
    used = _safe_indexing(X, parts.used)
    inputs = quantifier.left_out_inputs(used, codes[parts.used], folds)
    if inputs is None:
        return f"{type(quantifier).__name__} does not cross-fit a classifier"
    rows = [quantifier.rows(read) for read in inputs]
    codes, values = codes[parts.used], values[parts.used]
    held_out_codes = [codes[held_out] for _, held_out in folds]
    rng = np.random.default_rng(0)
    distances, variances = np.zeros(len(folds)), np.zeros(len(folds))
    described = describe_left_out(used, values, codes, folds, precomputed=quantifier.is_precomputed())
    for at, ((seen, held_out), descriptions) in enumerate(zip(folds, described, strict=True)):
        others = None if descriptions is None else Profile.fit(descriptions[seen], codes[seen], k)
        if descriptions is None or others is None:  # without the part, all are alike
            continue
        distances[at] = others.compare(BagMeans.of(descriptions, Bags([held_out]))).distances[0]
        variances[at] = bias_variance(quantifier, rows[at], held_out_codes[at], rng)
    kept = distances > 0
    if kept.sum() < MIN_PARTS:
        return f"{kept.sum()} of {len(kept)} {parts.kind} differ from the other training data, fewer than {MIN_PARTS}"
    return parts.kind, distances[kept], variances[kept]


def _warn_of_groups(reason: str, instead: str) -> None:
    warnings.warn(f"The groups do not show what drift may cost: {reason}. {instead}", QuanetWarning, stacklevel=5)


def drift_sentence(kind: str, variances: FloatArray, unknown: str = "", no_parts: str = "") -> str:
    """How a drift scale was learned, or what is unknown.

    Examples
    --------
    >>> drift_sentence("clusters", np.array([0.01, 0.03, -0.01, 0.0]))
    'When each of 4 clusters of the training data was left out, a share of 50 % in it was typically off by 5.0 points.'
    >>> drift_sentence("", np.empty(0), no_parts="there are 800 training instances, fewer than 1,000")
    'The bias that is typical of other datasets is used, since there are 800 training instances, fewer than 1,000.'
    """
    if unknown:
        return f"Unknown: {unknown}. Intervals do not include drift."
    if not kind:
        return f"The bias that is typical of other datasets is used{f', since {no_parts}' if no_parts else ''}."
    bias = root_mean_square(variances)
    off = f"typically off by {points(bias)}" if bias >= 0.0005 else "right, except for chance"
    return f"When each of {len(variances)} {kind} of the training data was left out, a share of 50 % in it was {off}."


def root_mean_square(variances: FloatArray) -> float:
    """The bias on parts with these variances (m,), as the root mean square at a share of 50 %; m is at least 1."""
    return float(np.sqrt(np.maximum(variances, 0).mean() / 4))
