"""Charts of estimates for bags with known truth, for evaluations and comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from quanet.evaluation.evaluate import Cell, CellOutcome
from quanet.report.chart_data import Grid, IntervalRows, Line, Panel
from quanet.report.charts.canvas import share_ends
from quanet.report.charts.interval_rows import rows_figure
from quanet.report.charts.lines import lines_figure
from quanet.report.experiment_curves import ErrorCurve, error_curves, estimate_curves
from quanet.report.palette import SERIES
from quanet.report.phrases import focus_first, level_text, listing, many, percent, points, position_of, share_entry
from quanet.report.summary import Chart, Column, Table, TableEntry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray
    from quanet.evaluation.evaluate import Results

CONSTANT = "TrainPrevalence"
PLAIN_COUNT, PLAIN_COUNT_COLOUR = "CC", "vermilion"  # the same colour in all charts
MAX_PANELS = 8
MAX_LINES = 6
BINS = 10  # of true shares, for the coverage


def mean_error(results: Results) -> float:
    """Mean absolute error over bags."""
    return float(results.error().mean())


def bag_sizes(results: Results) -> str:
    """Sizes of the bags: one number, or the smallest and the largest."""
    low, high = int(results.sizes.min()), int(results.sizes.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def bags_data(results: Mapping[str, Results]) -> dict[str, object]:
    """Sizes, truth and estimates of all bags, for JSON."""
    first = next(iter(results.values()))
    estimates = {name: one.estimate for name, one in results.items()}
    return {"sizes": first.sizes, "truth": first.truth, "estimate": estimates}


def _cells(results: Mapping[str, Results], prior: FloatArray) -> dict[Cell, CellOutcome]:
    """Results as one run of an experiment, for the curves of experiments."""
    return {Cell("", name, 0): CellOutcome(one, prior, 0.0) for name, one in results.items()}


def estimates_chart(
    results: Mapping[str, Results], prior: FloatArray, *, classes: LabelArray | None = None, focus: Any = None
) -> Chart:
    """Mean estimate by true share: two classes, one panel per method; more, one panel per class of the first method.

    Parameters
    ----------
    results, prior : results by method, and training prevalences (k,).
    classes : (k,) names of the classes; None for those of the results.
    focus : the class shown first; None for the second of two, or the most common one.
    """
    cells, names, first = _cells(results, prior), list(results), next(iter(results.values()))
    classes = first.classes if classes is None else classes
    whose = "" if len(classes) == 2 else f" of {names[0]}"
    if not whose:
        c = position_of(classes, focus)
        assert c is not None
        curves = estimate_curves(cells, position=c)
        shown = {name: cast("ErrorCurve", curves.shown["", name]) for name in names}
        what, subject = f"share of {classes[c]}", f"methods: {listing(names[:MAX_PANELS])}"
        errors = [f"{name} is off by {points(curve.error)}" for name, curve in shown.items()]
    else:
        order = focus_first(np.argsort(-first.truth.mean(axis=0), kind="stable"), classes, focus)
        own = {cell: one for cell, one in cells.items() if cell.method == names[0]}
        shown = {
            str(classes[c]): cast("ErrorCurve", estimate_curves(own, position=int(c)).shown["", names[0]])
            for c in order
        }
        what, subject = "share of a class", f"classes, by {names[0]}"
        by_class = np.abs(first.estimate - first.truth).mean(axis=0)
        errors = [f"{classes[c]} is off by {points(by_class[c])}" for c in order]
    drawn = list(shown.items())[:MAX_PANELS]
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
    more = f" The first {MAX_PANELS} of {len(shown)}; the table shows all." if len(shown) > MAX_PANELS else ""
    return Chart(
        "estimates",
        f"Mean estimate{whose} at every true {what}, with one standard deviation over bags; dashed: the truth.{more}",
        f"Estimate by true share for {subject}. On average: {'; '.join(errors[:MAX_PANELS])}.",
        _curve_table("Mean estimate ± standard deviation over bags, in %", f"true {what}, %", shown, spread=True),
        lambda width: lines_figure(grid, width=width),
    )


def shift_chart(results: Mapping[str, Results], prior: FloatArray, *, limit: float | None) -> Chart:
    """Mean absolute error by the distance of a bag's shares from the training shares."""
    curves = error_curves(_cells(results, prior), against="shift")
    shown = {method: cast("ErrorCurve", curves.shown["", method]) for method in curves.methods}
    drawn = _drawn_methods(list(shown))
    others = iter(colour for colour in SERIES if colour != PLAIN_COUNT_COLOUR)
    colours = {name: PLAIN_COUNT_COLOUR if name == PLAIN_COUNT else next(others) for name in drawn}
    lines = tuple(Line(name, shown[name].x, shown[name].middle, colour=colours[name]) for name in drawn)
    mark = None if limit is None or not np.isfinite(limit) else (limit, "limit")
    grid = Grid(
        (Panel(lines),),
        "share",
        "points",
        xlabel="distance of a bag's shares from the training shares, %",
        ylabel="mean absolute error, points",
        mark=mark,
    )
    left = f" Shown: {listing(drawn)}; the table shows all methods." if len(drawn) < len(shown) else ""
    bound = (
        f" Limit: {points(limit)}, the smallest error of an unbiased method; near 0 and 100 % biased methods can be "
        "below it."
        if mark and limit
        else ""
    )
    far = "; ".join(f"{name} {points(float(shown[name].middle[-1]))}" for name in drawn)
    return Chart(
        "shift",
        f"Mean absolute error by shift, half the sum of absolute differences from the training shares.{bound}{left}",
        f"A line for each of {listing(drawn)}. At the largest shift, {percent(float(shown[drawn[0]].x[-1]))}: {far}.",
        _curve_table("Mean absolute error in points", "shift, %", shown, spread=False),
        lambda width: lines_figure(grid, width=width),
    )


