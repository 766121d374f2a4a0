"""Where the truth may lie: an interval for every class, and regions of the simplex."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.linalg import helmert
from scipy.special import softmax
from scipy.stats import chi2

from quanet.errors import InvalidSetting
from quanet.simplex import check_prevalences, smooth

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray

ROUNDING = 1e-9
EXACT = 1e-12  # least variance of a region, which gives one without any an inside
DIRECTIONS = 512  # in which the extent of a region without a formula is looked for


@dataclass(frozen=True, eq=False)
class Interval:
    """Estimates with their lower and upper ends, of one bag or of many: arrays (k,) or (b, k).

    Each class's interval holds its share with the probability `level`, by itself. For all shares together take a
    region: ``region("ellipse")``.

    Attributes
    ----------
    estimate, lower, upper : prevalences, (..., k).
    covariance : of the estimate's error, (..., k, k).
    sizes : instances in the bags, (...).
    level : the probability asked for.
    method : how it was made; several methods where bags differ in size, the most frequent first.
    classes : (k,) labels.
    groups : names of the bags, (...); None where they have none.
    counted : shares of the predicted labels, plainly counted, (..., k); None where they are not known.
    notes : what a reader should know about a bag's interval, (...); None where there is nothing to know.

    Examples
    --------
    >>> from quanet import ACC
    >>> posteriors, labels = np.repeat([[0.9, 0.1], [0.1, 0.9]], 50, axis=0), [0] * 45 + [1] * 50 + [0] * 5
    >>> found = ACC("precomputed").fit(posteriors, labels).predict_interval(posteriors[30:80])
    >>> bool(found.contains([0.4, 0.6])), bool(found.contains([0.9, 0.1]))
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

    @property
    def width(self) -> FloatArray:
        """Upper end less lower end: (..., k)."""
        return self.upper - self.lower

    def of_bag(self, at: int) -> Interval:
        """The interval of one of many bags: arrays (k,)."""
        arrays = ("estimate", "lower", "upper", "covariance", "sizes", "groups", "counted", "notes")
        found: dict[str, Any] = {name: getattr(self, name) for name in arrays}
        return replace(self, **{name: array[at] for name, array in found.items() if array is not None})

    def contains(self, prevalences: ArrayLike) -> BoolArray:
        """Whether every share lies in its class's interval: (..., k) -> (...)."""
        return self.region("box").contains(prevalences)

    def region(self, kind: Literal["box", "ellipse", "clr"] = "box") -> Box | Ellipse | LogRatioEllipse:
        """The interval box; an ellipse in the simplex; or an ellipse of centred log-ratios, which stays within it."""
        if kind == "box":
            return Box(self.lower, self.upper)
        if kind == "ellipse":
            return Ellipse(self.estimate, self.covariance, self.level)
        if kind == "clr":
            return LogRatioEllipse(self.estimate, self.covariance, self.level, self.sizes)
        raise InvalidSetting(f"region is one of box, ellipse, clr; got {kind!r}.")

    def frame(self) -> pd.DataFrame:
        """A tidy table, one row for every bag and class.

        Its columns are group (the bag's name), n (its instances), class, estimate, lower, upper, counted (the share of
        predicted labels, plainly counted; NaN where it is not known) and note.
        """
        import pandas as pd

        k, bags = len(self.classes), self.estimate.size // len(self.classes)
        groups = np.arange(bags) if self.groups is None else np.atleast_1d(self.groups)
        notes = np.full(bags, "", dtype=object) if self.notes is None else np.atleast_1d(self.notes)
        counted = np.full(bags * k, np.nan) if self.counted is None else self.counted.reshape(-1)
        return pd.DataFrame(
            {
                "group": np.repeat(groups, k),
                "n": np.repeat(np.atleast_1d(self.sizes), k),
                "class": np.tile(self.classes, bags),
                "estimate": self.estimate.reshape(-1),
                "lower": self.lower.reshape(-1),
                "upper": self.upper.reshape(-1),
                "counted": counted,
                "note": np.repeat(notes, k),
            }
        )


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """All prevalences whose shares lie between lower and upper ends, (..., k)."""

    lower: FloatArray
    upper: FloatArray

    def contains(self, prevalences: ArrayLike) -> BoolArray:
        """Whether prevalences (..., k) lie inside: (...)."""
        given = check_prevalences(prevalences, k=self.lower.shape[-1])
        return np.asarray(((given >= self.lower - ROUNDING) & (given <= self.upper + ROUNDING)).all(axis=-1))

    @property
    def width(self) -> FloatArray:
        """Its extent in every class: (..., k)."""
        return self.upper - self.lower


