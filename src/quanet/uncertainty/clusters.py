r"""Clusters of instances, such as the reviews of one author: by how much they increase the variance of an estimate.

Instances of one cluster are alike, so that they say less about the *source* of a bag than as many independent ones. How
much less is seen in the data, not in the sizes of the clusters alone. To first order an estimate is a mean of
influences z of the instances, scores of the likelihood at the estimate (`closed_form.score_covariance`). Its variance
if clusters are independent, relative to that if instances are, is the design effect (Kish 1965; Liang and Zeger 1986)

.. math:: \frac{G}{G - 1} \frac{\sum_g \big(\sum_{i \in g} w_i z_i\big)^2}{\sum_i w_i^2 z_i^2},

of the class for which it is largest, and at least 1. The variance is estimated from few clusters, so Student's t
distribution replaces the normal one. It has one degree of freedom less than there are clusters of equal weight (Carter,
Schnepel and Steigerwald 2017), and fewer if some clusters dominate, such as those with a rare class (Satterthwaite
1946). Methods that read no posteriors have no such influences: for them all instances of a cluster count as one.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from quanet.arrays import FloatArray, IntArray
from quanet.data.copies import count_copies
from quanet.uncertainty.closed_form import constrained_inverse
from quanet.uncertainty.relearning import IntervalRequest


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
