"""Plan labels: how many labels an interval of a given width needs, and which instances to label."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray
from quanet.base import Quantifier
from quanet.errors import InvalidBags, InvalidData, InvalidSetting
from quanet.labels.prediction_powered import effective_labels, exposure_limits, exposure_strata, score_interval
from quanet.labels.refine import MIN_LABELS, check_exposure, fixed_label_em, likelihood_ratios, responsibilities
from quanet.parameters import between, check_level, one_of, whole

STRATA = 10
PER_STRATUM = 8  # labels, on average
PER_EXPOSURE = 4  # labels of each stratum of similar exposure, at least on average
# The standard deviation of a label that is assumed at least. Posteriors may be confident and wrong, so clear instances
# are drawn at most 1.4 times less often than unclear ones: where posteriors are useless, this costs 1 % of the width.
LEAST_DOUBT = 0.35


@dataclass(frozen=True, slots=True, eq=False)
class LabelPlan:
    """The instances of a bag to label.

    Attributes
    ----------
    n : number of labels.
    indices : (n,) positions in the bag, in the order in which to label them. The first ones are a plan, too.
    design_weights : (n,) weights for `refine`: the number of instances each one represents.
    strata : (n,) strata for `refine`, numbered from 0.
    width : expected width of the widest interval over classes and groups, if the posteriors are calibrated.
    plain_width : the same if the posteriors are useless: the width of the plain share of as many random labels.
    """

    n: int
    indices: IntArray
    design_weights: FloatArray
    strata: IntArray
    width: float
    plain_width: float


def plan_labels(
    quantifier: Quantifier,
    X: Any,
    width: float | None = None,
    *,
    n: int | None = None,
    groups: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    level: float = 0.95,
    design: Literal["stratified", "random"] = "stratified",
    random_state: int | None = 0,
) -> LabelPlan:
    r"""The number of labels needed for an interval of a given width, and the instances to label.

    Use it before `refine`, which needs the plan's weights and strata. A stratum h of :math:`N_h` instances with similar
    posteriors f gets the number of labels [1]_

    .. math:: n_h \propto N_h \sigma_h, \qquad \sigma_h^2 = \max_c \frac{1}{N_h} \sum_{i \in h} f_{ic} (1 - f_{ic}).

    With weights w, strata also have similar weights, :math:`\sigma_h` is multiplied by the root of the mean of
    :math:`w^2`, and instances that carry much of the weight are all labelled.

    The plan assumes calibrated posteriors. If they are worse, the interval of `refine` is still valid but wider, and
    more labels are needed.

    Parameters
    ----------
    quantifier : fitted quantifier that uses posteriors.
    X : the bag.
    width : wanted width of the widest interval over classes, upper minus lower limit, for example 0.1.
    n : number of labels, instead of a width.
    groups : (N,) group of each instance. Then each group gets a plan of its own, with the same width or n labels.
    weights : (N,) exposure of the instances, such as views, for shares of exposure; pass them to `refine`, too.
    level : confidence level.
    design : "random"; or "stratified": strata of similar posteriors, with more labels where they are uncertain.
    random_state : seed of the choice.

    Returns
    -------
    LabelPlan
        `indices` of the instances to label, in order; `design_weights` and `strata` for `refine`; `n`; and `width`, the
        expected width.

    References
    ----------
    .. [1] J. Neyman, "On the two different aspects of the representative method", 1934.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians, refine
    >>> quantifier = EMQ().fit(*Gaussians().draw([0.5, 0.5], 1000, rng=0))
    >>> X, y = Gaussians().draw([0.8, 0.2], 2000, rng=1)
    >>> plan = plan_labels(quantifier, X, width=0.1)
    >>> part = plan.indices
    >>> refined = refine(quantifier, X, X[part], y[part], design_weights=plan.design_weights, strata=plan.strata)
    >>> plan_labels(quantifier, X, width=0.1, design="random").n > plan.n > 10
    True
    """
    check_level(level)
    if (width is None) == (n is None):
        raise InvalidSetting("Give either the wanted width or the number n of labels.")
    if width is not None:
        between(0, 1).such_as("0.1").check("width", width)
    if n is not None:
        whole(MIN_LABELS).check("n", n)
    one_of("stratified", "random").check("design", design)
    ratios = likelihood_ratios(quantifier, X)
    if len(ratios) < MIN_LABELS:
        raise InvalidBags(f"the bag has {len(ratios)} instances. Label them all, or pass at least {MIN_LABELS}.")
    posteriors = responsibilities(ratios, fixed_label_em(ratios, ratios[:0], np.empty(0, dtype=np.intp)))
    owner = np.zeros(len(posteriors), dtype=np.intp)
    if groups is not None:
        owner = np.unique(np.asarray(groups), return_inverse=True)[1].ravel()
        if len(owner) != len(posteriors):
            raise InvalidData(f"X has {len(posteriors)} instances but groups has {len(owner)}. Pass one for each.")
    exposure, rng = check_exposure(weights, len(posteriors), "weights"), np.random.default_rng(random_state)
    stratify = design == "stratified"
    return plan_posteriors(
        posteriors, owner, exposure=exposure, width=width, n=n, level=level, stratify=stratify, rng=rng
    )


def plan_posteriors(
    posteriors: FloatArray,
    owner: IntArray,
    *,
    width: float | None,
    n: int | None,
    level: float,
    stratify: bool,
    rng: np.random.Generator,
    exposure: FloatArray | None = None,
) -> LabelPlan:
    """A plan for instances with these posteriors (N, k), in groups numbered from 0 (N,); see `plan_labels`."""
    parts, strata, weights, order, reached, plain, first = [], [], [], [], [], [], 0
    key, offset = rng.random(len(posteriors)), rng.random(int(owner.max()) + 1)
    # Instances are chosen by a key of their own, so that most of a smaller plan is part of a larger one.
    for g, members in enumerate(np.split(np.argsort(owner, kind="stable"), np.cumsum(np.bincount(owner))[:-1])):
        if exposure is not None:
            members = members[exposure[members] > 0]  # noqa: PLW2901
            if not len(members):
                continue
        part = PlannedPart(
            posteriors[members], stratify=stratify, exposure=None if exposure is None else exposure[members]
        )
        taken = part.needed(width, level) if n is None else min(n, len(members))
        codes, counts = part.strata(taken), part.counts(taken)
        for h, number in enumerate(counts.tolist()):
            inside = np.flatnonzero(codes == h)
            parts.append(members[inside[np.argsort(key[members[inside]], kind="stable")[:number]]])
            strata.append(np.full(number, first + h))
            weights.append(np.full(number, len(inside) / max(number, 1)))
            # Strata take turns, so that the first labels are a plan, too.
            order.append((np.arange(number) + (offset[g] + h / len(counts)) % 1) / max(number, 1))
        first += len(counts)
        reached.append(part.width(taken, level))
        plain.append(part.plain_width(taken, level))
    turn = np.argsort(np.concatenate(order), kind="stable")
    chosen = np.concatenate(parts)[turn]
    return LabelPlan(
        len(chosen), chosen, np.concatenate(weights)[turn], np.concatenate(strata)[turn], max(reached), max(plain)
    )


class PlannedPart:
    """The instances of a group, and what labels of them bring."""

    def __init__(self, posteriors: FloatArray, *, stratify: bool, exposure: FloatArray | None = None) -> None:
        self.posteriors = posteriors
        self.size = len(posteriors)
        self.exposure = exposure
        self.share = np.average(posteriors, axis=0, weights=exposure)
        self.stratify = stratify
        self._known: dict[tuple[int, int], _Strata] = {}

    def _strata(self, n: int) -> "_Strata":
        """The strata for n labels."""
        most = max(1, min(STRATA, n // PER_STRATUM)) if self.stratify else 1
        several = self.stratify and self.exposure is not None
        classes = max(1, n // PER_EXPOSURE) if several else 1
        if (most, classes) not in self._known:
            codes = stratify_posteriors(self.posteriors, most) if classes == 1 else self._by_exposure(most, classes)
            self._known[most, classes] = _Strata.of(codes, self.posteriors, self.exposure)
        return self._known[most, classes]

    def _by_exposure(self, most: int, classes: int) -> IntArray:
        """Strata of similar exposure, and of similar posteriors within each of them."""
        assert self.exposure is not None
        limits = exposure_limits(self.exposure)
        alike = np.minimum(exposure_strata(self.exposure, limits), classes - 1)
        found = _Strata.of(alike, self.posteriors, self.exposure)
        parts = most * found.importance / found.importance.sum()
        codes, first = np.zeros(self.size, dtype=np.intp), 0
        for h, part in enumerate(parts.tolist()):
            inside = np.flatnonzero(alike == h)
            codes[inside] = first + stratify_posteriors(self.posteriors[inside], max(1, round(part)))
            first = int(codes[inside].max()) + 1
        return codes

    def strata(self, n: int) -> IntArray:
        """The stratum of every instance if there are n labels: (N,)."""
        return self._strata(n).codes

    def counts(self, n: int) -> IntArray:
        """Labels of each stratum if there are n in all: (h,)."""
        found = self._strata(n)
        return allocate(n, found.sizes, found.importance)

    def width(self, n: int, level: float) -> float:
        """Expected width of the widest interval, if the posteriors are calibrated."""
        parts = self._parts(n)
        return self._widest(effective_labels(self.share, parts @ self._strata(n).doubt, n, float(parts.sum())), level)

    def plain_width(self, n: int, level: float) -> float:
        """Expected width if the posteriors are useless: without exposure, of the plain share of n random labels."""
        if self.exposure is not None:
            return self._widest(np.full(len(self.share), 1 / max(float(self._parts(n).sum()), 1e-12)), level)
        rest = max(1 - n / self.size, 1e-12)
        return self._widest(np.full(len(self.share), n / rest), level)

    def _parts(self, n: int) -> FloatArray:
        """Variance that each stratum adds to the plain share of n labels, divided by p (1 - p): (h,)."""
        found, counts = self._strata(n), np.maximum(self.counts(n), 1)
        if self.exposure is None:
            return np.asarray((found.sizes / self.size) ** 2 * (1 / counts - 1 / found.sizes))
        return np.asarray((found.sizes / counts - 1) * found.squares / self.exposure.sum() ** 2)

    def _widest(self, effective: FloatArray, level: float) -> float:
        lower, upper = score_interval(self.share, effective, level)
        return float((upper - lower).max())

    def needed(self, width: float | None, level: float) -> int:
        """Labels for a width; all instances if no fewer are enough."""
        assert width is not None
        steps = np.unique(np.round(MIN_LABELS * 1.03 ** np.arange(500)).astype(int))
        found = (n for n in steps[steps < self.size].tolist() if self.width(n, level) <= width)
        return next(found, self.size)


@dataclass(frozen=True, slots=True, eq=False)
class _Strata:
    """Strata: of every instance (N,); sizes and squared exposures (h,); variances of labels (h, k); importance (h,)."""

    codes: IntArray
    sizes: IntArray
    squares: FloatArray
    doubt: FloatArray
    importance: FloatArray

    @classmethod
    def of(cls, codes: IntArray, posteriors: FloatArray, exposure: FloatArray | None) -> "_Strata":
        sizes = np.bincount(codes)
        doubt = np.stack([np.bincount(codes, column * (1 - column)) / sizes for column in posteriors.T], axis=1)
        squares = np.bincount(codes, None if exposure is None else exposure**2).astype(float)
        importance = squares if exposure is None else np.sqrt(sizes * squares)
        deviation = np.maximum(np.sqrt(doubt.max(axis=1)), LEAST_DOUBT)
        return cls(codes, sizes, squares, doubt, importance * deviation)


def stratify_posteriors(posteriors: FloatArray, most: int) -> IntArray:
    """Strata of similar posteriors within each most probable class: (N, k) -> (N,), numbered from 0."""
    best = posteriors.argmax(axis=1)
    codes = np.zeros(len(posteriors), dtype=np.intp)
    present = np.unique(best)
    if most < max(2, len(present)):
        return codes
    next_code = 0
    for c in present.tolist():
        inside = np.flatnonzero(best == c)
        # Strata of equal total uncertainty, not of equal size: most instances are clear.
        doubt = np.sqrt(np.maximum(posteriors[inside, c] * (1 - posteriors[inside, c]), 0.01))
        rank = np.argsort(posteriors[inside, c], kind="stable")
        groups = max(1, min(most // len(present), len(inside) // 20))
        part = np.minimum((doubt[rank].cumsum() / doubt.sum() * groups).astype(np.intp), groups - 1)
        _, dense = np.unique(part, return_inverse=True)
        codes[inside[rank]] = next_code + dense
        next_code += int(dense.max()) + 1
    return codes


def allocate(n: int, sizes: IntArray, importance: FloatArray) -> IntArray:
    """Labels per stratum, n in total: proportional to importance, at least two, at most the stratum's size.

    Examples
    --------
    >>> allocate(20, np.array([100, 50, 3]), np.array([30.0, 20.0, 0.1]))
    array([11,  7,  2])
    """
    counts = np.minimum(2, sizes)
    while counts.sum() < min(n, sizes.sum()):
        lag = np.where(counts < sizes, n * importance / importance.sum() - counts, -np.inf)
        share = np.maximum(lag, 0)
        left = min(n, int(sizes.sum())) - int(counts.sum())
        step = np.floor(share * left / share.sum()).astype(np.intp) if share.sum() > 0 else np.zeros_like(counts)
        step = np.minimum(step, sizes - counts)
        if not step.any():
            step[int(np.argmax(lag))] = 1
        counts = counts + step
    return counts