def _drawn_methods(names: list[str]) -> list[str]:
    """Methods to draw in one panel: the first ones and the plain count.

    The error of a constant estimate is the shift itself; its line would flatten all others.
    """
    always = [name for name in (PLAIN_COUNT,) if name in names]
    first = [name for name in names if name not in {*always, CONSTANT}][: MAX_LINES - 1]
    return [name for name in names if name in {*first, *always}] or names[:1]


def _curve_table(title: str, corner: str, curves: Mapping[str, ErrorCurve], *, spread: bool) -> Table:
    places = np.unique(np.concatenate([curve.x for curve in curves.values()]).round(6))
    if len(places) > 60:  # each class has its own true shares
        return _summary_table(title, curves)
    found = {name: {round(float(x), 6): i for i, x in enumerate(curve.x)} for name, curve in curves.items()}
    rows = []
    for place in places.tolist():
        entries = []
        for name, curve in curves.items():
            i = found[name].get(round(place, 6))
            if i is None:
                entries.append(TableEntry())
            else:
                detail = f"± {100 * (curve.high[i] - curve.low[i]) / 2:.1f}" if spread else ""
                entries.append(TableEntry(f"{100 * curve.middle[i]:.{1 if spread else 2}f}", detail=detail))
        rows.append((f"{100 * place:.1f}", tuple(entries)))
    return Table(title, tuple(Column(name) for name in curves), tuple(rows), corner=corner)


def _summary_table(title: str, curves: Mapping[str, ErrorCurve]) -> Table:
    rows = tuple(
        (
            name,
            tuple(
                TableEntry(f"{100 * value:.1f}") for value in (np.abs(curve.middle - curve.x).mean(), curve.x.mean())
            ),
        )
        for name, curve in curves.items()
    )
    return Table(title, (Column("mean distance from the truth"), Column("mean truth")), rows, corner="")


def coverage_chart(results: Results, covered: FloatArray, level: float) -> Chart:
    """Coverage of intervals by the true share; the band is the confidence interval of the coverage (Wilson 1927)."""
    two = len(results.classes) == 2
    truth, hits = (part[:, -1] if two else part.ravel() for part in (results.truth, covered))
    # With many classes most shares are small: bins of equal counts are then better than bins of equal width.
    inner = np.arange(1, BINS) / BINS
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
        ylabel="intervals that contain it",
        mark=(level, level_text(level)),
        ends=(max(0.0, min(0.8, float(share.min()) - 0.05)), 1.005),
    )
    worst = int(share.argmin())
    table = Table(
        "Intervals that contain the truth, in %",
        (Column("contain it"), Column("intervals")),
        tuple(
            (
                f"{100 * bounds[group]:g} to {100 * bounds[group + 1]:g}",
                (share_entry(share[i], low[i], high[i]), TableEntry(f"{counts[i]:,}")),
            )
            for i, group in enumerate(found)
        ),
        corner="true share, %",
    )
    return Chart(
        "coverage",
        f"Share of the {level_text(level)} intervals that contain the truth, by the true share; band: 95 % confidence.",
        f"A line around the level of {level_text(level)}; its lowest value is {percent(float(share[worst]))}, where "
        f"the true share is about {percent(float(x[worst]), digits=0)}.",
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
    rows = IntervalRows(
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
    listed = "; ".join(f"{name} {points(mean)}" for name, mean in zip(results, means, strict=True))
    return Chart(
        "methods",
        "Mean absolute error of every method in percentage points; lines cover 90 % of the bags.",
        f"A dot for each of {many(len(results), 'method')}, best first: {listed}.",
        table,
        lambda width: rows_figure(rows, width=width),
    )
