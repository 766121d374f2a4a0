"""Windows of a monitor: the mean of the batches in each, with an interval that includes sampling and drift.

Batches in a window are likely to drift together, so the distance of a window from the training data is the mean of its
batches' distances. Those of small batches are mostly noise: all batches so far share information about them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.data.instances import Inputs
from quanet.drift.profile import BagMeans, share_between
from quanet.uncertainty.widening import Drift, combine_ends, described, drift_at


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The batches of a window.

    Attributes
    ----------
    estimate, deviation : (k,) mean prevalences, and their standard deviations by chance.
    size : number of instances.
    distance : from the training data; NaN if unknown.
    """

    estimate: FloatArray
    deviation: FloatArray
    size: int
    distance: float

    @classmethod
    def of(
        cls, sizes: IntArray, totals: FloatArray, estimates: FloatArray, variances: FloatArray, distances: FloatArray
    ) -> "Window":
        """The window of these batches: sizes and weights (t,), estimates and their variances (t, k), distances (t,)."""
        shares = totals / max(float(totals.sum()), 1e-300)
        deviation = np.sqrt((shares[:, None] ** 2 * variances).sum(axis=0))
        return cls(shares @ estimates, deviation, int(sizes.sum()), float(shares @ distances))


def intervals_of(
    quantifier: Quantifier, windows: Sequence[Window], level: float
) -> tuple[FloatArray, FloatArray, Drift]:
    """Lower and upper ends (w, k) of intervals that include sampling and drift, and the drift of each window."""
    shape = len(windows), len(quantifier.classes_)
    estimate, deviation = (
        np.reshape([getattr(one, name) for one in windows], shape) for name in ("estimate", "deviation")
    )
    reach = stats.norm.isf((1 - level) / 2) * deviation
    ends = np.clip(estimate - reach, 0, 1), np.clip(estimate + reach, 0, 1)
    distances, sizes = (np.array([getattr(one, name) for one in windows]) for name in ("distance", "size"))
    drift = drift_at(quantifier, distances, estimate, ends, sizes, level)
    if quantifier.drift_ is None:
        return *ends, drift
    return *combine_ends(estimate, *ends, drift, quantifier.drift_.quantile(level)), drift


def estimate_batch(quantifier: Quantifier, rows: FloatArray, bag: Bags) -> FloatArray:
    """Prevalences (k,) of the rows (n, d) of a batch, which is one bag."""
    return quantifier.aggregate(rows) if bag.weights is None else quantifier.aggregate_bags(rows, bag)[0]


def measure_batch(quantifier: Quantifier, read: Inputs, bag: Bags) -> tuple[float, float]:
    """The distance of a batch from the training data and its deviation by chance; NaN if unknown."""
    descriptions, scale = described(quantifier, read), quantifier.drift_
    if descriptions is None or scale is None or scale.profile is None:
        return np.nan, np.nan
    found = scale.profile.compare(BagMeans.of(descriptions, bag, read.hashes))
    return float(found.distances[0]), float(found.deviations[0])


def share_distances(
    quantifier: Quantifier, distances: FloatArray, deviations: FloatArray, sizes: IntArray
) -> FloatArray:
    """Distances (t,) of the batches so far, after sharing information between them; NaN if unknown."""
    known, scale = np.isfinite(distances), quantifier.drift_
    shared = np.full(len(distances), np.nan)
    if known.any() and scale is not None and scale.profile is not None:
        noise = scale.profile.noise
        # The deviation of all batches together: that of the training data, which they share, and their own.
        own = min(noise / float(sizes[known].sum()), float(deviations[known].min()))
        least = max(0.0, float((deviations - noise / sizes)[known].min())) + own
        shared[known] = share_between(distances[known], deviations[known], least)
    return shared
