"""Counted bags: mean scores, adjusted by held-out rates and, for two classes, combined with maximum likelihood."""

from dataclasses import dataclass

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.held_out import HeldOut
from quanet.methods.counting import soft_rates
from quanet.methods.solvers import maximum_likelihood
from quanet.uncertainty.control_variates import ControlledCount
from quanet.uncertainty.relearning import IntervalRequest


@dataclass(frozen=True, slots=True, eq=False)
class CountedBags:
    """Counts of b bags.

    Attributes
    ----------
    scores : (m, k) of the held-out instances: posteriors, or one-hot rows of predicted labels.
    rates : (k, k) their means by class.
    counted : (b, k) mean scores of the bags.
    control : errors of the adjusted count combined with maximum likelihood; None if that is not possible.
    adjusted, likely : (b,) adjusted count and maximum likelihood of the second class, if `control` is not None.
    """

    scores: FloatArray
    rates: FloatArray
    counted: FloatArray
    control: ControlledCount | None
    adjusted: FloatArray
    likely: FloatArray

    def centre(self, sizes: IntArray) -> FloatArray:
        """Adjusted prevalences (b, k) of bags of these sizes (b,), not cut off at 0 and 1."""
        if self.control is None:
            return self.counted @ np.linalg.pinv(self.rates).T
        second = self.control.combine(self.adjusted, self.likely, sizes)
        return np.stack([1 - second, second], axis=1)


def count_bags(request: IntervalRequest, held_out: HeldOut, *, predicted: bool) -> CountedBags:
    """Count the requested bags: predicted labels or posteriors."""
    k, bags = held_out.k, request.bags
    scores, pool = held_out.inputs[:, :k], request.inputs[:, :k]
    if predicted:
        scores, pool = np.eye(k)[scores.argmax(axis=1)], np.eye(k)[pool.argmax(axis=1)]
    counted, likely, adjusted = np.empty((len(bags), k)), np.empty(len(bags)), np.empty(len(bags))
    for positions, stack in bags.gather(pool):
        counted[positions] = stack.mean(axis=1)
    likelihoods, rates = request.likelihoods(), soft_rates(scores, held_out.codes)
    control = ControlledCount.fit(scores, likelihoods(held_out.inputs), held_out) if k == 2 else None
    if control is not None:
        for positions, stack in bags.gather(likelihoods(request.inputs)):
            likely[positions] = maximum_likelihood(stack, np.full(k, 1 / k))[0][:, 1]
        false_positive, true_positive = rates[1]
        adjusted = (counted[:, 1] - false_positive) / (true_positive - false_positive)
    return CountedBags(scores, rates, counted, control, adjusted, likely)
