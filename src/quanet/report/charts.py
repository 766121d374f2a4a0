"""What the pictures of a report show, as plain data: intervals in rows, lines in panels."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from quanet.arrays import BoolArray, FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Dots with intervals, a row each, in panels side by side.

    Attributes
    ----------
    labels : (r,) of the rows, from the top.
    columns : (c,) titles of the panels; one that is empty has none.
    estimate, lower, upper : (r, c).
    measure : what the dots are, for the key.
    unit : "share", or "points" for errors.
    asides : (r,) what stands at the right of a row.
    marks : other values beside the dots, by what they are: (r, c) each; two at most.
    faint : (r,) rows with a hollow dot, and `hollow`, what that says.
    top : end of the axis where a few values are far beyond the others; an arrow stands for them.
    around : (3, c) estimate and ends of all together, drawn behind; None without.
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
    """A line of a panel: x and y (n,), a band where there is one, and which of its points say little.

    Attributes
    ----------
    colour : its name in the palette.
    dash : 0 for a whole line, up to 3 for others, told apart without colour too.
    style : "line" with points, "plain" without, "quiet" for what is there to compare with, "dashed", "points" alone.
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
    """Lines on the same axes, with a title and what stands beside it."""

    lines: tuple[Line, ...]
    title: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Panels of the same axes.

    Attributes
    ----------
    x : "date", "share" or "number"; y : "share" or "points".
    gap : distance in x beyond which a line breaks; days of dates.
    diagonal : whether the line of equal x and y is drawn.
    mark : a value of y to compare with, and what it is.
    events : values of x where something happened, and what.
    ends : of the y-axis; None where the lines say.
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
