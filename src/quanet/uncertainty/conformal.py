r"""Conformal intervals: calibrated on bags drawn from held-out rows, at every prevalence, for any quantifier.

Bags of the size in question are drawn, with replacement, from held-out rows at shares from 0 to 1 of each class, and
estimated. The errors at a share p say how far from p an estimate lies if p is true; they are scaled by their spread
there, and their quantiles are taken over neighbouring shares together. An interval holds every p whose errors the
estimate's distance does not exceed: conformal prediction that is valid given the true share, not only on average
(Vovk 2012). What has been learnt from the same rows is learnt again from resamples, a bag each, so that this is
uncertain too.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom, norm

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.simplex import to_counts
from quanet.uncertainty.held import MEMORY, Held, remembered, replicates
from quanet.uncertainty.inversion import invert, towards_the_ends

SHARES = 41  # of a class that bags are drawn at, more of them near 0 and 1
BAGS = 16_000  # drawn in all
LARGEST = 2**10  # instances in a calibration bag; errors of larger ones follow from what part of them is chance
SURE = 0.6  # probability that what is said of a tail holds, whatever bags were drawn
CUT = 3.0  # standard deviations from 0 or 1, within which estimates may be cut off there
NEIGHBOURS = 2  # shares on either side whose scaled errors are taken together
AT_A_TIME = 2**21  # instances drawn together


@dataclass(frozen=True, slots=True, eq=False)
class Errors:
    """Errors of a class's estimates in calibration bags of one size.

    Attributes
    ----------
    shares : (g,) true shares, ascending.
    errors : (g, b) of the bags at each.
    learnt : share of the errors' variance that comes of what was learnt from held-out rows, which no larger bag makes
        smaller.
    """

    shares: FloatArray
    errors: FloatArray
    learnt: float = 0.0

    def spread(self, ratio: float = 1.0) -> FloatArray:
        """Standard deviation of the errors at every share, (g,), in bags `1 / ratio` times as large."""
        shrink = np.sqrt(self.learnt + (1 - self.learnt) * ratio)
        return np.maximum(self.errors.std(axis=1), 1e-9) * shrink

    def bounds(self, level: float, ratio: float) -> tuple[FloatArray, FloatArray]:
        """Errors (g,) at every share that others fall below, or above, in half of one minus `level` of bags at most.

        `ratio` is the size of calibration bags over that of the bags in question.
        """
        spread, centre = self.spread(ratio), self.errors.mean(axis=1)
        # Scaled around their mean: a bias that is the same in all bags, however small, is many times no spread at all.
        scaled = (self.errors - centre[:, None]) / self.spread()[:, None]
        tail = (1 - level) / 2
        low, high = np.array([_quantiles(_window(scaled, g), tail) for g in range(len(scaled))]).T * spread + centre
        # Estimates are cut off at 0 and 1, and how many are depends on the least thing there: errors that are not seen
        # for that are taken to be normal ones at least.
        cut, normal = self.is_cut(ratio), float(norm.ppf(1 - tail)) * spread
        return np.where(cut, np.minimum(low, -normal), low), np.where(cut, np.maximum(high, normal), high)

    def is_cut(self, ratio: float) -> BoolArray:
        """Whether estimates at every share, (g,), may be cut off at 0 or 1."""
        return np.minimum(self.shares, 1 - self.shares) < CUT * self.spread(ratio)

    def ends(self, estimate: FloatArray, level: float, ratio: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Lower and upper ends (b,) for estimates (b,), and the errors' standard deviation there (b,)."""
        lower, upper = invert(estimate, self.shares, *self.bounds(level, ratio))
        return lower, upper, np.interp(estimate, self.shares, self.spread(ratio))


def _window(values: FloatArray, g: int) -> FloatArray:
    reach = min(NEIGHBOURS, g, len(values) - 1 - g)  # as many on either side, so that no trend is mistaken for spread
    return values[g - reach : g + reach + 1].ravel()


def _quantiles(scores: FloatArray, tail: float) -> tuple[float, float]:
    """Scores that new ones fall below, and above, with probability `tail` at most; that much is more likely than not.

    The scores seen are a draw too. With a tail of them beyond, half of all calibrations would promise too much.
    """
    beyond = int(binom.ppf(1 - SURE, len(scores), tail))
    if beyond == 0:
        return -np.inf, np.inf
    ordered = np.partition(scores, [beyond - 1, -beyond])
    return float(ordered[beyond - 1]), float(ordered[-beyond])


def least_held(level: float) -> int:
    """Fewest held-out instances of a class in whose tails something can be seen at that level."""
    return int(np.ceil(2 / (1 - level) - 1e-9)) - 1


def draw_bags(held: Held, counts: IntArray, rng: np.random.Generator) -> IntArray:
    """Rows (b, n) with class counts (b, k), drawn with replacement: held-out rows stand for endless others."""
    members = held.by_class()
    n = int(counts[0].sum())
    owner = (np.arange(n) >= counts.cumsum(axis=1)[:, :, None]).sum(axis=1)
    starts = np.concatenate([[0], np.cumsum(held.counts)[:-1]])
    return np.concatenate(members)[starts[owner] + (rng.random(owner.shape) * held.counts[owner]).astype(np.intp)]


