r"""Monitor a prevalence over time: smoothed estimates, and alarms with a known probability of a false alarm.

An ordinary test that is repeated after every batch gives a false alarm sooner or later. Here the evidence for a change
is a martingale as long as nothing changes. For every batch i that may be the first one after a change, the Bayes factor

.. math:: B_i = \sqrt{\frac{V}{V + \tau^2}} \exp\frac{d^2 \tau^2}{2 V (V + \tau^2)}

compares a change of unknown size (normal with standard deviation τ) with no change; d is the difference between the
mean estimates from i on and before i, and V is its variance. The level before the change need not be known. The sum of
these factors with weights 1 / (i (i + 1)) exceeds 1 / α with probability at most α, at any time (Ville's inequality).
"""

from collections.abc import Sequence
from datetime import date as day
from datetime import datetime
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import BoolArray, FloatArray, IntArray, Merged
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.data.periods import without_zone
from quanet.errors import InvalidData, InvalidSetting
from quanet.evaluation.monitor_batches import (
    PER_BATCH,
    BatchEstimate,
    Change,
    History,
    Window,
    add_batch,
    amounts,
    amounts_of,
    check_size,
    check_weighting,
    content_of,
    estimate_batch,
    intervals_of,
    is_known,
    measure_batch,
    share_distances,
    start_state,
    upgrade_state,
)
from quanet.parameters import LEVEL, Constraints, between, check_parameters, positive

MAX_RESAMPLE_SIZE = 2000  # larger batches are resampled at this size: variance times size stays the same
KINDS = {"order": "no dates", "number": "numbers as dates", "time": "dates"}
FIRST_RESAMPLES, LATER_RESAMPLES = 400, 20  # bootstrap resamples per batch; variances are pooled between changes


def log_factors(estimates: FloatArray, variances: FloatArray, starts: IntArray, *, shift: float) -> FloatArray:
    """Log Bayes factors for a change at the given positions, averaged over classes: (t, k), (t, k), (s,) -> (s,).

    Parameters
    ----------
    estimates, variances : estimates of the batches in order of time, and their variances.
    starts : candidate positions of the first batch after a change, at least 1.
    shift : expected size of a change (standard deviation of its prior).
    """
    precision = 1 / variances
    mass = np.cumsum(precision, axis=0)
    sums = np.cumsum(precision * estimates, axis=0)
    old, new = mass[starts - 1], mass[-1] - mass[starts - 1]
    difference = (sums[-1] - sums[starts - 1]) / new - sums[starts - 1] / old
    variance, prior = 1 / old + 1 / new, shift**2
    factors = 0.5 * np.log(variance / (variance + prior))
    factors += difference**2 * prior / (2 * variance * (variance + prior))
    return np.asarray(logsumexp(factors, axis=1) - np.log(factors.shape[1]))


def evidence_for_change(
    estimates: FloatArray, variances: FloatArray, starts: IntArray, *, shift: float
) -> tuple[float, int]:
    """Bayes factor for a change at any of the positions, and the most likely position; 0 without positions."""
    if not len(starts):
        return 0.0, 0
    number = np.arange(1, len(starts) + 1)
    logs = log_factors(estimates, variances, starts, shift=shift) - np.log(number * (number + 1))
    return float(np.exp(min(logsumexp(logs), 700.0))), int(starts[logs.argmax()])


def likeliest_dates(
    dates: FloatArray,
    estimates: FloatArray,
    variances: FloatArray,
    changes: FloatArray,
    alarms: FloatArray,
    *,
    shift: float,
) -> FloatArray:
    """Most likely date of every change, between its neighbours and no later than its detection: (c,).

    Parameters
    ----------
    dates, estimates, variances : (t,), (t, k), (t, k) of the batches, in any order.
    changes, alarms : (c,) date of each change as first detected, and the newest date at that time.
    shift : expected size of a change (standard deviation of its prior).
    """
    refined = changes.copy()
    for number, alarm in enumerate(alarms):
        low = refined[number - 1] if number else -np.inf
        high = changes[number + 1] if number + 1 < len(refined) else np.inf
        inside = np.flatnonzero((dates >= low) & (dates < high))
        inside = inside[np.argsort(dates[inside], kind="stable")]
        days = np.unique(dates[inside])[1:]
        days = days[days <= alarm]
        if len(days):
            starts = np.searchsorted(dates[inside], days)
            factors = log_factors(estimates[inside], variances[inside], starts, shift=shift)
            refined[number] = days[factors.argmax()]
    return refined


