"""Results: `Differences` between prevalences of two sides, a `Trend` over periods; and Holm's correction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.wording import class_name, p_value, signed, signed_span, with_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import ArrayLike

    from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray

SHOWN = 20  # lines of `str(differences)`
BY_CLASS = ("estimate", "lower", "upper", "p_value", "first_estimate", "second_estimate", "drift", "relative_width")
BY_COMPARISON = ("first", "second", "sizes", "notes")


@dataclass(frozen=True, eq=False)
class Differences:
    """Differences between the prevalences of two sides, for m comparisons and k classes.

    `difference` and `difference_bags` return it. A difference is the prevalence of the second side minus that of the
    first: the change from the first to the second.

    Attributes
    ----------
    first, second : (m,) names of the two sides.
    estimate, lower, upper : (m, k) differences, between -1 and 1.
    p_value : (m, k) of the test that there is no difference; below 1 - `level` if the interval does not contain 0.
    adjusted : (m, k) p-values with Holm's correction, over all comparisons and classes. Two classes count once, because
        the difference of one is that of the other with the opposite sign.
    level : probability that an interval contains the true difference.
    classes : (k,) labels.
    first_estimate, second_estimate : (m, k) prevalences of both sides; None if unknown.
    sizes : (m, 2) number of instances of both sides; None if unknown.
    drift : (m, k) by how much drift may change the difference; NaN if unknown, None if it is not included.
    relative_width : (m, k) of the interval, compared with the interval if both sides shared nothing; None if unknown.
    notes : (m,) remarks about a comparison, empty if there is nothing to report; None if unknown.

    Examples
    --------
    >>> found = Differences.of(["2016", "2016"], ["2017", "2018"], [[0.04], [0.01]], [[0.02], [-0.01]],
    ...                        [[0.06], [0.03]], [[0.001], [0.3]], level=0.95, classes=["negative"])
    >>> print(found)
    2016 -> 2017: negative +4.0 points (+2.0 to +6.0), p = 0.002
    2016 -> 2018: negative +1.0 points (-1.0 to +3.0), p = 0.3
    """

    first: LabelArray
    second: LabelArray
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    p_value: FloatArray
    adjusted: FloatArray
    level: float
    classes: LabelArray
    first_estimate: FloatArray | None = None
    second_estimate: FloatArray | None = None
    sizes: IntArray | None = None
    drift: FloatArray | None = None
    relative_width: FloatArray | None = None
    notes: LabelArray | None = None

    @classmethod
    def of(
        cls,
        first: ArrayLike,
        second: ArrayLike,
        estimate: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        p_value: ArrayLike,
        *,
        level: float,
        classes: ArrayLike,
        **optional: Any,
    ) -> Differences:
        """Differences with Holm's correction; `optional` are the attributes with a default."""
        p = np.asarray(p_value, dtype=float)
        return cls(
            first=np.asarray(first, dtype=object),
            second=np.asarray(second, dtype=object),
            estimate=np.asarray(estimate, dtype=float),
            lower=np.asarray(lower, dtype=float),
            upper=np.asarray(upper, dtype=float),
            p_value=p,
            adjusted=_adjusted(p),
            level=level,
            classes=np.asarray(classes),
            **optional,
        )

    @classmethod
    def joined(cls, parts: Sequence[Differences]) -> Differences:
        """The comparisons of several parts of the same level and classes, with Holm's correction over all of them."""
        if len(parts) == 1:
            return parts[0]
        values = {name: [getattr(part, name) for part in parts] for name in (*BY_CLASS, *BY_COMPARISON)}
        found: dict[str, Any] = {
            name: None if of_parts[0] is None else np.concatenate(of_parts) for name, of_parts in values.items()
        }
        return replace(parts[0], **found, adjusted=_adjusted(found["p_value"]))

    def __len__(self) -> int:
        return len(self.first)

    @property
    def significant(self) -> BoolArray:
        """(m, k) whether a difference remains significant at 1 - `level` after Holm's correction."""
        return np.asarray(self.adjusted < 1 - self.level)

    def take(self, positions: Sequence[int] | IntArray) -> Differences:
        """The comparisons at these positions, with Holm's correction over them."""
        return self._select(np.asarray(positions, dtype=np.intp), slice(None))

    def of_classes(self, positions: Sequence[int] | IntArray) -> Differences:
        """The differences of the classes at these positions, with Holm's correction over them."""
        return self._select(slice(None), np.asarray(positions, dtype=np.intp))

    def _select(self, rows: Any, columns: Any) -> Differences:
        found: dict[str, Any] = {name: getattr(self, name) for name in (*BY_CLASS, *BY_COMPARISON)}
        known = {name: values for name, values in found.items() if values is not None}
        parts = {name: values[rows][:, columns] if name in BY_CLASS else values[rows] for name, values in known.items()}
        return replace(self, **parts, adjusted=_adjusted(parts["p_value"]), classes=self.classes[columns])

    def frame(self) -> pd.DataFrame:
        """A tidy table with one row per comparison and class.

        Columns: first, second, class, first_estimate, second_estimate, difference, lower, upper, p, adjusted (p-value
        with Holm's correction), drift (how much drift may change the difference) and note. NaN: unknown.
        """
        import pandas as pd

        return pd.DataFrame(self.columns())

    def columns(self) -> dict[str, Any]:
        """The columns of the tidy table."""
        m, k = self.estimate.shape
        missing = np.full((m, k), np.nan)
        notes = np.full(m, "", dtype=object) if self.notes is None else self.notes
        parts = {
            "first_estimate": self.first_estimate,
            "second_estimate": self.second_estimate,
            "difference": self.estimate,
            "lower": self.lower,
            "upper": self.upper,
            "p": self.p_value,
            "adjusted": self.adjusted,
            "drift": self.drift,
        }
        return {
            "first": np.repeat(self.first, k),
            "second": np.repeat(self.second, k),
            "class": np.tile(self.classes, m),
            **{name: (missing if values is None else values).ravel() for name, values in parts.items()},
            "note": np.repeat(notes, k),
        }

    def __str__(self) -> str:
        # Of two classes, the second shows the difference of the first with the opposite sign.
        shown = [(i, c) for i in range(len(self)) for c in range(int(len(self.classes) == 2), len(self.classes))]
        lines = [self._line(i, c) for i, c in shown[:SHOWN]]
        more = len(shown) - len(lines)
        return "\n".join(lines + [f"... and {more:,} more"] * (more > 0))

    def _line(self, i: int, c: int) -> str:
        estimate, lower, upper = (float(values[i, c]) for values in (self.estimate, self.lower, self.upper))
        return (
            f"{self.first[i]} -> {self.second[i]}: {with_share(self.classes[c], signed(estimate))} points "
            f"({signed_span(lower, upper)}), {p_value(float(self.adjusted[i, c]))}"
        )


