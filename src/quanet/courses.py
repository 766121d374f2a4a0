"""What a monitor says: after a batch, and about all batches so far."""

from dataclasses import dataclass
from typing import Any

from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What a monitor says after a batch.

    Attributes
    ----------
    date : of the batch.
    n : its instances.
    estimate : (k,) of the batch alone.
    windowed, lower, upper : (k,) of the batches within the window before the newest date, and the interval of that.
    weighted : (k,) of all batches, weights halved with every half-life of age.
    evidence : for a change since the last one that was found, as a Bayes factor; one is found at ``1 / (1 - level)``.
    found : whether this batch led to finding a change.
    alarm : whether a change has been found, now or before.
    since : date of the first batch after the newest change, where there is an alarm.
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
    """A change of prevalence.

    Attributes
    ----------
    date : of the first batch after it.
    found : date of the newest batch when it was found.
    before, after : (k,) levels: mean prevalences between this change and the ones next to it.
    """

    date: Any
    found: Any
    before: FloatArray
    after: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """Prevalences over time, by date.

    Attributes
    ----------
    classes : (k,) labels.
    dates : (t,) of the batches, sorted.
    sizes : (t,) instances.
    estimate, windowed, lower, upper, weighted : (t, k), see `Reading`, each at its date, late batches included.
    baseline : (t, k) mean prevalence between the changes around each date.
    batch_lower, batch_upper : (t, k) where a batch of its size lies with probability `level` if the prevalence is the
        baseline.
    changes : that were found, by date.
    level : of the intervals.
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
        """Batches that lie outside the range that the baseline leads one to expect: (t, k)."""
        return (self.estimate < self.batch_lower) | (self.estimate > self.batch_upper)
