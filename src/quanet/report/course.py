"""The report of a monitor: what `quanet monitor` found."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from quanet.diagnostics.findings import Finding
from quanet.errors import InvalidData
from quanet.report.charts import Grid, Line, Panel
from quanet.report.grouped import position_of
from quanet.report.numbers import between, level_text, listing, many, percent, plain
from quanet.report.plots.lines import lines_figure
from quanet.report.plots.vector import make_chart
from quanet.report.share_tables import share_entry
from quanet.report.summary import Section, Summary
from quanet.report.tables import Column, Entry, Table
from quanet.report.versions import reproduction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quanet.monitoring import Course

PANELS = 12
TOLD = 4  # changes in the answer
SURPRISING = 0.001  # chance of as many batches outside their range, below which that is a finding


def summarize_course(course: Course, *, settings: Sequence[tuple[str, str]] = (), focus: Any = None) -> Summary:
    """The report of prevalences in time: the newest, and every change with the levels before and after it.

    Parameters
    ----------
    course : of a monitor.
    settings : names and values that give the same again.
    focus : the class that the chart shows; None for the second of two, or the commonest ones.
    """
    if not len(course.dates):
        raise InvalidData("the monitor has no batches, so there is nothing to report. Give it a batch with update.")
    c = position_of(course.classes, focus)
    shown = [c] if c is not None else np.argsort(-course.windowed[-1], kind="stable")[:PANELS].tolist()
    change = _change(course)
    return Summary(
        title="Prevalence in time",
        answer=_answer(course, shown[0]),
        cautions=(*((change,) if change.severity != "ok" else ()), *_restless(course, shown[0])),
        facts=(
            ("batches", f"{len(course.dates):,}"),
            ("instances", f"{course.sizes.sum():,}"),
            ("first and newest batch", f"{_date(course.dates[0])}, {_date(course.dates[-1])}"),
            ("level", level_text(course.level)),
        ),
        sections=(
            Section("Over time", charts=(_chart(course, shown),)),
            Section("Has it changed?", tables=(_change_table(course),))
            if course.changes
            else Section("Has it changed?", findings=(change,)),
        ),
        settings=reproduction(settings),
        data=plain(
            {
                "classes": course.classes,
                "dates": [_date(day) for day in course.dates],
                **{
                    name: getattr(course, name)
                    for name in ("sizes", "estimate", "windowed", "lower", "upper", "weighted", "level")
                },
                **{name: getattr(course, name) for name in ("baseline", "batch_lower", "batch_upper")},
                "class": course.classes[shown[0]],
                "since": None if course.since is None else _date(course.since),
                "changes": [
                    {"since": _date(one.date), "found": _date(one.found), "before": one.before, "after": one.after}
                    for one in course.changes
                ],
            }
        ),
    )


def _date(value: Any) -> str:
    """A date without a time of day that says nothing."""
    return str(value).removesuffix(".000000").removesuffix("T00:00:00")


def _answer(course: Course, c: int) -> str:
    now = f"{course.classes[c]} {percent(course.windowed[-1, c])} ({between(course.lower[-1, c], course.upper[-1, c])})"
    end = f"no change was found in {many(len(course.dates), 'batch', 'batches')}"
    if len(course.changes) == 1:
        [one] = course.changes
        end = f"it has changed since {_date(one.date)}, from {percent(one.before[c])} to {percent(one.after[c])}"
    elif course.changes:
        steps = [f"to {percent(one.after[c])} since {_date(one.date)}" for one in course.changes]
        told = listing(steps) if len(steps) <= TOLD else f"{steps[0]}, ..., {listing(steps[1 - TOLD :])}"
        end = f"{len(steps)} changes were found, from {percent(course.changes[0].before[c])} {told}"
    return f"{now} at {_date(course.dates[-1])}; {end}."


def _restless(course: Course, c: int) -> tuple[Finding, ...]:
    """A caution where single batches vary by more than chance between changes."""
    outside, t = int(course.outside[:, c].sum()), len(course.dates)
    if stats.binom.sf(outside - 1, t, 1 - course.level) > SURPRISING:
        return ()
    reach = (course.batch_upper[:, c] - course.batch_lower[:, c]) / 2 / stats.norm.isf((1 - course.level) / 2)
    extra = float(np.mean((course.estimate[:, c] - course.baseline[:, c]) ** 2 - reach**2))
    advice = ["Some of the changes found may be such variation."] if course.changes else []
    advice += [f"Set a tolerance of about {np.sqrt(extra):.2g} if that is normal here."] if extra > 0 else []
    return (
        Finding(
            "tolerance",
            "warning",
            f"{outside} of {t} batches lie outside the range that chance explains, where about "
            f"{(1 - course.level) * t:.0f} would: {course.classes[c]} varies from batch to batch, not only by changes "
            "that last.",
            " ".join(advice),
        ),
    )


def _change_table(course: Course) -> Table:
    """Levels before and after every change."""
    return Table(
        "Mean shares in % before and after each change",
        tuple(Column(part, str(name)) for name in course.classes for part in ("before", "after")),
        tuple(
            (
                _date(one.date),
                tuple(
                    Entry(f"{100 * level[c]:.1f}")
                    for c in range(len(course.classes))
                    for level in (one.before, one.after)
                ),
            )
            for one in course.changes
        ),
        corner="since",
    )


def _change(course: Course) -> Finding:
    if course.since is None:
        return Finding(
            "change",
            "ok",
            f"No change was found. Without any change an alarm has a probability of {level_text(1 - course.level)} "
            "at most, however often one looks.",
        )
    times = f" {len(course.changes)} times, the last" if len(course.changes) > 1 else ""
    return Finding(
        "change",
        "alarm",
        f"The prevalence has changed{times} since {_date(course.since)}. While nothing changes, an alarm has a "
        f"probability of {level_text(1 - course.level)} at most, however often one looks.",
        "Look at what came in since then.",
    )


def _chart(course: Course, shown: list[int]) -> Any:
    dated = np.issubdtype(np.asarray(course.dates).dtype, np.datetime64)
    several = len(shown) > 1
    panels = tuple(
        Panel(
            (
                Line("", course.dates, course.estimate[:, c], colour="muted", style="points"),
                *_level_lines(course, c),
                Line("window", course.dates, course.windowed[:, c], colour="muted", style="dashed"),
            ),
            str(course.classes[c]) if several else "",
        )
        for c in shown
    )
    grid = Grid(
        panels,
        "date" if dated else "number",
        xlabel="" if dated else "batch",
        ylabel="share" if several else f"share of {course.classes[shown[0]]}",
        events=tuple((one.date, "change" if len(course.changes) == 1 else "") for one in course.changes),
    )
    rows = tuple(
        (
            _date(day),
            (
                Entry(f"{course.sizes[t]:,}"),
                *(
                    entry
                    for c in range(len(course.classes))
                    for entry in (
                        Entry(f"{100 * course.estimate[t, c]:.1f}"),
                        share_entry(course.windowed[t, c], course.lower[t, c], course.upper[t, c]),
                    )
                ),
            ),
        )
        for t, day in enumerate(course.dates)
    )
    columns = tuple(Column(part, str(name)) for name in course.classes for part in ("batch", "window"))
    table = Table("Shares in %", (Column("n"), *columns), rows, corner="date")
    c = shown[0]
    low, high = int(course.windowed[:, c].argmin()), int(course.windowed[:, c].argmax())
    marked = [_date(one.date) for one in course.changes]
    return make_chart(
        "course",
        f"Dots: single batches. Line: the mean level between changes. Band: where {level_text(course.level)} of the "
        "batches lie while that level holds. Dashed: the window before each date."
        + (" Upright: a change." if marked else ""),
        f"Dots and a line over {many(len(course.dates), 'batch', 'batches')}: {course.classes[c]} between "
        f"{percent(course.windowed[low, c])} at {_date(course.dates[low])} and {percent(course.windowed[high, c])} at "
        f"{_date(course.dates[high])}. "
        + (f"Marked changes: {listing(marked)}." if marked else "No change is marked."),
        table,
        lambda width: lines_figure(grid, width=width),
    )


def _level_lines(course: Course, c: int) -> list[Line]:
    """The level between changes with the range of single batches, a line for every stretch."""
    dates = np.asarray(course.dates)
    cuts = [0, *(int(np.searchsorted(dates, one.date)) for one in course.changes), len(dates)]
    parts = [slice(a, b) for a, b in pairwise(cuts) if b > a]
    return [
        Line(
            "level" if part is parts[-1] else "",
            dates[part],
            course.baseline[part, c],
            course.batch_lower[part, c],
            course.batch_upper[part, c],
            style="plain",
        )
        for part in parts
    ]
