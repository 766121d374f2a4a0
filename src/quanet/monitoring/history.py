"""What a monitor returns: an estimate after each batch, and the history of all batches."""

from dataclasses import dataclass
from typing import Any

from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray


@dataclass(frozen=True, slots=True, eq=False)
class BatchEstimate:
    """A monitor's estimate after one batch.

    Attributes
    ----------
    date : date of the batch.
    n : number of instances in the batch.
    estimate : (k,) prevalences of this batch alone.
    windowed, lower, upper : (k,) mean prevalences of the batches in the window that ends at the newest date, and the
        interval of that mean.
    weighted : (k,) mean over all batches; the weight of a batch halves with every half-life of its age.
    evidence : Bayes factor for a change since the last detected one. The alarm threshold is ``1 / (1 - level)``.
    found : True if a change was detected with this batch.
    alarm : True if a change has been detected, with this batch or before.
    since : date of the first batch after the newest change; None without an alarm.
    """

    date: Any
    n: int
    estimate: FloatArray
    windowed: FloatArray
    lower: FloatArray
    upper: FloatArray
    weighted: FloatArray
    evidence: float
    found: bool
    alarm: bool
    since: Any


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """A detected change of prevalence."""

    date: Any  # of the first batch after the change
    found: Any  # newest date when the change was detected
    before: FloatArray  # (k,) mean prevalences since the previous change
    after: FloatArray  # (k,) mean prevalences up to the next change


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Prevalences of all batches, ordered by date.

    Attributes
    ----------
    classes : (k,) labels.
    dates : (t,) dates, or batch numbers if no dates were given.
    sizes : (t,) number of instances.
    estimate : (t, k) prevalences of each batch alone.
    windowed, lower, upper : (t, k) mean over the window that ends at each date, and its interval.
    weighted : (t, k) mean over all batches up to each date, weights halved with every half-life. Late batches count.
    baseline : (t, k) mean prevalence between the neighbouring changes.
    batch_lower, batch_upper : (t, k) range that contains a batch of this size with probability `level` if the true
        prevalence is the baseline.
    changes : detected changes, by date.
    level : confidence level of the intervals.
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

    @property
    def since(self) -> Any:
        """Date of the first batch after the newest change, or None."""
        return self.changes[-1].date if self.changes else None

    @property
    def outside(self) -> BoolArray:
        """Batches outside the range expected from the baseline: (t, k)."""
        return (self.estimate < self.batch_lower) | (self.estimate > self.batch_upper)
