"""The table and the picture of `benchmarks/corpora.py`."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import FixedLocator, NullLocator

from quanet.files import write_whole
from quanet.report.charts import save_figure
from quanet.report.charts.canvas import TEXT, TICK, WIDTH, colour, sized_figure, tidy

TINY = 2000  # rows of the runs that show the time of a start
LEAST = 3.0  # seconds without start that say something about the rate
SLOPE = (1_000_000, 3_000_000)  # rows of the runs whose difference does not depend on the start
BILLION, CORES = 1e9, 100
CAPS = {10: 104_857, 1000: 1048, 100_000: 256}  # rows of a group that are all kept, by the number of groups
LIMITS = {False: "<= 1e-12", True: "<= .0005"}
NAMES = {"base": "before", "exact": "local, no cap", "local": "local", "ray": "Ray", "spark": "Spark"}

PAGE = """# Corpora: time and memory by rows, groups and engine

<!-- not run: a benchmark -->
```console
$ python benchmarks/corpora.py run FOLDER --base OLD/src
$ python benchmarks/corpora.py table FOLDER -o benchmarks/results/corpora.md --picture docs/corpora.png
```

Generated texts of 15 to 20 words in two classes, with known shares, as Parquet of {files} files; a model of 5,000
labelled texts with the default method. The command is `quanet predict MODEL 'FOLDER/*.parquet' --by GROUP`, with
`--engine`, `--workers` and `--save-state`. {machine}

*Before*: `predict` of the version before states, which keeps all rows in memory. *No cap*: the same command as the
local ones, but it keeps all rows of every group, so its estimate is exact. *Start*: the time of the same command for
2,000 rows. *Rows per second*: without the start. *Peak*: the largest memory of the command's own process, and of the
largest worker. *CPU*: of the command's process, and of all others. *Difference*: the largest of any estimate or end of
an interval from another local run, and of any estimate from the exact one. Answers are written with 6 digits, so
differences below 1e-6 do not show here. *Covered*: 95 % intervals of groups that contain the true share of the second
class. *Error*: the mean difference of the estimate from it.

{repeats} The start of the same command varies by a few seconds, and that of 2,000 rows in 10 groups is not
that of many rows in 1,000 groups. Engines and processes are therefore compared by what 2,000,000 further rows cost:
the difference of the same command for 3,000,000 and 1,000,000 rows. With up to 1,000,000 rows no group is above the
cap; [summaries](summaries.md) compares groups above it with all rows.

![Time and peak memory by rows.](../../docs/corpora.png)

## Required

{required}

## Runs

{runs}

## What 1,000,000,000 rows would cost

