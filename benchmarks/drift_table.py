"""Tables and the picture of `benchmarks/drift.py`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import FixedLocator, NullLocator

from quanet.files import write_whole
from quanet.report.charts import save_figure
from quanet.report.charts.canvas import TEXT as TEXT_SIZE
from quanet.report.charts.canvas import TICK, TINY, WIDTH, colour, sized_figure, spread, tidy
from quanet.uncertainty.widening import STATES

KINDS = ("natural", "pairs", "control")
NAMES = {"natural": "later or other products", "pairs": "another dataset", "control": "random halves"}


def read_cells(files: list[Path]) -> tuple[pd.DataFrame, list[str]]:
    """One row per cell, with relative figures, and where each file comes from."""
    contents = [json.loads(file.read_text()) for file in files]
    cells = pd.DataFrame([cell for content in contents for cell in content["cells"]])
    cells["kind"] = pd.Categorical(cells["kind"], KINDS)
    cells["relative ae"] = cells["ae"] / cells["limit"]
    cells["relative width"] = cells["width"] / cells["width without"]
    cells["relative base"] = cells["ae"] / cells.get("base ae", cells["ae"]).fillna(cells["ae"])
    cells["relative fit"] = [one["fit"] / one.get("fit without drift", np.nan) for one in cells["seconds"]]
    return cells, [f"`{one['command']}`, {one['date']}. {one['machine']}." for one in contents]


COLUMNS = {
    "AE": ("ae", "{:.4f}"),
    "AE / limit": ("relative ae", "{:.1f}"),
    "coverage": ("coverage", "{:.1%}"),
    "without drift": ("coverage without", "{:.1%}"),
    "one by one": ("coverage alone", "{:.1%}"),
    "width": ("width", "{:.3f}"),
    "width without": ("width without", "{:.3f}"),
    "ratio": ("relative width", "{:.2f}"),
    "cost": ("cost", "{:.3f}"),
    "bias": ("bias", "{:.3f}"),
    "predicted": ("predicted bias", "{:.3f}"),
    **{state: (state, "{:.0%}") for state in STATES[:4]},
    "alarm": ("with alarm", "{:.0%}"),
    "fit": ("relative fit", "{:.2f}"),
}


def rows_of(cells: pd.DataFrame, by: list[str]) -> list[str]:
    """A Markdown table of means: one line for each combination of these columns."""
    names = [column for column, _ in COLUMNS.values()]
    means = cells.groupby(by, observed=True)[names].mean()
    lines = [f"| {' | '.join([*by, *COLUMNS])} |", "|" + "---|" * (len(by) + len(COLUMNS))]
    for key, values in means.iterrows():
        shown = ["-" if np.isnan(values[name]) else form.format(values[name]) for name, form in COLUMNS.values()]
        lines.append(f"| {' | '.join([*map(str, key), *shown])} |")  # type: ignore[call-overload]
    return lines


def required(cells: pd.DataFrame) -> list[str]:
    """What intervals and states must reach, by method."""
    methods = sorted(set(cells["method"]))
    lines = ["| | required | " + " | ".join(methods) + " |", "|---|---|" + "---|" * len(methods)]

    def line(what: str, limit: str, form: str, value: Any) -> None:
        found = [value(cells[cells["method"] == method]) for method in methods]
        lines.append(
            f"| {what} | {limit} | " + " | ".join("-" if np.isnan(one) else form.format(one) for one in found) + " |"
        )

    def mean(kind: str, column: str) -> Any:
        return lambda one: one[one["kind"] == kind].groupby("scenario", observed=True)[column].mean().mean()

    def least(one: pd.DataFrame) -> float:
        return one[one["kind"] == "natural"].groupby("scenario", observed=True)["coverage"].mean().min()

    def largest(kinds: tuple[str, ...], column: str) -> Any:
        return lambda one: one[one["kind"].isin(kinds)].groupby("scenario", observed=True)[column].mean().max()

    def share(part: str, whole: str, kinds: tuple[str, ...] = KINDS) -> Any:
        return lambda one: one[one["kind"].isin(kinds)][part].sum() / one[one["kind"].isin(kinds)][whole].sum()

    line("natural: mean coverage", ">= 90 %", "{:.1%}", mean("natural", "coverage"))
    line("natural: least coverage of a set", ">= 80 %", "{:.1%}", least)
    line("natural: mean width", "<= .25", "{:.3f}", mean("natural", "width"))
    line("natural: mean coverage, bags one by one", "", "{:.1%}", mean("natural", "coverage alone"))
    line("control: mean coverage", "93 to 97 %", "{:.1%}", mean("control", "coverage"))
    line("control: mean width over that without drift", "<= 1.10", "{:.2f}", mean("control", "relative width"))
    line("control: the same, largest of a set", "", "{:.2f}", largest(("control",), "relative width"))
    both = ("natural", "control")
    for what, kinds in (("all", KINDS), ("natural and control", both)):
        trusted = share("trusted and covered", "trusted", kinds)
        line(f"trusted bags, {what}: coverage without drift", ">= 92 %", "{:.1%}", trusted)
        costly = share("costly and trusted", "costly", kinds)
        line(f"bags where drift costs more than the half-width, {what}: trusted", "<= 10 %", "{:.1%}", costly)
    line("natural, pairs: AE over that of its base, largest", "<= 1.03", "{:.2f}", largest(KINDS[:2], "relative base"))
    return lines


PAGE = """# Drift: coverage, width, states and alarms

