"""The statistics of a bag that networks read: the classical estimates, for many bags at once."""

from dataclasses import dataclass

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.classifiers.calibration import Calibration, calibrate
from quanet.methods.counting import adjust, classify_and_count, hard_rates, mean_posterior, soft_rates
from quanet.methods.solvers import maximum_likelihood
from quanet.simplex import count


@dataclass(frozen=True, slots=True)
class Statistics:
    """Estimates of a bag's prevalences by counting and by maximum likelihood, all from the same held-out rows.

    Attributes
    ----------
    prior : (k,) prevalences of the rows it was fitted to.
    hard, soft : (k, k) rates, as in ACC and PACC.
    calibration : of the posteriors.
    """

    prior: FloatArray
    hard: FloatArray
    soft: FloatArray
    calibration: Calibration

    @classmethod
    def fit(cls, posteriors: FloatArray, codes: IntArray) -> "Statistics":
        """Learn rates and calibration from posteriors (m, k) of instances their classifier has not seen."""
        prior = count(codes, posteriors.shape[1]) / len(codes)
        return cls(
            prior,
            hard_rates(posteriors, codes),
            soft_rates(posteriors, codes),
            calibrate(posteriors, codes, method="bcts"),
        )

    def maximum_likelihood(self, calibrated: FloatArray) -> FloatArray:
        """EMQ's estimate from calibrated posteriors: (..., n, k) -> (..., k)."""
        return maximum_likelihood(calibrated, self.prior)[0]

    def estimates(self, posteriors: FloatArray, calibrated: FloatArray) -> FloatArray:
        """Maximum likelihood, PACC, ACC, PCC and CC: (..., n, k), (..., n, k) -> (..., k, 5)."""
        hard, soft = classify_and_count(posteriors), mean_posterior(posteriors)
        found = (self.maximum_likelihood(calibrated), adjust(soft, self.soft), adjust(hard, self.hard), soft, hard)
        return np.stack(found, axis=-1)

    def of_the_paper(self, posteriors: FloatArray) -> FloatArray:
        """CC, ACC, PCC, PACC, unclipped, and tpr_b, fpr_b, tpr_s, fpr_s, of the second class: (b, n, 2) -> (b, 8)."""
        hard, soft = classify_and_count(posteriors)[..., 1], mean_posterior(posteriors)[..., 1]
        (fpr_b, tpr_b), (fpr_s, tpr_s) = self.hard[1], self.soft[1]
        values = (
            hard,
            _unclipped(hard, tpr_b, fpr_b),
            soft,
            _unclipped(soft, tpr_s, fpr_s),
            tpr_b,
            fpr_b,
            tpr_s,
            fpr_s,
        )
        return np.stack(np.broadcast_arrays(*values), axis=-1)


def _unclipped(counted: FloatArray, tpr: float, fpr: float) -> FloatArray:
    return counted if abs(tpr - fpr) < 1e-6 else (counted - fpr) / (tpr - fpr)
