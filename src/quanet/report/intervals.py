"""Pictures of intervals: how often they hold the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quanet.arrays import FloatArray

# Okabe and Ito's colours, told apart by colour-blind readers too.
STYLES = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#E69F00", "v"))


def coverage_by_prevalence(ax: Any, prevalences: FloatArray, covered: Mapping[str, FloatArray], *, level: float) -> Any:
    """Share of intervals that hold the truth at every true prevalence, a line a method, with the level asked for.

    Parameters
    ----------
    ax : matplotlib's Axes, to draw on.
    prevalences : (g,) true ones of a class.
    covered : shares (g,) of every method, by name.
    level : the probability that was asked for.
    """
    ax.axhline(100 * level, color="black", linewidth=1, linestyle=(0, (4, 3)), label=f"{100 * level:g} %", zorder=1)
    for (name, shares), (colour, marker) in zip(covered.items(), STYLES, strict=False):
        ax.plot(prevalences, 100 * shares, color=colour, marker=marker, markersize=4, linewidth=1.4, label=name)
    lowest = 100 * min((float(shares.min()) for shares in covered.values()), default=level)
    ax.set(
        xlim=(0, 1),
        ylim=(min(80.0, max(0.0, lowest - 2)), 100.5),
        xlabel="true prevalence",
        ylabel="intervals that hold it, %",
    )
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.legend(frameon=False, fontsize="small", loc="lower center", ncols=2)
    return ax
