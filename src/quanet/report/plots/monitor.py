"""A monitor's course: the prevalence of a class in time, with its band and the change that was found."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.errors import InvalidData, InvalidSetting
from quanet.report.plots.canvas import SMALL, wide_figure
from quanet.report.plots.panels import BLUE, GREY, ORANGE, PALE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from quanet.monitoring import Course


def monitor_figure(course: Course, *, label: Any = None, height: float = 2.6) -> Figure:
    """A figure of what `Monitor.course` gives: batches, the level between changes with its band, and the changes.

    Parameters
    ----------
    course : of a monitor.
    label : the class shown; None for the last one.
    height : in inches.
    """
    figure, ax = wide_figure(height)
    course_panel(ax, course, label=label)
    return figure


def course_panel(ax: Axes, course: Course, *, label: Any = None) -> Axes:
    """Prevalence of a class by date; larger batches are larger dots."""
    names = course.classes.tolist()
    if label is not None and label not in names:
        raise InvalidSetting(f"no class is called {label!r}; there are {', '.join(map(repr, names))}.")
    c = len(names) - 1 if label is None else names.index(label)
    if not len(course.dates):
        raise InvalidData("the monitor has no batches, so there is nothing to draw. Give it a batch with update.")
    dates = np.asarray(course.dates)
    area = 14 * course.sizes / course.sizes.max()
    ax.scatter(dates, course.estimate[:, c], s=area, color=PALE, label="one batch", zorder=2)
    cuts = [0, *(int(np.searchsorted(dates, one.date)) for one in course.changes), len(dates)]
    for number, (a, b) in enumerate(pairwise(cuts)):
        band, line = (f"where {course.level:.0%} of batches lie", "level between changes") if not number else ("", "")
        ends = (course.batch_lower[a:b, c], course.batch_upper[a:b, c])
        ax.fill_between(dates[a:b], *ends, color=BLUE, alpha=0.22, linewidth=0, zorder=3, label=band)
        ax.plot(dates[a:b], course.baseline[a:b, c], color=BLUE, linewidth=1.3, zorder=4, label=line)
    ax.plot(dates, course.windowed[:, c], color=GREY, linewidth=0.9, linestyle=(0, (4, 1.5)), label="window", zorder=4)
    for number, one in enumerate(course.changes):
        ax.axvline(one.date, color=ORANGE, linewidth=1.2, zorder=5, label="" if number else "change")
    ax.set_ylabel(f"prevalence of {names[c]}", fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)
    ax.grid(alpha=0.25, linewidth=0.5)
    ax.legend(fontsize=SMALL, frameon=False, ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax
