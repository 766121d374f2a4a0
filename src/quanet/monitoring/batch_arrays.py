"""The state of a monitor: arrays with one entry for each batch, in order of arrival, and the detected changes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, Merged
from quanet.bags import Bags
from quanet.data.copies import count_copies
from quanet.data.duplicates import hash_numbers
from quanet.data.instances import Inputs
from quanet.drift.profile import GroupDescriptions
from quanet.errors import InvalidBags, InvalidData
from quanet.monitoring.windows import estimate_batch

PER_BATCH = (
    *("dates_", "sizes_", "estimates_", "spreads_", "resampled_", "distances_", "deviations_"),
    *("totals_", "effective_", "contents_"),
)
COUNTS = ("sizes_", "resampled_", "effective_")
UNKNOWN = np.uint64(0)  # content of a batch that an older version has added
SAME = 1e-9  # estimates of batches of unknown content that differ by less are of the same instances
OLD_RESAMPLES = 20  # assumed for each batch of version 0.1.0


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
