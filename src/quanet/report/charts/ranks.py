"""Critical-difference diagrams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from quanet.arrays import FloatArray, IntArray

ROW = 0.22  # inches between labels
TOP = 0.85  # inches above the axis of ranks: its numbers, and the critical distance


def diagram_height(methods: int, groups: int) -> float:
    """Height of a diagram in inches."""
    return TOP + ROW * ((methods + 1) // 2 + 0.6) + 0.11 * groups + 0.1


def critical_difference(
    ax: Axes, names: Sequence[str], ranks: FloatArray, *, distance: float, groups: Sequence[IntArray]
) -> Axes:
    """Methods on a line of mean ranks, the best at the left; a bar joins those that do not differ significantly.

    Demšar (2006), Figure 1. In inches downwards from the line of ranks, so that labels keep their distance.

    Parameters
    ----------
    ax : to draw on; its axes are hidden.
    names, ranks : of the methods, (m,).
    distance : the critical one, drawn above the line.
    groups : positions of the methods that a bar joins, see `alike`.
    """
    m = len(names)
    order = np.argsort(ranks, kind="stable")
    ends = (1.0, float(m))
    ax.hlines(0, *ends, color="black", linewidth=1)
    for tick in range(1, m + 1):
        ax.vlines(tick, 0, -0.08, color="black", linewidth=0.8)
        ax.text(tick, -0.12, str(tick), ha="center", va="bottom", fontsize=8)
    ax.hlines(-0.48, 1, 1 + distance, color="black", linewidth=1)
    ax.vlines([1, 1 + distance], -0.53, -0.43, color="black", linewidth=1)
    ax.text(1, -0.56, f"critical distance {distance:.2f}", ha="left", va="bottom", fontsize=8)
    depth = 0.1
    for group in groups:
        ax.hlines(
            depth,
            ranks[group].min() - 0.004 * m,
            ranks[group].max() + 0.004 * m,
            color="#0072B2",
            linewidth=3.2,
            zorder=3,
        )
        depth += 0.11
    half = (m + 1) // 2
    margin = 0.06 * (m - 1)
    for place, method in enumerate(order):
        left = place < half
        y = depth + ROW * (0.6 + (place if left else m - 1 - place))
        x = ends[0] - margin if left else ends[1] + margin
        ax.plot([ranks[method], ranks[method], x], [0, y, y], color="#4D4D4D", linewidth=0.8, solid_joinstyle="miter")
        name = f"{names[method]}  {ranks[method]:.2f}" if left else f"{ranks[method]:.2f}  {names[method]}"
        ax.text(
            x - 0.01 * m if left else x + 0.01 * m, y, name, ha="right" if left else "left", va="center", fontsize=8.5
        )
    right = max(ends[1] + 1.2 * margin, 1 + distance)  # with few blocks the distance may exceed all ranks
    ax.set(xlim=(ends[0] - 1.2 * margin, right), ylim=(depth + ROW * (half + 0.4), 0.1 - TOP))
    ax.set_axis_off()
    return ax
