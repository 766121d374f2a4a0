r"""How many different, independent instances of equal weight say as much as a bag, given weights, copies and clusters.

`BagEvidence` is known before anything is estimated; `sampling_sizes` also depends on how errors vary.

**Weights.** The error of a share of weights is a weighted mean of the errors of the instances. If these vary by
:math:`S_c` in class c, and :math:`q_c` is the share of class c among the *squared* weights, its variance is

.. math:: \frac{1}{n} \sum_c q_c S_c, \qquad n = \frac{(\sum w)^2}{\sum w^2} \quad \text{(Kish 1965)}

If weights do not depend on the class, :math:`q_c` is the share :math:`p_c` of the weights, and the bag is like one of n
instances. If one class has more of the large weights, n is corrected by the ratio of both variances.

**Copies and clusters** divide this number by the factors by which they increase the variance (`quanet.data.copies` for
copies). Instances of one cluster, such as the reviews of one author, are alike, so that they say less about the
*source* of a bag than as many independent ones. How much less is seen in the data, not in the sizes of the clusters
alone. To first order an estimate is a mean of influences z of the instances, scores of the likelihood at the estimate
(`closed_form.score_covariance`). Its variance if clusters are independent, relative to that if instances are, is the
design effect (Kish 1965; Liang and Zeger 1986)

.. math:: \frac{G}{G - 1} \frac{\sum_g \big(\sum_{i \in g} w_i z_i\big)^2}{\sum_i w_i^2 z_i^2},

of the class for which it is largest, and at least 1. The variance is estimated from few clusters, so Student's t
distribution replaces the normal one. It has one degree of freedom less than there are clusters of equal weight (Carter,
Schnepel and Steigerwald 2017), and fewer if some clusters dominate, such as those with a rare class (Satterthwaite
1946). Methods that read no posteriors have no such influences: for them all instances of a cluster count as one.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.bags import Bags
from quanet.data.copies import BagCopies, count_copies
from quanet.data.instances import Inputs, has_no_value
from quanet.errors import InvalidData, brief
from quanet.uncertainty.closed_form import constrained_inverse, score_covariance
from quanet.uncertainty.relearning import IntervalRequest

NOTED = 0.05  # of the effective size, from which copies are worth a note
ONE_INSTANCE_NOTE = "one instance: any share is possible"
ONE_WEIGHT_NOTE = "one instance has nearly all of the weight: any share is possible"
ALL_COPIES_NOTE = "all rows are copies of one row: any share is possible"
ONE_CLUSTER_NOTE = "all rows belong to one cluster: any share is possible"
FEWEST = 2  # instances, so that a bag with weights, copies or clusters never counts as a single instance


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
        fewer = np.maximum(np.rint(plain / copies.factor), 1)
        sizes = np.where(copies.factor == 1, plain, fewer).astype(np.intp)
        notes = copies_notes(bags, copies)
        notes[lone] = ONE_CLUSTER_NOTE
        notes[sizes == 1] = ALL_COPIES_NOTE
        notes[plain == 1] = ONE_WEIGHT_NOTE
        notes[bags.sizes == 1] = ONE_INSTANCE_NOTE
        return cls(copies, np.where(lone, 1, sizes), codes, lone, notes)


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


@dataclass(frozen=True, slots=True)
class DesignEffect:
    """By how much clusters increase a variance, at least 1, and the degrees of freedom with which this is known."""

    effect: float
    freedom: float


def cluster_factors(request: IntervalRequest, clusters: IntArray) -> FloatArray:
    """By how much clusters (n,) increase the variance of the estimates of bags, (b,), beyond copies within clusters."""
    bags = request.bags
    alone = clusters.astype(np.uint64) + np.uint64(1)  # as if all instances of a cluster were copies
    most = count_copies(alone, bags).factor
    found = _design_effects(request, clusters)
    effects = np.minimum([one.effect for one in found], most) if request.quantifier.reads_posteriors else most
    within = count_copies(request.hashes, bags, clusters).factor
    quantiles = stats.t.ppf((1 + request.level) / 2, [one.freedom for one in found])
    return np.maximum(effects / within, 1.0) * (quantiles / max(request.z, 1e-9)) ** 2


def _design_effects(request: IntervalRequest, clusters: IntArray) -> list[DesignEffect]:
    bags, likelihoods = request.bags, request.likelihoods()
    weights = np.ones(len(clusters)) if bags.weights is None else bags.weights
    if not request.quantifier.reads_posteriors:
        nothing = np.zeros((len(clusters), 1))
        return [design_effect(nothing[rows], clusters[rows], weights[rows]) for rows in bags.members]
    of_pool = likelihoods(request.inputs)
    prevalences = np.empty((len(bags), of_pool.shape[1]))
    for positions, stack in bags.gather(of_pool):
        prevalences[positions] = likelihoods.prevalences(stack)
    found = []
    for rows, shares in zip(bags.members, prevalences, strict=True):
        influences = _influences(of_pool[rows], shares, weights[rows])
        found.append(design_effect(influences, clusters[rows], weights[rows]))
    return found


def _influences(likelihoods: FloatArray, prevalences: FloatArray, weights: FloatArray) -> FloatArray:
    """By how much each instance moves the maximum likelihood estimate, (n, k); their weighted mean is 0."""
    shares = weights / weights.sum()
    scores = likelihoods / (likelihoods @ prevalences)[:, None]
    information = scores.T @ (shares[:, None] * scores)
    influences = scores @ constrained_inverse(information[None])[0]
    return influences - shares @ influences


def design_effect(influences: FloatArray, clusters: IntArray, weights: FloatArray) -> DesignEffect:
    """The design effect of clusters (n,) of instances with these influences (n, k) and weights (n,).

    Examples
    --------
    Two reviews of each author that are always alike are almost one:

    >>> values = np.array([[1.0], [1.0], [-1.0], [-1.0]] * 50)
    >>> design_effect(values, np.arange(200) // 2, np.ones(200))
    DesignEffect(effect=2.02, freedom=99.0)
    """
    codes = np.unique(clusters, return_inverse=True)[1]
    shares = weights / weights.max()
    size = np.bincount(codes, shares) ** 2
    clusters_alike = size.sum() ** 2 / (size**2).sum()
    if len(size) == 1:
        return DesignEffect(1.0, 1.0)
    weighted = shares[:, None] * influences
    sums = np.stack([np.bincount(codes, column, minlength=len(size)) for column in weighted.T])
    together = np.maximum((sums**2).sum(axis=1), 1e-100)
    effects = together / np.maximum((weighted**2).sum(axis=0), 1e-100)
    at = int(effects.argmax())
    excess = (sums[at] ** 4).sum() / together[at] ** 2 - 1 / clusters_alike
    freedom = min(clusters_alike, 2 / max(excess, 1e-9)) - 1
    return DesignEffect(max(1.0, float(effects[at]) * len(size) / (len(size) - 1)), max(float(freedom), 1.0))


def sampling_sizes(request: IntervalRequest) -> IntArray:
    """(b,) number of different instances of equal weight whose estimate has the same sampling error as each bag's."""
    sizes, evidence = _weighted_sizes(request), request.evidence
    if evidence is None:
        return sizes
    factor = evidence.copies.factor
    if evidence.clusters is not None:
        factor = factor * cluster_factors(request, evidence.clusters)
    fewer = np.where(sizes > FEWEST, np.maximum(np.rint(sizes / factor), FEWEST), sizes)
    return np.where(factor == 1, sizes, fewer).astype(np.intp)


def _weighted_sizes(request: IntervalRequest) -> IntArray:
    """(b,) number of instances of equal weight with the same sampling error as each bag.

    Shares of classes among squared weights, and how errors vary in each class, come from maximum likelihood.
    """
    bags, held_out = request.bags, request.held_out
    sizes = bags.effective_sizes
    exposure = bags.exposure
    if exposure is None or held_out is None or not request.quantifier.reads_posteriors:
        return sizes
    likelihoods = request.likelihoods()
    of_pool = likelihoods(request.inputs)
    relative = exposure / exposure.max()
    squares = np.where(relative > 0, np.maximum(relative, 1e-300), 0.0)
    squared = Bags(bags.members, weights=squares)
    shares = np.empty((2, len(bags), len(likelihoods.prior)))
    for share, weighted in zip(shares, (bags, squared), strict=True):
        for positions, stack in weighted.gather(of_pool):
            share[positions] = likelihoods.prevalences(stack)
    of_held_out = likelihoods(held_out.inputs)
    alike, actual = (
        np.trace(score_covariance(of_held_out, held_out, shares[0], share), axis1=1, axis2=2) for share in shares
    )
    ratio = np.minimum(alike / np.maximum(actual, 1e-300), 1.0)
    return np.where(sizes > FEWEST, np.maximum(np.rint(sizes * ratio), FEWEST), sizes).astype(np.intp)
