"""How much a bag says: the findings "weights" (do a few instances have most of it?) and "copies"."""

import numpy as np

from quanet.arrays import BoolArray, IntArray
from quanet.bags import Bags
from quanet.data.copies import count_copies
from quanet.data.instances import Inputs
from quanet.diagnostics.findings import Finding
from quanet.uncertainty.evidence import copies_notes
from quanet.wording import listing, many

FEW = 20  # instances; an estimate that depends on fewer is hardly an average
NAMED = 3  # groups


def carriers_of_half(bags: Bags) -> IntArray:
    """(b,) the smallest number of instances that have half of the weight of each bag.

    Examples
    --------
    >>> carriers_of_half(Bags([[0, 1, 2, 3], [0, 1]], weights=[5, 1, 1, 1]))
    array([1, 1])
    """
    weights, alike = bags.relative_weights, np.ones(len(bags.flat))
    if bags.merged is not None and bags.weights is not None:
        # A row counts as its effective number of instances, each with the same weight.
        sums, squares = bags.weights[bags.flat], np.maximum(bags.merged.squares[bags.flat], 1e-300)
        alike = np.where(sums > 0, sums**2 / squares, bags.merged.counts[bags.flat])
    order = np.lexsort((-weights / alike, bags.owners))
    shares = (weights / np.bincount(bags.owners, weights)[bags.owners])[order]
    reached = np.cumsum(shares) - bags.owners  # the shares of every bag sum to 1
    missing = np.clip((0.5 - 1e-9 - (reached - shares)) / np.maximum(shares, 1e-300), 0, 1)  # of each row, up to half
    carriers = np.bincount(bags.owners, np.where(missing >= 1, alike[order], np.ceil(missing * alike[order])))
    return np.maximum(carriers, 1).astype(np.intp)


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
    gone = whole.flat[whole.weights[whole.flat] == 0]
    absent = len(gone) if whole.merged is None else int(whole.merged.counts[gone].sum())
    numbers = {"n": float(n), "effective_n": float(effective), "carriers": float(carriers), "absent": float(absent)}
    sentence = f"{carriers:,} of {n:,} instances carry half of the {what}: the effective size is {effective:,}."
    if absent:
        sentence += f" {many(absent, 'instance has', 'instances have')} no {what}; such instances do not count."
    names = [] if groups is None else [str(name) for name in groups.labels[is_dominated(groups)].tolist()]
    if names and groups is not None:
        few = f" In {len(names):,} of {len(groups):,} groups, fewer than {FEW} instances do"
        sentence += f"{few} ({listing(names, most=NAMED)})."
    if is_dominated(whole)[0] or names:
        advice = f"Shares of the {what} depend on these few instances; the interval includes that. Check them by hand."
        return [Finding("weights", "warning", sentence, advice, numbers)]
    return [Finding("weights", "ok" if effective > n / 2 else "note", sentence, numbers=numbers)]


def copies_findings(read: Inputs, whole: Bags, groups: Bags | None = None) -> list[Finding]:
    """How many instances are copies of others, if that makes the interval noticeably wider; else empty.

    Parameters
    ----------
    read : the instances as a quantifier has read them.
    whole : one bag with all instances.
    groups : the bags they are grouped into, if there are several.
    """
    found = count_copies(read.hashes, whole)
    note = str(copies_notes(whole, found)[0])
    numbers = {"copies": float(found.number[0]), "factor": float(found.factor[0])} if note else {}
    sentences = [f"{note[0].upper()}{note[1:]}."] if note else []
    if groups is not None:
        notes = copies_notes(groups, count_copies(read.hashes, groups))
        names = [str(name) for name in groups.labels[notes != ""].tolist()]
        others = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
        listed = f" ({', '.join(names[:NAMED])}{others})"
        if names:
            sentences.append(f"There are copies in {len(names):,} of {len(groups):,} groups{listed}.")
    return [Finding("copies", "note", " ".join(sentences), numbers=numbers)] if sentences else []