def levels_between(estimates: FloatArray, variances: FloatArray, segment: IntArray, number: int) -> FloatArray:
    """Mean prevalence of every segment between changes, batches weighted by precision: (number, k)."""
    member = segment == np.arange(number)[:, None]
    precision = 1 / variances
    return np.asarray((member @ (precision * estimates)) / np.maximum(member @ precision, 1e-300))


def pooled_between(dates: FloatArray, values: FloatArray, weights: IntArray, changes: FloatArray) -> FloatArray:
    """Replace each batch's value by the weighted mean over its segment between changes: (t, k) -> (t, k)."""
    segment = np.searchsorted(changes, dates, side="right")
    member = (segment == np.arange(len(changes) + 1)[:, None]) * weights
    means = member @ values / np.maximum(member.sum(axis=1, keepdims=True), 1)
    return np.asarray(means[segment])


def unit_variance(
    quantifier: Quantifier, rows: FloatArray, bag: Bags, resamples: int, *, rng: np.random.Generator
) -> FloatArray:
    """Variance of the estimate of a batch times its effective size, by the bootstrap: rows (n, d), one bag -> (k,)."""
    size = min(max(2, int(bag.effective_sizes[0])), MAX_RESAMPLE_SIZE)
    members = bag.unweighted(rows).flat
    bags = Bags(members[rng.integers(len(members), size=(resamples, size))])
    estimates = np.concatenate([quantifier.aggregate(stack) for _, stack in bags.gather(rows)])
    # An estimate of 0 or 1 is the same in every resample, but one more instance could change it: hence a minimum.
    return np.maximum(size * estimates.var(axis=0, ddof=1), 1 / size)


def number_of(date: Any, order: int) -> tuple[float, str]:
    """A date as a number (days for dates) and its kind; `order`, the batch number, if no date is given.

    An offset or a time zone is left out: a date counts as it is written.
    """
    if date is None:
        return float(order), "order"
    if isinstance(date, Real) and not isinstance(date, bool):
        if not np.isfinite(float(date)):
            raise InvalidData(f"{date} is not a date. Give every batch a date or a number, or give none.")
        return float(date), "number"
    if isinstance(date, str | day | np.datetime64):  # datetime and pandas.Timestamp are subclasses of date
        try:
            stamp: Any = np.array(_as_written(date), dtype="datetime64[us]")[()]
        except ValueError:
            raise InvalidData(f"{date!r} is not a date. Write it as 2026-03-01 or 2026-03-01T12:30.") from None
        if not np.isnat(stamp):
            return float(stamp.astype("int64")) / 86_400_000_000, "time"
    raise InvalidData(f"{date!r} is not a date. Give every batch a date or a number, or give none.")


def _as_written(date: Any) -> Any:
    """A date without its time zone."""
    if isinstance(date, str):
        return without_zone(date)
    return date.replace(tzinfo=None) if isinstance(date, datetime) else date


def check_kind(given: str, known: str) -> None:
    """Raise unless a date has the same kind as the dates before."""
    if given != known:
        raise InvalidData(
            f"earlier batches came with {KINDS[known]}, this one with {KINDS[given]}. "
            "Use the same kind of date for every batch."
        )


