"""Lines in panels with the same axes: shares over time, estimates against truth, errors by shift."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.report.charts.canvas import (
    TEXT,
    TICK,
    WIDTH,
    colour,
    date_ticks,
    scale,
    share_ends,
    sized_figure,
    spread,
    tidy,
)
from quanet.report.phrases import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from quanet.report.chart_data import Grid, Line, Panel

DASHES = ((), (5, 1.5), (1.3, 1.1), (5, 1.3, 1.3, 1.3))
POINTS = 48  # lines with more points are drawn without markers


def lines_figure(grid: Grid, *, width: float = WIDTH) -> Figure:
    """Panels of lines with bands; one panel names its lines at their ends, several have a key above.

    Below half a page's width the picture is for a phone.
    """
    narrow = width < WIDTH / 2
    n = len(grid.panels)
    columns = _columns(n, narrow)
    rows = -(-n // columns)
    keyed = n > 1 and any(len(panel.lines) > 1 for panel in grid.panels)
    square = (width - 0.75) / columns + 0.32 if grid.diagonal else 0.0  # with title and ticks
    tall = square or ((2.5 if narrow else 2.9) if n == 1 else 1.35 if rows > 1 else 1.9)
    names = list(dict.fromkeys(line.name for panel in grid.panels for line in panel.lines))
    figure = sized_figure(width, rows * tall + 0.25 + (0.22 * -(-len(names) // (2 if narrow else 5)) if keyed else 0))
    axes: list[Axes] = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
    low, high = grid.ends or _ends(grid)
    for panel, ax in zip(grid.panels, axes, strict=False):
        _panel(ax, panel, grid)
        _title(ax, panel, single=n == 1, narrow=narrow)
    for ax in axes[n:]:
        ax.remove()
    for ax in axes[max(n - columns, 0) : n]:
        ax.tick_params(labelbottom=True)  # the lowest panel of its column
    first = axes[0]
    margin = 0.02 * (high - low) if grid.diagonal else 0.0  # lines at 0 and 1 are not cut
    first.set_ylim(low - margin, high + margin)
    scale(first.yaxis, low, high, unit=grid.y, most=5 if n == 1 else 4)
    _x_axis(axes[:n], grid, narrow, columns)
    if n == 1:
        _name_lines(first, grid, figure, narrow)
        first.set_ylabel(grid.ylabel, fontsize=TICK, color=colour("muted"))
        first.set_xlabel(grid.xlabel, fontsize=TICK, color=colour("muted"))
    else:
        figure.supxlabel(grid.xlabel, fontsize=TICK, color=colour("muted"))
        figure.supylabel(grid.ylabel, fontsize=TICK, color=colour("muted"))
    if keyed:
        _key(figure, grid, narrow)
    return figure


def _columns(n: int, narrow: bool) -> int:
    most = 2 if narrow else 4
    rows = -(-n // most)
    return -(-n // rows)


def _ends(grid: Grid) -> tuple[float, float]:
    drawn = [line for panel in grid.panels for line in panel.lines]
    values = np.concatenate([part for line in drawn for part in (line.y, line.low, line.high) if part is not None])
    if grid.mark:
        values = np.r_[values, grid.mark[0]]
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return (0.0, 1.05 * max(high, 1e-4)) if grid.y == "points" else share_ends(low, high)


def _panel(ax: Axes, panel: Panel, grid: Grid) -> None:
    tidy(ax, grid="y" if grid.x == "date" else "both")
    if grid.diagonal:
        ax.set_box_aspect(1)
        ax.plot([0, 1], [0, 1], color=colour("muted"), linewidth=0.8, linestyle=(0, (4, 3)), zorder=1.5)
    if grid.mark:
        ax.axhline(grid.mark[0], color=colour("muted"), linewidth=0.8, linestyle=(0, (4, 3)), zorder=1.5)
    for x, _ in grid.events:
        ax.axvline(x, color=colour("vermilion"), linewidth=1.2, zorder=2)
    most = 0 if grid.diagonal else POINTS if len(grid.panels) == 1 else POINTS // 2
    alone = sum(line.style == "line" for line in panel.lines) == 1
    for line in panel.lines:
        _line(ax, line, grid, pointed=len(line.y) <= most and (alone or grid.x != "date"))


def _line(ax: Axes, line: Line, grid: Grid, *, pointed: bool) -> None:
    tone = colour(line.colour)
    if line.style == "points":
        ax.plot(line.x, line.y, linestyle="none", marker="o", markersize=2.6, color=tone, alpha=0.55, zorder=2.5)
        return
    for part in _segments(line.x, grid.gap):
        x, y = line.x[part], line.y[part]
        if line.low is not None and line.high is not None:
            if part.stop - part.start > 1:
                ax.fill_between(x, line.low[part], line.high[part], color=tone, alpha=0.17, linewidth=0, zorder=2)
            else:
                ax.vlines(x, line.low[part], line.high[part], color=tone, linewidth=1.2, zorder=2)
        ax.plot(x, y, **_look(line), zorder=2.8 if line.style == "quiet" else 3)
    if line.style != "line":
        return
    size = 3.4 if len(grid.panels) == 1 else 2.6
    faint = np.zeros(len(line.y), dtype=bool) if line.faint is None else line.faint
    for group, fill in ((~faint & pointed, line.colour), (faint, "paper")):
        look: dict[str, Any] = {"markerfacecolor": colour(fill), "markeredgecolor": tone, "markeredgewidth": 1.0}
        if group.any():
            ax.plot(
                line.x[group],
                line.y[group],
                linestyle="none",
                marker="o",
                markersize=size,
                **look,
                zorder=4,
                clip_on=False,
            )


def _look(line: Line) -> dict[str, Any]:
    pattern = (4, 1.6) if line.style == "dashed" else DASHES[line.dash]
    return {
        "color": colour(line.colour),
        "linewidth": 0.9 if line.style == "quiet" else 1.5,
        "linestyle": (0, pattern) if pattern else "-",
    }


def _segments(x: Any, gap: float) -> list[slice]:
    """Parts of a line between its gaps."""
    if len(x) < 2 or not np.isfinite(gap):
        return [slice(0, len(x))]
    steps = np.diff(x)
    days = steps / np.timedelta64(1, "D") if np.issubdtype(np.asarray(x).dtype, np.datetime64) else steps
    cuts = [0, *(np.flatnonzero(days > gap) + 1).tolist(), len(x)]
    return [slice(a, b) for a, b in pairwise(cuts)]


def _title(ax: Axes, panel: Panel, *, single: bool, narrow: bool) -> None:
    if single and not panel.title:
        return
    ax.set_title(
        short(panel.title, 16 if narrow else 22), loc="left", fontsize=TEXT, fontweight="bold", color=colour("ink")
    )
    if panel.detail:
        ax.set_title(panel.detail, loc="right", fontsize=TICK - 0.5, color=colour("muted"))


def _x_axis(axes: list[Axes], grid: Grid, narrow: bool, columns: int) -> None:
    ax = axes[0]
    if grid.x == "date":
        days = np.concatenate([np.asarray(line.x, dtype="datetime64[D]") for p in grid.panels for line in p.lines])
        places, labels = date_ticks(days.min(), days.max(), max(2, (6 if narrow else 12) // columns))
        ax.set_xticks(places, labels)
        ax.margins(x=0.02)
        return
    if grid.x == "number":
        ax.margins(x=0.02)
        return
    xs = np.concatenate([np.asarray(line.x) for axis in grid.panels for line in axis.lines])
    low, high = grid.ends if grid.diagonal and grid.ends else (0.0, float(xs.max()))
    ax.set_xlim(low - 0.02 * (high - low), high + 0.02 * (high - low))
    scale(ax.xaxis, low, high, unit="points", most=5 if not narrow and columns < 3 else 4)


def _name_lines(ax: Axes, grid: Grid, figure: Figure, narrow: bool) -> None:
    """Write the name of every line at its end, in its colour."""
    lines = [line for line in grid.panels[0].lines if line.style != "points" and line.name]
    low, high = ax.get_ylim()
    named = [(float(line.y[-1]), line.name, line.colour) for line in lines] if len(lines) > 1 else []
    if grid.mark and grid.mark[1]:
        named.append((grid.mark[0], grid.mark[1], "muted"))
    if named:
        gap = 1.35 * TEXT / 72 / (0.86 * figure.get_figheight()) * (high - low)
        for place, (_, name, tone) in zip(spread([y for y, *_ in named], gap, low=low, high=high), named, strict=True):
            ax.annotate(
                short(name, 14 if narrow else 26),
                (1, place),
                (5, 0),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                va="center",
                fontsize=TEXT,
                color=colour(tone),
            )
    for x, what in grid.events:
        ax.annotate(
            what,
            (x, 1),
            (4, -2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            va="top",
            fontsize=TICK,
            color=colour("vermilion"),
        )


def _key(figure: Figure, grid: Grid, narrow: bool) -> None:
    from matplotlib.lines import Line2D

    looks = {line.name: line for panel in grid.panels for line in panel.lines if line.name}
    handles = [Line2D([], [], **_look(line)) for line in looks.values()]
    figure.legend(
        handles,
        [short(name, 18) for name in looks],
        loc="outside upper left",
        ncols=2 if narrow else 5,
        frameon=False,
        fontsize=TICK,
        labelcolor=colour("ink"),
        handlelength=2.2,
        columnspacing=1.4,
        borderaxespad=0,
    )
