"""What a monitor returns: an estimate after each batch, and the history of all batches."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray
from quanet.uncertainty.widening import Drift


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