def calibrate_errors(
    quantifier: Quantifier, held: Held, *, size: int, own: bool, rng: np.random.Generator
) -> tuple[list[Errors], FloatArray]:
    """Errors of every class's estimates in bags of one size, and their correlation (k, k)."""
    k = held.k
    shares = towards_the_ends(SHARES)
    classes = 1 if k == 2 else k  # of two, one tells all
    bags = max(20, BAGS // (SHARES * classes))
    found, scaled = [], []
    for c in range(k - classes, k):
        rest = rng.dirichlet(np.ones(k - 1), size=(SHARES, bags)) * (1 - shares[:, None, None])
        truth = np.insert(rest, c, shares[:, None], axis=2).reshape(-1, k)
        counts = to_counts(truth, size) if own else rng.multinomial(size, truth / truth.sum(axis=1, keepdims=True))
        truth = counts / size if own else truth
        errors = (_estimates(quantifier, held, counts, rng) - truth).reshape(SHARES, bags, k)
        centre = truth[:, c].reshape(SHARES, bags)[:, 0]
        found.append(Errors(centre, errors[..., c], _learnt(errors[..., c], len(replicates(quantifier)))))
        scaled.append((errors / np.maximum(errors.std(axis=1, keepdims=True), 1e-9)).reshape(-1, k))
    if k == 2:
        found.insert(0, Errors(1 - found[0].shares[::-1], -found[0].errors[::-1], found[0].learnt))
    return found, np.corrcoef(np.concatenate(scaled).T)


def _learnt(errors: FloatArray, others: int) -> float:
    """Share of the variance of errors (g, b) that lies between the quantifiers that made them, in turn."""
    g, b = errors.shape
    if others < 2:
        return 0.0
    residuals = (errors - errors.mean(axis=1, keepdims=True)) / np.maximum(errors.std(axis=1, keepdims=True), 1e-9)
    owner = np.arange(g * b).reshape(g, b) % others
    # By tenths of the shares: what a quantifier has learnt moves its estimates at neighbouring shares alike.
    between = within = 0.0
    for part, owners in zip(np.array_split(residuals, 10), np.array_split(owner, 10), strict=True):
        n = np.bincount(owners.ravel(), minlength=others)
        sums = np.bincount(owners.ravel(), part.ravel(), minlength=others)
        spread = float((part**2).sum() - (sums**2 / n).sum()) / (part.size - others)
        between += float((sums**2 / n).sum()) / others - spread
        within += spread * float(n.mean())
    return float(np.clip(between / max(between + within, 1e-12), 0, 1))


def _estimates(quantifier: Quantifier, held: Held, counts: IntArray, rng: np.random.Generator) -> FloatArray:
    others = replicates(quantifier)
    rows = [other._rows(held.inputs) for other in others]  # noqa: SLF001
    estimates = np.empty(counts.shape)
    together = len(others) * max(1, AT_A_TIME // (int(counts[0].sum()) * len(others)))
    for start in range(0, len(counts), together):
        drawn = draw_bags(held, counts[start : start + together], rng)
        for r, other in enumerate(others):
            # Bags go to the quantifiers in turn.
            mine = np.arange((r - start) % len(others), len(drawn), len(others))
            if len(mine):
                estimates[start + mine] = other._aggregate_bags(rows[r], Bags(drawn[mine]))  # noqa: SLF001
    return estimates


class Calibrations:
    """Errors of a quantifier's estimates, for bags of about every size that was asked for; each is found once."""

    def __init__(self, held: Held, *, own: bool, seed: int) -> None:
        self._held, self._own, self._seed = held, own, seed
        self._found: dict[int, tuple[list[Errors], FloatArray]] = {}

    def of_size(self, quantifier: Quantifier, n: int) -> tuple[list[Errors], FloatArray, float]:
        """Errors of every class in bags of about n, their correlation, and the ratio of those bags' size to n.

        What is chance in errors shrinks with the root of a bag's size; up to `LARGEST` that has a factor of 1.2 to do
        at most.
        """
        size = min(max(2, round(2.0 ** (round(2 * np.log2(n)) / 2))), LARGEST)
        with MEMORY:
            if size not in self._found:
                rng = np.random.default_rng([self._seed, size])
                self._found[size] = calibrate_errors(quantifier, self._held, size=size, own=self._own, rng=rng)
        return *self._found[size], size / n

    def ends(
        self, quantifier: Quantifier, estimate: FloatArray, sizes: IntArray, level: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Lower and upper ends (b, k) for estimates (b, k) of bags, and covariances (b, k, k)."""
        lower, upper, spread = (np.empty_like(estimate) for _ in range(3))
        correlations = np.empty((*estimate.shape, estimate.shape[1]))
        for n in np.unique(sizes).tolist():
            mine = sizes == n
            found, correlations[mine], ratio = self.of_size(quantifier, n)
            for c, errors in enumerate(found):
                lower[mine, c], upper[mine, c], spread[mine, c] = errors.ends(estimate[mine, c], level, ratio)
        return lower, upper, spread[:, :, None] * correlations * spread[:, None, :]


def calibrations_of(quantifier: Quantifier, held: Held, *, own: bool, seed: int, kept: bool) -> Calibrations:
    """Calibrations on the rows kept from fit are made once for a fitted quantifier; on others, anew."""
    if not kept:
        return Calibrations(held, own=own, seed=seed)
    return remembered(quantifier, ("conformal", own, seed), lambda: Calibrations(held, own=own, seed=seed))
