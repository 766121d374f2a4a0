r"""Conformal and bootstrap intervals: errors of estimates in simulated bags, made by relearned quantifiers.

*Conformal* intervals are for any quantifier and any bag size. Bags of about the requested size are drawn, with
replacement, from held-out instances at true prevalences from 0 to 1 of each class, and are estimated. The errors at a
true prevalence p are scaled by their standard deviation there, and their quantiles are computed together with those of
neighbouring prevalences. The interval contains every p for which the error of the estimate lies between these
quantiles. This is conformal prediction that is valid given the true prevalence, and not only on average (Vovk 2012).
Each bag is estimated by a quantifier that has learned from another resample of the held-out instances, so that the
errors include the uncertainty of what was learned.

The constants below decide how wide intervals are: `CONFIDENCE` and `NEIGHBOURS` for all bags, and `MAX_SIZE` for large
bags. `quanet.uncertainty.policy` decides which bags get a conformal interval.

*Bootstrap* intervals come from the bag itself: its inputs are resampled many times with replacement, and each resample
is estimated by such a quantifier, too. An error needs a true prevalence: each drawn instance gets a random class, drawn
from its posterior in this bag, and the prevalences of these classes are the truth of the resample. The errors therefore
include the bias of the method. They depend on the true prevalence, mainly near 0 and 1. So they are scaled by their
standard deviation in the conformal bags at that prevalence (a bootstrap-t: Davison and Hinkley 1997, section 5.2), and
the interval contains every prevalence whose errors reach the estimate.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom, norm

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.held_out import HeldOut
from quanet.progress import Pace
from quanet.simplex import draw_bags, invert, orders_of_content, share_grid, to_counts
from quanet.uncertainty.relearning import LOCK, Ends, IntervalRequest, Likelihoods, cached, replicates

GRID_POINTS = 41  # true prevalences of a class at which bags are drawn, denser near 0 and 1
BAGS = 16_000  # calibration bags in total; `Quantifier.calibration_share` of them for a method with slow estimates
MAX_SIZE = 2**10  # instances in a calibration bag; errors of larger bags are extrapolated from bags of this size
CONFIDENCE = 0.6  # probability that the bound of a tail holds, over random draws of the calibration bags
CUT_OFF_REGION = 3.0  # standard deviations from 0 or 1 within which estimates may be cut off
NEIGHBOURS = 2  # prevalences on either side whose scaled errors are pooled
BATCH = 2**21  # instances drawn at a time
FIRST_BAGS = 16 * 2 ** np.arange(8)  # after which the time is looked at, to say how long all bags will take
LONG = 30  # seconds from which that is said
ADVICE = "This is done once for each size of bags. In Python, method='bootstrap' is faster."
BOOTSTRAP_BATCH = 2**20  # instances drawn at a time
MAX_SINGLE_PRECISION = 2048  # bag size from which random numbers need double precision


@dataclass(frozen=True, slots=True, eq=False)
class Errors:
    """Errors of the estimates of one class in calibration bags of one size.

    Attributes
    ----------
    shares : (g,) true prevalences, ascending.
    errors : (g, b) errors in the bags at each of them.
    learned_share : share of the errors' variance that comes from what was learned from held-out instances. It does not
        decrease with the size of the bag.
    """

    shares: FloatArray
    errors: FloatArray
    learned_share: float = 0.0

    def spread(self, ratio: float = 1.0) -> FloatArray:
        """Standard deviation of the errors at every prevalence, (g,), in bags that are `1 / ratio` times as large."""
        shrink = np.sqrt(self.learned_share + (1 - self.learned_share) * ratio)
        return np.maximum(self.errors.std(axis=1), 1e-9) * shrink

    def bounds(self, level: float, ratio: float) -> tuple[FloatArray, FloatArray]:
        """Range of the usual errors at every prevalence, (g,): in each tail are at most (1 - level) / 2 of all bags.

        `ratio` is the size of the calibration bags divided by the size of the requested bags.
        """
        spread, centre = self.spread(ratio), self.errors.mean(axis=1)
        # Errors are centred before scaling: if their spread is almost 0, even a tiny bias would be a huge scaled error.
        scaled = (self.errors - centre[:, None]) / self.spread()[:, None]
        tail = (1 - level) / 2
        low, high = np.array([_quantiles(_window(scaled, g), tail) for g in range(len(scaled))]).T * spread + centre
        # Estimates are cut off at 0 and 1, and how many of them depends on small details. The errors that are hidden by
        # this are assumed to be at least as large as normal errors.
        cut, normal = self.is_cut(ratio), float(norm.ppf(1 - tail)) * spread
        return np.where(cut, np.minimum(low, -normal), low), np.where(cut, np.maximum(high, normal), high)

    def is_cut(self, ratio: float) -> BoolArray:
        """Whether estimates at every prevalence, (g,), may be cut off at 0 or 1."""
        return np.minimum(self.shares, 1 - self.shares) < CUT_OFF_REGION * self.spread(ratio)

    def ends(self, estimate: FloatArray, level: float, ratio: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Lower and upper ends (b,) for estimates (b,), and the standard deviation of the error there (b,)."""
        lower, upper = invert(estimate, self.shares, *self.bounds(level, ratio))
        return lower, upper, np.interp(estimate, self.shares, self.spread(ratio))


