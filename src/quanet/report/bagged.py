"""Charts of estimates for bags whose truth is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from quanet.report.charts import Grid, Line, Panel, Rows
from quanet.report.curves import Curve, error_curves, estimate_curves
from quanet.report.numbers import level_text, listing, many, percent, points
from quanet.report.palette import SERIES
from quanet.report.plots.lines import lines_figure
from quanet.report.plots.rows import rows_figure
from quanet.report.plots.style import share_ends
from quanet.report.plots.vector import make_chart
from quanet.report.share_tables import share_entry
from quanet.report.tables import Column, Entry, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quanet.arrays import BoolArray, FloatArray, IntArray
    from quanet.evaluation.cells import Cell, Outcome
    from quanet.evaluation.results import Results
    from quanet.report.summary import Chart

CONSTANT = "TrainPrevalence"
COUNTED = "vermilion"  # of a plain count, in all charts
PANELS = 8
LINES = 6
GROUPS = 10  # of true shares, in which coverage is counted


def estimates_chart(cells: Mapping[Cell, Outcome], results: Mapping[str, Results]) -> Chart:
    """Mean estimate against truth: a panel a method of two classes; of more, a panel a class of the first method."""
    names, first = list(results), next(iter(results.values()))
    whose = "" if len(first.classes) == 2 else f" of {names[0]}"
    if not whose:
        curves = estimate_curves(cells)
        shown = {name: cast("Curve", curves.shown["", name]) for name in names}
        what, subject = f"share of {first.classes[-1]}", f"methods: {listing(names[:PANELS])}"
        told = "; ".join(f"{name} off by {points(curve.error)}" for name, curve in list(shown.items())[:PANELS])
    else:
        order = np.argsort(-first.truth.mean(axis=0), kind="stable")
        own = {cell: one for cell, one in cells.items() if cell.method == names[0]}
        shown = {
            str(first.classes[c]): cast("Curve", estimate_curves(own, position=int(c)).shown["", names[0]])
            for c in order
        }
        what, subject = "share of a class", f"classes, by {names[0]}"
        errors = np.abs(first.estimate - first.truth).mean(axis=0)
        told = "; ".join(f"{first.classes[c]} off by {points(errors[c])}" for c in order[:PANELS])
    drawn = list(shown.items())[:PANELS]
    highest = max(float(part.max()) for _, curve in drawn for part in (curve.x, curve.high))
    panels = tuple(
        Panel((Line("", curve.x, curve.middle, curve.low, curve.high, colour="blue"),), name) for name, curve in drawn
    )
    grid = Grid(
        panels,
        "share",
        xlabel=f"true {what}, %",
        ylabel="estimate",
        diagonal=True,
        ends=share_ends(0.0, highest),
    )
    more = f" The first {PANELS} of {len(shown)}; the table has all." if len(shown) > PANELS else ""
    return make_chart(
        "estimates",
        f"Mean estimate{whose} at every true {what}, with one standard deviation over bags; dashed: the truth.{more}",
        f"Estimate against truth for {subject}. On average: {told}.",
        _curve_table("Mean estimate ± standard deviation over bags, in %", f"true {what}, %", shown, spread=True),
        lambda width: lines_figure(grid, width=width),
    )


def shift_chart(cells: Mapping[Cell, Outcome], *, limit: float | None) -> Chart:
    """Mean absolute error by how far a bag's shares are from those of training."""
    curves = error_curves(cells, against="shift")
    shown = {method: cast("Curve", curves.shown["", method]) for method in curves.methods}
    drawn = _told_apart(list(shown))
    others = iter(colour for colour in SERIES if colour != COUNTED)
    lines = tuple(
        Line(name, shown[name].x, shown[name].middle, colour=COUNTED if name == "CC" else next(others))
        for name in drawn
    )
    mark = None if limit is None or not np.isfinite(limit) else (limit, "limit")
    grid = Grid(
        (Panel(lines),),
        "share",
        "points",
        xlabel="distance of a bag's shares from those of training, %",
        ylabel="mean absolute error, points",
        mark=mark,
    )
    left = f" Shown: {listing(drawn)}; the table has all methods." if len(drawn) < len(shown) else ""
    bound = (
        f" Limit: {points(limit)}, the least of an unbiased method; near 0 and 100 % others can be below."
        if mark and limit
        else ""
    )
    far = "; ".join(f"{name} {points(float(shown[name].middle[-1]))}" for name in drawn)
    return make_chart(
        "shift",
        f"Mean absolute error by shift: half the sum of all classes' differences from training.{bound}{left}",
        f"A line for each of {listing(drawn)}. At the largest shift, {percent(float(shown[drawn[0]].x[-1]))}: {far}.",
        _curve_table("Mean absolute error in points", "shift, %", shown, spread=False),
        lambda width: lines_figure(grid, width=width),
    )


