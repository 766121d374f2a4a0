r"""The bootstrap: how far estimates of resampled bags, by relearnt quantifiers, lie from what they estimate.

A bag's rows are drawn again with replacement, a thousand times, and every draw is estimated by a quantifier that has
learnt from another resample of the held-out rows: both sources of uncertainty, in one batch of bags. An error needs a
truth. Each drawn instance gets a class at random, by its posterior in this bag, and the draw's truth is the shares of
these classes; so errors are those of an estimate of the bag's own shares, and a bias of the method shows in them.

Errors grow with a share's distance from 0 and 1. So they are scaled by their spread in bags of held-out rows of that
share (a bootstrap-t: Davison and Hinkley 1997, section 5.2), and an interval holds every share whose errors reach the
estimate.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from quanet.arrays import FloatArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.uncertainty.conformal import Errors
from quanet.uncertainty.held import Likelihoods, replicates
from quanet.uncertainty.inversion import invert

AT_A_TIME = 2**20  # instances drawn together
MANY = 2048  # instances in a bag for which single precision does not do


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Estimates of draws of a bag of a size, and what they estimate, both (r, k)."""

    estimates: FloatArray
    truths: FloatArray
    size: int

    def ends(
        self, estimate: FloatArray, level: float, held: tuple[list[Errors], float] | None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Lower and upper ends (k,) for the bag's estimate (k,), and the covariance of its error (k, k).

        `held` are errors in bags of held-out rows, with the ratio of their size to that of this bag.
        """
        errors = self.estimates - self.truths
        covariance = np.cov(errors.T)
        tail = (1 - level) / 2
        if held is None:
            low, high = np.quantile(errors, [tail, 1 - tail], axis=0)
            return estimate - high, estimate - low, covariance
        ends = []
        for c, known in enumerate(held[0]):
            spread = known.spread(held[1])
            scaled = errors[:, c] / np.interp(self.truths[:, c], known.shares, spread)
            low, high = (end * spread for end in self._bounds(scaled, c, tail))
            # Estimates that are cut off at 0 or 1 have little spread there, and skewed errors. Draws around another
            # share do not show them; held-out bags of that share do.
            cut, (least, most) = known.is_cut(held[1]), known.bounds(level, held[1])
            low, high = np.where(cut, np.minimum(low, least), low), np.where(cut, np.maximum(high, most), high)
            ends.append(invert(estimate[c : c + 1], known.shares, low, high))
        lower, upper = np.concatenate(ends, axis=1)
        return lower, upper, covariance

    def _bounds(self, scaled: FloatArray, c: int, tail: float) -> tuple[float, float]:
        """Quantiles of scaled errors (r,). Where estimates are cut off at 0 or 1, errors beyond are not seen.

        Then they are taken to be normal ones at least.
        """
        low, high = (float(end) for end in np.quantile(scaled, [tail, 1 - tail]))
        cut = (self.estimates[:, c] < 1 / self.size) | (self.estimates[:, c] > 1 - 1 / self.size)
        if cut.mean() > tail:
            normal = float(norm.ppf(1 - tail))
            return min(low, -normal), max(high, normal)
        return low, high


def draw(
    quantifier: Quantifier,
    inputs: FloatArray,
    likelihoods: Likelihoods | None,
    *,
    resamples: int,
    own: bool,
    rng: np.random.Generator,
) -> Drawn:
    """Draw a bag's inputs (n, d) again and again, and estimate each draw.

    Parameters
    ----------
    quantifier : fitted.
    inputs : of the bag.
    likelihoods : to give drawn instances a class. None measures errors from the bag's estimate.
    resamples : number of draws.
    own : whether the truth is a draw's own shares, or those of the bag that it is drawn from.
    rng : of the draws.
    """
    n, k = len(inputs), len(quantifier.classes_)
    others = replicates(quantifier)
    estimates, truths = np.empty((resamples, k)), np.empty((resamples, k))
    cumulative = None
    if likelihoods is not None:
        values = likelihoods(inputs)
        posteriors = likelihoods.posteriors(values, likelihoods.prevalences(values))
        truths[:] = posteriors.mean(axis=0)
        cumulative = posteriors.cumsum(axis=1).astype(np.float32)
    else:
        truths[:] = quantifier.aggregate(quantifier._rows(inputs))  # noqa: SLF001
    owners = np.arange(resamples) * len(others) // resamples
    rows = [other._rows(inputs) for other in others]  # noqa: SLF001
    together = max(1, AT_A_TIME // n)
    for start in range(0, resamples, together):
        block = slice(start, min(start + together, resamples))
        drawn, level = _places(block.stop - start, n, rng)
        if own and cumulative is not None:
            truths[block] = _drawn_shares(cumulative, drawn, level)
        for r in np.unique(owners[block]).tolist():
            mine = np.flatnonzero(owners[block] == r)
            estimates[start + mine] = others[r]._aggregate_bags(rows[r], Bags(drawn[mine]))  # noqa: SLF001
    return Drawn(estimates, truths, n)


def _places(b: int, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Instances drawn (b, n), and for each a number between 0 and 1: whole and fraction of one random number."""
    scaled = rng.random((b, n), dtype=np.float32 if n < MANY else np.float64)
    scaled *= n
    drawn = scaled.astype(np.int32)
    np.minimum(drawn, n - 1, out=drawn)  # rounding can give n
    scaled -= drawn
    return drawn, scaled


def _drawn_shares(cumulative: Any, drawn: Any, level: Any) -> FloatArray:
    """Shares (b, k) of classes drawn by cumulative posteriors (n, k) for instances drawn (b, n)."""
    b, n = drawn.shape
    at_most = np.zeros((b, cumulative.shape[1] + 1))
    at_most[:, -1] = 1.0
    for c in range(cumulative.shape[1] - 1):
        at_most[:, c + 1] = (level < cumulative[:, c].take(drawn)).sum(axis=1, dtype=np.int32) / n
    return np.diff(at_most, axis=1)
