r"""The sampling error of bags: how many different, independent instances of equal weight would have the same error.

Copies and clusters divide this number by the factors by which they increase the variance (`quanet.data.copies`,
`clusters`). Weights change it as follows.

The error of a share of weights is a weighted mean of the errors of the instances. If these vary by :math:`S_c` in class
c, and :math:`q_c` is the share of class c among the *squared* weights, its variance is

.. math:: \frac{1}{n} \sum_c q_c S_c, \qquad n = \frac{(\sum w)^2}{\sum w^2} \quad \text{(Kish 1965)}

If weights do not depend on the class, :math:`q_c` is the share :math:`p_c` of the weights, and the bag is like one of n
instances. If one class has more of the large weights, n is corrected by the ratio of both variances.
"""

import numpy as np

from quanet.arrays import IntArray
from quanet.bags import Bags
from quanet.uncertainty.closed_form import score_covariance
from quanet.uncertainty.clusters import cluster_factors
from quanet.uncertainty.relearning import IntervalRequest

FEWEST = 2  # instances, so that a bag with weights, copies or clusters never counts as a single instance


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
