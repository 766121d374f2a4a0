r"""Prevalence in time: batches come in, estimates are smoothed, and a change raises an alarm that can be trusted.

The alarm looks at every batch, so a test at every look would cry wolf sooner or later. Here evidence for a change is a
martingale while nothing changes: for every batch i that may have been the first after a change, the Bayes factor

.. math:: B_i = \sqrt{\frac{V}{V + \tau^2}} \exp\frac{d^2 \tau^2}{2 V (V + \tau^2)}

of a change of unknown size (normal, of deviation τ) against none, with d the difference of the mean estimates since i
and before, and V its variance. The level before need not be known. Their sum with weights 1 / (i (i + 1)) exceeds
1 / α with probability α at most, however long one looks (Ville's inequality).
"""

from dataclasses import dataclass
from datetime import date as day
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.errors import InvalidBags, InvalidData, InvalidSetting

FIRST_RESAMPLES, LATER_RESAMPLES = 400, 20  # of a batch, for its variance; what later ones add is pooled with the first
LARGE = 2000  # a resample of a larger batch is of this many instances: variance times size stays the same


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
    evidence : for a change, as a Bayes factor; the alarm is raised at ``1 / (1 - level)``.
    alarm : whether a change has been found, now or before.
    since : date of the first batch after the change, where there is an alarm.
    """

    date: Any
    n: int
    estimate: FloatArray
    windowed: FloatArray
    lower: FloatArray
    upper: FloatArray
    weighted: FloatArray
    evidence: float
    alarm: bool
    since: Any


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """Prevalences over time, by date.

    Attributes
    ----------
    classes : (k,) labels.
    dates : (t,) of the batches, sorted.
    sizes : (t,) instances.
    estimate, windowed, lower, upper, weighted : (t, k), see `Reading`, each at its date, late batches included.
    since : date of the first batch after a change, or None.
    level : of the interval.
    """

    classes: LabelArray
    dates: LabelArray
    sizes: IntArray
    estimate: FloatArray
    windowed: FloatArray
    lower: FloatArray
    upper: FloatArray
    weighted: FloatArray
    since: Any
    level: float


class Monitor(BaseEstimator):
    """Follow a prevalence through batches in time, and raise an alarm when it has changed.

    Batches may be of any size, dates may have gaps, and batches may come late: what counts is their date. A monitor can
    be saved and loaded like a quantifier.

    Parameters
    ----------
    quantifier : fitted.
    level : of confidence: the alarm is raised without a change with probability ``1 - level`` at most, over all time;
        and that of intervals.
    window, half_life : of the smoothed estimates: days where dates are dates, else in the unit of the numbers given, or
        batches where none are given.
    shift : the size of a change that is looked for first; others are found too, a little later.
    tolerance : standard deviation of prevalence from batch to batch that is no change, such as 0.01 for a source that
        is never quite steady.
    random_state : of the resamples that give a batch its variance.

    Notes
    -----
    Intervals and alarms are about the chance of which instances are in a batch. A bias of the quantifier that stays the
    same moves the level, and does not raise the alarm; `diagnose` looks for one.

    References
    ----------
    J. Shin, A. Ramdas and A. Rinaldo, "E-detectors: a nonparametric framework for sequential change detection", 2023.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> source = Gaussians()
    >>> monitor = Monitor(EMQ().fit(*source.draw([0.5, 0.5], 1000, rng=0)))
    >>> for number in range(10):
    ...     reading = monitor.update(source.draw([0.3, 0.7], 300, rng=number)[0])
    >>> reading.alarm
    False
    >>> for number in range(10, 15):
    ...     reading = monitor.update(source.draw([0.6, 0.4], 300, rng=number)[0])
    >>> reading.alarm, reading.since
    (True, 10)
    """

    dates_: FloatArray  # in order of arrival
    sizes_: IntArray
    estimates_: FloatArray  # (t, k)
    opens_: IntArray  # arrivals of batches newer than all before: only these may begin a change
    unit_variance_: FloatArray  # (k,) of an estimate, times its batch's size
    kind_: str  # of the dates
    since_: float | None  # the date of the change that was found

    def __init__(
        self,
        quantifier: Quantifier,
        *,
        level: float = 0.95,
        window: float = 7,
        half_life: float = 7,
        shift: float = 0.1,
        tolerance: float = 0.0,
        random_state: int = 0,
    ) -> None:
        self.quantifier = quantifier
        self.level = level
        self.window = window
        self.half_life = half_life
        self.shift = shift
        self.tolerance = tolerance
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the quantifier to labelled instances, and begin anew; not needed for one that is fitted."""
        fresh = clone(self)
        fresh.quantifier.fit(X, y)
        self.__dict__.clear()
        self.__dict__.update(fresh.__dict__)
        self._begin()
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dates_")

    def update(self, X: Any, date: Any = None) -> Reading:
        """Take in a batch.

        Parameters
        ----------
        X : its instances, two at least.
        date : a date, a date's text such as "2026-03-01", or a number; None numbers the batches from 0. All batches of
            a monitor have the same kind.
        """
        self._begin()
        at, kind = _when(date, int(self.dates_.max(initial=-1.0)) + 1)
        if len(self.dates_) and kind != self.kind_:
            raise InvalidData(
                f"the batches so far came with {KINDS[self.kind_]}, this one with {KINDS[kind]}. "
                "Give every batch the same kind of date, or none at all."
            )
        rows = self.quantifier._rows_of(X)  # noqa: SLF001
        if len(rows) < 2:
            raise InvalidBags(f"the batch has {len(rows)} instance; it needs at least 2. Pool it with its neighbours.")
        self._learn_variance(rows)
        self.kind_ = kind
        if not len(self.dates_) or at > self.dates_.max():
            self.opens_ = np.append(self.opens_, len(self.dates_))
        self.dates_ = np.append(self.dates_, at)
        self.sizes_ = np.append(self.sizes_, len(rows))
        self.estimates_ = np.vstack([self.estimates_, self.quantifier.aggregate(rows)])
        return self._read()

    def restart(self, date: Any = None) -> None:
        """Forget the batches before a date (None: before the change that was found), and be alert again."""
        check_is_fitted(self)
        start = self.since_ if date is None else _when(date, 0)[0]
        if start is None:
            raise InvalidSetting("no change has been found, so there is nothing to restart from. Give a date.")
        kept = self.dates_ >= start
        self.dates_, self.sizes_, self.estimates_ = self.dates_[kept], self.sizes_[kept], self.estimates_[kept]
        newest = np.maximum.accumulate(np.r_[-np.inf, self.dates_])[:-1]
        self.opens_ = np.flatnonzero(self.dates_ > newest)
        self.since_ = None

    def course(self) -> Course:
        """Estimates at all dates so far, with the band of the windowed one."""
        check_is_fitted(self)
        order = np.argsort(self.dates_, kind="stable")
        smoothed = [self._smoothed(at, self.dates_ <= at) for at in self.dates_[order]]
        windowed, deviation, weighted = (np.array(one) for one in zip(*smoothed, strict=True))
        reach = stats.norm.isf((1 - self.level) / 2) * deviation
        return Course(
            classes=self.quantifier.classes_,
            dates=np.array([self._named(at) for at in self.dates_[order]]),
            sizes=self.sizes_[order],
            estimate=self.estimates_[order],
            windowed=windowed,
            lower=np.clip(windowed - reach, 0, 1),
            upper=np.clip(windowed + reach, 0, 1),
            weighted=weighted,
            since=None if self.since_ is None else self._named(self.since_),
            level=self.level,
        )

    def _begin(self) -> None:
        if hasattr(self, "dates_"):
            return
        if not 0 < self.level < 1:
            raise InvalidSetting(f"level lies between 0 and 1, such as 0.95; got {self.level}.")
        for name in ("window", "half_life", "shift"):
            if not getattr(self, name) > 0:
                raise InvalidSetting(f"{name} is larger than 0; got {getattr(self, name)}.")
        if not self.tolerance >= 0:
            raise InvalidSetting(f"tolerance is a standard deviation, 0 or more; got {self.tolerance}.")
        check_is_fitted(self.quantifier, "classes_")
        k = len(self.quantifier.classes_)
        self.dates_, self.sizes_, self.estimates_ = np.empty(0), np.empty(0, dtype=np.intp), np.empty((0, k))
        self.opens_ = np.empty(0, dtype=np.intp)
        self.unit_variance_, self.resamples_ = np.zeros(k), 0
        self.since_ = None
        self.kind_ = "order"

    def _learn_variance(self, rows: FloatArray) -> None:
        """Resample the batch, and pool what that says of an estimate's variance with what earlier batches said."""
        rng = np.random.default_rng([self.random_state, len(self.dates_)])
        resamples = max(LATER_RESAMPLES, FIRST_RESAMPLES // (1 + len(self.dates_)))
        size = min(len(rows), LARGE)
        bags = Bags(rng.integers(len(rows), size=(resamples, size)))
        estimates = np.concatenate([self.quantifier.aggregate(stack) for _, stack in bags.gather(rows)])
        # An estimate at 0 or 1 does not move with the resample; one instance more could move it, though.
        found = np.maximum(size * estimates.var(axis=0, ddof=1), 1 / size)
        together = self.resamples_ + resamples
        self.unit_variance_ = (self.resamples_ * self.unit_variance_ + resamples * found) / together
        self.resamples_ = together

    def _read(self) -> Reading:
        evidence, first = self._evidence()
        if evidence >= 1 / (1 - self.level) and self.since_ is None:
            self.since_ = first
        windowed, deviation, weighted = self._smoothed(self.dates_.max(), np.ones(len(self.dates_), dtype=bool))
        reach = stats.norm.isf((1 - self.level) / 2) * deviation
        return Reading(
            date=self._named(self.dates_[-1]),
            n=int(self.sizes_[-1]),
            estimate=self.estimates_[-1],
            windowed=windowed,
            lower=np.clip(windowed - reach, 0, 1),
            upper=np.clip(windowed + reach, 0, 1),
            weighted=weighted,
            evidence=evidence,
            alarm=self.since_ is not None,
            since=None if self.since_ is None else self._named(self.since_),
        )

    def _variances(self) -> FloatArray:
        """Of every batch's estimates: (t, k)."""
        return self.unit_variance_ / self.sizes_[:, None] + self.tolerance**2

    def _evidence(self) -> tuple[float, float]:
        """The Bayes factor for a change at any time, and the date of the likeliest first batch after it."""
        starts = self.dates_[self.opens_[1:]]
        if not len(starts):
            return 0.0, float(self.dates_[0])
        order = np.argsort(self.dates_, kind="stable")
        precision = 1 / self._variances()[order]
        mass = np.cumsum(precision, axis=0)
        sums = np.cumsum(precision * self.estimates_[order], axis=0)
        before = np.searchsorted(self.dates_[order], starts) - 1
        old, new = mass[before], mass[-1] - mass[before]
        difference = (sums[-1] - sums[before]) / new - sums[before] / old
        variance, prior = 1 / old + 1 / new, self.shift**2
        factors = 0.5 * np.log(variance / (variance + prior))
        factors += difference**2 * prior / (2 * variance * (variance + prior))
        number = np.arange(1, len(starts) + 1)
        logs = logsumexp(factors, axis=1) - np.log(factors.shape[1]) - np.log(number * (number + 1))
        return float(np.exp(min(logsumexp(logs), 700.0))), float(starts[logs.argmax()])

    def _smoothed(self, now: float, known: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Windowed estimate, its standard deviation, and the weighted one: each (k,)."""
        inside = known & (self.dates_ > now - self.window)
        shares = self.sizes_[inside] / self.sizes_[inside].sum()
        deviation = np.sqrt((shares[:, None] ** 2 * self._variances()[inside]).sum(axis=0))
        weights = self.sizes_[known] * 0.5 ** ((now - self.dates_[known]) / self.half_life)
        return shares @ self.estimates_[inside], deviation, weights @ self.estimates_[known] / weights.sum()

    def _named(self, at: float) -> Any:
        """A date as it was given."""
        if self.kind_ == "time":
            return np.datetime64(round(at * 86_400_000_000), "us")
        return int(at) if self.kind_ == "order" else float(at)


KINDS = {"order": "no dates", "number": "numbers as dates", "time": "dates"}


def _when(date: Any, number: int) -> tuple[float, str]:
    """A date as a number, in days where it is one, and its kind."""
    if date is None:
        return float(number), "order"
    if isinstance(date, Real) and not isinstance(date, bool):
        if not np.isfinite(float(date)):
            raise InvalidData(f"{date} is no date. Give every batch a date, a number, or nothing.")
        return float(date), "number"
    if isinstance(date, str | day | np.datetime64):  # a datetime and a pandas timestamp are dates too
        try:
            stamp: Any = np.array(date, dtype="datetime64[us]")[()]
        except ValueError:
            raise InvalidData(f"{date!r} is no date. Write it as 2026-03-01 or 2026-03-01T12:30.") from None
        if not np.isnat(stamp):
            return float(stamp.astype("int64")) / 86_400_000_000, "time"
    raise InvalidData(f"{date!r} is no date. Give every batch a date, a number, or nothing.")
