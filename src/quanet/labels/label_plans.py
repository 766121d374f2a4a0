"""Plan labels: how many labels an interval of a given width needs, and which instances to label."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats

from quanet.arrays import FloatArray, IntArray
from quanet.base import Quantifier
from quanet.errors import InvalidBags
from quanet.labels.few_labels import MIN_LABELS, PSEUDO
from quanet.labels.label_em import fixed_label_em, likelihood_ratios, responsibilities
from quanet.parameters import between, check_level, one_of

STRATA = 10


@dataclass(frozen=True, slots=True, eq=False)
class LabelPlan:
    """The instances of a bag to label.

    Attributes
    ----------
    n : number of labels.
    indices : (n,) positions in the bag, in the order in which to label them.
    weights : (n,) weights for `refine`: the number of instances each one represents.
    width : expected width of the widest interval over classes, if the posteriors are calibrated.
    """

    n: int
    indices: IntArray
    weights: FloatArray
    width: float


def plan_labels(
    quantifier: Quantifier,
    X: Any,
    width: float,
    *,
    level: float = 0.95,
    design: Literal["stratified", "random"] = "stratified",
    random_state: int | None = 0,
) -> LabelPlan:
    """The number of labels needed for an interval of a given width, and the instances to label.

    The plan assumes calibrated posteriors. If they are worse, the interval of `refine` is still valid but wider, and
    more labels are needed.

    Parameters
    ----------
    quantifier : fitted quantifier that uses posteriors.
    X : the bag.
    width : wanted width of the widest interval over classes, upper minus lower limit, for example 0.1.
    level : confidence level.
    design : "random"; or "stratified": more uncertain instances and fewer clear ones, corrected by weights
        (Neyman 1934).
    random_state : seed of the choice.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians, refine
    >>> quantifier = EMQ().fit(*Gaussians().draw([0.5, 0.5], 1000, rng=0))
    >>> X, y = Gaussians().draw([0.8, 0.2], 2000, rng=1)
    >>> plan = plan_labels(quantifier, X, width=0.1)
    >>> refined = refine(quantifier, X, X[plan.indices], y[plan.indices], weights=plan.weights)
    >>> plan_labels(quantifier, X, width=0.1, design="random").n > plan.n > 10
    True
    """
    check_level(level)
    between(0, 1).such_as("0.1").check("width", width)
    one_of("stratified", "random").check("design", design)
    ratios = likelihood_ratios(quantifier, X)
    if len(ratios) < MIN_LABELS:
        raise InvalidBags(f"the bag has {len(ratios)} instances. Label them all, or pass at least {MIN_LABELS}.")
    rng = np.random.default_rng(random_state)
    posteriors = responsibilities(ratios, fixed_label_em(ratios, ratios[:0], np.empty(0, dtype=np.intp)))
    strata = _strata(posteriors) if design == "stratified" else np.zeros(len(posteriors), dtype=np.intp)
    sizes = np.bincount(strata)
    # The variance of a label is p (1 - p). The minimum keeps some clear instances in the plan, as a check.
    doubt = np.stack([np.bincount(strata, column * (1 - column)) / sizes for column in posteriors.T], axis=1)
    worst = np.sqrt(np.maximum(doubt.max(axis=1), 0.01))
    for n in _candidates(len(posteriors)):
        counts = _allocate(n, sizes, sizes * worst)
        variance = ((sizes[:, None] / sizes.sum()) ** 2 * doubt * (1 / counts - 1 / sizes)[:, None]).sum(axis=0)
        variance += 2 * PSEUDO / n**2 * (1 - n / len(posteriors))
        reached = 2 * stats.t.isf((1 - level) / 2, n - 1) * float(np.sqrt(variance.max()))
        if reached <= width:
            break
    chosen = [rng.permutation(np.flatnonzero(strata == h))[:taken] for h, taken in enumerate(counts.tolist())]
    indices = np.concatenate(chosen)
    weights = np.repeat(sizes / counts, counts)
    order = rng.permutation(len(indices))  # an interrupted plan is then still a random part of each stratum
    return LabelPlan(len(indices), indices[order], weights[order], reached)


def _strata(posteriors: FloatArray) -> IntArray:
    """Strata of equal uncertainty within each most probable class: (N, k) -> (N,), numbered from 0."""
    best = posteriors.argmax(axis=1)
    codes = np.zeros(len(posteriors), dtype=np.intp)
    next_code = 0
    for c in np.unique(best).tolist():
        inside = np.flatnonzero(best == c)
        # Strata of equal total uncertainty, not of equal size: most instances are clear.
        doubt = np.sqrt(np.maximum(posteriors[inside, c] * (1 - posteriors[inside, c]), 0.01))
        order = np.argsort(posteriors[inside, c], kind="stable")
        groups = max(1, min(STRATA // 2, len(inside) // 20))
        part = np.minimum((doubt[order].cumsum() / doubt.sum() * groups).astype(np.intp), groups - 1)
        _, dense = np.unique(part, return_inverse=True)
        codes[inside[order]] = next_code + dense
        next_code += int(dense.max()) + 1
    return codes


def _candidates(size: int) -> list[int]:
    """Numbers of labels to try, about five per cent apart; the last is the whole bag."""
    steps = np.unique(np.round(MIN_LABELS * 1.05 ** np.arange(300)).astype(int))
    return [*steps[steps < size].tolist(), size]


def _allocate(n: int, sizes: IntArray, importance: FloatArray) -> IntArray:
    """Labels per stratum, about `n` in total: proportional to importance, at least two, at most the stratum's size."""
    counts = np.clip(np.round(n * importance / importance.sum()), 2, None).astype(np.intp)
    return np.minimum(counts, sizes)