class Monitor(BaseEstimator):
    r"""Monitor a prevalence over batches in time and raise an alarm after every change.

    Batches may have any size, dates may have gaps, and batches may arrive late. `save` and `load` keep its batches.

    Parameters
    ----------
    quantifier : fitted quantifier.
    level : confidence level of the intervals and of the alarm. Between two changes, a false alarm has a probability of
        at most ``1 - level``, however many batches arrive.
    window, half_life : window and half-life of the smoothed estimates: in days if dates are dates, in the unit of the
        numbers if dates are numbers, otherwise in batches.
    shift : expected size of a change. Smaller and larger changes are detected too, a little later.
    tolerance : standard deviation of the prevalence between batches that does not count as a change, for example 0.01
        if the source always varies a little.
    random_state : seed of the bootstrap that estimates the variance of each batch.

    Notes
    -----
    With the difference :math:`d_i` of the mean estimates from batch i on and before it, its variance :math:`V_i` and
    :math:`\tau` = `shift`, an alarm is raised if this evidence, averaged over classes, is 1 / (1 - `level`) [1]_:

    .. math:: \sum_i \frac{1}{i (i + 1)} \sqrt{\frac{V_i}{V_i + \tau^2}} \exp\frac{d_i^2 \tau^2}{2 V_i (V_i + \tau^2)}

    Alarms cover the sampling error of the batches, intervals also drift (`quanet.drift`). A constant bias shifts the
    level but raises no alarm. `Change.may_be_drift` tells whether drift may explain a change.

    References
    ----------
    .. [1] J. Shin, A. Ramdas and A. Rinaldo, "E-detectors: a nonparametric framework for sequential change detection",
       2023.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> source = Gaussians()
    >>> monitor = Monitor(EMQ().fit(*source.draw([0.5, 0.5], 1000, rng=0)))
    >>> for number in range(10):
    ...     found = monitor.update(source.draw([0.3, 0.7], 300, rng=number)[0])
    >>> found.alarm
    False
    >>> for number in range(10, 15):
    ...     found = monitor.update(source.draw([0.6, 0.4], 300, rng=number)[0])
    >>> found.alarm, found.since
    (True, 10)
    """

    allowed_values: ClassVar[Constraints] = {
        "level": LEVEL,
        **dict.fromkeys(("window", "half_life", "shift"), positive()),
        "tolerance": between(0, 1, including="low"),
    }

    dates_: FloatArray  # in order of arrival
    sizes_: IntArray
    estimates_: FloatArray  # (t, k)
    opens_: IntArray  # positions of batches newer than all before: only these may start a change
    spreads_: FloatArray  # (t, k) bootstrap variance of an estimate times the size of its batch
    resampled_: IntArray  # (t,) number of resamples
    distances_: FloatArray  # (t,) from the training data, as measured; NaN if unknown
    deviations_: FloatArray  # (t,) of the distances, by chance
    totals_: FloatArray  # (t,) weights; NaN if the instances have none
    effective_: IntArray  # (t,) effective sizes, of different instances; the sizes without weights and copies
    contents_: NDArray[np.uint64]  # (t,) hashes of what was read of each batch; 0 if unknown
    received_: int  # number of batches, including discarded ones
    kind_: str  # kind of the dates: "order", "number" or "time"
    changes_: FloatArray  # (c,) dates of the changes, as first detected
    alarms_: FloatArray  # (c,) newest date when each change was detected

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
        """Fit the quantifier and discard all batches. Not needed if the quantifier is already fitted."""
        fresh = clone(self)
        fresh.quantifier.fit(X, y)
        self.__dict__.clear()
        self.__dict__.update(fresh.__dict__)
        self._initialize()
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dates_")

    def update(
        self, X: Any, date: Any = None, *, weights: ArrayLike | None = None, merged: Merged | None = None
    ) -> BatchEstimate:
        """Add a batch and return the estimate after it.

        Parameters
        ----------
        X : instances of the batch, at least two.
        date : a date, a string such as "2026-03-01", or a number; None numbers the batches from 0. All batches of a
            monitor need the same kind of date.
        weights : (n,) weights of the instances, such as views, for shares of the weight; for all batches or for none.
        merged : if rows stand for several instances each (`Bags`); `weights` are then the sums of their weights.
        """
        self._initialize()
        at, kind = number_of(date, self.received_)
        self._check_kind(kind)
        read = self.quantifier.read(X)
        rows = self.quantifier.rows(read.values)
        n = check_size(len(rows), merged)
        bag = Bags(np.arange(len(rows))[None], pool_size=len(rows), weights=weights, merged=merged)
        check_weighting(self.totals_, bag.exposure)
        spread, resamples = self._unit_variance(rows, bag)
        estimate = estimate_batch(self.quantifier, rows, bag)
        self.kind_ = kind
        distance, weight = measure_batch(self.quantifier, read, bag), amounts_of(bag, read.hashes)
        content = content_of(read, bag.weights, merged)
        add_batch(self, at, n, estimate, spread, resamples, *distance, *weight, content)
        return self._newest_estimate()

    def contains(
        self, X: Any, date: Any = None, *, weights: ArrayLike | None = None, merged: Merged | None = None
    ) -> bool:
        """Whether a batch of the same date with the same instances was added before; parameters as in `update`."""
        self._initialize()
        at, kind = number_of(date, self.received_)
        if not len(self.dates_) or kind != self.kind_:
            return False
        read = self.quantifier.read(X)
        bag = Bags(np.arange(len(read))[None], pool_size=len(read), weights=weights, merged=merged)
        return is_known(self, at, read, bag)

    def restart(self, date: Any = None) -> None:
        """Discard the batches before a date (default: before the newest change) and re-arm the alarm."""
        self._initialize()
        if date is not None:
            start, kind = number_of(date, 0)
            self._check_kind("order" if kind == "number" and self.kind_ == "order" else kind)
        elif len(self.changes_):
            start = float(self._change_dates()[-1])
        else:
            raise InvalidSetting("no change has been detected, so there is nothing to restart from. Give a date.")
        kept = self.dates_ >= start
        for name in PER_BATCH:
            setattr(self, name, getattr(self, name)[kept])
        newest = np.maximum.accumulate(np.r_[-np.inf, self.dates_])[:-1]
        self.opens_ = np.flatnonzero(self.dates_ > newest)
        self.changes_, self.alarms_ = np.empty(0), np.empty(0)

    def history(self) -> History:
        """Estimates of all batches so far, the detected changes, and the range expected for each batch."""
        check_is_fitted(self)
        self._initialize()
        order = np.argsort(self.dates_, kind="stable")
        dates, estimates, changes = self.dates_[order], self.estimates_[order], self._change_dates()
        variances = self._variances(changes)
        windows = self._windows([self._before(at) for at in dates], variances)
        lower, upper, drift = intervals_of(self.quantifier, windows, self.level)
        segment = np.searchsorted(changes, dates, side="right")
        levels = levels_between(estimates, variances[order], segment, len(changes) + 1)
        owner = np.searchsorted(changes, self.dates_, side="right")
        segments = self._windows([owner == at for at in range(len(levels))], variances)
        costs = intervals_of(self.quantifier, segments, self.level)[2].cost
        far = stats.norm.isf((1 - self.level) / 2) * np.sqrt(variances[order])
        return History(
            classes=self.quantifier.classes_,
            dates=np.array([self._date(at) for at in dates]),
            sizes=self.sizes_[order],
            estimate=estimates,
            windowed=np.reshape([one.estimate for one in windows], estimates.shape),
            lower=lower,
            upper=upper,
            weighted=np.reshape([self._weighted(at) for at in dates], estimates.shape),
            baseline=levels[segment],
            batch_lower=np.clip(levels[segment] - far, 0, 1),
            batch_upper=np.clip(levels[segment] + far, 0, 1),
            changes=tuple(
                Change(self._date(at), self._date(found), levels[i], levels[i + 1], costs[i : i + 2].max(axis=0))
                for i, (at, found) in enumerate(zip(changes, self.alarms_, strict=True))
            ),
            level=self.level,
            drift=drift,
            effective_sizes=None if np.isnan(self.totals_).any() else self.effective_[order],
        )

    def _check_kind(self, kind: str) -> None:
        if len(self.dates_):
            check_kind(kind, self.kind_)

    def _initialize(self) -> None:
        if hasattr(self, "dates_"):
            upgrade_state(self)
            return
        check_parameters(self)
        check_is_fitted(self.quantifier, "classes_")
        start_state(self, len(self.quantifier.classes_))

    def _unit_variance(self, rows: FloatArray, bag: Bags) -> tuple[FloatArray, int]:
        """Variance of the batch's estimate times its effective size, (k,), and the number of resamples used."""
        known = int((self.dates_ >= self.changes_[-1]).sum()) if len(self.changes_) else len(self.dates_)
        resamples = max(LATER_RESAMPLES, FIRST_RESAMPLES // (1 + known))
        rng = np.random.default_rng([self.random_state, self.received_])
        return unit_variance(self.quantifier, rows, bag, resamples, rng=rng), resamples

    def _newest_estimate(self) -> BatchEstimate:
        evidence, first = self._evidence()
        found = evidence >= 1 / (1 - self.level)
        if found:
            self.changes_ = np.append(self.changes_, first)
            self.alarms_ = np.append(self.alarms_, self.dates_.max())
        changes = self._change_dates()
        newest = self.dates_.max()
        [window] = self._windows([self._before(newest)], self._variances(changes))
        (lower,), (upper,), drift = intervals_of(self.quantifier, [window], self.level)
        return BatchEstimate(
            date=self._date(self.dates_[-1]),
            n=int(self.sizes_[-1]),
            estimate=self.estimates_[-1],
            windowed=window.estimate,
            lower=lower,
            upper=upper,
            drift=drift.of_bag(0),
            weighted=self._weighted(newest),
            evidence=evidence,
            found=found,
            alarm=len(changes) > 0,
            since=self._date(changes[-1]) if len(changes) else None,
            effective_n=None if np.isnan(self.totals_[-1]) else int(self.effective_[-1]),
        )

    def _variances(self, changes: FloatArray) -> FloatArray:
        """Variances of the batches' estimates: (t, k)."""
        units = pooled_between(self.dates_, self.spreads_, self.resampled_, changes)
        return np.asarray(units / self.effective_[:, None] + self.tolerance**2)

    def _evidence(self) -> tuple[float, float]:
        """Bayes factor for a change since the last detection, and the most likely date of that change.

        Batches up to the last alarm are not used again.
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
        """Most likely date of every change, given all batches so far: (c,)."""
        batches = (self.dates_, self.estimates_, self._variances(self.changes_))
        return likeliest_dates(*batches, self.changes_, self.alarms_, shift=self.shift)

    def _windows(self, members: Sequence[BoolArray], variances: FloatArray) -> list[Window]:
        """Windows of the batches in these masks (t,); variances (t, k) of all batches."""
        distances = share_distances(self.quantifier, self.distances_, self.deviations_, self.effective_)
        each = amounts(self)
        return [Window.of(self.sizes_[i], each[i], self.estimates_[i], variances[i], distances[i]) for i in members]

    def _before(self, now: float) -> BoolArray:
        """The batches in the window that ends at a date, (t,)."""
        return (self.dates_ <= now) & (self.dates_ > now - self.window)

    def _weighted(self, now: float) -> FloatArray:
        """Mean prevalences (k,) of the batches up to a date, weighted by their size and age."""
        known = self.dates_ <= now
        weights = amounts(self)[known] * 0.5 ** ((now - self.dates_[known]) / self.half_life)
        return np.asarray(weights @ self.estimates_[known] / weights.sum())

    def _date(self, at: float) -> Any:
        """The date behind a number that `number_of` returned."""
        if self.kind_ == "time":
            return np.datetime64(round(at * 86_400_000_000), "us")
        return int(at) if self.kind_ == "order" else float(at)