{sources} quanet's text default; 200 bags of 500 at prevalences uniform on the simplex, 95 % intervals; seeds {seeds}.
The scale was developed on these datasets ([how](../../docs/experiments/drift.md)), so new data are the real test.
amazon-devices, kindle-device and kindle-store are stand-ins for the paper's HP and KINDLE.

*AE / limit*: relative to the Cramér-Rao limit of the pool's posteriors. *Coverage*: intervals that contain the true
prevalence of their class, with drift, *without drift* (`drift=False`), and for bags that are estimated *one by one*, so
that they share no information. *Cost*: what drift may cost, by `Interval.drift`. *Bias* and *predicted*: root mean
squares over bags and classes (`benchmarks/drift.py` defines them). *Alarm*: bags for which `diagnose` raises any alarm.
*Fit*: time of `fit` over that without a drift scale.

![The observed bias against the predicted scale, one dot per scenario.](../../docs/drift.png)

## Summary

{summary}

## Means of each kind

{kinds}

## Scenarios

{scenarios}
"""


def write_table(files: list[Path], output: Path) -> None:
    """Write the tables as Markdown."""
    cells, sources = read_cells(files)
    seeds = ", ".join(map(str, sorted(set(cells["seed"]))))
    text = PAGE.format(
        sources="\n".join(sources),
        seeds=seeds,
        summary="\n".join(required(cells)),
        kinds="\n".join(rows_of(cells, ["kind", "method"])),
        scenarios="\n\n".join(
            f"### {kind}\n\n" + "\n".join(rows_of(cells[cells["kind"] == kind], ["scenario", "method"]))
            for kind in KINDS
            if (cells["kind"] == kind).any()
        ),
    )
    write_whole(output, text.encode())


def write_picture(files: list[Path], output: Path, method: str) -> None:
    """The observed bias of a method against the predicted scale, one dot per scenario."""
    cells, _ = read_cells(files)
    cells = cells[cells["method"] == method]
    points = cells.groupby(["kind", "scenario"], observed=True)[["predicted bias", "bias"]].mean() * 100
    figure = sized_figure(WIDTH, 4.6)
    ax = figure.subplots()
    tidy(ax, grid="both")
    ends = np.array([0.7, 1.4]) * [points.to_numpy().min(), points.to_numpy().max()]
    for times, style, name in ((1, "-", "1 x"), (2, (0, (4, 3)), "2 x the scale")):
        ax.plot(ends, times * ends, color=colour("muted"), linewidth=1, linestyle=style, zorder=1, label=name)
    for kind, hue, marker in zip(KINDS, ("vermilion", "purple", "blue"), "osD", strict=True):
        if kind not in points.index:
            continue
        x, y = points.loc[kind].to_numpy().T
        ax.scatter(x, y, s=26, color=colour(hue), marker=marker, zorder=3, label=NAMES[kind])
        if kind == "control":
            continue
        # Natural drift is named on the left of its dot, pairs on the right.
        side, factor = ("right", 0.96) if kind == "natural" else ("left", 1.04)
        places = 10 ** np.array(spread(np.log10(y).tolist(), 0.062, low=-2, high=3))
        for name, across, up in zip(points.loc[kind].index, factor * x, places, strict=True):
            ax.text(across, up, name, ha=side, va="center", fontsize=TINY, color=colour(hue))
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(FixedLocator([0.2, 0.5, 1, 2, 5, 10, 20, 50]))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_xlabel("predicted scale of the bias, points", fontsize=TEXT_SIZE, color=colour("ink"))
    ax.set_ylabel(f"observed bias of {method}, points", fontsize=TEXT_SIZE, color=colour("ink"))
    ax.legend(frameon=False, fontsize=TICK, loc="upper left", labelcolor=colour("ink"))
    save_figure(figure, output)
