"""How many labels of a bag an interval of a wanted width needs, and which instances to label."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats

from quanet.arrays import FloatArray, IntArray
from quanet.base import Quantifier
from quanet.errors import InvalidBags, InvalidSetting
from quanet.uncertainty.few_labels import FEWEST, PSEUDO
from quanet.uncertainty.label_em import check_level, fixed_label_em, likelihood_ratios, responsibilities

STRATA = 10


@dataclass(frozen=True, slots=True, eq=False)
class LabelPlan:
    """Which instances of a bag to label.

    Attributes
    ----------
    n : how many.
    indices : (n,) of the bag, in the order to label them in.
    weights : (n,) for `refine`: how many instances of the bag each stands for.
    width : of the interval that they should give, the widest over classes, if posteriors are honest.
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
    """How many labels an interval of a wanted width needs, and which instances to label.

    The plan trusts the posteriors for how often they are wrong; where they are worse than they say, the interval of
    `refine` is still right but wider, and more labels are needed.

    Parameters
    ----------
    quantifier : fitted, one that reads posteriors.
    X : the bag.
    width : of the widest interval over classes, from end to end, such as 0.1.
    level : of confidence.
    design : "random"; or "stratified", more of the instances whose class is open, fewer of the clear ones, with weights
        that make up for it (Neyman 1934).
    random_state : of the choice.

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
    if not 0 < width < 1:
        raise InvalidSetting(f"width lies between 0 and 1, such as 0.1; got {width}.")
    if design not in ("stratified", "random"):
        raise InvalidSetting(f"design is 'stratified' or 'random'; got {design!r}.")
    ratios = likelihood_ratios(quantifier, X)
    if len(ratios) < FEWEST:
        raise InvalidBags(f"the bag has {len(ratios)} instances; label them all, or give at least {FEWEST}.")
    rng = np.random.default_rng(random_state)
    posteriors = responsibilities(ratios, fixed_label_em(ratios, ratios[:0], np.empty(0, dtype=np.intp)))
    strata = _strata(posteriors) if design == "stratified" else np.zeros(len(posteriors), dtype=np.intp)
    sizes = np.bincount(strata)
    # A class's label varies around its posterior by p (1 - p); a floor keeps clear instances in the plan, as a check.
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
    order = rng.permutation(len(indices))  # so that a plan broken off is still a random part of each stratum
    return LabelPlan(len(indices), indices[order], weights[order], reached)


def _strata(posteriors: FloatArray) -> IntArray:
    """Groups of instances whose class is equally open, by the most probable class: (N, k) -> (N,), from 0 on."""
    best = posteriors.argmax(axis=1)
    codes = np.zeros(len(posteriors), dtype=np.intp)
    following = 0
    for c in np.unique(best).tolist():
        inside = np.flatnonzero(best == c)
        # Equal parts of the total doubt, not of the number: most instances are clear.
        doubt = np.sqrt(np.maximum(posteriors[inside, c] * (1 - posteriors[inside, c]), 0.01))
        order = np.argsort(posteriors[inside, c], kind="stable")
        groups = max(1, min(STRATA // 2, len(inside) // 20))
        part = np.minimum((doubt[order].cumsum() / doubt.sum() * groups).astype(np.intp), groups - 1)
        _, dense = np.unique(part, return_inverse=True)
        codes[inside[order]] = following + dense
        following += int(dense.max()) + 1
    return codes


def _candidates(size: int) -> list[int]:
    """Numbers of labels to try, some five per cent apart; in the end all of the bag."""
    steps = np.unique(np.round(FEWEST * 1.05 ** np.arange(300)).astype(int))
    return [*steps[steps < size].tolist(), size]


def _allocate(n: int, sizes: IntArray, importance: FloatArray) -> IntArray:
    """Labels of every stratum, about `n`: in proportion to importance, two at least, no more than it has."""
    counts = np.clip(np.round(n * importance / importance.sum()), 2, None).astype(np.intp)
    return np.minimum(counts, sizes)
