r"""Maximum likelihood of a bag's shares with the labels of a part of it fixed, and how far the result may be off.

The posteriors are calibrated on instances that the classifier had not seen, by a scale and a shift of each class. How
well these are known depends on the number of such instances; that uncertainty is part of the estimate's.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.utils.validation import _num_samples, check_is_fitted

from quanet.arrays import FloatArray, IntArray
from quanet.base import Quantifier
from quanet.calibration import calibrate
from quanet.classifiers import check_posteriors
from quanet.errors import InvalidBags, InvalidSetting
from quanet.simplex import count

ROUNDS = 500
HALVINGS = 14  # of the range in which an end of an interval lies
TINY = 1e-12  # the smallest posterior that a ratio is made of


def check_level(level: float) -> None:
    """Raise unless a level of confidence is one."""
    if not 0 < level < 1:
        raise InvalidSetting(f"level lies between 0 and 1, such as 0.95; got {level}.")


def likelihood_ratios(quantifier: Quantifier, X: Any) -> FloatArray:
    """Calibrated posteriors over the training prevalence, proportional to the classes' densities: (n, k)."""
    check_is_fitted(quantifier, "classes_")
    kind = type(quantifier).__name__
    if not quantifier._reads_posteriors:  # noqa: SLF001
        raise InvalidSetting(f"{kind} reads no posteriors, which labels could refine. Take EMQ or PACC.")
    if _num_samples(X) == 0:
        raise InvalidBags("there are no instances. Give the bag, and its labelled part.")
    k = len(quantifier.classes_)
    posteriors = check_posteriors(quantifier._inputs_of(X)[:, :k], k)  # noqa: SLF001
    held = held_out(quantifier)
    if held is not None:
        posteriors = calibrate(*held, method="bcts")(posteriors)
    return np.maximum(posteriors, TINY) / quantifier.prior_


def held_out(quantifier: Quantifier) -> tuple[FloatArray, IntArray] | None:
    """Posteriors (m, k) and classes (m,) of instances that the classifier had not seen; None where none are kept."""
    if not hasattr(quantifier, "held_rows_"):
        return None
    k = len(quantifier.classes_)
    return check_posteriors(quantifier.held_rows_[:, :k], k), np.asarray(quantifier.held_codes_, dtype=np.intp)


def learning_directions(quantifier: Quantifier) -> FloatArray:
    r"""How far the calibration may be off, as independent changes of log ratios of one standard deviation each.

    Calibrated log posteriors :math:`l_c` may really be :math:`(1 + \alpha) l_c + \beta_c`. The covariance of α and β is
    the inverse of the information in the held-out labels, less the part of β that the class frequencies of training
    cause, which dividing by the training prevalence takes out again (as in case-control studies, Prentice and Pyke
    1979). Each direction is a row (α, β): (d, 1 + k).
    """
    held = held_out(quantifier)
    if held is None:
        return np.empty((0, 1 + len(quantifier.classes_)))
    posteriors, codes = np.maximum(calibrate(*held, method="bcts")(held[0]), TINY), held[1]
    m, k = posteriors.shape
    turns = np.concatenate([np.log(posteriors)[:, :, None], np.tile(np.eye(k), (m, 1, 1))], axis=2)  # (m, k, 1 + k)
    centred = turns - np.einsum("mc,mcd->md", posteriors, turns)[:, None]
    information = np.einsum("mc,mcd,mce->de", posteriors, centred, turns)
    centre = np.eye(k) - 1 / k
    covariance = np.linalg.pinv(information, hermitian=True)
    covariance[1:, 1:] -= centre @ np.diag(1 / np.maximum(count(codes, k), 1)) @ centre
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-12
    return np.asarray((vectors[:, kept] * np.sqrt(values[kept])).T)


def fixed_label_em(ratios: FloatArray, known: FloatArray, codes: IntArray) -> FloatArray:
    """Shares of the bag by EM, the labels of its known part fixed: (N, k), (n, k), (n,) -> (k,)."""
    k = ratios.shape[1]
    labelled = count(codes, k) if len(codes) else np.zeros(k)
    shares = np.full(k, 1 / k)
    for _ in range(ROUNDS):
        expected = responsibilities(ratios, shares).sum(axis=0) - responsibilities(known, shares).sum(axis=0)
        updated = np.maximum(expected, 0) + labelled
        updated /= updated.sum()
        moved = np.abs(updated - shares).max()
        shares = updated
        if moved < 1e-7:
            break
    return shares


@dataclass(frozen=True, slots=True, eq=False)
class LabelledBag:
    """A bag whose shares are estimated with some labels fixed.

    Attributes
    ----------
    ratios, known : (N, k), (n, k) likelihood ratios of the bag and of its labelled part.
    codes : (n,) classes of the latter.
    turned : those ratios at either end of every direction in which the calibration may be off: pairs of pairs.
    """

    ratios: FloatArray
    known: FloatArray
    codes: IntArray
    turned: tuple[tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]], ...] = ()

    @classmethod
    def of(cls, quantifier: Quantifier, ratios: FloatArray, known: FloatArray, codes: IntArray) -> "LabelledBag":
        """A bag with what is not known of the quantifier's calibration."""
        prior = quantifier.prior_
        turned = tuple(
            (
                (_turned(ratios, prior, -turn), _turned(known, prior, -turn)),
                (_turned(ratios, prior, turn), _turned(known, prior, turn)),
            )
            for turn in learning_directions(quantifier)
        )
        return cls(ratios, known, codes, turned)

    def interval(self, shares: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
        """Shares (k,) from which the estimate is no further than z standard deviations, as these are there.

        So a share near 0 or 1 is held when it should be (Wilson 1927).
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
            there = rest * (1 - p) / rest.sum()
            there[c] = p
            return bool(abs(p - shares[c]) <= z * self.deviation(there)[c])

        if accepted(outside):
            return outside
        for _ in range(HALVINGS):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if accepted(middle) else (inside, middle)
        return inside

    def deviation(self, shares: FloatArray) -> FloatArray:
        """Standard deviation of the estimate around the bag's own shares if these are `shares`: (k,).

        It has three parts: the open labels given the source's shares, these by the observed information, and the
        calibration.
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
        # How the point where EM comes to rest moves with what it expects of the open labels.
        rest = np.linalg.pinv(np.eye(k) - slope / N)
        for ends in self.turned:
            low, high = (
                responsibilities(bag, p).sum(axis=0) - responsibilities(part, p).sum(axis=0) for bag, part in ends
            )
            variance += (rest @ (high - low) / 2 / N) ** 2
        return np.sqrt(variance)


def _turned(ratios: FloatArray, prior: FloatArray, turn: FloatArray) -> FloatArray:
    """Ratios whose calibration is off by (α, β): (n, k) -> (n, k)."""
    return np.asarray(softmax((1 + turn[0]) * np.log(ratios * prior) + turn[1:], axis=1) / prior)


def responsibilities(ratios: FloatArray, shares: FloatArray) -> FloatArray:
    """Posteriors at given shares: (n, k), (k,) -> (n, k)."""
    joint = ratios * shares
    return joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
