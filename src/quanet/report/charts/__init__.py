"""Charts: functions that draw plain data on an Axes and return it. The only package that imports matplotlib."""

from quanet.report.charts.canvas import FORMATS, check_suffix, new_figure, save_figure
from quanet.report.charts.difference_figure import differences_figure
from quanet.report.charts.interval_figure import interval_figure
from quanet.report.charts.monitor_figure import monitor_figure
from quanet.report.charts.overlay import error_by_shift, estimate_against_truth
from quanet.report.charts.share_figures import groups_figure, trend_figure

__all__ = [
    "FORMATS",
    "check_suffix",
    "differences_figure",
    "error_by_shift",
    "estimate_against_truth",
    "groups_figure",
    "interval_figure",
    "monitor_figure",
    "new_figure",
    "save_figure",
    "trend_figure",
]
