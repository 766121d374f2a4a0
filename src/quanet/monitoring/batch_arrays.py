"""The state of a monitor: arrays with one entry for each batch, in order of arrival, and the detected changes."""

from typing import Any

import numpy as np

PER_BATCH = ("dates_", "sizes_", "estimates_", "spreads_", "resampled_", "distances_", "deviations_")
OLD_RESAMPLES = 20  # assumed for each batch of version 0.1.0


def start_state(monitor: Any, k: int) -> None:
    """The state of a monitor of k classes without batches."""
    for name in PER_BATCH:
        shape = (0, k) if name in ("estimates_", "spreads_") else (0,)
        setattr(monitor, name, np.empty(shape, dtype=np.intp if name in ("sizes_", "resampled_") else float))
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


def upgrade_state(monitor: Any) -> None:
    """Add what a monitor of an older version lacks: distances; in 0.1.0 also changes and variances."""
    t = len(monitor.dates_)
    if not hasattr(monitor, "distances_"):
        monitor.distances_, monitor.deviations_ = np.full(t, np.nan), np.full(t, np.nan)
    if hasattr(monitor, "changes_"):
        return
    monitor.spreads_, monitor.resampled_ = np.tile(monitor.unit_variance_, (t, 1)), np.full(t, OLD_RESAMPLES)
    monitor.received_ = int(monitor.dates_.max(initial=-1.0)) + 1 if monitor.kind_ == "order" else t
    monitor.changes_ = np.empty(0) if monitor.since_ is None else np.array([monitor.since_])
    monitor.alarms_ = np.full(len(monitor.changes_), monitor.dates_.max(initial=0.0))
    del monitor.unit_variance_, monitor.resamples_, monitor.since_
