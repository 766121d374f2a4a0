"""The chart of differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quanet.report.charts.canvas import WIDTH
from quanet.report.charts.interval_rows import rows_figure
from quanet.report.difference_rows import difference_rows, shown_positions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from quanet.workflows.diff import GroupDifferences


def differences_figure(found: GroupDifferences, *, focus: Any = None, width: float = WIDTH) -> Figure:
    """Differences with their intervals, one row for each comparison, and a line at 0.

    Parameters
    ----------
    found : the differences.
    focus : the class shown; None for the second of two, or the first ones.
    width : in inches; below half a page the picture is for a phone.
    """
    return rows_figure(difference_rows(found, found.differences.of_classes(shown_positions(found, focus))), width=width)
