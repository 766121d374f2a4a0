"""The coverage of intervals: how often they contain the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quanet.arrays import FloatArray

# Okabe and Ito's colours, which colour-blind readers can distinguish.
STYLES = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#E69F00", "v"))


def coverage_by_prevalence(ax: Any, prevalences: FloatArray, covered: Mapping[str, FloatArray], *, level: float) -> Any:
    """Coverage by true prevalence, one line per method, and the confidence level.

    Parameters
    ----------
    ax : matplotlib Axes to draw on.
    prevalences : (g,) true prevalences of a class.
    covered : coverage (g,) of each method, by name.
    level : confidence level of the intervals.
    """
    ax.axhline(100 * level, color="black", linewidth=1, linestyle=(0, (4, 3)), label=f"{100 * level:g} %", zorder=1)
    for (name, shares), (colour, marker) in zip(covered.items(), STYLES, strict=False):
        ax.plot(prevalences, 100 * shares, color=colour, marker=marker, markersize=4, linewidth=1.4, label=name)
    lowest = 100 * min((float(shares.min()) for shares in covered.values()), default=level)
    ax.set(
        xlim=(0, 1),
        ylim=(min(80.0, max(0.0, lowest - 2)), 100.5),
        xlabel="true prevalence",
        ylabel="intervals that contain it, %",
    )
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.legend(frameon=False, fontsize="small", loc="lower center", ncols=2)
    return ax
