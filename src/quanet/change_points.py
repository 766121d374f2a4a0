r"""Changes in a series of estimates: evidence that may be looked at after every batch, and the likeliest dates.

Looking at a test after every batch would sooner or later give a false alarm. Here the evidence for a change is a
martingale while nothing changes: for every batch i that may have been the first after a change, the Bayes factor

.. math:: B_i = \sqrt{\frac{V}{V + \tau^2}} \exp\frac{d^2 \tau^2}{2 V (V + \tau^2)}

of a change of unknown size (normal, of deviation τ) against none, with d the difference of the mean estimates since i
and before, and V its variance. The level before need not be known. Their sum with weights 1 / (i (i + 1)) exceeds
1 / α with probability α at most, however long one looks (Ville's inequality).
"""

from datetime import date as day
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import logsumexp

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.errors import InvalidData

LARGE = 2000  # a resample of a larger batch is of this many instances: variance times size stays the same
KINDS = {"order": "no dates", "number": "numbers as dates", "time": "dates"}


def log_factors(estimates: FloatArray, variances: FloatArray, starts: IntArray, *, shift: float) -> FloatArray:
    """Log Bayes factors for a change at each of some positions, averaged over classes: (t, k), (t, k), (s,) -> (s,).

    Parameters
    ----------
    estimates, variances : of batches in the order of time.
    starts : positions of the first batch after a change, from 1 on.
    shift : the size of a change that is looked for first.
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
    """The Bayes factor for a change at any of the positions, and which is the likeliest; 0 where there is none."""
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
    """The likeliest date of every change between the ones next to it, up to the date when it was found: (c,).

    Parameters
    ----------
    dates, estimates, variances : (t,), (t, k), (t, k) of the batches, in any order.
    changes, alarms : (c,) dates of the changes as they were found, and the newest date then.
    shift : the size of a change that is looked for first.
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


def levels_between(estimates: FloatArray, variances: FloatArray, stretch: IntArray, number: int) -> FloatArray:
    """Mean prevalence of every stretch between changes, batches weighted by their precision: (number, k)."""
    member = stretch == np.arange(number)[:, None]
    precision = 1 / variances
    return np.asarray((member @ (precision * estimates)) / np.maximum(member @ precision, 1e-300))


def pooled_between(dates: FloatArray, values: FloatArray, weights: IntArray, changes: FloatArray) -> FloatArray:
    """Every batch's value replaced by the mean over all batches between the same changes: (t, k) -> (t, k)."""
    stretch = np.searchsorted(changes, dates, side="right")
    member = (stretch == np.arange(len(changes) + 1)[:, None]) * weights
    means = member @ values / np.maximum(member.sum(axis=1, keepdims=True), 1)
    return np.asarray(means[stretch])


def resampled_spread(
    quantifier: Quantifier, rows: FloatArray, resamples: int, *, rng: np.random.Generator
) -> FloatArray:
    """Variance of a batch's estimate times its size, by resampling its rows: (n, d) -> (k,)."""
    size = min(len(rows), LARGE)
    bags = Bags(rng.integers(len(rows), size=(resamples, size)))
    estimates = np.concatenate([quantifier.aggregate(stack) for _, stack in bags.gather(rows)])
    # An estimate at 0 or 1 does not move with the resample; one instance more could move it, though.
    return np.maximum(size * estimates.var(axis=0, ddof=1), 1 / size)


def number_of(date: Any, order: int) -> tuple[float, str]:
    """A date as a number, in days where it is one, and its kind; `order` where none is given."""
    if date is None:
        return float(order), "order"
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


def check_kind(given: str, known: str) -> None:
    """Raise unless a date is of the same kind as those before."""
    if given != known:
        raise InvalidData(
            f"the batches so far came with {KINDS[known]}, this one with {KINDS[given]}. "
            "Give every batch the same kind of date, or none at all."
        )


def date_of(number: float, kind: str) -> Any:
    """A date as it was given, from what `number_of` made of it."""
    if kind == "time":
        return np.datetime64(round(number * 86_400_000_000), "us")
    return int(number) if kind == "order" else float(number)
