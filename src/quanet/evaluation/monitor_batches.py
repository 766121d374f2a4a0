"""The batches of a monitor: arrays with one entry for each, in order of arrival; the estimates after them; windows.

The mean of the batches in a window has an interval that includes sampling and drift. Batches in a window are likely to
drift together, so the distance of a window from the training data is the mean of its batches' distances. Those of small
batches are mostly noise: all batches so far share information about them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray, Merged
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.data.copies import count_copies
from quanet.data.duplicates import hash_numbers
from quanet.data.instances import Inputs
from quanet.drift.profile import BagMeans, GroupDescriptions, share_between
from quanet.errors import InvalidBags, InvalidData
from quanet.uncertainty.widening import Drift, combine_ends, described, drift_at

PER_BATCH = (
    *("dates_", "sizes_", "estimates_", "spreads_", "resampled_", "distances_", "deviations_"),
    *("totals_", "effective_", "contents_"),
)
COUNTS = ("sizes_", "resampled_", "effective_")
UNKNOWN = np.uint64(0)  # content of a batch that an older version has added
SAME = 1e-9  # estimates of batches of unknown content that differ by less are of the same instances
OLD_RESAMPLES = 20  # assumed for each batch of version 0.1.0


@dataclass(frozen=True, slots=True, eq=False)
class BatchEstimate:
    """A monitor's estimate after one batch.

    Attributes
    ----------
    date : date of the batch.
    n : number of instances in the batch.
    estimate : (k,) prevalences of this batch alone.
    windowed, lower, upper : (k,) mean prevalences of the batches in the window that ends at the newest date, and the
        interval of that mean, with drift.
    drift : what drift may cost in that window, its state, and the ends without drift.
    weighted : (k,) mean over all batches; the weight of a batch halves with every half-life of its age.
    evidence : Bayes factor for a change since the last detected one. The alarm threshold is ``1 / (1 - level)``.
    found : True if a change was detected with this batch.
    alarm : True if a change has been detected, with this batch or before.
    since : date of the first batch after the newest change; None without an alarm.
    effective_n : number of instances of equal weight that say as much as the batch; None without weights.
    """

    date: Any
    n: int
    estimate: FloatArray
    windowed: FloatArray
    lower: FloatArray
    upper: FloatArray
    drift: Drift
    weighted: FloatArray
    evidence: float
    found: bool
    alarm: bool
    since: Any
    effective_n: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """A detected change of prevalence.

    Attributes
    ----------
    date : of the first batch after the change.
    found : newest date when the change was detected.
    before, after : (k,) mean prevalences since the previous change, and up to the next one.
    cost : (k,) by how much drift may change these prevalences, the larger of both; NaN or None if unknown.
    """

    date: Any
    found: Any
    before: FloatArray
    after: FloatArray
    cost: FloatArray | None = None

    @property
    def largest(self) -> int:
        """Position of the class that changed most."""
        return int(np.abs(self.after - self.before).argmax())

    @property
    def may_be_drift(self) -> bool:
        """Whether drift may explain the change: the class that changed most changed no more than drift may cost."""
        c = self.largest
        return self.cost is not None and bool(abs(self.after[c] - self.before[c]) <= self.cost[c])


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Prevalences of all batches, ordered by date.

    Attributes
    ----------
    classes : (k,) labels.
    dates : (t,) dates, or batch numbers if no dates were given.
    sizes : (t,) number of instances.
    estimate : (t, k) prevalences of each batch alone.
    windowed, lower, upper : (t, k) mean over the window that ends at each date, and its interval, with drift.
    weighted : (t, k) mean over all batches up to each date, weights halved with every half-life. Late batches count.
    baseline : (t, k) mean prevalence between the neighbouring changes.
    batch_lower, batch_upper : (t, k) range that contains a batch of this size with probability `level` if the true
        prevalence is the baseline.
    changes : detected changes, by date.
    level : confidence level of the intervals.
    drift : what drift may cost in each window, its state, and the ends without drift; None if it was not measured.
    effective_sizes : (t,) number of instances of equal weight that say as much as each batch; None without weights.
    weight : what the weights are, such as "views", if known.
    """

    classes: LabelArray
    dates: LabelArray
    sizes: IntArray
    estimate: FloatArray
    windowed: FloatArray
    lower: FloatArray
    upper: FloatArray
    weighted: FloatArray
    baseline: FloatArray
    batch_lower: FloatArray
    batch_upper: FloatArray
    changes: tuple[Change, ...]
    level: float
    drift: Drift | None = None
    effective_sizes: IntArray | None = None
    weight: str = ""

    @property
    def since(self) -> Any:
        """Date of the first batch after the newest change, or None."""
        return self.changes[-1].date if self.changes else None

    @property
    def outside(self) -> BoolArray:
        """Batches outside the range expected from the baseline: (t, k)."""
        return (self.estimate < self.batch_lower) | (self.estimate > self.batch_upper)


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


def start_state(monitor: Any, k: int) -> None:
    """The state of a monitor of k classes without batches."""
    for name in PER_BATCH:
        shape = (0, k) if name in ("estimates_", "spreads_") else (0,)
        kind: Any = np.uint64 if name == "contents_" else np.intp if name in COUNTS else float
        setattr(monitor, name, np.empty(shape, dtype=kind))
    monitor.opens_ = np.empty(0, dtype=np.intp)
    monitor.changes_, monitor.alarms_ = np.empty(0), np.empty(0)
    monitor.received_ = 0
    monitor.kind_ = "order"


