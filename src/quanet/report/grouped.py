"""Shares of groups as charts show them: the largest groups, the commonest classes; tables have all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.errors import InvalidSetting
from quanet.report.charts import Grid, Line, Panel, Rows
from quanet.report.numbers import level_text, percent
from quanet.report.palette import SERIES

if TYPE_CHECKING:
    from quanet.answers.shares import Shares
    from quanet.arrays import FloatArray, LabelArray

LINES = 4  # in a panel, where there are several
PANELS = 12
POINTS = 4000  # of a chart: some 150 KB in each of its widths
ROWS = 30
LONGEST = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}  # days


@dataclass(frozen=True, slots=True, eq=False)
class Strand:
    """Groups that follow each other in time: what they have in common, their dates, their positions."""

    title: str
    dates: Any  # (t,) days
    positions: list[int]


def time_key(shares: Shares) -> int | None:
    """Which key is of dates; None where no group stands for a time."""
    return next((at for at, key in enumerate(shares.keys) if key.period), None)


def start_of(text: str, period: str) -> date | None:
    """First day of a period; None of what is none.

    Examples
    --------
    >>> [str(start_of(*one)) for one in (("2024-05", "month"), ("2024-W07", "week"), ("2024-Q2", "quarter"))]
    ['2024-05-01', '2024-02-12', '2024-04-01']
    """
    try:
        if period == "week":
            year, week = text.split("-W")
            return date.fromisocalendar(int(year), int(week), 1)
        if period == "quarter":
            year, quarter = text.split("-Q")
            return date(int(year), 3 * int(quarter) - 2, 1)
        return date.fromisoformat({"month": f"{text}-01", "year": f"{text}-01-01"}.get(period, text))
    except ValueError:
        return None


def strands(shares: Shares) -> list[Strand]:
    """Groups by what they have in common apart from time, those with most instances first."""
    at = time_key(shares)
    assert at is not None
    found: dict[tuple[str, ...], list[tuple[date, int]]] = {}
    for position, group in enumerate(shares.groups):
        start = start_of(group[at], shares.keys[at].period)
        if start is not None:
            found.setdefault((*group[:at], *group[at + 1 :]), []).append((start, position))
    made = [
        Strand(", ".join(others), np.array([day for day, _ in members], dtype="datetime64[D]"), [p for _, p in members])
        for others, members in ((others, sorted(members)) for others, members in found.items())
    ]
    return sorted(made, key=lambda strand: -int(shares.sizes[strand.positions].sum()))


def position_of(classes: LabelArray, focus: Any) -> int | None:
    """Where a class stands; the last of two where none is asked for, and None of more."""
    if focus is None:
        return 1 if len(classes) == 2 else None
    names = [str(name) for name in classes.tolist()]
    if str(focus) not in names:
        raise InvalidSetting(f"no class is called {focus!r}; there are {', '.join(map(repr, names))}.")
    return names.index(str(focus))


def shown_classes(shares: Shares, focus: Any, most: int) -> list[int]:
    """Positions of the classes that a chart shows: the one asked for, or the commonest ones, commonest first."""
    at = position_of(shares.classes, focus)
    if at is not None:
        return [at]
    order = np.argsort(-shares.total.estimate, kind="stable")
    return [int(c) for c in order[:most]]


def trend_grid(shares: Shares, *, focus: Any = None, truth: FloatArray | None = None) -> Grid:
    """Shares over time: a panel for everything else that was grouped by, or else one a class.

    Where the truth is known, (g, k), it stands beside the estimates, and so does the plain count.
    """
    at = time_key(shares)
    assert at is not None
    every, picked = _trend_parts(shares, focus)
    if len(strands(shares)) > 1:
        panels = tuple(
            Panel(
                tuple(replace(_line(shares, strand, c), colour=SERIES[i], dash=i) for i, c in enumerate(picked)),
                strand.title,
                f"n = {shares.sizes[strand.positions].sum():,}",
            )
            for strand in every
        )
    else:
        panels = tuple(
            Panel(
                (_line(shares, every[0], c, named=truth is None), *_beside(shares, every[0], c, truth)),
                str(shares.classes[c]) if len(picked) > 1 else "",
            )
            for c in picked
        )
    alone = picked[0] if len(picked) == 1 else None
    mark = None if alone is None else float(shares.total.estimate[alone])
    return Grid(
        panels,
        "date",
        ylabel="share" if alone is None else f"share of {shares.classes[alone]}",
        gap=LONGEST[shares.keys[at].period] + 0.5,
        mark=(mark, f"all: {percent(mark)}") if mark is not None and truth is None else None,
    )


def _line(shares: Shares, strand: Strand, c: int, *, named: bool = True) -> Line:
    at = strand.positions
    estimate, lower, upper = (getattr(shares.interval, part)[at, c] for part in ("estimate", "lower", "upper"))
    name = str(shares.classes[c]) if named else "estimate"
    return Line(name, strand.dates, estimate, lower, upper, shares.small[at])


def _beside(shares: Shares, strand: Strand, c: int, truth: FloatArray | None) -> tuple[Line, ...]:
    if truth is None:
        return ()
    at = strand.positions
    return (
        Line("plain count", strand.dates, shares.counted[at, c], colour="vermilion", style="quiet"),
        Line("truth", strand.dates, truth[at, c], colour="ink", style="dashed"),
    )


def trend_note(shares: Shares, *, focus: Any = None) -> str:
    """What the chart over time leaves out."""
    kept, picked = _trend_parts(shares, focus)
    every = len(strands(shares))
    left = [f"the {len(kept)} largest of {every:,} groups" if len(kept) > 1 else f"the largest of {every:,} groups"]
    return _note(shares, left if len(kept) < every else [], picked, focus)


def _trend_parts(shares: Shares, focus: Any) -> tuple[list[Strand], list[int]]:
    """Strands and classes that the chart over time shows: no more points than a page should carry."""
    every = strands(shares)
    dates = max(len(strand.dates) for strand in every)
    most = min(LINES, POINTS // (2 * dates)) if len(every) > 1 else min(PANELS, POINTS // dates)
    picked = shown_classes(shares, focus, max(1, most))
    return every[: max(1, min(PANELS, POINTS // (dates * len(picked))))], picked


def _note(shares: Shares, left: list[str], picked: list[int], focus: Any) -> str:
    if position_of(shares.classes, focus) is None and len(picked) < len(shares.classes):
        which = f"the {len(picked)} commonest" if len(picked) > 1 else "the commonest"
        left = [*left, f"{which} of {len(shares.classes)} classes"]
    return f"Shown: {' and '.join(left)}; the table has all." if left else ""


def largest(shares: Shares) -> list[int]:
    """Positions of the groups that a chart has rows for: the largest ones."""
    return sorted(np.argsort(-shares.sizes, kind="stable")[:ROWS].tolist())


def group_rows(
    shares: Shares, *, focus: Any = None, columns: int = 4, marks: dict[str, FloatArray] | None = None
) -> Rows:
    """A row a group, ordered by the first class shown; the largest groups where there are many.

    Parameters
    ----------
    shares : of groups.
    focus : the class shown; None for the second of two, or the commonest ones.
    columns : panels at most.
    marks : other values of every group and class, (g, k), such as the truth.
    """
    picked = shown_classes(shares, focus, columns)
    kept = largest(shares)
    kept = [kept[i] for i in np.argsort(-shares.interval.estimate[kept, picked[0]], kind="stable")]
    several = len(picked) > 1
    both = np.ix_(kept, picked)
    return Rows(
        tuple(group_name(shares.groups[g]) for g in kept),
        tuple(str(shares.classes[c]) for c in picked) if several else ("",),
        shares.interval.estimate[both],
        shares.interval.lower[both],
        shares.interval.upper[both],
        f"{'share' if several else f'share of {shares.classes[picked[0]]}'}, {level_text(shares.total.level)} interval",
        asides=tuple(f"n = {shares.sizes[g]:,}" for g in kept),
        marks={name: values[both] for name, values in (marks or {}).items()},
        faint=shares.small[kept],
        around=np.stack([shares.total.estimate, shares.total.lower, shares.total.upper])[:, picked],
    )


def group_note(shares: Shares, *, focus: Any = None, columns: int = 4) -> str:
    """What the chart of groups leaves out."""
    left = [f"the {ROWS} largest of {len(shares.groups):,} groups"] if len(shares.groups) > ROWS else []
    return _note(shares, left, shown_classes(shares, focus, columns), focus)


def group_name(group: tuple[str, ...]) -> str:
    """A group in a row's label."""
    return " · ".join(value or "(empty)" for value in group) or "all"


def class_rows(shares: Shares) -> Rows:
    """A row a class, of all instances together, beside the plain count."""
    order = np.argsort(-shares.total.estimate, kind="stable")
    return Rows(
        tuple(str(shares.classes[c]) for c in order),
        ("",),
        shares.total.estimate[order, None],
        shares.total.lower[order, None],
        shares.total.upper[order, None],
        f"estimate, {level_text(shares.total.level)} interval",
        asides=tuple(percent(shares.total.estimate[c]) for c in order),
        marks={"plain count": shares.total_counted[order, None]},
    )