@dataclass(frozen=True, eq=False)
class Ellipse:
    r"""All prevalences near the estimate, by its covariance.

    .. math:: (p - \hat p)^T \Sigma^+ (p - \hat p) \le \chi^2_{k-1}(level)

    Parameters
    ----------
    centre : (..., k).
    covariance : (..., k, k).
    level : probability inside, if the error is normal.
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
        """Its extent in every class, within the simplex: (..., k)."""
        reach = np.sqrt(self._bound * np.diagonal(self.covariance, axis1=-2, axis2=-1))
        return np.minimum(self.centre + reach, 1) - np.maximum(self.centre - reach, 0)

    @property
    def _bound(self) -> float:
        return float(chi2.ppf(self.level, self.centre.shape[-1] - 1))

    @cached_property
    def _spread(self) -> FloatArray:
        """Covariance in coordinates of the plane that the simplex lies in: (..., k - 1, k - 1)."""
        plane = helmert(self.centre.shape[-1])
        return plane @ self.covariance @ plane.T + EXACT * np.eye(len(plane))

    def _place(self, prevalences: FloatArray) -> FloatArray:
        return prevalences @ helmert(prevalences.shape[-1]).T


@dataclass(frozen=True, eq=False)
class LogRatioEllipse(Ellipse):
    """All prevalences whose centred log-ratios (Aitchison 1986) are near the estimate's; it never leaves the simplex.

    Shares are smoothed by half an instance first, since zero has no logarithm.

    Parameters
    ----------
    centre, covariance, level : as for `Ellipse`; the covariance is carried over by the delta method.
    sizes : instances in the bags, (...).
    """

    sizes: IntArray

    @property
    def width(self) -> FloatArray:
        """Its extent in every class: (..., k); for more than two classes over many directions, not all."""
        k = self.centre.shape[-1]
        around = np.random.default_rng(0).normal(size=(DIRECTIONS, k - 1)) if k > 2 else np.array([[-1.0], [1.0]])
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        root = np.linalg.cholesky(self._spread)
        ends = self._place(self.centre)[..., None, :] + np.sqrt(self._bound) * around @ np.swapaxes(root, -1, -2)
        shares = softmax(ends @ helmert(k), axis=-1)
        return shares.max(axis=-2) - shares.min(axis=-2)

    @cached_property
    def _spread(self) -> FloatArray:
        # helmert @ (I - 11'/k) = helmert, so that centring needs no step of its own.
        slope = helmert(self.centre.shape[-1]) / self._smoothed(self.centre)[..., None, :]
        return slope @ self.covariance @ np.swapaxes(slope, -1, -2) + EXACT * np.eye(slope.shape[-2])

    def _place(self, prevalences: FloatArray) -> FloatArray:
        return np.log(self._smoothed(prevalences)) @ helmert(prevalences.shape[-1]).T

    def _smoothed(self, prevalences: FloatArray) -> FloatArray:
        return smooth(prevalences, 1 / (2 * np.asarray(self.sizes)))


def _distance(offsets: FloatArray, spread: FloatArray) -> FloatArray:
    return (offsets * np.linalg.solve(spread, offsets[..., None])[..., 0]).sum(axis=-1)
