"""One method in one small panel, the others in grey behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes

    from quanet.evaluation.limits import Limit
    from quanet.report.curves import Boxes, Curve

# Okabe and Ito's; each differs from the others in lightness too, for print without colour.
BLUE, ORANGE, SKY, GREY, PALE = "#0072B2", "#D55E00", "#56B4E9", "#4D4D4D", "#C9C9C9"


def estimate_panel(ax: Axes, curve: Curve, *, others: Iterable[Curve] = (), prior: float) -> Axes:
    """Mean estimate against truth with its band, the diagonal, and the training prevalence as a circle on it."""
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.7, linestyle=(0, (4, 3)), zorder=2)
    _draw_others(ax, others)
    ax.plot([prior], [prior], "o", markersize=6, markerfacecolor=SKY, alpha=0.6, markeredgewidth=0, zorder=3)
    _draw_curve(ax, curve)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1), aspect="equal")
    return _plain_ticks(ax)


def error_panel(
    ax: Axes, curve: Curve, *, others: Iterable[Curve] = (), limit: Limit | None = None, end: float = 1.0
) -> Axes:
    """Mean error against prevalence or shift up to `end`, on a logarithmic axis, with its limit if that is known."""
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


def _draw_curve(ax: Axes, curve: Curve) -> None:
    ax.fill_between(curve.x, curve.low, curve.high, color=BLUE, alpha=0.22, linewidth=0, zorder=3)
    ax.plot(curve.x, curve.middle, color=BLUE, linewidth=1.3, zorder=4)


def _draw_others(ax: Axes, others: Iterable[Curve]) -> None:
    for other in others:
        ax.plot(other.x, other.middle, color=PALE, linewidth=0.6, zorder=1)


def _plain_ticks(ax: Axes) -> Axes:
    """Numbers as 0, .5 and 1."""
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: f"{round(value, 9):g}".replace("0.", "."))
    return ax
