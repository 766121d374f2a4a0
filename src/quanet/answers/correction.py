"""What a judge's rates are once corrected, group by group: what `quanet correct` answers."""

from dataclasses import dataclass, field

from quanet.answers.shares import Key
from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray


@dataclass(frozen=True, slots=True, eq=False)
class Correction:
    """Corrected rates of groups, and of all together.

    Attributes
    ----------
    classes : (k,) labels.
    keys, groups, sizes : as in `Shares`.
    estimate, lower, upper : (g, k) corrected shares and their intervals.
    judged : (g, k) shares that the judge gives, as they are; NaN for scores.
    total : (4, k) estimate, lower, upper, judged, of all together.
    rates : (k, k) shares of the judge's labels (columns) among instances of a human label (rows); None for scores.
    labelled : human labels.
    level : of confidence.
    small : (g,) groups whose interval is too wide to say much.
    skipped : rows that were left out, by the reason.
    """

    classes: LabelArray
    keys: tuple[Key, ...]
    groups: tuple[tuple[str, ...], ...]
    sizes: IntArray
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    judged: FloatArray
    total: FloatArray
    rates: FloatArray | None
    labelled: int
    level: float
    small: BoolArray
    skipped: dict[str, int] = field(default_factory=dict)
    source: str = ""
