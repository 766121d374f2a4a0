"""Monitor the batches of a file in order of time: the answer of `quanet monitor`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import FloatArray, IntArray, LabelArray, Merged
from quanet.base import Quantifier
from quanet.corpus.grouped_inputs import GroupedInputs
from quanet.data.grouping import EMPTY
from quanet.data.instances import Inputs
from quanet.data.periods import Key, first_day, without_zone
from quanet.errors import InvalidBags, InvalidData, InvalidModel, InvalidSetting
from quanet.evaluation.monitor import Monitor
from quanet.evaluation.monitor_batches import BatchEstimate, History
from quanet.persist.load import load
from quanet.persist.save import free_place

# Default smoothing window in days, by the length of a batch: seven days, otherwise about four batches.
DEFAULT_WINDOW = {"day": 7.0, "week": 28.0, "month": 122.0, "quarter": 365.0, "year": 1461.0}


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The instances of one period: name, date as `Monitor` accepts it, and positions in the pool."""

    name: str
    date: Any
    indices: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class MonitorRun:
    """The result of monitoring the batches of a file.

    Attributes
    ----------
    history : prevalences at all dates, including earlier files.
    batches : names of the batches added by this run.
    estimates : the monitor's estimate after each of these batches.
    earlier : number of batches from earlier runs.
    repeated : names of batches that the monitor already contained; they were not added again.
    threshold : evidence needed for an alarm.
    """

    history: History
    batches: tuple[str, ...]
    estimates: tuple[BatchEstimate, ...]
    earlier: int
    repeated: tuple[str, ...]
    threshold: float

    def with_classes(self, names: LabelArray) -> "MonitorRun":
        """The same answer with other names of the classes, (k,)."""
        return replace(self, history=replace(self.history, classes=names))

    @property
    def changed_most(self) -> int:
        """Position of the class whose prevalence changed most; the last class if nothing changed."""
        changes = self.history.changes
        if not changes:
            return len(self.history.classes) - 1
        change = np.max([np.abs(one.after - one.before) for one in changes], axis=0)
        return int(np.flatnonzero(change >= change.max() - 1e-9)[-1])  # two classes change equally: the last one


def resume(folder: Path, quantifier: Quantifier, asked: dict[str, float], *, model: str) -> Monitor:
    """Load a monitor from its folder; raises if its model or settings differ from the requested ones.

    Parameters
    ----------
    folder : folder of the monitor.
    quantifier, model : the current model and its name.
    asked : settings requested now.
    """
    monitor = load(folder)
    if not isinstance(monitor, Monitor):
        raise InvalidModel(f"{folder} contains {type(monitor).__name__}, not a monitor. Choose another --state folder.")
    old = monitor.quantifier
    same = type(old) is type(quantifier) and np.array_equal(old.classes_, quantifier.classes_)
    if not (same and np.array_equal(old.prior_, quantifier.prior_) and old.n_instances_ == quantifier.n_instances_):
        raise InvalidModel(
            f"{folder} was created with a different model than {model}. Use that model, or another --state folder."
        )
    for name, value in asked.items():
        if getattr(monitor, name) != value:
            raise InvalidSetting(
                f"{folder} was created with {name} = {getattr(monitor, name):g}; got {value:g}. Omit the option, or "
                "start again with another --state folder."
            )
    return monitor


def open_monitor(
    quantifier: Quantifier, key: Key, folder: Path | None, *, model: str, **asked: float | None
) -> Monitor:
    """The monitor saved in a folder, or a new one.

    Parameters
    ----------
    quantifier, model : the model with its own labels, and its name.
    key : column and length of batches, which determine the default window.
    folder : of a saved monitor; a new one is made if it is empty or None.
    asked : settings of the monitor (level, window, half_life, tolerance); None for the default.
    """
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    if folder is not None:
        free_place(folder, overwrite=True)  # raises now if the folder cannot be replaced at the end
        if folder.is_dir() and any(folder.iterdir()):
            return resume(folder, quantifier, given, model=model)
    window = DEFAULT_WINDOW.get(key.period, 7.0)
    return Monitor(quantifier, **{"window": window, "half_life": given.get("window", window)} | given)


def read_batches(key: Key, reading: GroupedInputs) -> tuple[list[Batch], list[str]]:
    """The groups of a reading as batches, and notes. Rows without a date, which a state may have, are in none."""
    groups, codes = reading.groups, reading.codes
    missing = [at for at, group in enumerate(groups) if group[0] == EMPTY]
    notes = []
    if missing:  # it is the last
        groups, codes = groups[: missing[0]], np.where(codes < missing[0], codes, -1)
        left_out = reading.bags().sizes[missing[0]]
        notes.append(f"{left_out:,} rows have no date and were not used.")
    batches, joined = make_batches(key, groups, codes, None if reading.merged is None else reading.merged.counts)
    return batches, [*notes, *joined]


