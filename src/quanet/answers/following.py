"""Batches of a file through a monitor, one after the other in time: what `quanet monitor` answers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quanet.answers.shares import Key
from quanet.arrays import FloatArray, IntArray
from quanet.base import Quantifier
from quanet.errors import InvalidBags, InvalidData, InvalidModel, InvalidSetting
from quanet.instances import ReadInstances
from quanet.monitoring import Course, Monitor, Reading
from quanet.persist.folder import load

# Days that estimates are smoothed over where nothing else is asked for: a week of days, else about four batches.
SMOOTHED_OVER = {"day": 7.0, "week": 28.0, "month": 122.0, "quarter": 365.0, "year": 1461.0}

TOLD = 4  # changes in the sentence


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Instances of one time: a name, a date that `Monitor` takes, and positions in the pool."""

    name: str
    date: Any
    indices: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """What a monitor says after the batches of a file.

    Attributes
    ----------
    course : prevalences at all dates, those of earlier files included.
    batches : names of the batches taken in now, and `readings`, what the monitor said after each.
    earlier : batches that it knew before.
    repeated : names of batches that it knew before already, and that were not taken in again.
    threshold : evidence from which on there is an alarm.
    """

    course: Course
    batches: tuple[str, ...]
    readings: tuple[Reading, ...]
    earlier: int
    repeated: tuple[str, ...]
    threshold: float

    @property
    def before(self) -> FloatArray | None:
        """Prevalences (k,) between the newest change and the one before it; None where there is no alarm."""
        return self.course.changes[-1].before if self.course.changes else None

    @property
    def after(self) -> FloatArray | None:
        """Prevalences (k,) since the newest change; None where there is no alarm."""
        return self.course.changes[-1].after if self.course.changes else None

    @property
    def changed_most(self) -> int:
        """Position of the class whose share has changed most; the last one where nothing has."""
        if not self.course.changes:
            return len(self.course.classes) - 1
        change = np.max([np.abs(one.after - one.before) for one in self.course.changes], axis=0)
        return int(np.flatnonzero(change >= change.max() - 1e-9)[-1])  # of two classes, which change alike, the last

    @staticmethod
    def told(at: Any) -> str:
        """A date as one writes it."""
        return _told(at)

    def sentence(self, at: int | None = None) -> str:
        """The answer in one sentence, about the class at a position, or the one that has changed most."""
        c = self.changed_most if at is None else at
        name = str(self.course.classes.tolist()[c])
        changes = self.course.changes
        if not len(self.course.dates):
            return "No change found: there are no batches."
        if not changes:
            evidence = self.readings[-1].evidence if self.readings else 0.0
            now = self.course.windowed[-1, c]
            return (
                f"No change found: {name} is at {now:.1%} ({self.course.lower[-1, c]:.1%} to "
                f"{self.course.upper[-1, c]:.1%}); evidence {evidence:.2g}, an alarm needs {self.threshold:.0f}."
            )
        if len(changes) == 1:
            [one] = changes
            return f"Alarm: {name} has changed since {_told(one.date)}, from {one.before[c]:.1%} to {one.after[c]:.1%}."
        steps = [f"to {one.after[c]:.1%} since {_told(one.date)}" for one in changes]
        told = ", ".join(steps) if len(steps) <= TOLD else ", ".join([*steps[:1], "...", *steps[1 - TOLD :]])
        return f"Alarm: {len(changes)} changes. {name} went from {changes[0].before[c]:.1%} {told}."


def resume(folder: Path, quantifier: Quantifier, asked: dict[str, float], *, model: str) -> Monitor:
    """The monitor that was kept in a folder, if it is of the same model and settings.

    Parameters
    ----------
    folder : of the monitor.
    quantifier, model : the model that batches are read with now, and what it is called.
    asked : settings that are given now.
    """
    kept = load(folder)
    if not isinstance(kept, Monitor):
        raise InvalidModel(f"{folder} holds {type(kept).__name__}, which is no monitor. Give another --state.")
    old = kept.quantifier
    same = type(old) is type(quantifier) and np.array_equal(old.classes_, quantifier.classes_)
    if not (same and np.array_equal(old.prior_, quantifier.prior_) and old.n_instances_ == quantifier.n_instances_):
        raise InvalidModel(f"{folder} was begun with another model than {model}. Give that one, or another --state.")
    for name, value in asked.items():
        if getattr(kept, name) != value:
            raise InvalidSetting(
                f"{folder} was begun with {name} = {getattr(kept, name):g}; got {value:g}. Leave it out, or begin anew "
                "with another --state."
            )
    return kept


