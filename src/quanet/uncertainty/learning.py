r"""How uncertain what was learnt from held-out rows makes an estimate by maximum likelihood.

Posteriors are calibrated on few rows. Other rows would have given other likelihoods :math:`L^r`, and so another
estimate. To first order it moves with the score,

.. math:: \delta_r = A\,(s^r - \bar s), \qquad s^r_c = \frac1n \sum_i \frac{L^r_{ic}}{\sum_a p_a L^r_{ia}}, \qquad
          A = J^{-1} - \frac{J^{-1} 1 1^T J^{-1}}{1^T J^{-1} 1}

with the observed information J at the prevalences p. Unlike estimates that are learnt again, these are not cut off at 0
and 1, where all estimates would be the same and nothing would seem uncertain.
"""

from collections.abc import Sequence

import numpy as np

from quanet.arrays import FloatArray
from quanet.bags import Bags
from quanet.uncertainty.held import REPLICATES, Held, Likelihoods, resampled


def relearnt_likelihoods(held: Held) -> list[Likelihoods]:
    """What likelihoods would be had their calibration been learnt from resamples of held-out rows."""
    rng = np.random.default_rng(0)
    others = [resampled(held, rng, posteriors=True) for _ in range(REPLICATES)]
    return [Likelihoods(other, other.counts / len(other.codes)) for other in others]


def learning_covariance(
    own: FloatArray, others: Sequence[FloatArray], bags: Bags, prevalences: FloatArray
) -> FloatArray:
    """Covariance (b, k, k) of the bags' estimates that comes from what was learnt.

    Parameters
    ----------
    own : likelihoods (n, k) of a pool's instances.
    others : the same, learnt from other rows.
    bags : of the pool.
    prevalences : (b, k) above 0, near the bags' estimates.
    """
    b, k = prevalences.shape
    if len(others) < 2:
        return np.zeros((b, k, k))
    scores = np.empty((len(others), b, k))
    for r, other in enumerate(others):
        for positions, stack in bags.gather(other):
            scores[r, positions] = _scaled(stack, prevalences[positions]).mean(axis=1)
    slope = np.empty((b, k, k))
    for positions, stack in bags.gather(own):
        scaled = _scaled(stack, prevalences[positions])
        slope[positions] = _inverse(np.swapaxes(scaled, 1, 2) @ scaled / stack.shape[1])
    moves = np.einsum("bcd,rbd->rbc", slope, scores - scores.mean(axis=0))
    return np.einsum("rbc,rbd->bcd", moves, moves) / (len(others) - 1)


def _scaled(stack: FloatArray, prevalences: FloatArray) -> FloatArray:
    """Likelihoods (b, n, k) over their mixtures."""
    return stack / (stack @ prevalences[:, :, None])


def _inverse(information: FloatArray) -> FloatArray:
    """How prevalences that keep their sum move with the score: (b, k, k)."""
    inverse = np.linalg.pinv(information, hermitian=True)
    towards = inverse.sum(axis=2)
    return inverse - towards[:, :, None] * towards[:, None, :] / towards.sum(axis=1)[:, None, None]