def make_batches(
    key: Key,
    groups: Sequence[tuple[str, ...]],
    owner: NDArray[np.integer[Any]],
    counts: NDArray[np.integer[Any]] | None = None,
) -> tuple[list[Batch], list[str]]:
    """Batches in order of time, and notes. A batch with one instance is merged with the next (the last: the previous).

    Parameters
    ----------
    key : the column and period of the groups.
    groups, owner : names of the groups and the group of each row, as returned by `group_codes`.
    counts : instances that each row stands for; None for one each.

    Examples
    --------
    >>> owner = np.array([0, 0, 1, 2, 2, 3])
    >>> weeks = [("2024-W01",), ("2024-W02",), ("2024-W03",), ("2024-W04",)]
    >>> batches, notes = make_batches(Key("date", "week"), weeks, owner)
    >>> [(one.name, one.date, len(one.indices)) for one in batches]
    [('2024-W01', '2024-01-01', 2), ('2024-W03', '2024-01-15', 4)]
    >>> notes
    ['Merged batches with one row into their neighbours: 2024-W02, 2024-W04.']
    """
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(len(groups) + 1))
    each = np.ones(len(owner), dtype=np.intp) if counts is None else counts
    dates = _dates(key, [group[0] for group in groups])
    batches: list[Batch] = []
    single: list[str] = []
    waiting = np.empty(0, dtype=np.intp)
    for place in sorted(range(len(groups)), key=dates.__getitem__):
        rows = order[bounds[place] : bounds[place + 1]]
        members = np.concatenate([waiting, rows])
        if each[rows].sum() == 1:
            single.append(groups[place][0])
        if each[members].sum() < 2:
            waiting = members
            continue
        waiting = np.empty(0, dtype=np.intp)
        batches.append(Batch(groups[place][0], dates[place], members))
    if not batches:
        raise InvalidBags("only one row has a date; a batch needs at least 2. Check the column of dates.")
    if len(waiting):
        last = batches.pop()
        batches.append(Batch(last.name, last.date, np.concatenate([last.indices, waiting])))
    joined = f"Merged batches with one row into their neighbours: {', '.join(single[:5])}"
    return batches, [joined + (f" and {len(single) - 5} more." if len(single) > 5 else ".")] if single else []


def monitor_batches(
    monitor: Monitor,
    read: Inputs,
    batches: Sequence[Batch],
    *,
    weights: FloatArray | None = None,
    merged: Merged | None = None,
    weight: str = "",
) -> MonitorRun:
    """Add batches to a monitor in order, except those that it already contains (`Monitor.contains`).

    Parameters
    ----------
    monitor : a new monitor, or one with earlier batches.
    read : the pool, as returned by the quantifier's `read`.
    batches : batches of the pool.
    weights, weight : (n,) weights of the rows, if any, and their name.
    merged : if rows stand for several instances each.
    """
    earlier = len(monitor.dates_) if hasattr(monitor, "dates_") else 0
    names, estimates, repeated = [], [], []
    for batch in batches:
        members, own = read.take(batch.indices), None if weights is None else weights[batch.indices]
        if own is not None and not own.any():
            raise InvalidData(f"All weights of batch {batch.name} are 0, so it has no shares. Leave its rows out.")
        counted = None if merged is None else merged_part(merged, batch.indices)
        if monitor.contains(members, batch.date, weights=own, merged=counted):
            repeated.append(batch.name)
            continue
        estimates.append(monitor.update(members, date=batch.date, weights=own, merged=counted))
        names.append(batch.name)
    threshold = 1 / (1 - monitor.level)
    history = monitor.history()
    if weight:
        history = replace(history, weight=weight)
    return MonitorRun(history, tuple(names), tuple(estimates), earlier, tuple(repeated), threshold)


def merged_part(merged: Merged, rows: IntArray) -> Merged:
    """What some rows stand for."""
    return Merged(merged.counts[rows], merged.squares[rows], merged.noise[rows])


def date_text(at: Any) -> str:
    """A date as text; midnight is omitted.

    Examples
    --------
    >>> [date_text(np.datetime64(text, "us")) for text in ("2024-05-31", "2024-05-31T12:30")], date_text(3)
    (['2024-05-31', '2024-05-31 12:30:00'], '3')
    """
    if isinstance(at, Real):
        return f"{at:g}"
    text = str(np.datetime64(at, "us")).replace("T", " ")
    return re.sub(r"( 00:00:00)?\.000000$", "", text)


def _dates(key: Key, names: Sequence[str]) -> list[Any]:
    """The first day of each period; without periods, the column's numbers or dates."""
    if key.period:
        return [first_day(name) for name in names]
    try:
        return [float(name) for name in names]
    except ValueError:
        pass
    dates = []
    for name in names:
        try:
            dates.append(without_zone(name))
            np.datetime64(dates[-1], "us")
        except (ValueError, OverflowError):
            raise InvalidData(
                f"{name!r} in column {key.column!r} is neither a number nor a date such as 2024-05-31. Add the "
                f"length of a batch, for example --by {key.column}:week, and --date-format for dates in another format."
            ) from None
    return dates
