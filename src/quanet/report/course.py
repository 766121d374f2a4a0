"""The report of a monitor: what `quanet monitor` found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.diagnostics.findings import Finding
from quanet.report.charts import Grid, Line, Panel
from quanet.report.grouped import position_of
from quanet.report.numbers import between, level_text, many, percent, plain
from quanet.report.plots.lines import lines_figure
from quanet.report.plots.vector import make_chart
from quanet.report.shares import share_entry
from quanet.report.summary import Section, Summary
from quanet.report.tables import Column, Entry, Table
from quanet.report.versions import reproduction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quanet.monitoring import Course

PANELS = 12


def summarize_course(course: Course, *, settings: Sequence[tuple[str, str]] = (), focus: Any = None) -> Summary:
    """The report of prevalences in time: the newest, whether and since when they have changed.

    Parameters
    ----------
    course : of a monitor.
    settings : names and values that give the same again.
    focus : the class that the chart shows; None for the second of two, or the commonest ones.
    """
    c = position_of(course.classes, focus)
    shown = [c] if c is not None else np.argsort(-course.windowed[-1], kind="stable")[:PANELS].tolist()
    change = _change(course)
    return Summary(
        title="Prevalence in time",
        answer=_answer(course, shown[0]),
        cautions=(change,) if change.severity != "ok" else (),
        facts=(
            ("batches", f"{len(course.dates):,}"),
            ("instances", f"{course.sizes.sum():,}"),
            ("first and newest batch", f"{_date(course.dates[0])}, {_date(course.dates[-1])}"),
            ("level", level_text(course.level)),
        ),
        sections=(
            Section("Over time", charts=(_chart(course, shown),)),
            *(() if course.since is not None else (Section("Has it changed?", findings=(change,)),)),
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
                "since": None if course.since is None else _date(course.since),
            }
        ),
    )


def _date(value: Any) -> str:
    """A date without a time of day that says nothing."""
    return str(value).removesuffix(".000000").removesuffix("T00:00:00")


def _answer(course: Course, c: int) -> str:
    now = f"{course.classes[c]} {percent(course.windowed[-1, c])} ({between(course.lower[-1, c], course.upper[-1, c])})"
    end = f"no change was found in {many(len(course.dates), 'batch', 'batches')}"
    if course.since is not None:
        before = np.asarray(course.dates) < course.since
        was = course.sizes[before] @ course.estimate[before, c] / max(course.sizes[before].sum(), 1)
        end = f"it has changed since {_date(course.since)}" + (f", from {percent(float(was))}" if before.any() else "")
    return f"{now} at {_date(course.dates[-1])}; {end}."


def _change(course: Course) -> Finding:
    if course.since is None:
        return Finding(
            "change",
            "ok",
            f"No change was found. Without any change an alarm has a probability of {level_text(1 - course.level)} "
            "at most, however often one looks.",
        )
    return Finding(
        "change",
        "alarm",
        f"The prevalence has changed since {_date(course.since)}. Without any change such an alarm has a probability "
        f"of {level_text(1 - course.level)} at most, however often one looks.",
        "Look at what came in since then. If the new level is to stay, restart the monitor from there.",
    )


def _chart(course: Course, shown: list[int]) -> Any:
    dated = np.issubdtype(np.asarray(course.dates).dtype, np.datetime64)
    several = len(shown) > 1
    panels = tuple(
        Panel(
            (
                Line("", course.dates, course.estimate[:, c], colour="muted", style="points"),
                Line("window", course.dates, course.windowed[:, c], course.lower[:, c], course.upper[:, c]),
                *(() if several else (_weighted(course, c),)),
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
        event=None if course.since is None else (course.since, "change"),
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
    return make_chart(
        "course",
        f"Dots: single batches. Line and band: the window before each date, with its {level_text(course.level)} band."
        + ("" if several else " Dashed: exponentially weighted."),
        f"A line over {many(len(course.dates), 'batch', 'batches')}: {course.classes[c]} between "
        f"{percent(course.windowed[low, c])} at {_date(course.dates[low])} and {percent(course.windowed[high, c])} at "
        f"{_date(course.dates[high])}. "
        + ("No change is marked." if course.since is None else f"A change is marked at {_date(course.since)}."),
        table,
        lambda width: lines_figure(grid, width=width),
    )


def _weighted(course: Course, c: int) -> Line:
    return Line("weighted", course.dates, course.weighted[:, c], colour="muted", style="dashed")