def add_batch(monitor: Any, *values: Any) -> None:
    """Add a batch: a value for each array, in the order of `PER_BATCH`."""
    if not len(monitor.dates_) or values[0] > monitor.dates_.max():
        monitor.opens_ = np.append(monitor.opens_, len(monitor.dates_))
    for name, value in zip(PER_BATCH, values, strict=True):
        setattr(monitor, name, np.concatenate([getattr(monitor, name), [value]]))
    monitor.received_ += 1


def check_size(rows: int, merged: Merged | None) -> int:
    """The number of instances of a batch; raises if there are fewer than two."""
    n = rows if merged is None else int(merged.counts.sum())
    if n < 2:
        raise InvalidBags(f"the batch has {n} instance; it needs at least 2. Merge it with the next one.")
    return n


def amounts_of(bag: Bags, hashes: Any) -> tuple[float, int]:
    """The weight of a batch, NaN if its instances have none, and its effective size; hashes as in `Inputs`."""
    different = bag.effective_sizes[0] / count_copies(hashes, bag).factor[0]
    return np.nan if bag.exposure is None else float(bag.totals[0]), max(round(float(different)), 1)


def content_of(read: Inputs, weights: ArrayLike | None, merged: Merged | None) -> np.uint64:
    """A hash of what was read of a batch, with weights (n,), whatever the order of the instances; never `UNKNOWN`.

    The sums of the descriptions identify whole groups of a state, of which some rows may be merged: how many depends on
    the other groups. Without descriptions, the rows do.

    Examples
    --------
    >>> batch = Inputs(np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]]))
    >>> bool(content_of(batch, None, None) == content_of(batch.take(np.array([2, 0, 1])), None, None))
    True
    >>> bool(content_of(batch, None, None) == content_of(batch.take(np.array([0, 1, 1])), None, None))
    False
    """
    described = read.descriptions
    if isinstance(described, GroupDescriptions):
        sums = (described.sums, described.squares, described.totals, described.squared_weights)
        columns: list[Any] = [one[np.unique(described.owner)] for one in sums]
    else:
        columns = [read.values, weights, described, None if merged is None else merged.counts]
    return max(_unordered([one for one in columns if one is not None]), UNKNOWN + np.uint64(1))


def _unordered(columns: Sequence[Any]) -> np.uint64:
    """The sum of the hashes of rows, given columns (n,) or (n, d), modulo 2^64."""
    return hash_numbers(np.column_stack([np.asarray(one, dtype=float) for one in columns])).sum(dtype=np.uint64)


def is_known(monitor: Any, at: float, read: Inputs, bag: Bags) -> bool:
    """Whether a monitor has a batch of the same date, as a number, with the same instances.

    Of batches that an older version has added, only size and estimate can be compared.
    """
    same = np.flatnonzero((monitor.dates_ == at) & (monitor.sizes_ == bag.sizes[0]))
    contents = monitor.contents_[same]
    if (contents == content_of(read, bag.weights, bag.merged)).any():
        return True
    old = monitor.estimates_[same[contents == UNKNOWN]]
    if not len(old):
        return False
    estimate = estimate_batch(monitor.quantifier, monitor.quantifier.rows(read.values), bag)
    return bool((np.abs(old - estimate).max(axis=1) < SAME).any())


def check_weighting(totals: FloatArray, weights: Any) -> None:
    """Raise unless a batch has weights like the batches before, with these totals (t,), or none like them."""
    if len(totals) and np.isnan(totals[-1]) != (weights is None):
        before, now = ("no weights", "some") if weights is not None else ("weights", "none")
        raise InvalidData(f"earlier batches came with {before}, this one with {now}. Use weights for all or for none.")


def amounts(monitor: Any) -> FloatArray:
    """(t,) how much every batch counts: its weight, or its size without weights."""
    return np.where(np.isnan(monitor.totals_), monitor.sizes_, monitor.totals_)


def upgrade_state(monitor: Any) -> None:
    """Add what a monitor of an older version lacks: contents, weights; in 0.1.0 also changes and variances."""
    t = len(monitor.dates_)
    if not hasattr(monitor, "contents_"):
        monitor.contents_ = np.full(t, UNKNOWN)
    if not hasattr(monitor, "totals_"):
        monitor.totals_, monitor.effective_ = np.full(t, np.nan), monitor.sizes_.copy()
    if not hasattr(monitor, "distances_"):
        monitor.distances_, monitor.deviations_ = np.full(t, np.nan), np.full(t, np.nan)
    if hasattr(monitor, "changes_"):
        return
    monitor.spreads_, monitor.resampled_ = np.tile(monitor.unit_variance_, (t, 1)), np.full(t, OLD_RESAMPLES)
    monitor.received_ = int(monitor.dates_.max(initial=-1.0)) + 1 if monitor.kind_ == "order" else t
    monitor.changes_ = np.empty(0) if monitor.since_ is None else np.array([monitor.since_])
    monitor.alarms_ = np.full(len(monitor.changes_), monitor.dates_.max(initial=0.0))
    del monitor.unit_variance_, monitor.resamples_, monitor.since_
