"""Differences between files, groups or periods, and trends over periods: `quanet diff`."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Literal

import numpy as np

from quanet.arrays import IntArray, LabelArray
from quanet.base import Quantifier
from quanet.corpus.grouped_inputs import GroupedInputs
from quanet.data.columns import nearest_first
from quanet.data.instances import Inputs
from quanet.data.periods import Key
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning, brief
from quanet.uncertainty.comparisons import MIN_PERIODS, difference_bags, differences_of, trend_of
from quanet.uncertainty.contrasts import Sides, read_sides
from quanet.uncertainty.differences import Differences, Trend
from quanet.uncertainty.policy import SMALL_BAG, Target
from quanet.wording import percent

Against = Literal["rest", "previous", "baseline"]
NAMED = 5  # groups named in a message
FEWEST_DISTINCT = 20  # different rows of a file; fewer may occur in another file by chance
_Series = list[tuple[IntArray, IntArray]]  # positions of groups, and numbers of their periods
MANY_SHARED = 0.5  # share of the rows of a file that also occur in another one, from which it is worth a warning


@dataclass(frozen=True, slots=True, eq=False)
class GroupDifferences:
    """Differences between groups of instances, with trends if groups are periods.

    Attributes
    ----------
    classes : (k,) labels.
    differences : all comparisons, with Holm's correction over them.
    against : what every group is compared with: "rest", "previous" or "baseline".
    keys : columns that instances are grouped by; empty if every file is a group.
    changes : from the first to the last period of every series, if there are more than two periods; else None.
    trends : the slope of every series of at least three periods, by the name of the series; "" if there is only one.
    period : day, week, month, quarter or year, of the trends; "" without periods.
    small : periods that changes and trends leave out, because they have few instances.
    target : "source" or "bag", as in `quanet.difference`.
    skipped : rows skipped, by reason.
    source : name of the data.
    model : facts about the model.
    """

    classes: LabelArray
    differences: Differences
    against: Against
    keys: tuple[Key, ...] = ()
    changes: Differences | None = None
    trends: dict[str, Trend] = field(default_factory=dict)
    period: str = ""
    small: tuple[str, ...] = ()
    target: Target = "source"
    skipped: dict[str, int] = field(default_factory=dict)
    source: str = ""
    model: dict[str, Any] = field(default_factory=dict)

    @property
    def over_time(self) -> bool:
        """Whether comparisons are between periods or files, from the first to the second."""
        return self.against == "previous" or not self.keys


def compare_groups(
    quantifier: Quantifier,
    reading: GroupedInputs,
    *,
    keys: Sequence[Key] = (),
    against: str | None = None,
    between: tuple[str, str] | None = None,
    level: float = 0.95,
    seed: int = 0,
    drift: bool = True,
    target: Target = "source",
    source: str = "",
    model: dict[str, Any] | None = None,
) -> GroupDifferences:
    """Compare groups of instances.

    Parameters
    ----------
    quantifier : the fitted quantifier that has read the instances.
    reading : instances, with their groups.
    keys : columns that instances are grouped by; empty if every file is a group.
    against : "rest", "previous", or the name of a group; None for "previous" if the groups are periods or two files,
        and "rest" otherwise.
    between : two groups; only they are compared.
    level, seed, drift, target : as in `quanet.difference`.
    source, model : facts for the reader.
    """
    bags = reading.bags()
    labels = [str(label) for label in bags.labels.tolist()]
    if len(labels) < 2:
        raise InvalidData(
            f"There is one group only, {brief(labels[0])}, so there is nothing to compare it with. Give two files, or "
            "group by a column with several values."
        )
    at = next((place for place, key in enumerate(keys) if key.period), None)
    series = series_of(reading.groups, keys, at)
    options: dict[str, Any] = {"rng": seed, "drift": drift, "target": target, "clusters": reading.clusters}
    facts: dict[str, Any] = {
        "keys": tuple(keys),
        "target": target,
        "skipped": reading.skipped,
        "source": source,
        "model": model or {},
    }
    if between is None and against is None:
        against = "previous" if at is not None or len(labels) == 2 else "rest"
    if between is None and against == "rest":
        found = difference_bags(quantifier, reading.instances, bags, "rest", level, **options)
        return GroupDifferences(quantifier.classes_, found, "rest", **facts)
    if between is not None:
        pairs, kind = np.array([[_position(name, labels) for name in between]]), "previous"
        if pairs[0, 0] == pairs[0, 1]:
            raise InvalidSetting(f"Both groups are {between[0]!r}. Name two different groups.")
        bags, pairs, series = bags.take(pairs[0]), np.array([[0, 1]]), []
    elif against == "previous":
        members = [part for part, _ in series] or [np.arange(len(labels))]
        pairs = np.concatenate([np.stack([part[:-1], part[1:]], axis=1) for part in members])
        kind = "previous"
        if not len(pairs):
            raise InvalidData("No group has two periods, so there is no previous one. Compare with 'rest' instead.")
    else:
        base = _position(str(against), labels)
        others = np.delete(np.arange(len(labels)), base)
        pairs, kind = np.stack([np.full(len(others), base), others], axis=1), "baseline"
    sides = read_sides(quantifier, reading.instances, bags, level, **options)
    over_time = kind == "previous" and at is not None
    large, small = _large(series, bags.effective_sizes)
    return GroupDifferences(
        quantifier.classes_,
        differences_of(sides, pairs),
        "previous" if kind == "previous" else "baseline",
        changes=_changes(sides, large) if over_time else None,
        trends=_trends(sides, large, reading.groups, at) if over_time else {},
        period=keys[at].period if over_time and at is not None else "",
        small=tuple(labels[place] for place in small) if over_time else (),
        **facts,
    )


def _large(series: _Series, sizes: IntArray) -> tuple[_Series, list[int]]:
    """The series without periods of few instances, unless fewer than two would remain; and these periods."""
    kept, small = [], []
    for members, times in series:
        enough = sizes[members] >= SMALL_BAG
        enough = enough if enough.sum() > 1 else np.ones(len(members), dtype=bool)
        kept.append((members[enough], times[enough]))
        small += members[~enough].tolist()
    return kept, small


def _position(name: str, labels: list[str]) -> int:
    if name not in labels:
        nearest = nearest_first(name, labels)[:NAMED]
        more = f" and {len(labels) - len(nearest):,} more" if len(labels) > len(nearest) else ""
        raise InvalidSetting(f"Unknown group {name!r}. Choose from {', '.join(map(repr, nearest))}{more}.")
    return labels.index(name)


def series_of(groups: Sequence[tuple[str, ...]], keys: Sequence[Key], at: int | None) -> _Series:
    """Groups that differ in their period only, by time."""
    if at is None:
        return []
    found: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for position, group in enumerate(groups):
        number = period_number(group[at], keys[at].period)
        if number is not None:
            found.setdefault((*group[:at], *group[at + 1 :]), []).append((number, position))
    ordered = [sorted(members) for members in found.values()]
    return [(np.array([p for _, p in part]), np.array([t for t, _ in part])) for part in ordered]


def period_number(text: str, period: str) -> int | None:
    """The number of a period, so that consecutive periods differ by 1; None if the text is not a period.

    Examples
    --------
    >>> [period_number(text, "month") for text in ("2023-12", "2024-01", "unknown")]
    [24287, 24288, None]
    """
    try:
        if period == "week":
            year, week = text.split("-W")
            return date.fromisocalendar(int(year), int(week), 1).toordinal() // 7
        if period == "day":
            return date.fromisoformat(text).toordinal()
        year, _, part = text.replace("Q", "").partition("-")
        return {"year": 1, "quarter": 4, "month": 12}[period] * int(year) + int(part or 1) - 1
    except ValueError:
        return None


def _changes(sides: Sides, series: _Series) -> Differences | None:
    pairs = [[part[0], part[-1]] for part, _ in series if len(part) > 2]
    return differences_of(sides, np.array(pairs)) if pairs else None


def _trends(sides: Sides, series: _Series, groups: Sequence[tuple[str, ...]], at: int | None) -> dict[str, Trend]:
    found = {}
    for members, times in series:
        if len(members) >= MIN_PERIODS:
            others = [value for place, value in enumerate(groups[members[0]]) if place != at]
            found[", ".join(others)] = trend_of(sides, times, members)
    return found


def join_readings(readings: Sequence[GroupedInputs], names: Sequence[str]) -> GroupedInputs:
    """The instances of several sources; every source is a group with a name.

    `InvalidData` if all rows of one source also occur in another one; a warning if many do.
    """
    for second in range(len(readings)):
        for first in range(second):
            _check_overlap(readings[first].instances, readings[second].instances, names[first], names[second])
    sizes = [len(one.instances) for one in readings]
    skipped: dict[str, int] = {}
    for one in readings:
        for reason, number in one.skipped.items():
            skipped[reason] = skipped.get(reason, 0) + number
    return replace(
        readings[0],
        instances=Inputs.joined([one.instances for one in readings]),
        codes=np.repeat(np.arange(len(readings), dtype=np.int32), sizes),
        groups=[(name,) for name in names],
        skipped=skipped,
        weights=_joined([one.weights for one in readings]),
        clusters=_joined([one.clusters for one in readings]),
    )


def _joined(parts: Sequence[Any]) -> Any:
    return None if parts[0] is None else np.concatenate(parts)


def _check_overlap(first: Inputs, second: Inputs, name: str, other: str) -> None:
    """The classifier's output identifies a row, unless it is coarse."""
    rows = [np.ascontiguousarray(part.values) for part in (first, second)]
    keys: list[Any] = [part.view(np.dtype((np.void, part.dtype.itemsize * part.shape[1]))).ravel() for part in rows]
    for these, those, part, whole in ((keys[0], keys[1], name, other), (keys[1], keys[0], other, name)):
        distinct = np.unique(these)
        found = np.isin(distinct, np.unique(those))
        if len(distinct) < FEWEST_DISTINCT:
            continue
        if found.all():
            raise InvalidData(
                f"All rows of {part} also occur in {whole}. A part cannot be compared with the whole: remove these "
                "rows from one of the files."
            )
        if found.mean() > MANY_SHARED:
            warnings.warn(
                f"{percent(found.mean(), digits=0)} of the rows of {part} also occur in {whole}, so the sides are not "
                "independent, and their difference looks smaller than it is.",
                QuanetWarning,
                stacklevel=3,
            )
            return