{projection}
"""


def frame_of(runs: list[dict[str, Any]]) -> pd.DataFrame:
    """One row per run, sorted."""
    found = pd.DataFrame([_flat(run) for run in runs])
    starts = {(run["engine"], run["workers"], run["cores"]): run["seconds"] for run in runs if run["rows"] == TINY}
    kinds = zip(found["engine"], found["workers"], found["cores"], strict=True)
    least = {engine: min(value for key, value in starts.items() if key[0] == engine) for engine, _, _ in starts}
    found["start"] = [starts.get(kind, least.get(kind[0], 0.0)) for kind in kinds]
    found["rate"] = found["rows"] / (found["seconds"] - found["start"]).clip(lower=0.01)
    found["engine"] = pd.Categorical(found["engine"], list(NAMES), ordered=True)
    return found.sort_values(["rows", "groups", "engine", "workers"]).reset_index(drop=True)


def _flat(run: dict[str, Any]) -> dict[str, Any]:
    command, *others = run["processes"]
    python = [
        one
        for one in others
        if not any(word in one["name"] for word in ("java", "pyspark/bin", "raylet", "gcs_server"))
    ]
    local, exact = (run["differences"].get(name) for name in ("local", "exact"))
    return {name: run[name] for name in ("rows", "groups", "engine", "workers", "cores", "seconds", "state_bytes")} | {
        "peak": command["peak_mb"],
        "worker peak": max((one["peak_mb"] for one in python), default=0.0),
        "other peak": max((one["peak_mb"] for one in others if one not in python), default=0.0),
        "largest": max(one["peak_mb"] for one in [command, *python]),
        "cpu": command["cpu_s"],
        "worker cpu": sum(one["cpu_s"] for one in others),
        "local": None if local is None else max(local.values()),
        "exact": None if exact is None else exact["estimate"],
        "covered": run["truth"]["covered"],
        "error": run["truth"]["mean_error"],
    }


def run_lines(found: pd.DataFrame) -> list[str]:
    """A line for each run."""
    head = (
        *("rows", "groups", "engine", "workers", "s", "start, s", "rows per s", "peak, MB", "of a worker, MB"),
        *("CPU, s", "of others, s", "state, MB", "difference, local", "exact", "covered", "error"),
    )
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for one in found.to_dict("records"):
        cells = [
            f"{one['rows']:,}",
            f"{one['groups']:,}",
            NAMES[one["engine"]] + (", 1 core" if one["cores"] == 1 else ""),
            f"{one['workers']}",
            f"{one['seconds']:.1f}",
            f"{one['start']:.1f}",
            "-" if one["seconds"] - one["start"] < LEAST else f"{one['rate']:,.0f}",
            f"{one['peak']:,.0f}",
            f"{one['worker peak']:,.0f}" if one["worker peak"] else "-",
            f"{one['cpu']:.0f}",
            f"{one['worker cpu']:.0f}" if one["worker cpu"] else "-",
            "-" if pd.isna(one["state_bytes"]) else f"{one['state_bytes'] / 1e6:.1f}",
            *("-" if pd.isna(one[name]) else _number(one[name]) for name in ("local", "exact")),
            f"{one['covered']:.1%}",
            f"{one['error']:.4f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _number(value: float) -> str:
    """A difference between answers, which are written with 6 digits."""
    return "< 1e-6" if value < 1e-6 else f"{value:.0e}"


def required_lines(found: pd.DataFrame) -> list[str]:
    """What is required, and what was measured; "-" where a run is missing."""
    lines = ["| | required | measured |", "|---|---|---|"]

    def add(what: str, limit: str, form: str, value: float | str | None) -> None:
        lines.append(f"| {what} | {limit} | {'-' if value is None or pd.isna(value) else form.format(value)} |")

    def one(rows: int, groups: int, engine: str, workers: int, column: str) -> float | None:
        columns = found["rows"], found["groups"], found["engine"], found["workers"]
        chosen = np.logical_and.reduce([a == b for a, b in zip(columns, (rows, groups, engine, workers), strict=True)])
        return float(found.loc[chosen, column].iloc[0]) if chosen.any() else None

    def ratio(above: float | None, below: float | None) -> float | None:
        return None if above is None or below is None else above / below

    rows = 1_000_000 if (found["rows"] == 1_000_000).any() else int(found["rows"].max())
    groups = 1000 if (found["groups"] == 1000).any() else int(found["groups"].max())
    before, alone = (one(rows, groups, *run, "rate") for run in (("base", 1), ("local", 1)))
    at = f"{rows:,} rows in {groups:,} groups"
    add(f"rows per second on one core, compared with those before, {at}", ">= .9", "{:.2f}", ratio(alone, before))
    two, between = _slope(found, groups, "local", 2), f"{groups:,} groups, from {SLOPE[0]:,} to {SLOPE[1]:,} rows"
    single = _slope(found, groups, "local", 1)
    add(f"the same with two local processes, compared with one, {between}", ">= 1.7", "{:.2f}", ratio(single, two))
    for engine in ("ray", "spark"):
        time = ratio(_slope(found, groups, engine, 2), two)
        add(f"time of {NAMES[engine]} compared with two local processes, {between}", "<= 1.25", "{:.2f}", time)
    for number in sorted(set(found["groups"])):
        peaks = [one(size, number, "local", 2, "largest") for size in (10_000_000, 1_000_000)]
        what = f"peak memory of 10,000,000 rows compared with 1,000,000, {number:,} groups"
        add(what, "<= 1.2", "{:.2f}", ratio(*peaks))
    after = found[~found["engine"].isin(["base", "exact"])]
    many = after.loc[after["groups"] == 100_000, "largest"].max()
    add("largest peak memory of a process with 100,000 groups, MB", "<= 3,000", "{:,.0f}", many)
    add("largest difference between engines", "0", "{}", _number(after["local"].max()))
    compared = after[after["exact"].notna()]
    # Caps for two classes and the default method, see docs/reference/states.md.
    for what, above in (("all groups below the cap", False), ("groups above the cap", True)):
        mine = compared[(compared["rows"] > compared["groups"].map(CAPS) * compared["groups"]) == above]
        largest = None if mine.empty else _number(mine["exact"].max())
        add(f"largest difference from the exact estimate, {what}", LIMITS[above], "{}", largest)
    return lines


def _slope(found: pd.DataFrame, groups: int, engine: str, workers: int) -> float | None:
    """Seconds per row between two runs of an engine, which the start does not change."""
    mine = found[(found["engine"] == engine) & (found["groups"] == groups) & (found["workers"] == workers)]
    part = mine[mine["rows"].isin(SLOPE)].sort_values("rows")
    return None if len(part) < 2 else float(part["seconds"].diff().iloc[-1] / part["rows"].diff().iloc[-1])


def projection_lines(found: pd.DataFrame) -> list[str]:
    """From the slopes between the two largest runs: seconds of the workers and of the command per row."""
    mine = found[(found["engine"] == "local") & (found["workers"] == 2)]
    lines = ["| groups | CPU of workers, µs per row | of the command | workers on 100 cores, min | command, min |"]
    lines.append("|---|---|---|---|---|")
    for groups, runs in mine.groupby("groups"):
        part = runs.sort_values("rows").tail(2)
        if len(part) < 2:
            continue
        added = part["rows"].diff().iloc[-1]
        worker, command = (part[name].diff().iloc[-1] / added for name in ("worker cpu", "cpu"))
        parallel, serial = worker * BILLION / CORES / 60, max(command, 0) * BILLION / 60
        lines.append(f"| {groups:,} | {worker * 1e6:.1f} | {command * 1e6:.2f} | {parallel:.0f} | {serial:.0f} |")
    note = (
        "The slope between the two largest local runs. Workers read and classify in parallel; the command merges their "
        "states at the same time, so the larger of both columns is the time, plus the start and the estimates of the "
        "groups, which do not depend on the rows."
    )
    return [*lines, "", note]


def write_table(runs: list[dict[str, Any]], output: Path) -> None:
    """Write the tables as Markdown."""
    found = frame_of(runs)
    known = {name: value for run in runs for name, value in run["versions"].items()}
    versions = ", ".join(f"{name} {value}" for name, value in known.items())
    files = sorted({run["corpus"]["files"] for run in runs})
    often = [run["name"] for run in runs if run.get("times", 1) > 1]
    repeats = f"Each run was made once{', except for these, of which the fastest is shown: ' if often else ''}"
    repeats += ", ".join(f"`{run['name']}` ({run['times']} times)" for run in runs if run["name"] in often) + "."
    text = PAGE.format(
        repeats=repeats,
        files=f"{files[0]} to {files[-1]}",
        machine=f"{os.cpu_count()} cores; {versions}.",
        required="\n".join(required_lines(found)),
        runs="\n".join(run_lines(found)),
        projection="\n".join(projection_lines(found)),
    )
    write_whole(output, text.encode())


def write_picture(runs: list[dict[str, Any]], output: Path) -> None:
    """Time and peak memory by rows: two local processes by number of groups, and other engines at one number."""
    found = frame_of(runs)
    found = found[found["rows"] > TINY] if (found["rows"] > TINY).any() else found
    figure = sized_figure(WIDTH, 3.4)
    axes = figure.subplots(1, 2)
    for ax, column, name in zip(axes, ("seconds", "largest"), ("time, s", "largest process, MB"), strict=True):
        tidy(ax, grid="both")
        local = found[(found["engine"] == "local") & (found["workers"] == 2)]
        for (groups, part), hue in zip(local.groupby("groups"), ("blue", "green", "purple"), strict=False):
            ax.plot(part["rows"], part[column], "o-", color=colour(hue), markersize=4, label=f"{groups:,} groups")
        for engine, marker, hue in (("base", "X", "vermilion"), ("ray", "s", "ochre"), ("spark", "D", "teal")):
            part = found[(found["engine"] == engine) & (found["cores"] == 0)]
            if engine == "base":
                part = found[found["engine"] == engine].drop_duplicates(["rows"])
            ax.plot(
                part["rows"],
                part[column],
                marker,
                color=colour(hue),
                markersize=5,
                label=NAMES[engine] + (", one core" if engine == "base" else ""),
            )
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(FixedLocator(sorted(set(found["rows"]))))
        ax.xaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g} million" if value >= 1e6 else f"{value:,.0f}")
        if column == "seconds":
            ax.set_yscale("log")
            ax.yaxis.set_major_locator(FixedLocator([5, 10, 20, 50, 100, 200, 500, 1000]))
        else:
            ax.set_ylim(0, 1.15 * found["largest"].max())
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        ax.set_xlabel("rows", fontsize=TEXT, color=colour("ink"))
        ax.set_ylabel(name, fontsize=TEXT, color=colour("ink"))
    axes[0].legend(frameon=False, fontsize=TICK, loc="upper left", labelcolor=colour("ink"))
    save_figure(figure, output)
