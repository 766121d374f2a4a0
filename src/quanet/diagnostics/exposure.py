"""Do a few instances have most of the weight? The finding "weights"."""

import numpy as np

from quanet.arrays import BoolArray, IntArray
from quanet.bags import Bags
from quanet.diagnostics.findings import Finding

FEW = 20  # instances; an estimate that depends on fewer is hardly an average
NAMED = 3  # groups


def carriers_of_half(bags: Bags) -> IntArray:
    """(b,) the smallest number of instances that have half of the weight of each bag.

    Examples
    --------
    >>> carriers_of_half(Bags([[0, 1, 2, 3], [0, 1]], weights=[5, 1, 1, 1]))
    array([1, 1])
    """
    weights = bags.relative_weights
    shares = (weights / np.bincount(bags.owners, weights)[bags.owners])[np.lexsort((-weights, bags.owners))]
    reached = np.cumsum(shares) - bags.owners  # the shares of every bag sum to 1
    carriers: IntArray = np.bincount(bags.owners, reached < 0.5 - 1e-9, minlength=len(bags)).astype(np.intp) + 1
    return carriers


def is_dominated(bags: Bags) -> BoolArray:
    """(b,) whether a few instances have half of the weight of a bag."""
    unequal = bags.effective_sizes < bags.sizes / 2
    return np.asarray((carriers_of_half(bags) < FEW) & unequal)


def weights_findings(whole: Bags, groups: Bags | None = None, *, weight: str = "") -> list[Finding]:
    """How unequal the weights are, and whether a few instances dominate; empty without weights.

    Parameters
    ----------
    whole : one bag with all instances.
    groups : the bags they are grouped into, if there are several.
    weight : what the weights are, such as "views".
    """
    if whole.weights is None:
        return []
    what = weight or "weight"
    n, effective, carriers = int(whole.sizes[0]), int(whole.effective_sizes[0]), int(carriers_of_half(whole)[0])
    absent = int((whole.weights[whole.flat] == 0).sum())
    numbers = {"n": float(n), "effective_n": float(effective), "carriers": float(carriers), "absent": float(absent)}
    sentence = f"{carriers:,} of {n:,} instances carry half of the {what}: the effective size is {effective:,}."
    if absent:
        who = "1 instance has" if absent == 1 else f"{absent:,} instances have"
        sentence += f" {who} no {what}; such instances do not count."
    names = [] if groups is None else [str(name) for name in groups.labels[is_dominated(groups)].tolist()]
    if names and groups is not None:
        others = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
        few = f" In {len(names):,} of {len(groups):,} groups, fewer than {FEW} instances do"
        sentence += f"{few} ({', '.join(names[:NAMED])}{others})."
    if is_dominated(whole)[0] or names:
        advice = f"Shares of the {what} depend on these few instances; the interval includes that. Check them by hand."
        return [Finding("weights", "warning", sentence, advice, numbers)]
    return [Finding("weights", "ok" if effective > n / 2 else "note", sentence, numbers=numbers)]
