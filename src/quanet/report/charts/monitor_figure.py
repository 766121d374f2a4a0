"""The figure of a monitor: the prevalence of a class over time, with its band and the detected changes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.errors import InvalidData, InvalidSetting
from quanet.report.charts.canvas import SMALL, wide_figure
from quanet.report.charts.panels import BLUE, GREY, ORANGE, PALE
from quanet.report.phrases import share_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from quanet.evaluation.monitor_batches import History


def monitor_figure(history: History, *, label: Any = None, height: float = 2.6) -> Figure:
    """A figure of the history of a monitor: batches, the level between changes with its band, and the changes.

    Parameters
    ----------
    history : what `Monitor.history` returns.
    label : the class shown; None for the last one.
    height : in inches.

    Returns
    -------
    matplotlib.figure.Figure
        to show, change or pass to `save_figure`.

    Examples
    --------
    >>> from quanet import CC, Monitor
    >>> monitor = Monitor(CC("precomputed").fit([[0.9, 0.1], [0.2, 0.8]], ["no", "yes"]))
    >>> for number in range(4):
    ...     _ = monitor.update([[0.9, 0.1]] * 30 + [[0.1, 0.9]] * (20 + number))
    >>> figure = monitor_figure(monitor.history(), label="yes")
    >>> len(figure.axes)
    1
    """
    figure, ax = wide_figure(height)
    history_panel(ax, history, label=label)
    return figure


def history_panel(ax: Axes, history: History, *, label: Any = None) -> Axes:
    """Prevalence of a class by date; larger batches are larger dots."""
    names = history.classes.tolist()
    if label is not None and label not in names:
        raise InvalidSetting(f"Unknown class {label!r}. Choose from {', '.join(map(repr, names))}.")
    c = len(names) - 1 if label is None else names.index(label)
    if not len(history.dates):
        raise InvalidData("The monitor has no batches, so there is nothing to draw. Add a batch with update.")
    dates = np.asarray(history.dates)
    area = 14 * history.sizes / history.sizes.max()
    ax.scatter(dates, history.estimate[:, c], s=area, color=PALE, label="one batch", zorder=2)
    cuts = [0, *(int(np.searchsorted(dates, one.date)) for one in history.changes), len(dates)]
    for number, (a, b) in enumerate(pairwise(cuts)):
        band, line = (f"range of {history.level:.0%} of batches", "level between changes") if not number else ("", "")
        ends = (history.batch_lower[a:b, c], history.batch_upper[a:b, c])
        ax.fill_between(dates[a:b], *ends, color=BLUE, alpha=0.22, linewidth=0, zorder=3, label=band)
        ax.plot(dates[a:b], history.baseline[a:b, c], color=BLUE, linewidth=1.3, zorder=4, label=line)
    ax.plot(dates, history.windowed[:, c], color=GREY, linewidth=0.9, linestyle=(0, (4, 1.5)), label="window", zorder=4)
    for number, one in enumerate(history.changes):
        ax.axvline(one.date, color=ORANGE, linewidth=1.2, zorder=5, label="" if number else "change")
    shown = share_of(names[c], history.weight) if history.weight else f"prevalence of {names[c]}"
    ax.set_ylabel(shown, fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)
    ax.grid(alpha=0.25, linewidth=0.5)
    ax.legend(fontsize=SMALL, frameon=False, ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax
