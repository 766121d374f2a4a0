"""Intervals as text: what `str` and `repr` show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quanet.wording import between, level_text, percent, span

if TYPE_CHECKING:
    from quanet.uncertainty.regions import Interval

MAX_BAGS, MAX_CLASSES = 20, 8  # shown


def interval_text(interval: Interval) -> str:
    """One line per class for one bag; one line per bag for many.

    Examples
    --------
    >>> from quanet.uncertainty.regions import Interval
    >>> ends = np.array([0.2, 0.8]), np.array([0.15, 0.75]), np.array([0.25, 0.85])
    >>> print(interval_text(Interval(*ends, np.eye(2), np.array(500), 0.95, "closed", np.array(["no", "yes"]))))
    no   20.0 %  (15.0 to 25.0 %)
    yes  80.0 %  (75.0 to 85.0 %)
    95 % intervals of 500 instances
    """
    level = f"{level_text(interval.level)} intervals"
    if interval.estimate.ndim == 1:
        names = [str(name) for name in interval.classes.tolist()]
        named = zip(names, interval.estimate, interval.lower, interval.upper, strict=True)
        rows = [[name, percent(p), f"({between(low, high)})"] for name, p, low, high in named]
        state = "" if interval.drift is None else f"; {interval.drift.state}"
        return "\n".join([*_aligned(rows, MAX_BAGS), f"{level} of {int(interval.sizes):,} instances{state}"])
    b, shown = len(interval.estimate), interval.classes[:MAX_CLASSES].tolist()
    groups = np.arange(b) if interval.groups is None else interval.groups
    rows = [["bag", "n", *map(str, shown)]]
    for at in range(min(b, MAX_BAGS)):
        ends = zip(interval.estimate[at], interval.lower[at], interval.upper[at], strict=True)
        cells = [f"{100 * p:.1f} ({span(low, high)})" for p, low, high in ends]
        rows.append([str(groups[at]), f"{int(interval.sizes[at]):,}", *cells[:MAX_CLASSES]])
    more = [f"... and {b - MAX_BAGS:,} more bags"] * (b > MAX_BAGS)
    classes = f", the first {MAX_CLASSES} of {len(interval.classes)} classes" * (len(interval.classes) > MAX_CLASSES)
    return "\n".join([*_aligned(rows), *more, f"{level} in %{classes}"])


def _aligned(rows: list[list[str]], most: int | None = None) -> list[str]:
    """Cells in columns: the first to the left, the others to the right; of many rows, the first."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
    return lines if most is None or len(lines) <= most else [*lines[:most], f"... and {len(lines) - most} more classes"]