@dataclass(frozen=True, eq=False)
class Trend:
    """The slope of the line through the prevalences of periods, for k classes; `trend_bags` returns it.

    It is the line of least squares, weighted by the sizes of the periods and by their drift. It describes by how much a
    prevalence changes per period on average, whether or not the change is linear.

    Attributes
    ----------
    estimate, lower, upper : (k,) change of the prevalences per period.
    p_value : (k,) of the test that the slope is 0.
    level : probability that an interval contains the slope of the true prevalences.
    classes : (k,) labels.
    first, last : names of the first and last period.
    periods : number of periods.

    Examples
    --------
    >>> slope = np.array([-0.02, 0.02])
    >>> p, classes = np.array([0.001, 0.001]), np.array(["no", "yes"])
    >>> print(Trend(slope, slope - 0.01, slope + 0.01, p, 0.95, classes, "Q1", "Q4", 4))
    yes: +2.00 points per period (+1.00 to +3.00), p = 0.001
    """

    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    p_value: FloatArray
    level: float
    classes: LabelArray
    first: Any
    last: Any
    periods: int

    def frame(self) -> pd.DataFrame:
        """A table with one row per class: class, slope, lower, upper, p."""
        import pandas as pd

        parts = {"slope": self.estimate, "lower": self.lower, "upper": self.upper, "p": self.p_value}
        return pd.DataFrame({"class": self.classes} | parts)

    def __str__(self) -> str:
        return "\n".join(
            f"{class_name(self.classes[c])}: {signed(float(self.estimate[c]), 2)} points per period "
            f"({signed_span(float(self.lower[c]), float(self.upper[c]), 2)}), {p_value(float(self.p_value[c]))}"
            for c in range(int(len(self.classes) == 2), len(self.classes))
        )


def _adjusted(p_value: FloatArray) -> FloatArray:
    """p-values (m, k) with Holm's correction over all of them; two classes count once."""
    m, k = p_value.shape
    if k == 2:
        return np.repeat(holm(p_value.max(axis=1))[:, None], 2, axis=1)
    return holm(p_value.ravel()).reshape(m, k)


def holm(p: ArrayLike) -> FloatArray:
    """p-values of several tests, adjusted for multiple testing (Holm 1979): (m,) -> (m,).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values = np.asarray(p, dtype=float)
    order = np.argsort(values, kind="stable")
    adjusted = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    result = np.empty_like(values)
    result[order] = np.minimum(adjusted, 1.0)
    return result