def make_batches(
    key: Key, groups: Sequence[tuple[str, ...]], owner: NDArray[np.integer[Any]]
) -> tuple[list[Batch], list[str]]:
    """Groups as batches in time; those of one instance join the next, the last the one before, and that is noted.

    Parameters
    ----------
    key : what instances were grouped by.
    groups, owner : as `group_codes` gives them.

    Examples
    --------
    >>> owner = np.array([0, 0, 1, 2, 2, 3])
    >>> weeks = [("2024-W01",), ("2024-W02",), ("2024-W03",), ("2024-W04",)]
    >>> batches, notes = make_batches(Key("date", "week"), weeks, owner)
    >>> [(one.name, one.date, len(one.indices)) for one in batches]
    [('2024-W01', '2024-01-01', 2), ('2024-W03', '2024-01-15', 4)]
    >>> notes
    ['Batches of one row joined their neighbours: 2024-W02, 2024-W04.']
    """
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(len(groups) + 1))
    dates = _dates(key, [group[0] for group in groups])
    batches: list[Batch] = []
    single: list[str] = []
    waiting = np.empty(0, dtype=np.intp)
    for place in sorted(range(len(groups)), key=dates.__getitem__):
        members = np.concatenate([waiting, order[bounds[place] : bounds[place + 1]]])
        if bounds[place + 1] - bounds[place] == 1:
            single.append(groups[place][0])
        if len(members) < 2:
            waiting = members
            continue
        waiting = np.empty(0, dtype=np.intp)
        batches.append(Batch(groups[place][0], dates[place], members))
    if not batches:
        raise InvalidBags("there is one row with a date only; a batch needs at least 2.")
    if len(waiting):
        last = batches.pop()
        batches.append(Batch(last.name, last.date, np.concatenate([last.indices, waiting])))
    joined = f"Batches of one row joined their neighbours: {', '.join(single[:5])}"
    return batches, [joined + (f" and {len(single) - 5} more." if len(single) > 5 else ".")] if single else []


def follow(monitor: Monitor, read: ReadInstances, batches: Sequence[Batch]) -> Followed:
    """Take batches in, one after the other, but for those that the monitor knows already.

    Parameters
    ----------
    monitor : new, or one that has seen earlier batches.
    read : the pool, as the quantifier's `read` gave it.
    batches : of the pool.
    """
    earlier = len(monitor.dates_) if hasattr(monitor, "dates_") else 0
    known = _known(monitor) if earlier else set()
    names, readings, repeated = [], [], []
    for batch in batches:
        members = read.take(batch.indices)
        if known and _mark(batch.date, len(members), monitor.quantifier.predict(members)) in known:
            repeated.append(batch.name)
            continue
        readings.append(monitor.update(members, date=batch.date))
        names.append(batch.name)
    course = monitor.course()
    return Followed(course, tuple(names), tuple(readings), earlier, tuple(repeated), 1 / (1 - monitor.level))


def _known(monitor: Monitor) -> set[tuple[str, int, bytes]]:
    course = monitor.course()
    return {
        _mark(at, int(size), estimate)
        for at, size, estimate in zip(course.dates.tolist(), course.sizes, course.estimate, strict=True)
    }


def _mark(at: Any, size: int, estimate: FloatArray) -> tuple[str, int, bytes]:
    """Equal for the same instances at the same time."""
    return _told(at), size, np.round(estimate, 9).tobytes()


def _told(at: Any) -> str:
    """A date as one writes it; midnight is left out."""
    if isinstance(at, float | int):
        return f"{at:g}"
    text = str(np.datetime64(at, "us")).replace("T", " ")
    return re.sub(r"( 00:00:00)?\.000000$", "", text)


def _dates(key: Key, names: Sequence[str]) -> list[Any]:
    """The first day of periods; or numbers, or dates, as they stand in a column."""
    if key.period:
        return [_first_day(name) for name in names]
    try:
        return [float(name) for name in names]
    except ValueError:
        pass
    dates = []
    for name in names:
        try:
            dates.append(_without_zone(name))
        except (ValueError, OverflowError):
            raise InvalidData(
                f"{name!r} in column {key.column!r} is neither a number nor a date such as 2024-05-31. Name a column "
                f"of dates with the length of a batch, such as --by {key.column}:week, and --date-format if need be."
            ) from None
    return dates


def _without_zone(name: str) -> str:
    """A date and time in UTC, where it says its zone, which NumPy does not take; else as it is.

    Examples
    --------
    >>> _without_zone("2024-05-31T12:30+02:00"), _without_zone("2024-05")
    ('2024-05-31T10:30:00', '2024-05')
    """
    if re.search(r"T.*(Z|[+-]\d\d(:?\d\d)?)$", name):
        return datetime.fromisoformat(name).astimezone(UTC).replace(tzinfo=None).isoformat()
    np.datetime64(name, "us")
    return name


def _first_day(name: str) -> str:
    """The first day of a period as `period_of` writes it.

    Examples
    --------
    >>> [_first_day(name) for name in ("2024-05-31", "2024-W22", "2024-05", "2024-Q2", "2024")]
    ['2024-05-31', '2024-05-27', '2024-05-01', '2024-04-01', '2024-01-01']
    """
    year, _, rest = name.partition("-")
    if rest.startswith("W"):
        return date.fromisocalendar(int(year), int(rest[1:]), 1).isoformat()
    if rest.startswith("Q"):
        return date(int(year), 3 * int(rest[1:]) - 2, 1).isoformat()
    month, _, day = rest.partition("-")
    return date(int(year), int(month or 1), int(day or 1)).isoformat()
