"""Data of the charts in a report: intervals in rows, lines in panels."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from quanet.arrays import BoolArray, FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class IntervalRows:
    """Dots with intervals, one in each row, in panels side by side.

    Attributes
    ----------
    labels : (r,) labels of the rows, from the top.
    columns : (c,) titles of the panels; may be empty.
    estimate, lower, upper : (r, c).
    measure : meaning of the dots, for the key.
    unit : "share", "points" for errors, or "difference" for differences, with a line at 0.
    asides : (r,) texts to the right of the rows.
    marks : other values next to the dots, by name: (r, c) each; at most two.
    faint : (r,) rows with a hollow dot; `hollow` explains it in the key.
    top : end of the axis if a few values are far larger than the others; arrows mark these.
    around : (3, c) estimate, lower and upper end of the total, drawn behind; None without.
    """

    labels: tuple[str, ...]
    columns: tuple[str, ...]
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    measure: str
    unit: str = "share"
    asides: tuple[str, ...] = ()
    marks: Mapping[str, FloatArray] = field(default_factory=dict)
    faint: BoolArray | None = None
    hollow: str = "small group"
    around: FloatArray | None = None
    top: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A line of a panel: x and y (n,), an optional band, and which of its points are uncertain.

    Attributes
    ----------
    colour : name in the palette.
    dash : 0 for a solid line, up to 3 for others, so that lines differ without colour, too.
    style : "line" with points, "plain" without, "quiet" for comparison, "dashed", or "points" alone.
    """

    name: str
    x: Any
    y: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None
    faint: BoolArray | None = None
    colour: str = "blue"
    dash: int = 0
    style: str = "line"


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Lines on the same axes, with a title and a detail next to it."""

    lines: tuple[Line, ...]
    title: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Panels with the same axes.

    Attributes
    ----------
    x : "date", "share" or "number"; y : "share" or "points".
    gap : a line is interrupted between points that are farther apart; in days for dates.
    diagonal : whether the line y = x is drawn.
    mark : a value of y for comparison, and its name.
    events : values of x at which something happened, and their names.
    ends : ends of the y-axis; None for those of the lines.
    """

    panels: tuple[Panel, ...]
    x: str
    y: str = "share"
    xlabel: str = ""
    ylabel: str = ""
    gap: float = float("inf")
    diagonal: bool = False
    mark: tuple[float, str] | None = None
    events: tuple[tuple[Any, str], ...] = ()
    ends: tuple[float, float] | None = None
