"""Pictures: each takes an Axes and plain data, draws, and returns the Axes. Matplotlib's only door."""

from quanet.report.plots.answers import groups_figure, trend_figure
from quanet.report.plots.canvas import FORMATS, check_suffix, new_figure, save_figure
from quanet.report.plots.monitor import monitor_figure
from quanet.report.plots.overlay import error_by_shift, estimate_against_truth

__all__ = [
    "FORMATS",
    "check_suffix",
    "error_by_shift",
    "estimate_against_truth",
    "groups_figure",
    "monitor_figure",
    "new_figure",
    "save_figure",
    "trend_figure",
]
