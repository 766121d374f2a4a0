"""Groups over time: which key is a date, and the time series that its periods form."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from quanet.workflows.predict import Shares


@dataclass(frozen=True, slots=True, eq=False)
class TimeSeries:
    """A time series of groups: its title, dates and the positions of the groups."""

    title: str
    dates: Any  # (t,) days
    positions: list[int]


def time_key(shares: Shares) -> int | None:
    """Position of the key that is a date; None if there is none."""
    return next((at for at, key in enumerate(shares.keys) if key.period), None)


def start_of(text: str, period: str) -> date | None:
    """First day of a period; None if the text is not a period.

    Examples
    --------
    >>> [str(start_of(*one)) for one in (("2024-05", "month"), ("2024-W07", "week"), ("2024-Q2", "quarter"))]
    ['2024-05-01', '2024-02-12', '2024-04-01']
    """
    try:
        if period == "week":
            year, week = text.split("-W")
            return date.fromisocalendar(int(year), int(week), 1)
        if period == "quarter":
            year, quarter = text.split("-Q")
            return date(int(year), 3 * int(quarter) - 2, 1)
        return date.fromisoformat({"month": f"{text}-01", "year": f"{text}-01-01"}.get(period, text))
    except ValueError:
        return None


def time_series(shares: Shares) -> list[TimeSeries]:
    """Time series of groups, one for each combination of the other keys; those with most instances first."""
    at = time_key(shares)
    assert at is not None
    found: dict[tuple[str, ...], list[tuple[date, int]]] = {}
    for position, group in enumerate(shares.groups):
        start = start_of(group[at], shares.keys[at].period)
        if start is not None:
            found.setdefault((*group[:at], *group[at + 1 :]), []).append((start, position))
    made = [
        TimeSeries(
            ", ".join(others), np.array([day for day, _ in members], dtype="datetime64[D]"), [p for _, p in members]
        )
        for others, members in ((others, sorted(members)) for others, members in found.items())
    ]
    return sorted(made, key=lambda series: -int(shares.sizes[series.positions].sum()))
