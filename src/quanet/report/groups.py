"""Shares of groups: charts show the largest groups and the most common classes, tables show all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.evaluation.findings import WIDE
from quanet.report.chart_data import Grid, IntervalRows, Line, Panel
from quanet.report.palette import SERIES
from quanet.report.phrases import focus_first, level_text, many, of_weight, percent, position_of, share_entry, share_of
from quanet.report.summary import Column, Table, TableEntry
from quanet.report.time_series import TimeSeries, time_key, time_series
from quanet.uncertainty.policy import SMALL_BAG
from quanet.uncertainty.widening import FEW_ROWS, FEWEST_LABELS

if TYPE_CHECKING:
    from quanet.arrays import FloatArray
    from quanet.workflows.predict import Shares

LINES = 4  # in a panel, if there are several panels
PANELS = 12
POINTS = 4000  # of a chart: some 150 KB in each of its widths
ROWS = 30
MEANINGS = {
    "trusted": "drift that can be seen adds at most half of the sampling error",
    "few rows": "no drift is seen, but so few rows may hide drift that matters; label some to be sure",
    "widened": "drift may add more than half of the sampling error; the number is what it adds at each end, in points",
    "refused": f"{FEWEST_LABELS} labelled rows would be more accurate than this estimate; label as many rows as given",
    "unknown": "drift cannot be measured; the interval includes the sampling error only",
}
LONGEST = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}  # days


def shown_classes(shares: Shares, focus: Any, most: int) -> list[int]:
    """Positions of the classes that a chart shows: the one wanted, or the most common ones, in this order."""
    at = position_of(shares.classes, focus)
    if at is not None:
        return [at]
    order = np.argsort(-shares.total.estimate, kind="stable")
    return [int(c) for c in order[:most]]


def trend_grid(shares: Shares, *, focus: Any = None, truth: FloatArray | None = None) -> Grid:
    """Shares over time: a panel for each combination of the other keys, or for each class if there are none.

    A panel of one class also shows the plain count, faint, unless there are many points; and the truth, (g, k), if it
    is known.
    """
    at = time_key(shares)
    assert at is not None
    every, picked = _trend_parts(shares, focus)
    counts = 2 * len(picked) * sum(len(series.dates) for series in every) <= POINTS
    if len(time_series(shares)) > 1:
        panels = tuple(
            Panel(
                (
                    *(replace(_line(shares, series, c), colour=SERIES[i], dash=i) for i, c in enumerate(picked)),
                    *(_counted_lines(shares, series, picked[0]) if counts and len(picked) == 1 else ()),
                ),
                series.title,
                f"n = {shares.sizes[series.positions].sum():,}",
            )
            for series in every
        )
    else:
        panels = tuple(
            Panel(
                (
                    _line(shares, every[0], c, named=truth is None),
                    *(_counted_lines(shares, every[0], c) if counts and truth is None else ()),
                    *_truth_lines(shares, every[0], c, truth),
                ),
                str(shares.classes[c]) if len(picked) > 1 else "",
            )
            for c in picked
        )
    alone = picked[0] if len(picked) == 1 else None
    mark = None if alone is None else float(shares.total.estimate[alone])
    return Grid(
        panels,
        "date",
        ylabel=share_of(None if alone is None else shares.classes[alone], shares.weight),
        gap=LONGEST[shares.keys[at].period] + 0.5,
        mark=(mark, f"total: {percent(mark)}") if mark is not None and truth is None else None,
    )


def _line(shares: Shares, series: TimeSeries, c: int, *, named: bool = True) -> Line:
    at = series.positions
    estimate, lower, upper = (getattr(shares.interval, part)[at, c] for part in ("estimate", "lower", "upper"))
    name = str(shares.classes[c]) if named else "estimate"
    return Line(name, series.dates, estimate, lower, upper, shares.small[at])


def _counted_lines(shares: Shares, series: TimeSeries, c: int) -> tuple[Line, ...]:
    """The plain count, for comparison; none if a method does not count labels."""
    counted = shares.counted[series.positions, c]
    return (
        () if np.isnan(counted).any() else (Line("plain count", series.dates, counted, colour="muted", style="quiet"),)
    )


def _truth_lines(shares: Shares, series: TimeSeries, c: int, truth: FloatArray | None) -> tuple[Line, ...]:
    if truth is None:
        return ()
    at = series.positions
    return (
        Line("plain count", series.dates, shares.counted[at, c], colour="vermilion", style="quiet"),
        Line("truth", series.dates, truth[at, c], colour="ink", style="dashed"),
    )


def trend_note(shares: Shares, *, focus: Any = None) -> str:
    """What the chart over time does not show."""
    kept, picked = _trend_parts(shares, focus)
    every = len(time_series(shares))
    left = [f"the {len(kept)} largest of {every:,} groups" if len(kept) > 1 else f"the largest of {every:,} groups"]
    return _note(shares, left if len(kept) < every else [], picked, focus)


def _trend_parts(shares: Shares, focus: Any) -> tuple[list[TimeSeries], list[int]]:
    """Time series and classes that the chart over time shows, limited by the number of points."""
    every = time_series(shares)
    dates = max(len(series.dates) for series in every)
    most = min(LINES, POINTS // (2 * dates)) if len(every) > 1 else min(PANELS, POINTS // dates)
    picked = shown_classes(shares, focus, max(1, most))
    return every[: max(1, min(PANELS, POINTS // (dates * len(picked))))], picked


def _note(shares: Shares, left: list[str], picked: list[int], focus: Any) -> str:
    if position_of(shares.classes, focus) is None and len(picked) < len(shares.classes):
        which = f"the {len(picked)} most common" if len(picked) > 1 else "the most common"
        left = [*left, f"{which} of {len(shares.classes)} classes"]
    return f"Shown: {' and '.join(left)}; the table has all." if left else ""


def largest(shares: Shares) -> list[int]:
    """Positions of the groups in a chart: the largest ones."""
    return sorted(np.argsort(-shares.sizes, kind="stable")[:ROWS].tolist())


def group_rows(
    shares: Shares, *, focus: Any = None, columns: int = 4, marks: dict[str, FloatArray] | None = None
) -> IntervalRows:
    """One row for each group, ordered by the first class shown; of many groups, the largest.

    Parameters
    ----------
    shares : of groups.
    focus : the class shown; None for the second of two, or the most common ones.
    columns : largest number of panels.
    marks : other values of every group and class, (g, k), such as the truth.
    """
    picked = shown_classes(shares, focus, columns)
    kept = largest(shares)
    kept = [kept[i] for i in np.argsort(-shares.interval.estimate[kept, picked[0]], kind="stable")]
    several = len(picked) > 1
    both = np.ix_(kept, picked)
    return IntervalRows(
        tuple(group_name(shares.groups[g]) for g in kept),
        tuple(str(shares.classes[c]) for c in picked) if several else ("",),
        shares.interval.estimate[both],
        shares.interval.lower[both],
        shares.interval.upper[both],
        f"{share_of(None if several else shares.classes[picked[0]], shares.weight)}, "
        f"{level_text(shares.total.level)} interval",
        asides=tuple(f"n = {shares.sizes[g]:,}" for g in kept),
        marks={name: values[both] for name, values in (marks or {}).items()},
        faint=shares.small[kept],
        around=np.stack([shares.total.estimate, shares.total.lower, shares.total.upper])[:, picked],
    )


def group_note(shares: Shares, *, focus: Any = None, columns: int = 4) -> str:
    """What the chart of groups does not show."""
    left = [f"the {ROWS} largest of {len(shares.groups):,} groups"] if len(shares.groups) > ROWS else []
    return _note(shares, left, shown_classes(shares, focus, columns), focus)


def group_name(group: tuple[str, ...]) -> str:
    """A group as a label."""
    return " · ".join(value or "(empty)" for value in group) or "all"


def class_rows(shares: Shares, *, focus: Any = None) -> IntervalRows:
    """One row for each class: total share and plain count; the class `focus` first, then the most common."""
    order = focus_first(np.argsort(-shares.total.estimate, kind="stable"), shares.classes, focus)
    return IntervalRows(
        tuple(str(shares.classes[c]) for c in order),
        ("",),
        shares.total.estimate[order, None],
        shares.total.lower[order, None],
        shares.total.upper[order, None],
        f"{share_of(weight=shares.weight) if shares.weight else 'estimate'}, {level_text(shares.total.level)} interval",
        asides=tuple(percent(shares.total.estimate[c]) for c in order),
        marks={"plain count": shares.total_counted[order, None]},
    )


def shares_table(shares: Shares, *, focus: Any = None, truth: FloatArray | None = None) -> Table:
    """Shares and intervals of every group, the class `focus` first; of two, a narrow terminal shows one."""
    two = len(shares.classes) == 2
    at = position_of(shares.classes, focus)
    order = focus_first(np.arange(len(shares.classes)), shares.classes, focus)
    known = order if at is None or not two else [at]
    keys = [str(key) for key in shares.keys]
    notes = group_states(shares)
    effective = shares.interval.effective_sizes
    columns = [Column(key, left=True) for key in keys[1:]] + [Column("n")]
    columns += [Column("effective n")] if effective is not None else []
    columns += [Column(str(shares.classes[c]), spare=two and c != at) for c in order]
    columns += [Column(f"{shares.classes[at]}, counted", spare=True)] if two else []
    columns += [Column(f"true {shares.classes[c]}") for c in known] if truth is not None else []
    columns += [Column("state" if any(shares.states) else "note", left=True)] if any(notes) else []
    rows = []
    for g, group in enumerate(shares.groups):
        first, *others = (value or "(empty)" for value in group or ("all",))
        ends = (shares.interval.estimate[g], shares.interval.lower[g], shares.interval.upper[g])
        entries = [TableEntry(value) for value in others] + [TableEntry(f"{shares.sizes[g]:,}")]
        entries += [TableEntry(f"{effective[g]:,}")] if effective is not None else []
        entries += [share_entry(*(part[c] for part in ends)) for c in order]
        entries += [TableEntry(f"{100 * shares.counted[g, at]:.1f}")] if two else []
        if truth is not None:
            entries += [TableEntry(f"{100 * truth[g, c]:.1f}") for c in known]
        entries += [TableEntry(notes[g])] if any(notes) else []
        rows.append((first, tuple(entries)))
    shown = (shares.interval.estimate, shares.interval.lower, shares.interval.upper)
    return Table(
        f"Shares{of_weight(shares.weight)} in %, with {level_text(shares.total.level)} intervals",
        tuple(columns),
        tuple(rows),
        tuple(_table_notes(shares, notes)),
        keys[0] if keys else "group",
        strips=tuple(zip(*(ends[:, at].tolist() for ends in shown), strict=True)) if two else (),
    )


def group_states(shares: Shares) -> list[str]:
    """(g,) the state of every group, with what it needs: "few rows", "widened by 3.1", "refused: label 96"."""
    found = []
    parts = zip(shares.small.tolist(), shares.states, shares.widening.tolist(), shares.labels.tolist(), strict=True)
    for small, state, widening, labels in parts:
        wider = f"{100 * widening:.1f}"
        details = {"widened": f" by {'less than 0.1' if wider == '0.0' else wider}", "refused": f": label {labels:,}"}
        found.append("few, " * (small and state != FEW_ROWS) + state + details.get(state, ""))
    return [mark.removesuffix(", ").replace("few, trusted", "few") for mark in found]


def _table_notes(shares: Shares, shown: list[str]) -> list[str]:
    """What the words in the table mean, given the states that it shows."""
    notes = []
    if shares.weight:
        notes.append("effective n: number of instances of equal weight that say as much.")
    if shares.small.any():
        instances = "effective instances" if shares.weight else "instances"
        notes.append(
            f"few: fewer than {SMALL_BAG} {instances}, or an interval wider than {200 * WIDE:.0f} points without "
            f"drift ({many(int(shares.small.sum()), 'group')})."
        )
    notes += [f"{state}: {meaning}." for state, meaning in MEANINGS.items() if any(state in one for one in shown)]
    if len(shares.classes) == 2:
        notes.append("counted: share of predicted labels, not corrected.")
    return notes
