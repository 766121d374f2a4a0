"""Refined shares of groups: a chart, a table, and which labels corrected them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.evaluation.findings import WIDE
from quanet.labels.refine import MIN_LABELS
from quanet.report.chart_data import Line
from quanet.report.charts.interval_rows import rows_figure
from quanet.report.charts.lines import lines_figure
from quanet.report.groups import (
    group_name,
    group_note,
    group_rows,
    shown_classes,
    trend_grid,
    trend_note,
)
from quanet.report.phrases import level_text, listing, many, p_value, share_entry
from quanet.report.summary import Chart, Column, Section, Table, TableEntry
from quanet.report.time_series import time_key, time_series

if TYPE_CHECKING:
    from quanet.report.chart_data import Grid
    from quanet.workflows.predict import Shares
    from quanet.workflows.refine import Refinement

WITHOUT = "without labels"
ALPHA = 0.01


def refined_shares(refined: Refinement) -> Shares:
    """The refined shares in the form of estimated ones, for charts of groups."""
    before, groups = refined.unlabelled, refined.groups
    assert groups is not None
    total = before.total
    return replace(
        before,
        interval=replace(before.interval, estimate=groups.estimate, lower=groups.lower, upper=groups.upper, drift=None),
        total=replace(total, estimate=refined.estimate, lower=refined.lower, upper=refined.upper, drift=None),
        small=(groups.upper - groups.lower).max(axis=1) > 2 * WIDE,
    )


def group_section(refined: Refinement, focus: Any) -> Section:
    """Refined shares of groups, over time or side by side."""
    shares = refined_shares(refined)
    keys = listing(list(map(str, shares.keys)))
    over_time = time_key(shares) is not None and bool(time_series(shares))
    c = shown_classes(shares, focus, 1)[0]
    note = trend_note(shares, focus=focus) if over_time else group_note(shares, focus=focus)
    paragraphs = tuple(filter(None, (*_pooling(refined), note)))
    before = refined.unlabelled.interval.estimate

    def draw(width: float) -> Any:
        if over_time:
            return lines_figure(_trend(refined, shares, focus), width=width)
        return rows_figure(group_rows(shares, focus=focus, marks={WITHOUT: before}), width=width)

    band = "Bands" if over_time else "Lines"
    hollow = f"; hollow: wider than {200 * WIDE:.0f} points" if shares.small.any() else ""
    chart = Chart(
        "groups",
        f"Refined shares by {keys}. {band}: {level_text(refined.level)} intervals{hollow}.",
        f"Refined share of {shares.classes[c]} with its interval for each of {many(len(shares.groups), 'group')}. "
        + " ".join(paragraphs),
        _group_table(refined, c),
        draw,
    )
    return Section("Over time" if over_time else f"By {keys}", paragraphs, charts=(chart,))


def _trend(refined: Refinement, shares: Shares, focus: Any) -> Grid:
    """Refined shares over time; with one line a panel, also the estimates without labels."""
    grid, series = trend_grid(shares, focus=focus), time_series(shares)
    if len(series) > 1:
        return grid
    classes = shown_classes(shares, focus, len(grid.panels))
    panels = []
    for panel, c in zip(grid.panels, classes, strict=True):
        values = refined.unlabelled.interval.estimate[series[0].positions, c]
        quiet = Line(WITHOUT, series[0].dates, values, colour="vermilion", style="quiet")
        panels.append(replace(panel, lines=(replace(panel.lines[0], name="refined"), quiet)))
    return replace(grid, panels=tuple(panels))


def _pooling(refined: Refinement) -> list[str]:
    """Which labels corrected the groups, and whether the model errs alike in them."""
    groups = refined.groups
    assert groups is not None
    borrowing = int((~groups.own).sum())
    found = ["Every group is corrected by its own labels alone."]
    if borrowing:
        found = [
            f"Groups with fewer than {MIN_LABELS} labels ({borrowing:,} of {len(groups.own):,}) borrow from all groups."
            " Their intervals include how much the model's errors differ between groups, but they would miss a single "
            "group that differs from all others. For labels in every group, plan them with --by."
        ]
    if np.isfinite(groups.p_value):
        differ = groups.p_value <= ALPHA
        found.append(
            f"The model's errors {'differ' if differ else 'do not differ significantly'} between groups "
            f"({p_value(groups.p_value)})."
        )
    return found


def _group_table(refined: Refinement, first: int) -> Table:
    """Refined shares of every group, and those without labels; a narrow terminal shows the first of two classes."""
    groups, before, two = refined.groups, refined.unlabelled, len(refined.classes) == 2
    assert groups is not None
    rows = []
    for g, group in enumerate(before.groups):
        entries = [TableEntry(f"{before.sizes[g]:,}"), TableEntry(f"{groups.labelled[g]:,}", "*" * (not groups.own[g]))]
        for c in range(len(refined.classes)):
            own = (groups.estimate[g, c], groups.lower[g, c], groups.upper[g, c])
            old = (before.interval.estimate[g, c], before.interval.lower[g, c], before.interval.upper[g, c])
            entries += [share_entry(*own), share_entry(*old)]
        rows.append((group_name(group), tuple(entries)))
    columns = [
        Column(part, str(name), spare=two and c != first)
        for c, name in enumerate(refined.classes)
        for part in ("refined", WITHOUT)
    ]
    notes = () if groups.own.all() else (f"* Fewer than {MIN_LABELS} labels: corrected with the labels of all groups.",)
    return Table(
        f"Shares in %, with {level_text(refined.level)} intervals",
        (Column("n"), Column("labels"), *columns),
        tuple(rows),
        notes,
        " · ".join(map(str, before.keys)),
    )
