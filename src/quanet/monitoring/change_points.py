r"""Change points in a series of estimates: evidence that is valid after every batch, and the most likely dates.

An ordinary test that is repeated after every batch gives a false alarm sooner or later. Here the evidence for a change
is a martingale as long as nothing changes. For every batch i that may be the first one after a change, the Bayes factor

.. math:: B_i = \sqrt{\frac{V}{V + \tau^2}} \exp\frac{d^2 \tau^2}{2 V (V + \tau^2)}

compares a change of unknown size (normal with standard deviation τ) with no change; d is the difference between the
mean estimates from i on and before i, and V is its variance. The level before the change need not be known. The sum of
these factors with weights 1 / (i (i + 1)) exceeds 1 / α with probability at most α, at any time (Ville's inequality).
"""

from datetime import date as day
from datetime import datetime
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import logsumexp

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.data.periods import without_zone
from quanet.errors import InvalidData

MAX_RESAMPLE_SIZE = 2000  # larger batches are resampled at this size: variance times size stays the same
KINDS = {"order": "no dates", "number": "numbers as dates", "time": "dates"}


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


def date_of(number: float, kind: str) -> Any:
    """The date behind a number that `number_of` returned."""
    if kind == "time":
        return np.datetime64(round(number * 86_400_000_000), "us")
    return int(number) if kind == "order" else float(number)
