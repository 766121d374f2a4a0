"""The chart of a monitor: shares over time with the level between changes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from quanet.report.chart_data import Grid, Line, Panel
from quanet.report.charts.lines import lines_figure
from quanet.report.phrases import level_text, listing, many, percent, share_entry, share_of
from quanet.report.summary import Chart, Column, Table, TableEntry
from quanet.workflows.monitor import date_text

if TYPE_CHECKING:
    from quanet.evaluation.monitor_batches import History


def history_chart(history: History, shown: list[int]) -> Chart:
    """Estimates of batches, levels and changes, one panel for each of the classes `shown`."""
    dated = np.issubdtype(np.asarray(history.dates).dtype, np.datetime64)
    several = len(shown) > 1
    panels = tuple(
        Panel(
            (
                Line("", history.dates, history.estimate[:, c], colour="muted", style="points"),
                *_level_lines(history, c),
                Line("window", history.dates, history.windowed[:, c], colour="muted", style="dashed"),
            ),
            str(history.classes[c]) if several else "",
        )
        for c in shown
    )
    grid = Grid(
        panels,
        "date" if dated else "number",
        xlabel="" if dated else "batch",
        ylabel=share_of(None if several else history.classes[shown[0]], history.weight),
        events=tuple((one.date, "change" if len(history.changes) == 1 else "") for one in history.changes),
    )
    c = shown[0]
    low, high = int(history.windowed[:, c].argmin()), int(history.windowed[:, c].argmax())
    marked = [date_text(one.date) for one in history.changes]
    return Chart(
        "course",
        f"Dots: single batches. Line: mean level between changes. Band: range of {level_text(history.level)} of the "
        "batches at that level. Dashed: window before each date." + (" Vertical: a change." if marked else ""),
        f"Dots and a line over {many(len(history.dates), 'batch', 'batches')}: {history.classes[c]} between "
        f"{percent(history.windowed[low, c])} at {date_text(history.dates[low])} and "
        f"{percent(history.windowed[high, c])} at {date_text(history.dates[high])}. "
        + (f"Marked changes: {listing(marked)}." if marked else "No change is marked."),
        _history_table(history),
        lambda width: lines_figure(grid, width=width),
    )


def _history_table(history: History) -> Table:
    rows = []
    for t, day in enumerate(history.dates):
        entries = [TableEntry(f"{history.sizes[t]:,}")]
        for c in range(len(history.classes)):
            entries.append(TableEntry(f"{100 * history.estimate[t, c]:.1f}"))
            entries.append(share_entry(history.windowed[t, c], history.lower[t, c], history.upper[t, c]))
        rows.append((date_text(day), tuple(entries)))
    columns = tuple(Column(part, str(name)) for name in history.classes for part in ("batch", "window"))
    return Table("Shares in %", (Column("n"), *columns), tuple(rows), corner="date")


def _level_lines(history: History, c: int) -> list[Line]:
    """The level between changes with the range of single batches, one line per segment."""
    dates = np.asarray(history.dates)
    cuts = [0, *(int(np.searchsorted(dates, one.date)) for one in history.changes), len(dates)]
    parts = [slice(a, b) for a, b in pairwise(cuts) if b > a]
    return [
        Line(
            "level" if part is parts[-1] else "",
            dates[part],
            history.baseline[part, c],
            history.batch_lower[part, c],
            history.batch_upper[part, c],
            style="plain",
        )
        for part in parts
    ]
