"""Charts of shares: over time, by group, by class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quanet.report.charts.canvas import WIDTH
from quanet.report.charts.interval_rows import rows_figure
from quanet.report.charts.lines import lines_figure
from quanet.report.groups import class_rows, group_rows, trend_grid
from quanet.report.time_series import time_key, time_series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from quanet.workflows.predict import Shares


def trend_figure(shares: Shares, *, focus: Any = None, width: float = WIDTH) -> Figure:
    """Shares over time with their intervals as bands, in small multiples by the other keys.

    Without a key of dates it is `groups_figure`.

    Parameters
    ----------
    shares : of groups.
    focus : the class shown; None for the second of two, or the most common ones.
    width : in inches; below half a page the picture is for a phone.

    Returns
    -------
    matplotlib.figure.Figure
        to show, change or pass to `save_figure`.

    Examples
    --------
    >>> import numpy as np
    >>> from quanet import EMQ, WordBags
    >>> from quanet.data.periods import Key
    >>> from quanet.corpus.grouped_inputs import GroupedInputs
    >>> from quanet.workflows.predict import estimate_shares
    >>> quantifier = EMQ().fit(*WordBags().draw([0.5, 0.5], 300, rng=0))
    >>> inputs = quantifier.read(WordBags().draw([0.7, 0.3], 120, rng=1)[0])
    >>> reading = GroupedInputs(inputs, np.repeat([0, 1], 60).astype(np.int32), [("2026-01",), ("2026-02",)], {}, None)
    >>> figure = trend_figure(estimate_shares(quantifier, reading, keys=[Key("date", "month")]))
    >>> len(figure.axes)
    1
    """
    if time_key(shares) is None or not time_series(shares):
        return groups_figure(shares, focus=focus, width=width)
    return lines_figure(trend_grid(shares, focus=focus), width=width)


def groups_figure(shares: Shares, *, focus: Any = None, width: float = WIDTH) -> Figure:
    """Dots with intervals, one row for each group, and the total behind; without groups, one row for each class."""
    if not shares.keys:
        return rows_figure(class_rows(shares, focus=focus), width=width)
    return rows_figure(group_rows(shares, focus=focus, columns=4 if width > WIDTH / 2 else 2), width=width)
