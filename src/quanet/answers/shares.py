"""The shares of classes in groups of instances: what `quanet predict` answers."""

from dataclasses import dataclass, field
from typing import Any

from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray
from quanet.diagnostics.findings import Diagnosis
from quanet.uncertainty.regions import Interval


@dataclass(frozen=True, slots=True)
class Key:
    """A column that instances are grouped by, and the period that its dates are cut into, if any.

    Examples
    --------
    >>> str(Key("date", "month")), str(Key("product"))
    ('date (month)', 'product')
    """

    column: str
    period: str = ""  # day, week, month, quarter, year
    # Whether rows without a value are left out, instead of being the group "(empty)".
    required: bool = field(default=False, repr=False)

    def as_required(self) -> "Key":
        """The same, for groups that every row needs: others are left out."""
        return Key(self.column, self.period, required=True)

    def __str__(self) -> str:
        return f"{self.column} ({self.period})" if self.period else self.column


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """Prevalences of groups of instances and of all of them, with intervals.

    Attributes
    ----------
    classes : (k,) labels.
    keys : what was grouped by; empty where all instances are one group.
    groups : (g, keys) the groups' values as strings, sorted; a period is ISO (2024-05, 2024-W07, 2024-Q2), so that it
        sorts as time does. (1, 0) without keys.
    sizes : (g,) instances.
    interval : of every group, arrays (g, k).
    counted : (g, k) shares of the predicted labels, plainly counted: what an uncorrected answer would be.
    small : (g,) groups that are too small, or whose interval is too wide, to say much.
    total : of all instances together, arrays (k,).
    total_counted : (k,) the same, plainly counted.
    diagnosis : of all instances together.
    diagnoses : of every group: "alarm" where it is no mixture of the classes as training knew them, else "ok"; "" where
        a group was too small to be diagnosed, or there were too many.
    skipped : rows that have no text, or no group, by the reason.
    source : where the instances come from.
    model : what is known of the model, for the reader: names and values.
    """

    classes: LabelArray
    keys: tuple[Key, ...]
    groups: tuple[tuple[str, ...], ...]
    sizes: IntArray
    interval: Interval
    counted: FloatArray
    small: BoolArray
    total: Interval
    total_counted: FloatArray
    diagnosis: Diagnosis
    diagnoses: tuple[str, ...]
    skipped: dict[str, int] = field(default_factory=dict)
    source: str = ""
    model: dict[str, Any] = field(default_factory=dict)