def _told_apart(names: list[str]) -> list[str]:
    """Methods for lines of one panel: the first ones, and the plain count that everyone compares with.

    What answers the same every time errs by the shift itself, and would flatten all others.
    """
    always = [name for name in ("CC",) if name in names]
    first = [name for name in names if name not in {*always, CONSTANT}][: LINES - 1]
    return [name for name in names if name in {*first, *always}] or names[:1]


def _curve_table(title: str, corner: str, curves: Mapping[str, Curve], *, spread: bool) -> Table:
    places = np.unique(np.concatenate([curve.x for curve in curves.values()]).round(6))
    if len(places) > 60:  # every class has truths of its own
        return _summary_table(title, curves)
    found = {name: {round(float(x), 6): i for i, x in enumerate(curve.x)} for name, curve in curves.items()}
    rows = []
    for place in places.tolist():
        entries = []
        for name, curve in curves.items():
            i = found[name].get(round(place, 6))
            if i is None:
                entries.append(Entry())
            else:
                beside = f"± {100 * (curve.high[i] - curve.low[i]) / 2:.1f}" if spread else ""
                entries.append(Entry(f"{100 * curve.middle[i]:.{1 if spread else 2}f}", detail=beside))
        rows.append((f"{100 * place:.1f}", tuple(entries)))
    return Table(title, tuple(Column(name) for name in curves), tuple(rows), corner=corner)


def _summary_table(title: str, curves: Mapping[str, Curve]) -> Table:
    rows = tuple(
        (name, tuple(Entry(f"{100 * value:.1f}") for value in (np.abs(curve.middle - curve.x).mean(), curve.x.mean())))
        for name, curve in curves.items()
    )
    return Table(title, (Column("mean distance from the truth"), Column("mean truth")), rows, corner="")


def coverage_chart(results: Results, covered: FloatArray, level: float) -> Chart:
    """Share of intervals that hold the truth, by the true share; the band is what chance leaves open (Wilson 1927)."""
    two = len(results.classes) == 2
    truth, hits = (part[:, -1] if two else part.ravel() for part in (results.truth, covered))
    # Of many classes most shares are small: groups of equal number then say more than those of equal width.
    inner = np.arange(1, GROUPS) / GROUPS
    cuts = inner if two else np.unique(np.quantile(truth, inner).round(3))
    member = np.searchsorted(cuts, truth, side="right")
    found, counts = np.unique(member, return_counts=True)
    bounds = np.r_[0.0, cuts, 1.0]
    x = np.array([truth[member == group].mean() for group in found])
    share = np.array([hits[member == group].mean() for group in found])
    low, high = _wilson(share, counts)
    grid = Grid(
        (Panel((Line("intervals", x, share, low, high),)),),
        "share",
        xlabel=f"true share of {results.classes[-1] if two else 'a class'}, %",
        ylabel="intervals that hold it",
        mark=(level, level_text(level)),
        ends=(max(0.0, min(0.8, float(share.min()) - 0.05)), 1.005),
    )
    worst = int(share.argmin())
    table = Table(
        "Intervals that hold the truth, in %",
        (Column("hold it"), Column("intervals")),
        tuple(
            (
                f"{100 * bounds[group]:g} to {100 * bounds[group + 1]:g}",
                (share_entry(share[i], low[i], high[i]), Entry(f"{counts[i]:,}")),
            )
            for i, group in enumerate(found)
        ),
        corner="true share, %",
    )
    return make_chart(
        "coverage",
        f"How often the {level_text(level)} intervals hold the truth, by the true share; the band is what "
        "chance leaves open.",
        f"A line around the level of {level_text(level)}; at its lowest {percent(float(share[worst]))}, where the true "
        f"share is about {percent(float(x[worst]), digits=0)}.",
        table,
        lambda width: lines_figure(grid, width=width),
    )


def _wilson(share: FloatArray, n: IntArray, z: float = 1.96) -> tuple[FloatArray, FloatArray]:
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return middle - half, middle + half


def methods_chart(results: Mapping[str, Results], alike: BoolArray, table: Table) -> Chart:
    """Mean absolute errors of methods, with the range of 90 % of the bags."""
    errors = [one.error() for one in results.values()]
    ends = np.array([np.quantile(one, (0.05, 0.95)) for one in errors])
    means = np.array([one.mean() for one in errors])
    worse = ~np.asarray(alike)
    worse[0] = False
    others = [i for i, name in enumerate(results) if name != CONSTANT] or list(range(len(errors)))
    rows = Rows(
        tuple(results),
        ("",),
        means[:, None],
        ends[:, :1],
        ends[:, 1:],
        "mean absolute error, 90 % of bags",
        unit="points",
        asides=tuple(points(mean) for mean in means),
        faint=worse,
        hollow="significantly worse than the first",
        top=1.06 * float(ends[others].max()),
    )
    told = "; ".join(f"{name} {points(mean)}" for name, mean in zip(results, means, strict=True))
    return make_chart(
        "methods",
        "Mean absolute error of every method in percentage points; lines reach over 90 % of the bags.",
        f"A dot for each of {many(len(results), 'method')}, best first: {told}.",
        table,
        lambda width: rows_figure(rows, width=width),
    )
