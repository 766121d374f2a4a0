"""Dots with intervals in rows: groups, classes, methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.report.charts.canvas import TEXT, TICK, WIDTH, colour, scale, share_ends, sized_figure, tidy
from quanet.report.phrases import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from quanet.report.chart_data import IntervalRows

ROW = 0.215  # inches
MARKS = (("D", "vermilion", 3.4), ("|", "ink", 8.0))


def rows_figure(rows: IntervalRows, *, width: float = WIDTH) -> Figure:
    """A dot and its interval in every row, with other values next to it; panels share their rows.

    On a phone there are two panels side by side, and the others below them.
    """
    narrow = width < WIDTH / 2
    panels, r = len(rows.columns), len(rows.labels)
    across = min(panels, 2) if narrow else panels
    down = -(-panels // across)
    titled = any(rows.columns)
    block = ROW * (r + 0.4) + 0.32 + 0.22 * titled
    figure = sized_figure(width, down * block + 0.06 + 0.18 * _key_lines(rows, narrow))
    axes: list[Axes] = list(figure.subplots(down, across, sharey=True, squeeze=False).flat)
    for ax in axes[panels:]:
        ax.remove()
    del axes[panels:]
    places = np.arange(r)[::-1]
    low, high = _ends(rows)
    for c, (ax, title) in enumerate(zip(axes, rows.columns, strict=True)):
        tidy(ax, grid="x")
        ax.spines["bottom"].set_visible(False)
        _draw(ax, rows, c, places)
        ax.set(xlim=(low, high), ylim=(-0.6, r - 0.4))
        beyond = rows.estimate[:, c] > high
        if beyond.any():
            ax.plot(
                np.full(beyond.sum(), high), places[beyond], ">", color=colour("blue"), markersize=4.5, clip_on=False
            )
        scale(ax.xaxis, low, high, unit=rows.unit, most=max(3, (5 if narrow else 7) // across + 1))
        if titled:
            ax.set_title(short(title, 16 if narrow else 22), loc="left", fontsize=TEXT, color=colour("ink"))
    axes[0].set_yticks(places, [short(label, 16 if narrow else 30) for label in rows.labels])
    for ax in axes[::across]:
        ax.tick_params(axis="y", labelsize=TEXT, labelcolor=colour("ink"))
    for ax in axes[across - 1 :: across]:
        _note_rows(ax, rows, places, 12 if narrow else 24)
    _key(figure, rows, narrow)
    return figure


def _note_rows(ax: Axes, rows: IntervalRows, places: Any, longest: int) -> None:
    """Write the text to the right of every row."""
    for place, aside in zip(places, rows.asides, strict=False):
        ax.annotate(
            short(aside, longest),
            (1, place),
            (6, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            fontsize=TICK,
            color=colour("muted"),
        )


def _ends(rows: IntervalRows) -> tuple[float, float]:
    values = np.concatenate([rows.lower.ravel(), rows.upper.ravel(), *(one.ravel() for one in rows.marks.values())])
    if rows.around is not None:
        values = np.r_[values, rows.around[0]]
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if rows.unit == "difference":
        low, high = min(low, 0.0), max(high, 0.0)
        return low - 0.04 * max(high - low, 1e-4), high + 0.04 * max(high - low, 1e-4)
    if rows.unit == "points":
        return 0.0, rows.top or 1.06 * max(high, 1e-4)  # a scale even if all errors are 0
    low, high = share_ends(low, high)
    return (low - 0.015 * (high - low) if low == 0 else low), min(high, 1.0) + 0.015 * (high - low)


def _draw(ax: Axes, rows: IntervalRows, c: int, places: Any) -> None:
    if rows.around is not None:
        middle, lower, upper = rows.around[:, c]
        ax.axvspan(lower, upper, color=colour("muted"), alpha=0.16, linewidth=0, zorder=1)
        ax.axvline(middle, color=colour("muted"), linewidth=0.9, zorder=1.5)
    if rows.unit == "difference":
        ax.axvline(0.0, color=colour("muted"), linewidth=0.9, zorder=1.5)
    faint = np.zeros(len(places), dtype=bool) if rows.faint is None else rows.faint
    for group, fill in ((~faint, "blue"), (faint, "paper")):
        if group.any():
            edge = colour("blue")
            ax.hlines(places[group], rows.lower[group, c], rows.upper[group, c], color=edge, linewidth=1.3, zorder=3)
            ax.plot(
                rows.estimate[group, c],
                places[group],
                linestyle="none",
                marker="o",
                markersize=4.6,
                markerfacecolor=colour(fill),
                markeredgecolor=edge,
                markeredgewidth=1.1,
                zorder=4,
                clip_on=False,
            )
    for (marker, tone, size), values in zip(MARKS, rows.marks.values(), strict=False):
        ax.plot(values[:, c], places, **_mark(marker, tone, size), zorder=3.5 if marker == "D" else 5)


def _mark(marker: str, tone: str, size: float) -> dict[str, Any]:
    return {
        "linestyle": "none",
        "marker": marker,
        "markersize": size,
        "markerfacecolor": "none",
        "markeredgecolor": colour(tone),
        "markeredgewidth": 1.1 if marker == "D" else 1.6,
    }


def _entries(rows: IntervalRows) -> list[tuple[str, dict[str, Any]]]:
    dot = {"color": colour("blue"), "linewidth": 1.3, "marker": "o", "markersize": 4.6}
    entries = [(rows.measure, dot)]
    if rows.faint is not None and rows.faint.any():
        entries.append((rows.hollow, {**dot, "markerfacecolor": colour("paper"), "markeredgewidth": 1.1}))
    entries += [(name, _mark(*mark)) for mark, name in zip(MARKS, rows.marks, strict=False)]
    if rows.around is not None:
        entries.append(("all together", {"color": colour("muted"), "linewidth": 0.9}))
    return entries


def _key_columns(rows: IntervalRows, narrow: bool) -> int:
    """Number of columns of the key, by the length of its entries."""
    longest = max(len(name) for name, _ in _entries(rows)) + 6  # with the symbol before it
    return max(1, min(4, (60 if narrow else 130) // longest))


def _key_lines(rows: IntervalRows, narrow: bool) -> int:
    return -(-len(_entries(rows)) // _key_columns(rows, narrow))


def _key(figure: Figure, rows: IntervalRows, narrow: bool) -> None:
    from matplotlib.lines import Line2D

    entries = _entries(rows)
    figure.legend(
        [Line2D([], [], **look) for _, look in entries],
        [name for name, _ in entries],
        loc="outside upper left",
        ncols=_key_columns(rows, narrow),
        frameon=False,
        fontsize=TICK,
        labelcolor=colour("muted"),
        handlelength=1.8,
        columnspacing=1.4,
        borderaxespad=0,
    )
