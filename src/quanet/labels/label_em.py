r"""Maximum-likelihood prevalences of a bag with some labels fixed, and their standard deviation.

The posteriors are calibrated on held-out instances by one scale and one shift per class. The uncertainty of these
parameters depends on the number of held-out instances and is part of the standard deviation.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.utils.validation import _num_samples, check_is_fitted

from quanet.arrays import FloatArray, IntArray
from quanet.base import Quantifier
from quanet.classifiers.calibration import calibrate
from quanet.classifiers.cross_fitting import check_posteriors
from quanet.errors import InvalidBags, InvalidSetting
from quanet.simplex import count

MAX_ITERATIONS = 500
BISECTIONS = 14  # steps that locate each limit of an interval
TINY = 1e-12  # smallest posterior used in a ratio


def likelihood_ratios(quantifier: Quantifier, X: Any) -> FloatArray:
    """Calibrated posteriors divided by the training prevalence, proportional to the class densities: (n, k)."""
    check_is_fitted(quantifier, "classes_")
    kind = type(quantifier).__name__
    if not quantifier.reads_posteriors:
        raise InvalidSetting(f"{kind} does not use posteriors, which refine needs. Use EMQ or PACC.")
    if _num_samples(X) == 0:
        raise InvalidBags("X has no instances. Pass the bag and its labelled part.")
    k = len(quantifier.classes_)
    posteriors = check_posteriors(quantifier.read(X).values[:, :k], k)
    held = held_out_posteriors(quantifier)
    if held is not None:
        posteriors = calibrate(*held, method="bcts")(posteriors)
    return np.maximum(posteriors, TINY) / quantifier.prior_


def held_out_posteriors(quantifier: Quantifier) -> tuple[FloatArray, IntArray] | None:
    """Posteriors (m, k) and classes (m,) of the held-out instances; None if the quantifier keeps none."""
    held = quantifier.held_out_
    if held is None:
        return None
    k = len(quantifier.classes_)
    return check_posteriors(held.inputs[:, :k], k), np.asarray(held.codes, dtype=np.intp)


def calibration_errors(quantifier: Quantifier) -> FloatArray:
    r"""Uncertainty of the calibration, as independent changes of log ratios of one standard deviation each.

    The true log posteriors may be :math:`(1 + \alpha) l_c + \beta_c` instead of the calibrated :math:`l_c`. The
    covariance of α and β is the inverse of the information in the held-out labels, minus the part of β that comes from
    the training class frequencies: dividing by the training prevalence removes it (as in case-control studies, Prentice
    and Pyke 1979). Each change is a row (α, β): (d, 1 + k).
    """
    held = held_out_posteriors(quantifier)
    if held is None:
        return np.empty((0, 1 + len(quantifier.classes_)))
    posteriors, codes = np.maximum(calibrate(*held, method="bcts")(held[0]), TINY), held[1]
    m, k = posteriors.shape
    features = np.concatenate([np.log(posteriors)[:, :, None], np.tile(np.eye(k), (m, 1, 1))], axis=2)  # (m, k, 1 + k)
    centred = features - np.einsum("mc,mcd->md", posteriors, features)[:, None]
    information = np.einsum("mc,mcd,mce->de", posteriors, centred, features)
    centre = np.eye(k) - 1 / k
    covariance = np.linalg.pinv(information, rcond=1e-10, hermitian=True)  # all β may move together
    covariance[1:, 1:] -= centre @ np.diag(1 / np.maximum(count(codes, k), 1)) @ centre
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-12
    return np.asarray((vectors[:, kept] * np.sqrt(values[kept])).T)


def fixed_label_em(
    ratios: FloatArray, known: FloatArray, codes: IntArray, counts: FloatArray | None = None
) -> FloatArray:
    """Prevalences of the bag by EM with the known labels fixed: (N, k), (n, k), (n,) -> (k,).

    `counts` (N,) are the instances that each row of `ratios` stands for; None for one each.
    """
    k = ratios.shape[1]
    labelled = count(codes, k) if len(codes) else np.zeros(k)
    shares = np.full(k, 1 / k)
    for _ in range(MAX_ITERATIONS):
        posteriors = responsibilities(ratios, shares)
        every = posteriors.sum(axis=0) if counts is None else counts @ posteriors
        updated = np.maximum(every - responsibilities(known, shares).sum(axis=0), 0) + labelled
        updated /= updated.sum()
        moved = np.abs(updated - shares).max()
        shares = updated
        if moved < 1e-7:
            break
    return shares


@dataclass(frozen=True, slots=True, eq=False)
class LabelledBag:
    """A bag whose prevalences are estimated with some labels fixed.

    Attributes
    ----------
    ratios, known : (N, k), (n, k) likelihood ratios of the bag and of its labelled part.
    codes : (n,) classes of the labelled part.
    shifted : these ratios with the calibration changed by minus and plus one standard deviation, for every independent
        calibration error: pairs of pairs.
    """

    ratios: FloatArray
    known: FloatArray
    codes: IntArray
    shifted: tuple[tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]], ...] = ()

    @classmethod
    def of(cls, quantifier: Quantifier, ratios: FloatArray, known: FloatArray, codes: IntArray) -> "LabelledBag":
        """A bag with the calibration errors of its quantifier."""
        prior = quantifier.prior_
        shifted = tuple(
            (
                (_shifted(ratios, prior, -error), _shifted(known, prior, -error)),
                (_shifted(ratios, prior, error), _shifted(known, prior, error)),
            )
            for error in calibration_errors(quantifier)
        )
        return cls(ratios, known, codes, shifted)

    def interval(self, shares: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
        """Limits (k,), (k,): prevalences at most z standard deviations from the estimate.

        The standard deviation is evaluated at the limit, as in Wilson (1927), so prevalences near 0 or 1 are covered.
        """
        k = len(shares)
        lower, upper = np.zeros(k), np.ones(k)
        for c in range(k) if k > 2 else [1]:
            for ends, side in ((lower, 0.0), (upper, 1.0)):
                ends[c] = self._end(shares, c, side, z)
        if k == 2:
            lower[0], upper[0] = 1 - upper[1], 1 - lower[1]
        return lower, upper

    def _end(self, shares: FloatArray, c: int, side: float, z: float) -> float:
        inside, outside = float(shares[c]), side
        rest = np.where(np.arange(len(shares)) == c, 0.0, np.maximum(shares, 1e-9))

        def accepted(p: float) -> bool:
            candidate = rest * (1 - p) / rest.sum()
            candidate[c] = p
            return bool(abs(p - shares[c]) <= z * self.deviation(candidate)[c])

        if accepted(outside):
            return outside
        for _ in range(BISECTIONS):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if accepted(middle) else (inside, middle)
        return inside

    def deviation(self, shares: FloatArray) -> FloatArray:
        """Standard deviation of the estimate around the bag's prevalences if these are `shares`: (k,).

        It has three parts: the unknown labels given the source's prevalences, the source's prevalences (from the
        observed information), and the calibration.
        """
        N, k = self.ratios.shape
        p = np.maximum(shares, 0.5 / N)
        open_ = responsibilities(self.ratios, p)
        fixed = responsibilities(self.known, p)
        outer = open_.T @ open_ - fixed.T @ fixed
        sums = open_.sum(axis=0) - fixed.sum(axis=0)
        doubt = np.diag(sums) - outer
        information = outer / np.outer(p, p) + np.diag(count(self.codes, k) / p**2)
        inverse = np.linalg.pinv(information, hermitian=True)
        ones = inverse.sum(axis=1)
        of_p = inverse - np.outer(ones, ones) / ones.sum()
        slope = doubt / p
        variance = np.maximum(np.diag(doubt + slope @ of_p @ slope.T), 0.25) / N**2
        # Derivative of the fixed point of EM with respect to the expected counts of the unknown labels.
        rest = np.linalg.pinv(np.eye(k) - slope / N)
        for ends in self.shifted:
            low, high = (
                responsibilities(bag, p).sum(axis=0) - responsibilities(part, p).sum(axis=0) for bag, part in ends
            )
            variance += (rest @ (high - low) / 2 / N) ** 2
        return np.sqrt(variance)


def _shifted(ratios: FloatArray, prior: FloatArray, error: FloatArray) -> FloatArray:
    """Ratios whose calibration is changed by (α, β): (n, k) -> (n, k)."""
    return np.asarray(softmax((1 + error[0]) * np.log(ratios * prior) + error[1:], axis=1) / prior)


def responsibilities(ratios: FloatArray, shares: FloatArray) -> FloatArray:
    """Posteriors for given prevalences: (n, k), (k,) -> (n, k)."""
    joint = ratios * shares
    return joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
