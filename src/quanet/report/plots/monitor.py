"""A monitor's course: the prevalence of a class in time, with its band and the change that was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quanet.errors import InvalidSetting
from quanet.report.plots.canvas import SMALL, wide_figure
from quanet.report.plots.panels import BLUE, GREY, ORANGE, PALE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from quanet.monitoring import Course


def monitor_figure(course: Course, *, label: Any = None, height: float = 2.6) -> Figure:
    """A figure of what `Monitor.course` gives: single batches, the windowed estimate with its band, and the alarm.

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
    area = 14 * course.sizes / course.sizes.max()
    ax.scatter(course.dates, course.estimate[:, c], s=area, color=PALE, label="one batch", zorder=2)
    band = f"{course.level:.0%} band of the window"
    ax.fill_between(
        course.dates, course.lower[:, c], course.upper[:, c], color=BLUE, alpha=0.22, linewidth=0, label=band, zorder=3
    )
    ax.plot(course.dates, course.windowed[:, c], color=BLUE, linewidth=1.3, label="window", zorder=4)
    ax.plot(
        course.dates,
        course.weighted[:, c],
        color=GREY,
        linewidth=0.9,
        linestyle=(0, (4, 1.5)),
        label="exponentially weighted",
        zorder=4,
    )
    if course.since is not None:
        ax.axvline(course.since, color=ORANGE, linewidth=1.2, label="change found", zorder=5)
    ax.set_ylabel(f"prevalence of {names[c]}", fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)
    ax.grid(alpha=0.25, linewidth=0.5)
    ax.legend(fontsize=SMALL, frameon=False, ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax
