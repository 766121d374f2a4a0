"""How axes look in a report: thin lines, few words, shares in percent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.report.palette import LIGHT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

TEXT, TICK = 8.0, 7.5  # points


def colour(name: str) -> str:
    """A colour by its name in the palette of light pages; the page puts in its own."""
    return LIGHT[name]


def tidy(ax: Axes, *, grid: str) -> None:
    """Leave what is read: the grid of one axis or of both, and the line that values stand on."""
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set(color=colour("muted"), linewidth=0.7)
    ax.grid(axis=grid, color=colour("rule"), linewidth=0.6)  # type: ignore[arg-type]
    ax.set_axisbelow(True)
    ax.tick_params(length=0, labelsize=TICK, labelcolor=colour("muted"), pad=3)
    ax.set_facecolor("none")


def scale(axis: Any, low: float, high: float, *, unit: str, most: int = 5) -> None:
    """Ticks at round values, in percent, or in points."""
    from matplotlib.ticker import MaxNLocator

    step = max(high - low, 1e-9)
    axis.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]))
    digits = 0 if step >= 0.04 else 1 if step >= 0.004 else 2
    tail = " %" if unit == "share" else ""
    axis.set_major_formatter(lambda value, _: f"{100 * value:.{digits}f}{tail}")


def share_ends(low: float, high: float) -> tuple[float, float]:
    """Ends of an axis of shares: 0 where values come near it, and round ones.

    Examples
    --------
    >>> share_ends(0.12, 0.41), share_ends(0.71, 0.93), share_ends(0.002, 0.013)
    ((0.0, 0.45), (0.7, 0.95), (0.0, 0.014))
    """
    step = next((one for one in (0.001, 0.002, 0.005, 0.01, 0.02) if one >= (high - low) / 8), 0.05)
    bottom = 0.0 if low < max(0.15, 0.5 * (high - low)) else math.floor(low / step + 1e-9) * step
    top = min(math.ceil(high / step - 1e-9) * step, 1.0)
    return round(bottom, 6), round(max(top, bottom + step), 6)


def spread(values: Sequence[float], gap: float, *, low: float, high: float) -> list[float]:
    """Places for labels as near to their values as a gap between them allows, within two ends where they fit.

    Examples
    --------
    >>> [round(place, 2) for place in spread([0.5, 0.52, 0.1], 0.1, low=0, high=1)]
    [0.46, 0.56, 0.1]
    """
    order = np.argsort(values, kind="stable")
    places: list[list[float]] = []  # blocks of labels that touch: their middles' mean and how many
    for value in np.asarray(values, dtype=float)[order]:
        places.append([float(value), 1])
        while len(places) > 1 and places[-1][0] - places[-2][0] < gap * (places[-1][1] + places[-2][1]) / 2:
            (mean, n), (other, m) = places.pop(), places.pop()
            places.append([(mean * n + other * m) / (n + m), n + m])
    found = np.concatenate([mean + gap * (np.arange(n) - (n - 1) / 2) for mean, n in places])
    found = np.minimum(found, high - gap * np.arange(len(found))[::-1])
    found = np.maximum.accumulate(np.maximum(found, low + gap * np.arange(len(found))))
    result = np.empty(len(found))
    result[order] = found
    return result.tolist()


MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
STEPS = ((1, "D"), (2, "D"), (7, "D"), (14, "D"), (1, "M"), (2, "M"), (3, "M"), (6, "M"), (1, "Y"), (2, "Y"), (5, "Y"))


def date_ticks(first: Any, last: Any, most: int) -> tuple[Any, list[str]]:
    r"""Round dates between two days, as many as fit, and their labels: the year stands below where it changes.

    Examples
    --------
    >>> date_ticks(np.datetime64("2023-11-01"), np.datetime64("2024-02-01"), 6)[1]
    ['Nov\n2023', 'Dec', 'Jan\n2024', 'Feb']
    """
    found: Any = np.array([first])
    for step, unit in (*STEPS, *((10 * n, "Y") for n in (1, 2, 5, 10))):
        start, end = (int(day.astype(f"datetime64[{unit}]").astype(int)) for day in (first, last))
        numbers = np.arange(-(-start // step) * step, end + 1, step)
        found = numbers.astype(f"datetime64[{unit}]").astype("datetime64[D]")
        found = found[found >= first]
        if len(found) <= most:
            break
    if not len(found):
        found, unit = np.array([first]), "D"
    labels, before = [], ""
    for day in found:
        year, month, number = str(day).split("-")
        name = MONTHS[int(month) - 1]
        top, below = {"D": (str(int(number)), f"{name} {year}"), "M": (name, year), "Y": (year, "")}[unit]
        labels.append(top if below == before or not below else f"{top}\n{below}")
        before = below
    return found, labels
