"""Prevalence in time: batches come in, estimates are smoothed, and changes raise an alarm that can be trusted.

Evidence for a change is counted from the batch after the one at which the last change was found, so that every stretch
without a change has the same small chance of a false alarm (`change_points`).
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray
from quanet.base import Quantifier
from quanet.change_points import (
    check_kind,
    date_of,
    evidence_for_change,
    levels_between,
    likeliest_dates,
    number_of,
    pooled_between,
    resampled_spread,
)
from quanet.courses import Change, Course, Reading
from quanet.errors import InvalidBags, InvalidSetting

__all__ = ["Change", "Course", "Monitor", "Reading"]

FIRST_RESAMPLES, LATER_RESAMPLES = 400, 20  # of a batch, for its variance, which is pooled between changes


class Monitor(BaseEstimator):
    """Follow a prevalence through batches in time, and raise an alarm when it has changed, each time it does.

    Batches may be of any size, dates may have gaps, and batches may come late: what counts is their date. A monitor can
    be saved and loaded like a quantifier.

    Parameters
    ----------
    quantifier : fitted.
    level : of confidence: a stretch without a change, from the start or since a change was found, has a false alarm
        with probability ``1 - level`` at most, however long it is; and that of intervals.
    window, half_life : of the smoothed estimates: days where dates are dates, else in the unit of the numbers given, or
        batches where none are given.
    shift : the size of a change that is looked for first; others are found too, a little later.
    tolerance : standard deviation of prevalence from batch to batch that is no change, such as 0.01 for a source that
        is never quite steady.
    random_state : of the resamples that give a batch its variance.

    Notes
    -----
    Intervals and alarms are about the chance of which instances are in a batch. A constant bias of the quantifier moves
    the level and raises no alarm; `diagnose` looks for one.

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
    spreads_: FloatArray  # (t, k) variance of an estimate times its batch's size, by resampling the batch
    resampled_: IntArray  # (t,) how often
    received_: int  # batches, those that were forgotten included
    kind_: str  # of the dates
    changes_: FloatArray  # (c,) dates of the changes, as they were found
    alarms_: FloatArray  # (c,) newest date when each was found

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
        at, kind = number_of(date, self.received_)
        self._check_kind(kind)
        rows = self.quantifier._rows_of(X)  # noqa: SLF001
        if len(rows) < 2:
            raise InvalidBags(f"the batch has {len(rows)} instance; it needs at least 2. Pool it with its neighbours.")
        spread, resamples = self._spread(rows)
        estimate = self.quantifier.aggregate(rows)
        self.kind_ = kind
        if not len(self.dates_) or at > self.dates_.max():
            self.opens_ = np.append(self.opens_, len(self.dates_))
        self.dates_ = np.append(self.dates_, at)
        self.sizes_ = np.append(self.sizes_, len(rows))
        self.estimates_ = np.vstack([self.estimates_, estimate])
        self.spreads_ = np.vstack([self.spreads_, spread])
        self.resampled_ = np.append(self.resampled_, resamples)
        self.received_ += 1
        return self._read()

    def restart(self, date: Any = None) -> None:
        """Discard the batches before a date (None: before the newest change), all if need be, and re-arm the alarm."""
        self._begin()
        if date is not None:
            start, kind = number_of(date, 0)
            self._check_kind("order" if kind == "number" and self.kind_ == "order" else kind)
        elif len(self.changes_):
            start = float(self._change_dates()[-1])
        else:
            raise InvalidSetting("no change has been found, so there is nothing to restart from. Give a date.")
        kept = self.dates_ >= start
        for name in ("dates_", "sizes_", "estimates_", "spreads_", "resampled_"):
            setattr(self, name, getattr(self, name)[kept])
        newest = np.maximum.accumulate(np.r_[-np.inf, self.dates_])[:-1]
        self.opens_ = np.flatnonzero(self.dates_ > newest)
        self.changes_, self.alarms_ = np.empty(0), np.empty(0)

    def course(self) -> Course:
        """Estimates at all dates so far, the changes, and where batches should lie between them."""
        check_is_fitted(self)
        self._begin()
        order = np.argsort(self.dates_, kind="stable")
        dates, estimates, k = self.dates_[order], self.estimates_[order], self.estimates_.shape[1]
        changes = self._change_dates()
        variances = self._variances(changes)[order]
        smoothed = [self._smoothed(at, self.dates_ <= at, variances[np.argsort(order)]) for at in dates]
        windowed, deviation, weighted = (
            np.reshape([one[part] for one in smoothed], (len(dates), k)) for part in range(3)
        )
        stretch = np.searchsorted(changes, dates, side="right")
        levels = levels_between(estimates, variances, stretch, len(changes) + 1)
        z = stats.norm.isf((1 - self.level) / 2)
        far = z * np.sqrt(variances)
        return Course(
            classes=self.quantifier.classes_,
            dates=np.array([self._named(at) for at in dates]),
            sizes=self.sizes_[order],
            estimate=estimates,
            windowed=windowed,
            lower=np.clip(windowed - z * deviation, 0, 1),
            upper=np.clip(windowed + z * deviation, 0, 1),
            weighted=weighted,
            baseline=levels[stretch],
            batch_lower=np.clip(levels[stretch] - far, 0, 1),
            batch_upper=np.clip(levels[stretch] + far, 0, 1),
            changes=tuple(
                Change(self._named(at), self._named(found), levels[number], levels[number + 1])
                for number, (at, found) in enumerate(zip(changes, self.alarms_, strict=True))
            ),
            level=self.level,
        )

    def _check_kind(self, kind: str) -> None:
        if len(self.dates_):
            check_kind(kind, self.kind_)

    def _begin(self) -> None:
        if hasattr(self, "dates_"):
            self._upgrade()
            return
        if not 0 < self.level < 1:
            raise InvalidSetting(f"level lies between 0 and 1, such as 0.95; got {self.level}.")
        for name in ("window", "half_life", "shift"):
            if not getattr(self, name) > 0:
                raise InvalidSetting(f"{name} is larger than 0; got {getattr(self, name)}.")
        if not 0 <= self.tolerance < 1:
            raise InvalidSetting(f"tolerance is a standard deviation, from 0 to below 1; got {self.tolerance}.")
        check_is_fitted(self.quantifier, "classes_")
        k = len(self.quantifier.classes_)
        self.dates_, self.sizes_, self.estimates_ = np.empty(0), np.empty(0, dtype=np.intp), np.empty((0, k))
        self.opens_ = np.empty(0, dtype=np.intp)
        self.spreads_, self.resampled_ = np.empty((0, k)), np.empty(0, dtype=np.intp)
        self.changes_, self.alarms_ = np.empty(0), np.empty(0)
        self.received_ = 0
        self.kind_ = "order"

    def _upgrade(self) -> None:
        """Read what version 0.1.0 kept: one variance for all batches, and one change."""
        if hasattr(self, "changes_"):
            return
        t = len(self.dates_)
        self.spreads_, self.resampled_ = np.tile(self.unit_variance_, (t, 1)), np.full(t, LATER_RESAMPLES)
        self.received_ = int(self.dates_.max(initial=-1.0)) + 1 if self.kind_ == "order" else t
        self.changes_ = np.empty(0) if self.since_ is None else np.array([self.since_])
        self.alarms_ = np.full(len(self.changes_), self.dates_.max(initial=0.0))
        del self.unit_variance_, self.resamples_, self.since_

    def _spread(self, rows: FloatArray) -> tuple[FloatArray, int]:
        """Variance of the batch's estimate times its size, (k,), and how many resamples say so."""
        known = int((self.dates_ >= self.changes_[-1]).sum()) if len(self.changes_) else len(self.dates_)
        resamples = max(LATER_RESAMPLES, FIRST_RESAMPLES // (1 + known))
        rng = np.random.default_rng([self.random_state, self.received_])
        return resampled_spread(self.quantifier, rows, resamples, rng=rng), resamples

    def _read(self) -> Reading:
        evidence, first = self._evidence()
        found = evidence >= 1 / (1 - self.level)
        if found:
            self.changes_ = np.append(self.changes_, first)
            self.alarms_ = np.append(self.alarms_, self.dates_.max())
        changes = self._change_dates()
        everything = np.ones(len(self.dates_), dtype=bool)
        windowed, deviation, weighted = self._smoothed(self.dates_.max(), everything, self._variances(changes))
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
            found=found,
            alarm=len(changes) > 0,
            since=self._named(changes[-1]) if len(changes) else None,
        )

    def _variances(self, changes: FloatArray) -> FloatArray:
        """Of every batch's estimates: (t, k)."""
        units = pooled_between(self.dates_, self.spreads_, self.resampled_, changes)
        return np.asarray(units / self.sizes_[:, None] + self.tolerance**2)

    def _evidence(self) -> tuple[float, float]:
        """The Bayes factor for a change since the last was found, and the date of the likeliest first batch after it.

        Batches up to the last alarm led to it, so they do not count again.
        """
        since = self.alarms_[-1] if len(self.alarms_) else -np.inf
        inside = np.flatnonzero(self.dates_ > since)
        inside = inside[np.argsort(self.dates_[inside], kind="stable")]
        opens = self.dates_[self.opens_]
        starts = np.searchsorted(self.dates_[inside], opens[opens > since][1:])
        variances = self._variances(self.changes_)[inside]
        evidence, first = evidence_for_change(self.estimates_[inside], variances, starts, shift=self.shift)
        return evidence, float(self.dates_[inside[first]]) if evidence else 0.0

    def _change_dates(self) -> FloatArray:
        """The likeliest date of every change, given all batches so far: (c,)."""
        batches = (self.dates_, self.estimates_, self._variances(self.changes_))
        return likeliest_dates(*batches, self.changes_, self.alarms_, shift=self.shift)

    def _smoothed(self, now: float, known: Any, variances: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Windowed estimate, its standard deviation, and the weighted one: each (k,)."""
        inside = known & (self.dates_ > now - self.window)
        shares = self.sizes_[inside] / self.sizes_[inside].sum()
        deviation = np.sqrt((shares[:, None] ** 2 * variances[inside]).sum(axis=0))
        weights = self.sizes_[known] * 0.5 ** ((now - self.dates_[known]) / self.half_life)
        return shares @ self.estimates_[inside], deviation, weights @ self.estimates_[known] / weights.sum()

    def _named(self, at: float) -> Any:
        return date_of(at, self.kind_)
