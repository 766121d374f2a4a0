"""A few methods in one panel, one line for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from quanet.arrays import FloatArray
    from quanet.evaluation.evaluate import Results

# Colours of Okabe and Ito, which colour-blind readers can distinguish; the markers help in print.
STYLES = (
    ("#0072B2", "o"),
    ("#D55E00", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#E69F00", "v"),
    ("#56B4E9", "P"),
    ("#5F5F5F", "X"),
)
QUANTILES = (0.05, 0.95)


def estimate_against_truth(ax: Axes, results: dict[str, Results], *, position: int = -1) -> Axes:
    """Mean estimate of one class against its true prevalence, one line per method, with a band of 90 % of the bags.

    Parameters
    ----------
    ax : to draw on.
    results : of every method, by name, all on the same bags.
    position : of the class, in the order of the results' classes.
    """
    ax.plot([0, 1], [0, 1], color="black", linewidth=1, linestyle=(0, (4, 3)), label="truth", zorder=1)
    for (name, result), (colour, marker) in zip(results.items(), STYLES, strict=False):
        truths, middle, low, high = _by_truth(result.truth[:, position], result.estimate[:, position])
        ax.fill_between(truths, low, high, color=colour, alpha=0.12, linewidth=0)
        ax.plot(truths, middle, color=colour, marker=marker, markersize=4, linewidth=1.6, label=name)
    first = next(iter(results.values()))
    ax.set(
        xlim=(0, 1),
        ylim=(0, 1),
        aspect="equal",
        xlabel=f"true prevalence of {first.classes[position]}",
        ylabel="estimated prevalence: mean and 90 % of bags",
    )
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.legend(frameon=False, fontsize="small")
    return ax


def error_by_shift(ax: Axes, results: dict[str, Results], *, prior: FloatArray, position: int = -1) -> Axes:
    """Mean absolute error against the distance of a bag's prevalence from the training prevalence."""
    for (name, result), (colour, marker) in zip(results.items(), STYLES, strict=False):
        shift = np.round(np.abs(result.truth[:, position] - prior[position]), 2)
        shifts, middle, _, _ = _by_truth(shift, result.error())
        ax.plot(shifts, middle, color=colour, marker=marker, markersize=4, linewidth=1.6, label=name)
    ax.set(xlabel="distance of a bag's prevalence from training", ylabel="mean absolute error")
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.legend(frameon=False, fontsize="small")
    return ax


def _by_truth(truth: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Mean and the band's ends of the values at every distinct truth."""
    distinct, member = np.unique(truth, return_inverse=True)
    groups = [values[member == group] for group in range(len(distinct))]
    ends = np.array([np.quantile(group, QUANTILES) for group in groups])
    return distinct, np.array([group.mean() for group in groups]), ends[:, 0], ends[:, 1]
