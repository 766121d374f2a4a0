"""How many independent instances bags consist of, given weights, copies and clusters, before anything is estimated."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.bags import Bags
from quanet.data.copies import BagCopies, count_copies
from quanet.data.instances import Inputs, has_no_value
from quanet.errors import InvalidData, brief

NOTED = 0.05  # of the effective size, from which copies are worth a note
ONE_INSTANCE_NOTE = "one instance: any share is possible"
ONE_WEIGHT_NOTE = "one instance has nearly all of the weight: any share is possible"
ALL_COPIES_NOTE = "all rows are copies of one row: any share is possible"
ONE_CLUSTER_NOTE = "all rows belong to one cluster: any share is possible"


@dataclass(frozen=True, slots=True, eq=False)
class BagEvidence:
    """What b bags consist of.

    Attributes
    ----------
    copies : copies in every bag.
    sizes : (b,) number of different instances of equal weight that say as much; 1 if one instance or cluster says all.
    clusters : (n,) cluster of every instance of the pool, from 0; None if instances count as independent.
    lone : (b,) whether all instances of a bag belong to one cluster.
    notes : (b,) remarks about copies and clusters, empty if there is nothing to report.
    """

    copies: BagCopies
    sizes: IntArray
    clusters: IntArray | None
    lone: BoolArray
    notes: Any

    @classmethod
    def of(cls, read: Inputs, bags: Bags, clusters: ArrayLike | None, *, target_is_bag: bool) -> "BagEvidence":
        """The evidence of bags of what a quantifier has read. Clusters do not matter for the bags themselves."""
        copies, plain = count_copies(read.hashes, bags), bags.effective_sizes
        codes = None if clusters is None else check_clusters(clusters, len(read))
        codes = None if target_is_bag else codes
        lone = np.zeros(len(bags), dtype=bool)
        if codes is not None:
            first = np.repeat(codes[bags.flat[np.cumsum(bags.lengths) - bags.lengths]], bags.lengths)
            lone = np.bincount(bags.owners, codes[bags.flat] != first, minlength=len(bags)) == 0
        sizes = _divided(plain, copies.factor)
        notes = copies_notes(bags, copies)
        notes[lone] = ONE_CLUSTER_NOTE
        notes[sizes == 1] = ALL_COPIES_NOTE
        notes[plain == 1] = ONE_WEIGHT_NOTE
        notes[bags.sizes == 1] = ONE_INSTANCE_NOTE
        return cls(copies, np.where(lone, 1, sizes), codes, lone, notes)


def _divided(sizes: IntArray, factor: FloatArray) -> IntArray:
    return np.where(factor == 1, sizes, np.maximum(np.rint(sizes / factor), 1)).astype(np.intp)


def copies_notes(bags: Bags, copies: BagCopies) -> Any:
    """(b,) how many instances are copies, and what that means for the interval; empty for a few copies.

    Examples
    --------
    >>> bags = Bags([[0, 1, 2, 0, 1, 2], [0, 1, 2]])
    >>> copies_notes(bags, count_copies(None, bags)).tolist()
    ['3 of 6 rows are copies of other rows; the interval is that of 3 different rows', '']
    """
    notes = np.full(len(bags), "", dtype=object)
    plain = bags.effective_sizes
    for at in np.flatnonzero(copies.factor > 1 / (1 - NOTED)).tolist():
        number, size = int(copies.number[at]), max(round(plain[at] / copies.factor[at]), 1)
        who = "many of the" if number < 0 else f"{number:,} of"
        equal = "" if bags.exposure is None else " of equal weight"
        some = "1 row" if size == 1 else f"{size:,} different rows"
        notes[at] = f"{who} {bags.sizes[at]:,} rows are copies of other rows; the interval is that of {some}{equal}"
    return notes


def check_clusters(clusters: ArrayLike, n: int) -> IntArray:
    """Clusters of n instances as numbers (n,); `InvalidData` if there are not n, or some are missing.

    Examples
    --------
    >>> check_clusters(["b", "a", "b"], 3)
    array([1, 0, 1])
    """
    names = np.asarray(clusters, dtype=object)
    if names.shape != (n,):
        raise InvalidData(f"Pass one cluster per instance ({n:,}); got shape {names.shape}.")
    values = names.tolist()
    wrong = [at for at, name in enumerate(values) if has_no_value(name) or name == ""]
    if wrong:
        raise InvalidData(
            f"{len(wrong):,} of {n:,} clusters are missing (first at index {wrong[0]}: {brief(values[wrong[0]])}). "
            "Give every instance a cluster; one that belongs to none is a cluster of its own."
        )
    return np.unique([str(name) for name in values], return_inverse=True)[1].astype(np.intp)
