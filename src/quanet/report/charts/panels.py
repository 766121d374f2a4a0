"""Small panels, one for every method, in blocks; each shows its own method, with the others in grey."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quanet.report.charts.canvas import SMALL, TINY, WIDTH, sized_figure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from quanet.evaluation.limits import Limit
    from quanet.report.experiment_curves import Boxes, ErrorCurve

# Colours of Okabe and Ito; they also differ in lightness, for print without colour.
BLUE, ORANGE, SKY, GREY, PALE = "#0072B2", "#D55E00", "#56B4E9", "#4D4D4D", "#C9C9C9"
COLUMNS = 6


def panel_figure(
    titles: Sequence[str], panels: int, *, height: float, xlabel: str, ylabel: str
) -> tuple[Figure, list[list[Axes]], SubFigure]:
    """Small panels in blocks, with a title above every block and room for the key below.

    Parameters
    ----------
    titles : of the blocks.
    panels : in every block.
    height : of a panel in inches, where there are six in a row; fewer are larger.
    xlabel, ylabel : of the whole; ticks stand at the blocks' edges alone.
    """
    columns = panel_columns(panels)
    rows = -(-panels // columns)
    block, strip = rows * (height * min(COLUMNS / columns, 2) + 0.25) + 0.44, 0.3
    heights = [*[block] * (len(titles) - 1), block + 0.22, strip]  # the last block has the label of the x-axis
    figure = sized_figure(WIDTH, sum(heights))
    parts: list[SubFigure] = list(figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False).flat)
    blocks = []
    for title, part in zip(titles, parts[:-1], strict=True):
        grid = part.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        axes = list(grid.flat)
        for ax in axes[panels:]:
            ax.remove()
        for ax in axes[max(panels - columns, 0) : panels]:
            ax.tick_params(labelbottom=True)  # the lowest panel of its column
        for ax in axes[:panels]:
            ax.tick_params(labelsize=TINY, length=2, pad=1.5, width=0.6)
            ax.grid(alpha=0.25, linewidth=0.5)
            for side in ax.spines.values():
                side.set_linewidth(0.6)
        part.suptitle(title, x=0.01, ha="left", fontsize=9, fontweight="bold")
        if part is parts[-2]:
            part.supxlabel(xlabel, fontsize=SMALL)
        part.supylabel(ylabel, fontsize=SMALL)
        blocks.append(axes[:panels])
    return figure, blocks, parts[-1]


def panel_columns(panels: int) -> int:
    """Panels in a row: at most six, with rows as even as possible.

    Examples
    --------
    >>> [panel_columns(panels) for panels in (1, 6, 7, 11, 13)]
    [1, 6, 4, 6, 5]
    """
    rows = -(-panels // COLUMNS)
    return -(-panels // rows)


def estimate_panel(ax: Axes, curve: ErrorCurve, *, others: Iterable[ErrorCurve] = (), prior: float) -> Axes:
    """Mean estimate against truth with its band, the diagonal, and the training prevalence as a circle on it."""
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.7, linestyle=(0, (4, 3)), zorder=2)
    _draw_others(ax, others)
    ax.plot([prior], [prior], "o", markersize=6, markerfacecolor=SKY, alpha=0.6, markeredgewidth=0, zorder=3)
    _draw_curve(ax, curve)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1), aspect="equal")
    return _plain_ticks(ax)


def error_panel(
    ax: Axes, curve: ErrorCurve, *, others: Iterable[ErrorCurve] = (), limit: Limit | None = None, end: float = 1.0
) -> Axes:
    """Mean error against prevalence or shift up to `end`, on a logarithmic axis, with its limit if known."""
    from matplotlib.ticker import LogLocator

    _draw_others(ax, others)
    _draw_curve(ax, curve)
    if limit is not None:
        ax.plot(limit.prevalences, limit.errors, color=ORANGE, linewidth=1.0, linestyle=(0, (4, 1.5)), zorder=5)
    ax.set(yscale="log", xlim=(-0.02 * end, 1.02 * end), xticks=(0, 0.5, 1) if end > 0.6 else (0, 0.2, 0.4))
    ax.minorticks_off()
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    return _plain_ticks(ax)


def bias_panel(ax: Axes, boxes: Boxes) -> Axes:
    """Boxes of the middle half with the median, whiskers over 90 % of the bags, around the line of no bias."""
    lowest, low, middle, high, highest = boxes.quantiles.T
    width = 0.72 / max(len(boxes.x), 7)
    ax.axhline(0, color=GREY, linewidth=0.7, linestyle=(0, (4, 3)), zorder=2)
    ax.vlines(boxes.x, lowest, highest, color=BLUE, linewidth=0.7, zorder=3)
    ax.bar(boxes.x, high - low, width, bottom=low, color="#A6CBE3", edgecolor=BLUE, linewidth=0.6, zorder=4)
    ax.hlines(middle, boxes.x - width / 2, boxes.x + width / 2, color="black", linewidth=1.1, zorder=5)
    ax.set(xlim=(0, 1), xticks=(0, 0.5, 1))
    return _plain_ticks(ax)


def _draw_curve(ax: Axes, curve: ErrorCurve) -> None:
    ax.fill_between(curve.x, curve.low, curve.high, color=BLUE, alpha=0.22, linewidth=0, zorder=3)
    ax.plot(curve.x, curve.middle, color=BLUE, linewidth=1.3, zorder=4)


def _draw_others(ax: Axes, others: Iterable[ErrorCurve]) -> None:
    for other in others:
        ax.plot(other.x, other.middle, color=PALE, linewidth=0.6, zorder=1)


def _plain_ticks(ax: Axes) -> Axes:
    """Numbers as 0, .5 and 1."""
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: f"{round(value, 9):g}".replace("0.", "."))
    return ax
