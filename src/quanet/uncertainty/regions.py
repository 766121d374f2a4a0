"""Results: `Interval`, one interval per class, its text, and regions of the simplex."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.linalg import helmert
from scipy.special import softmax
from scipy.stats import chi2

from quanet.parameters import one_of
from quanet.simplex import check_prevalences, smooth
from quanet.wording import between, level_text, percent, span

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray
    from quanet.uncertainty.widening import Drift

ROUNDING = 1e-9
MIN_VARIANCE = 1e-12  # added to a region's variance, so that a region is never a single point
DIRECTIONS = 512  # in which the width of a region is measured if no formula exists
KINDS_OF_REGION = ("box", "ellipse", "clr")
MAX_BAGS, MAX_CLASSES = 20, 8  # shown


@dataclass(frozen=True, eq=False)
class Interval:
    """Estimates with the lower and upper ends of their intervals, for one bag or many: arrays (k,) or (b, k).

    `predict_interval` returns it. The interval of each class contains its true prevalence with probability `level`. For
    the prevalences of all classes jointly, use a region: ``region("ellipse")``.

    Attributes
    ----------
    estimate, lower, upper : prevalences, (..., k).
    covariance : of the estimation error, (..., k, k).
    sizes : number of instances in each bag, (...).
    level : the requested probability.
    method : kind of interval; several kinds, the most frequent first, if bags of different sizes have different kinds.
    classes : (k,) labels.
    groups : names of the bags, (...); None if they have no names.
    counted : prevalences of the predicted labels (classify and count), (..., k); None if unknown.
    notes : remarks about a bag's interval, (...), empty if there is nothing to report; None if unknown.
    drift : what drift may cost, the state of each bag, and the ends without drift; None if drift is not included.
    effective_sizes : number of instances of equal weight that say as much as each bag, (...); None without weights.

    Examples
    --------
    >>> from quanet import ACC
    >>> posteriors, labels = np.repeat([[0.9, 0.1], [0.1, 0.9]], 50, axis=0), [0] * 45 + [1] * 50 + [0] * 5
    >>> interval = ACC("precomputed").fit(posteriors, labels).predict_interval(posteriors[30:80])
    >>> bool(interval.contains([0.4, 0.6])), bool(interval.contains([0.9, 0.1]))
    (True, False)
    """

    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    covariance: FloatArray
    sizes: IntArray
    level: float
    method: str
    classes: LabelArray
    groups: LabelArray | None = None
    counted: FloatArray | None = None
    notes: LabelArray | None = None
    drift: Drift | None = None
    effective_sizes: IntArray | None = None

    def __str__(self) -> str:
        return interval_text(self)

    def __repr__(self) -> str:
        return interval_text(self)

    @property
    def width(self) -> FloatArray:
        """Upper minus lower end: (..., k)."""
        return self.upper - self.lower

    def of_bag(self, at: int) -> Interval:
        """The interval of one of many bags: arrays (k,)."""
        arrays = ("estimate", "lower", "upper", "covariance", "sizes", "groups", "counted", "notes", "effective_sizes")
        values: dict[str, Any] = {name: getattr(self, name) for name in arrays}
        drift = None if self.drift is None else self.drift.of_bag(at)
        return replace(self, **{name: array[at] for name, array in values.items() if array is not None}, drift=drift)

    @property
    def without_drift(self) -> Interval:
        """The same estimates, with intervals that include sampling only."""
        return self if self.drift is None else replace(self, lower=self.drift.lower, upper=self.drift.upper, drift=None)

    def contains(self, prevalences: ArrayLike) -> BoolArray:
        """Whether the prevalence of every class lies in its interval: (..., k) -> (...)."""
        return self.region("box").contains(prevalences)

    def region(self, kind: Literal["box", "ellipse", "clr"] = "box") -> Box | Ellipse | LogRatioEllipse:
        """The box of all intervals, an ellipse, or an ellipse of centred log-ratios, which stays inside the simplex."""
        one_of(*KINDS_OF_REGION).check("kind", kind)
        if kind == "box":
            return Box(self.lower, self.upper)
        if kind == "ellipse":
            return Ellipse(self.estimate, self.covariance, self.level)
        return LogRatioEllipse(self.estimate, self.covariance, self.level, self._evidence)

    @property
    def _evidence(self) -> IntArray:
        """Number of instances that the sampling error depends on, (...)."""
        return self.sizes if self.effective_sizes is None else self.effective_sizes

    def plot(self, *, focus: Any = None, width: float | None = None) -> Any:
        """A dot with its interval for every class of one bag, or for every bag; returns a matplotlib figure.

        Parameters
        ----------
        focus : for many bags, the class shown; None for the second of two, or the most common ones.
        width : of the figure, in inches.
        """
        options = {} if width is None else {"width": width}
        return import_module("quanet.report.charts").interval_figure(self, focus=focus, **options)

    def frame(self) -> pd.DataFrame:
        """A tidy table with one row per bag and class.

        Columns: group (name of the bag), n (number of instances), class, estimate, lower, upper, counted (prevalence of
        the predicted labels; NaN if unknown), drift (how much drift may cost; NaN if unknown or not included), state
        and note. With weights, effective_n follows n.
        """
        import pandas as pd

        k, bags = len(self.classes), self.estimate.size // len(self.classes)
        groups = np.arange(bags) if self.groups is None else np.atleast_1d(self.groups)
        notes = np.full(bags, "", dtype=object) if self.notes is None else np.atleast_1d(self.notes)
        counted = np.full(bags * k, np.nan) if self.counted is None else self.counted.reshape(-1)
        cost = np.full(bags * k, np.nan) if self.drift is None else self.drift.cost.reshape(-1)
        states = np.full(bags, "", dtype=object) if self.drift is None else np.atleast_1d(self.drift.state)
        effective = {} if self.effective_sizes is None else {"effective_n": np.atleast_1d(self.effective_sizes)}
        return pd.DataFrame(
            {
                "group": np.repeat(groups, k),
                "n": np.repeat(np.atleast_1d(self.sizes), k),
                **{name: np.repeat(sizes, k) for name, sizes in effective.items()},
                "class": np.tile(self.classes, bags),
                "estimate": self.estimate.reshape(-1),
                "lower": self.lower.reshape(-1),
                "upper": self.upper.reshape(-1),
                "counted": counted,
                "drift": cost,
                "state": np.repeat(states, k),
                "note": np.repeat(notes, k),
            }
        )


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """All prevalence vectors between lower and upper ends, (..., k)."""

    lower: FloatArray
    upper: FloatArray

    def contains(self, prevalences: ArrayLike) -> BoolArray:
        """Whether prevalences (..., k) lie inside: (...)."""
        given = check_prevalences(prevalences, k=self.lower.shape[-1])
        return np.asarray(((given >= self.lower - ROUNDING) & (given <= self.upper + ROUNDING)).all(axis=-1))

    @property
    def width(self) -> FloatArray:
        """Width in every class: (..., k)."""
        return self.upper - self.lower


@dataclass(frozen=True, eq=False)
class Ellipse:
    r"""All prevalence vectors near the estimate, measured by its covariance.

    .. math:: (p - \hat p)^T \Sigma^+ (p - \hat p) \le \chi^2_{k-1}(level)

    Parameters
    ----------
    centre : (..., k).
    covariance : (..., k, k).
    level : probability of the region, if the error is normal.
    """

    centre: FloatArray
    covariance: FloatArray
    level: float

    def contains(self, prevalences: ArrayLike) -> BoolArray:
        """Whether prevalences (..., k) lie inside: (...)."""
        given = check_prevalences(prevalences, k=self.centre.shape[-1])
        distance = _distance(self._place(given) - self._place(self.centre), self._spread)
        return np.asarray(distance <= self._bound + ROUNDING)

    @property
    def width(self) -> FloatArray:
        """Width in every class, inside the simplex: (..., k)."""
        reach = np.sqrt(self._bound * np.diagonal(self.covariance, axis1=-2, axis2=-1))
        return np.minimum(self.centre + reach, 1) - np.maximum(self.centre - reach, 0)

    @property
    def _bound(self) -> float:
        return float(chi2.ppf(self.level, self.centre.shape[-1] - 1))

    @cached_property
    def _spread(self) -> FloatArray:
        """Covariance in coordinates of the plane that contains the simplex: (..., k - 1, k - 1)."""
        plane = helmert(self.centre.shape[-1])
        return plane @ self.covariance @ plane.T + MIN_VARIANCE * np.eye(len(plane))

    def _place(self, prevalences: FloatArray) -> FloatArray:
        return prevalences @ helmert(prevalences.shape[-1]).T


@dataclass(frozen=True, eq=False)
class LogRatioEllipse(Ellipse):
    """All prevalence vectors whose centred log-ratios (Aitchison 1986) are near those of the estimate.

    The region stays inside the simplex. Prevalences are smoothed by half an instance, because zero has no logarithm.

    Parameters
    ----------
    centre, covariance, level : as for `Ellipse`; the delta method transforms the covariance.
    sizes : number of instances in each bag, (...).
    """

    sizes: IntArray

    @property
    def width(self) -> FloatArray:
        """Width in every class: (..., k); for more than two classes, measured in `DIRECTIONS` random directions."""
        k = self.centre.shape[-1]
        around = np.random.default_rng(0).normal(size=(DIRECTIONS, k - 1)) if k > 2 else np.array([[-1.0], [1.0]])
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        root = np.linalg.cholesky(self._spread)
        ends = self._place(self.centre)[..., None, :] + np.sqrt(self._bound) * around @ np.swapaxes(root, -1, -2)
        shares = softmax(ends @ helmert(k), axis=-1)
        return shares.max(axis=-2) - shares.min(axis=-2)

    @cached_property
    def _spread(self) -> FloatArray:
        # No explicit centring is needed, because helmert @ (I - 11'/k) = helmert.
        slope = helmert(self.centre.shape[-1]) / self._smoothed(self.centre)[..., None, :]
        return slope @ self.covariance @ np.swapaxes(slope, -1, -2) + MIN_VARIANCE * np.eye(slope.shape[-2])

    def _place(self, prevalences: FloatArray) -> FloatArray:
        return np.log(self._smoothed(prevalences)) @ helmert(prevalences.shape[-1]).T

    def _smoothed(self, prevalences: FloatArray) -> FloatArray:
        return smooth(prevalences, 1 / (2 * np.asarray(self.sizes)))


def _distance(offsets: FloatArray, spread: FloatArray) -> FloatArray:
    return (offsets * np.linalg.solve(spread, offsets[..., None])[..., 0]).sum(axis=-1)


def interval_text(interval: Interval) -> str:
    """One line per class for one bag; one line per bag for many.

    Examples
    --------
    >>> ends = np.array([0.2, 0.8]), np.array([0.15, 0.75]), np.array([0.25, 0.85])
    >>> print(interval_text(Interval(*ends, np.eye(2), np.array(500), 0.95, "closed", np.array(["no", "yes"]))))
    no   20.0 %  (15.0 to 25.0 %)
    yes  80.0 %  (75.0 to 85.0 %)
    95 % intervals of 500 instances
    """
    level = f"{level_text(interval.level)} intervals"
    if interval.estimate.ndim == 1:
        names = [str(name) for name in interval.classes.tolist()]
        named = zip(names, interval.estimate, interval.lower, interval.upper, strict=True)
        rows = [[name, percent(p), f"({between(low, high)})"] for name, p, low, high in named]
        state = "" if interval.drift is None else f"; {interval.drift.state}"
        return "\n".join([*_aligned(rows, MAX_BAGS), f"{level} of {int(interval.sizes):,} instances{state}"])
    b, shown = len(interval.estimate), interval.classes[:MAX_CLASSES].tolist()
    groups = np.arange(b) if interval.groups is None else interval.groups
    rows = [["bag", "n", *map(str, shown)]]
    for at in range(min(b, MAX_BAGS)):
        ends = zip(interval.estimate[at], interval.lower[at], interval.upper[at], strict=True)
        cells = [f"{100 * p:.1f} ({span(low, high)})" for p, low, high in ends]
        rows.append([str(groups[at]), f"{int(interval.sizes[at]):,}", *cells[:MAX_CLASSES]])
    more = [f"... and {b - MAX_BAGS:,} more bags"] * (b > MAX_BAGS)
    classes = f", the first {MAX_CLASSES} of {len(interval.classes)} classes" * (len(interval.classes) > MAX_CLASSES)
    return "\n".join([*_aligned(rows), *more, f"{level} in %{classes}"])


def _aligned(rows: list[list[str]], most: int | None = None) -> list[str]:
    """Cells in columns: the first to the left, the others to the right; of many rows, the first."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
    return lines if most is None or len(lines) <= most else [*lines[:most], f"... and {len(lines) - most} more classes"]