def _window(values: FloatArray, g: int) -> FloatArray:
    reach = min(NEIGHBOURS, g, len(values) - 1 - g)  # symmetric, so that a trend does not look like spread
    return values[g - reach : g + reach + 1].ravel()


def _quantiles(scores: FloatArray, tail: float) -> tuple[float, float]:
    """Scores that new ones fall below, and above, with probability `tail` at most.

    The scores are random, too. The empirical quantiles would be too narrow in half of all calibrations; these bounds
    hold with probability `CONFIDENCE`.
    """
    beyond = int(binom.ppf(1 - CONFIDENCE, len(scores), tail))
    if beyond == 0:
        return -np.inf, np.inf
    ordered = np.partition(scores, [beyond - 1, -beyond])
    return float(ordered[beyond - 1]), float(ordered[-beyond])


def min_held_out(level: float) -> int:
    """Smallest number of held-out instances per class from which the tails at this level can be estimated."""
    return int(np.ceil(2 / (1 - level) - 1e-9)) - 1


def calibrate_errors(
    quantifier: Quantifier, held_out: HeldOut, *, size: int, target_is_bag: bool, rng: np.random.Generator
) -> tuple[list[Errors], FloatArray]:
    """Errors of the estimates of every class in bags of one size, and their correlation (k, k)."""
    k, order = held_out.k, held_out.class_order
    place = order.argsort()
    shares = share_grid(GRID_POINTS)
    classes = 1 if k == 2 else k  # of two classes, one determines the other
    bags = max(20, int(BAGS * quantifier.calibration_share) // (GRID_POINTS * classes))
    pace = Pace("calibration", classes * GRID_POINTS * bags, long=LONG, advice=ADVICE)
    calibrated, scaled = [], []
    for c in range(k - classes, k):  # in `order`
        rest = rng.dirichlet(np.ones(k - 1), size=(GRID_POINTS, bags)) * (1 - shares[:, None, None])
        truth = np.insert(rest, c, shares[:, None], axis=2).reshape(-1, k)
        if target_is_bag:
            counts = to_counts(truth, size)
            truth = counts / size
        else:
            counts = rng.multinomial(size, truth / truth.sum(axis=1, keepdims=True))
        estimates = _estimates(quantifier, held_out.inputs, place[held_out.codes], counts, rng, pace)[:, order]
        errors = (estimates - truth).reshape(GRID_POINTS, bags, k)
        centre = truth[:, c].reshape(GRID_POINTS, bags)[:, 0]
        learned_share = _learned_share(errors[..., c], len(replicates(quantifier)))
        calibrated.append(Errors(centre, errors[..., c], learned_share))
        scaled.append((errors / np.maximum(errors.std(axis=1, keepdims=True), 1e-9)).reshape(-1, k))
    if k == 2:
        second = calibrated[0]
        calibrated.insert(0, Errors(1 - second.shares[::-1], -second.errors[::-1], second.learned_share))
    return [calibrated[at] for at in place], np.corrcoef(np.concatenate(scaled)[:, place].T)


def _learned_share(errors: FloatArray, n_replicates: int) -> float:
    """Share of the variance of errors (g, b) that lies between the replicates, which estimate the bags in turn."""
    g, b = errors.shape
    if n_replicates < 2:
        return 0.0
    residuals = (errors - errors.mean(axis=1, keepdims=True)) / np.maximum(errors.std(axis=1, keepdims=True), 1e-9)
    owner = np.arange(g * b).reshape(g, b) % n_replicates
    # In ten ranges of prevalences: what a replicate has learned shifts its estimates at similar prevalences alike.
    between = within = 0.0
    for part, owners in zip(np.array_split(residuals, 10), np.array_split(owner, 10), strict=True):
        n = np.bincount(owners.ravel(), minlength=n_replicates)
        sums = np.bincount(owners.ravel(), part.ravel(), minlength=n_replicates)
        spread = float((part**2).sum() - (sums**2 / n).sum()) / (part.size - n_replicates)
        between += float((sums**2 / n).sum()) / n_replicates - spread
        within += spread * float(n.mean())
    return float(np.clip(between / max(between + within, 1e-12), 0, 1))


def _estimates(
    quantifier: Quantifier, inputs: FloatArray, codes: IntArray, counts: IntArray, rng: np.random.Generator, pace: Pace
) -> FloatArray:
    """Estimates (b, k) of bags with class counts (b, k), drawn from held-out inputs (m, d) with these codes (m,).

    The replicates of the quantifier estimate them in turn.
    """
    relearned = replicates(quantifier)
    rows = [replicate.rows(inputs) for replicate in relearned]
    estimates = np.empty(counts.shape)
    batch = len(relearned) * max(1, BATCH // (int(counts[0].sum()) * len(relearned)))
    for start in range(0, len(counts), batch):
        drawn = draw_bags(codes, counts[start : start + batch], rng)
        for r, replicate in enumerate(relearned):
            turn = np.arange((r - start) % len(relearned), len(drawn), len(relearned))
            parts = [turn] if pace.is_known else np.split(turn, FIRST_BAGS[len(turn) > FIRST_BAGS])
            for part in parts if len(turn) else ():
                estimates[start + part] = replicate.aggregate_bags(rows[r], Bags(drawn[part]))
                pace.step(len(part))
    return estimates


class Calibrations:
    """Errors of a quantifier's estimates for bags of different sizes; each size is calibrated once."""

    def __init__(self, held_out: HeldOut, *, target_is_bag: bool, seed: int) -> None:
        self._held_out, self._target_is_bag, self._seed = held_out, target_is_bag, seed
        self._by_size: dict[int, tuple[list[Errors], FloatArray]] = {}

    def of_size(self, quantifier: Quantifier, n: int) -> tuple[list[Errors], FloatArray, float]:
        """Errors of every class in bags of about n instances, their correlation, and the ratio of that size to n.

        Sizes are powers of the square root of 2, at most `MAX_SIZE`. Up to there, rounding changes the random part of
        the errors by a factor of 1.2 at most.
        """
        size = min(max(2, round(2.0 ** (round(2 * np.log2(n)) / 2))), MAX_SIZE)
        with LOCK:
            if size not in self._by_size:
                rng = np.random.default_rng([self._seed, size])
                self._by_size[size] = calibrate_errors(
                    quantifier, self._held_out, size=size, target_is_bag=self._target_is_bag, rng=rng
                )
        return *self._by_size[size], size / n


def calibrations_of(request: IntervalRequest) -> Calibrations:
    """The calibrations of a request; they are cached if the held-out instances are those kept by fit."""
    held_out = request.held_out
    assert held_out is not None
    target_is_bag, seed = request.target_is_bag, request.seed
    if not request.held_out_from_fit:
        return Calibrations(held_out, target_is_bag=target_is_bag, seed=seed)
    return cached(
        request.quantifier,
        ("conformal", target_is_bag, seed),
        lambda: Calibrations(held_out, target_is_bag=target_is_bag, seed=seed),
    )


def conformal_intervals(request: IntervalRequest) -> Ends:
    """Conformal intervals of the requested bags."""
    calibrations, estimate, sizes = calibrations_of(request), request.estimate, request.sizes
    lower, upper, spread = (np.empty_like(estimate) for _ in range(3))
    correlations = np.empty((*estimate.shape, estimate.shape[1]))
    for n in np.unique(sizes).tolist():
        of_size = sizes == n
        by_class, correlations[of_size], ratio = calibrations.of_size(request.quantifier, n)
        for c, errors in enumerate(by_class):
            ends = errors.ends(estimate[of_size, c], request.level, ratio)
            lower[of_size, c], upper[of_size, c], spread[of_size, c] = ends
    return lower, upper, spread[:, :, None] * correlations * spread[:, None, :]


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
    batch = max(1, BOOTSTRAP_BATCH // size)
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
