"""Rows and labels of held-out instances, the bags drawn from them, and what a bag tells without a network."""

from dataclasses import dataclass

import numpy as np

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.bags import Bags
from quanet.data.duplicates import split_groups
from quanet.nn.recipes import RECIPES
from quanet.nn.statistics import Statistics
from quanet.protocols import UPP
from quanet.simplex import smooth

LARGEST = RECIPES["residual"].sizes[1]  # bag that the network is trained on; larger ones must not extrapolate
CERTAIN = 1e-4  # group means are kept this far from 0 and 1 before their log-odds are taken


@dataclass(frozen=True, slots=True)
class BagPool:
    """Rows (m, k + e), posteriors first, and classes (m,) of the instances that bags are drawn from.

    `groups` (m,) are equal for copies of an instance; None where all are different.
    """

    rows: FloatArray
    codes: IntArray
    k: int
    groups: IntArray | None = None

    def draw(self, b: int, n: int, *, rng: np.random.Generator) -> Bags:
        """Bags of n instances at prevalences uniform on the simplex."""
        return UPP(bag_size=n, repeats=b).draw_quietly(self.codes, rng=rng, classes=np.arange(self.k))

    def parts(self, shares: tuple[float, ...], *, rng: np.random.Generator) -> list["BagPool"]:
        """Disjoint pools with these shares of every class, drawn at random; copies of an instance are in the same."""
        bounds = np.cumsum(shares) / sum(shares)

        def parts_of(codes: IntArray) -> IntArray:
            member = np.empty(len(codes), dtype=np.intp)
            for c in range(self.k):
                positions = rng.permutation(np.flatnonzero(codes == c))
                # Half an instance off, so that rounding favours no part.
                member[positions] = np.searchsorted(bounds, (np.arange(len(positions)) + 0.5) / len(positions))
            return member

        member = split_groups(self.groups, self.codes, parts_of)
        return [self._take(member == part) for part in range(len(shares))]

    def _take(self, chosen: BoolArray) -> "BagPool":
        groups = None if self.groups is None else self.groups[chosen]
        return BagPool(self.rows[chosen], self.codes[chosen], self.k, groups)


def base_estimate(posteriors: FloatArray, statistics: Statistics) -> FloatArray:
    """Calibrated maximum likelihood, smoothed by half an instance a class: (b, n, k) -> (b, k).

    No bag proves that a class is absent; smoothing accounts for that and keeps logarithms finite.
    """
    return base_from_calibrated(statistics.calibration(posteriors), statistics)


def base_from_calibrated(calibrated: FloatArray, statistics: Statistics) -> FloatArray:
    """The base estimate from posteriors that are calibrated already: (b, n, k) -> (b, k)."""
    return smooth(statistics.maximum_likelihood(calibrated), 1 / (2 * calibrated.shape[-2]))


def pooled_inputs(rows: FloatArray, statistics: Statistics, groups: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What the residual network reads of bags (b, n, k + e).

    Groups (b, k, g, 2 + e), statistics (b, k, 8), and the logarithm of the base estimate (b, k).
    """
    from quanet import kernels

    b, n, width = rows.shape
    k = len(statistics.prior)
    calibrated = np.ascontiguousarray(rows).copy()
    calibrated[..., :k] = statistics.calibration(rows[..., :k])
    estimates = statistics.estimates(np.ascontiguousarray(rows[..., :k]), np.ascontiguousarray(calibrated[..., :k]))
    pooled = np.empty((b, k, groups, 2 + width - k))
    part = np.empty((b, groups, width))
    for c in range(k):
        if k == 2 and c == 1:  # the same order, from the other end
            part = part[:, ::-1]
        else:
            kernels.pool_in_order(calibrated, np.argsort(calibrated[..., c], axis=1), part)
        share = np.clip(part[..., c], CERTAIN, 1 - CERTAIN)
        pooled[:, c, :, 0] = part[..., c]
        pooled[:, c, :, 1] = np.log(share / (1 - share)) / 4
        pooled[:, c, :, 2:] = part[..., k:]
    log_base = np.log(smooth(estimates[..., 0], 1 / (2 * n)))
    size = np.full((b, k, 1), np.log(min(n, LARGEST)) / 10)
    prior = np.broadcast_to(statistics.prior[:, None], (b, k, 1))
    return pooled, np.concatenate([estimates, log_base[..., None] / 4, prior, size], axis=-1), log_base
