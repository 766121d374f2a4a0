"""The chart behind `Interval.plot`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.report.chart_data import IntervalRows
from quanet.report.charts.canvas import WIDTH
from quanet.report.charts.interval_rows import rows_figure
from quanet.report.phrases import level_text, percent, position_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from quanet.uncertainty.regions import Interval

ROWS, COLUMNS = 30, 4  # bags and classes shown


def interval_figure(interval: Interval, *, focus: Any = None, width: float = WIDTH) -> Figure:
    """A dot with its interval: one row per class for one bag; one row per bag and one panel per class for many.

    Parameters
    ----------
    interval : of one bag or many.
    focus : for many bags, the class shown; None for the second of two, or the most common ones.
    width : in inches.
    """
    return rows_figure(_one_bag(interval) if interval.estimate.ndim == 1 else _bags(interval, focus), width=width)


def _one_bag(interval: Interval) -> IntervalRows:
    order = np.argsort(-interval.estimate, kind="stable")[:ROWS]
    return IntervalRows(
        tuple(str(interval.classes[c]) for c in order),
        ("",),
        interval.estimate[order, None],
        interval.lower[order, None],
        interval.upper[order, None],
        f"estimate, {level_text(interval.level)} interval",
        asides=tuple(percent(interval.estimate[c]) for c in order),
        marks={} if interval.counted is None else {"plain count": interval.counted[order, None]},
    )


def _bags(interval: Interval, focus: Any) -> IntervalRows:
    at = position_of(interval.classes, focus)
    common = np.argsort(-interval.estimate.mean(axis=0), kind="stable")[:COLUMNS].tolist()
    columns, bags = common if at is None else [at], np.arange(min(len(interval.estimate), ROWS))
    both = np.ix_(bags, np.array(columns))
    names = bags if interval.groups is None else interval.groups
    several = len(columns) > 1
    what = "share" if several else f"share of {interval.classes[columns[0]]}"
    return IntervalRows(
        tuple(str(names[bag]) for bag in bags),
        tuple(str(interval.classes[c]) for c in columns) if several else ("",),
        interval.estimate[both],
        interval.lower[both],
        interval.upper[both],
        f"{what}, {level_text(interval.level)} interval",
        asides=tuple(f"n = {int(interval.sizes[bag]):,}" for bag in bags),
        marks={} if interval.counted is None else {"plain count": interval.counted[both]},
    )
