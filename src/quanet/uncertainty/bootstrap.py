r"""Bootstrap intervals: errors of the estimates of resampled bags, made by relearned quantifiers.

The inputs of a bag are resampled many times with replacement. Each resample is estimated by a quantifier that has
learned from another resample of the held-out instances, so that the errors include both sources of uncertainty. An
error needs a true prevalence: each drawn instance gets a random class, drawn from its posterior in this bag, and the
prevalences of these classes are the truth of the resample. The errors therefore include the bias of the method.

Errors depend on the true prevalence, mainly near 0 and 1. So they are scaled by their standard deviation in bags of
held-out instances at that prevalence (a bootstrap-t: Davison and Hinkley 1997, section 5.2), and the interval contains
every prevalence whose errors reach the estimate.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from quanet.arrays import FloatArray
from quanet.bags import Bags
from quanet.simplex import invert, orders_of_content
from quanet.uncertainty.conformal import Errors, calibrations_of
from quanet.uncertainty.relearning import Ends, IntervalRequest, Likelihoods, replicates

BATCH = 2**20  # instances drawn at a time
MAX_SINGLE_PRECISION = 2048  # bag size from which random numbers need double precision


@dataclass(frozen=True, slots=True, eq=False)
class BootstrapDraws:
    """Estimates of r resamples of a bag, and their true prevalences, both (r, k); `size` is that of the bag."""

    estimates: FloatArray
    truths: FloatArray
    size: int

    def ends(
        self, estimate: FloatArray, level: float, calibrated: tuple[list[Errors], float] | None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Lower and upper ends (k,) for the bag's estimate (k,), and the covariance of its error (k, k).

        `calibrated` are the errors of every class in bags of held-out instances, and the ratio of the size of those
        bags to the size of this bag.
        """
        errors = self.estimates - self.truths
        covariance = np.cov(errors.T)
        tail = (1 - level) / 2
        if calibrated is None:
            low, high = np.quantile(errors, [tail, 1 - tail], axis=0)
            return estimate - high, estimate - low, covariance
        ends, (by_class, ratio) = [], calibrated
        for c, known in enumerate(by_class):
            spread = known.spread(ratio)
            scaled = errors[:, c] / np.interp(self.truths[:, c], known.shares, spread)
            low, high = (end * spread for end in self._bounds(scaled, c, tail))
            # Estimates that are cut off at 0 or 1 have a small spread there and skewed errors. Resamples at another
            # prevalence do not show this; held-out bags at that prevalence do.
            cut, (least, most) = known.is_cut(ratio), known.bounds(level, ratio)
            low, high = np.where(cut, np.minimum(low, least), low), np.where(cut, np.maximum(high, most), high)
            ends.append(invert(estimate[c : c + 1], known.shares, low, high))
        lower, upper = np.concatenate(ends, axis=1)
        return lower, upper, covariance

    def _bounds(self, scaled: FloatArray, c: int, tail: float) -> tuple[float, float]:
        """Quantiles of scaled errors (r,).

        If estimates are cut off at 0 or 1, larger errors are hidden. They are assumed to be at least as large as normal
        errors.
        """
        low, high = (float(end) for end in np.quantile(scaled, [tail, 1 - tail]))
        cut = (self.estimates[:, c] < 1 / self.size) | (self.estimates[:, c] > 1 - 1 / self.size)
        if cut.mean() > tail:
            normal = float(norm.ppf(1 - tail))
            return min(low, -normal), max(high, normal)
        return low, high


def bootstrap_intervals(request: IntervalRequest) -> Ends:
    """Bootstrap intervals of the requested bags."""
    spelled = request.bags.unweighted(request.inputs)
    bags = spelled.members
    likelihoods = request.likelihoods() if request.quantifier.reads_posteriors else None
    calibrations = None if request.held_out is None else calibrations_of(request)
    ends, positions, sizes = [], request.positions.tolist(), request.sizes.tolist()
    for position, members, size, estimate in zip(positions, bags, sizes, request.estimate, strict=True):
        # Seeded by the position of the bag, so that other bags do not change its interval.
        rng = np.random.default_rng([request.seed, position])
        draws = draw_bootstrap(request, likelihoods, request.inputs[members], size, estimate, rng)
        calibrated = None
        if calibrations is not None:
            by_class, _, ratio = calibrations.of_size(request.quantifier, size)
            calibrated = by_class, ratio
        ends.append(draws.ends(estimate, request.level, calibrated))
    lower, upper, covariance = (np.stack(part) for part in zip(*ends, strict=True))
    return lower, upper, covariance


def draw_bootstrap(
    request: IntervalRequest,
    likelihoods: Likelihoods | None,
    inputs: FloatArray,
    size: int,
    estimate: FloatArray,
    rng: np.random.Generator,
) -> BootstrapDraws:
    """Resample the inputs (m, d) of one of the requested bags, with estimate (k,), and estimate each resample.

    The effective size of the bag is that of each resample; it is m if the bag has no weights.
    The likelihoods give the drawn instances a class; None means that errors are measured from the estimate.
    """
    quantifier, resamples = request.quantifier, request.resamples
    assert resamples is not None
    k = len(quantifier.classes_)
    order, rows_in_order = orders_of_content(inputs, k if quantifier.reads_posteriors else 0)
    inputs = inputs[rows_in_order]
    relearned = replicates(quantifier)
    estimates, truths = np.empty((resamples, k)), np.empty((resamples, k))
    cumulative = None
    if likelihoods is not None:
        values = likelihoods(inputs)
        posteriors = likelihoods.posteriors(values, likelihoods.prevalences(values, size))
        truths[:] = posteriors.mean(axis=0)
        cumulative = posteriors[:, order].cumsum(axis=1).astype(np.float32)
    else:
        truths[:] = estimate
    owners = np.arange(resamples) * len(relearned) // resamples
    rows = [replicate.rows(inputs) for replicate in relearned]
    batch = max(1, BATCH // size)
    for start in range(0, resamples, batch):
        block = slice(start, min(start + batch, resamples))
        drawn, uniforms = _draw_positions(block.stop - start, size, len(inputs), rng)
        if request.target_is_bag and cumulative is not None:
            truths[block, order] = _prevalences_of_drawn_classes(cumulative, drawn, uniforms)
        for r in np.unique(owners[block]).tolist():
            owned = np.flatnonzero(owners[block] == r)
            estimates[start + owned] = relearned[r].aggregate_bags(rows[r], Bags(drawn[owned]))
    return BootstrapDraws(estimates, truths, size)


def _draw_positions(b: int, n: int, m: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Drawn instances (b, n) out of m, and a uniform number for each: whole part and fraction of one random number."""
    scaled = rng.random((b, n), dtype=np.float32 if m < MAX_SINGLE_PRECISION else np.float64)
    scaled *= m
    drawn = scaled.astype(np.int32)
    np.minimum(drawn, m - 1, out=drawn)  # rounding can give m
    scaled -= drawn
    return drawn, scaled


def _prevalences_of_drawn_classes(cumulative: Any, drawn: Any, uniforms: Any) -> FloatArray:
    """Prevalences (b, k) of classes drawn from cumulative posteriors (n, k) for the drawn instances (b, n)."""
    b, n = drawn.shape
    at_most = np.zeros((b, cumulative.shape[1] + 1))
    at_most[:, -1] = 1.0
    for c in range(cumulative.shape[1] - 1):
        at_most[:, c + 1] = (uniforms < cumulative[:, c].take(drawn)).sum(axis=1, dtype=np.int32) / n
    return np.diff(at_most, axis=1)
