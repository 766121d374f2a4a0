"""The report of a monitor: what `quanet monitor` found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from quanet.errors import InvalidData
from quanet.evaluation.findings import Finding
from quanet.report.monitor_chart import history_chart
from quanet.report.monitor_data import batch_rows, columns_of, history_figures, monitor_json
from quanet.report.phrases import (
    class_name,
    level_text,
    listing,
    many,
    of_weight,
    percent,
    points,
    position_of,
    quantity,
    reproduction,
    share_entry,
    share_text,
)
from quanet.report.summary import Column, Section, Summary, Table, TableEntry
from quanet.workflows.monitor import date_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quanet.arrays import FloatArray
    from quanet.evaluation.monitor_batches import History
    from quanet.workflows.monitor import MonitorRun

MAX_PANELS = 12
MAX_CHANGES = 4  # in the sentence
SURPRISING = 0.001  # probability of this many batches outside their range; below it, a caution is given


def summarize_monitor(run: MonitorRun, *, settings: Sequence[tuple[str, str]] = (), focus: Any = None) -> Summary:
    """Shares over time, every change, and the estimate after each new batch.

    Parameters
    ----------
    run : the answer.
    settings : names and values that reproduce it.
    focus : the class shown; None for the class that changed most.
    """
    history = run.history
    c = run.changed_most if focus is None else position_of(history.classes, focus)
    assert c is not None
    summary = summarize_history(history, settings=settings, focus=history.classes.tolist()[c])
    evidence = quantity(run.estimates[-1].evidence) if run.estimates else "no new batches"
    over_time, changes = summary.sections
    new = [Section("New batches", tables=(_batch_table(run, c),))] if run.estimates else []
    return replace(
        summary,
        facts=(*summary.facts, (f"evidence for a new change (alarm at {run.threshold:.0f})", evidence)),
        sections=(replace(over_time, detail=True), changes, *new),
        data=lambda: monitor_json(run, c, summary.answer),
        rows=lambda: batch_rows(run),
        columns=tuple(columns_of(run)),
    )


def summarize_history(history: History, *, settings: Sequence[tuple[str, str]] = (), focus: Any = None) -> Summary:
    """Shares over time: the newest, and every change with the levels before and after it.

    Parameters
    ----------
    history : what `Monitor.history` returns.
    settings : names and values that reproduce it, shown at the end.
    focus : the class that the chart shows; None for the second of two, or the most frequent ones.

    Returns
    -------
    Summary
        for `write_report`; plain data, such as `answer`, the most important sentence.

    Examples
    --------
    >>> from quanet import CC, Monitor
    >>> monitor = Monitor(CC("precomputed").fit([[0.9, 0.1], [0.2, 0.8]], ["no", "yes"]))
    >>> for number in range(4):
    ...     _ = monitor.update([[0.9, 0.1]] * 30 + [[0.1, 0.9]] * (20 + number))
    >>> summarize_history(monitor.history()).answer
    'No change in 4 batches: yes is at 41.7 % (35.0 to 48.4 %) on 3.'
    """
    if not len(history.dates):
        raise InvalidData("The monitor has no batches, so there is nothing to report. Add a batch with update.")
    c = position_of(history.classes, focus)
    shown = [c] if c is not None else np.argsort(-history.windowed[-1], kind="stable")[:MAX_PANELS].tolist()
    change = _change_finding(history)
    return Summary(
        title=f"Shares{of_weight(history.weight)} over time",
        answer=_answer(history, shown[0]),
        cautions=(
            *((change,) if change.severity != "ok" else ()),
            *_drift_findings(history),
            *_variation(history, shown[0]),
        ),
        facts=(
            ("batches", f"{len(history.dates):,}"),
            ("instances", f"{history.sizes.sum():,}"),
            *_weight_facts(history),
            ("first and newest batch", f"{date_text(history.dates[0])}, {date_text(history.dates[-1])}"),
            ("confidence level", level_text(history.level)),
            *_drift_facts(history),
        ),
        sections=(
            Section("Over time", charts=(history_chart(history, shown),)),
            Section("Changes", tables=(_change_table(history),))
            if history.changes
            else Section("Changes", findings=(change,)),
        ),
        settings=reproduction(settings),
        data=lambda: history_figures(history, shown[0]),
        figures=lambda: history_figures(history, shown[0]),
    )


def _weight_facts(history: History) -> tuple[tuple[str, str], ...]:
    """How many instances of equal weight say as much."""
    sizes = history.effective_sizes
    if sizes is None:
        return ()
    return ((f"median effective size of a batch, by {history.weight or 'weight'}", f"{np.median(sizes):,.0f}"),)


def _answer(history: History, c: int) -> str:
    name, newest = class_name(history.classes[c]), history.windowed[-1, c]
    name = f"{name} (share of {history.weight})" if history.weight else name
    now = share_text(newest, history.lower[-1, c], history.upper[-1, c])
    if not history.changes:
        batches = many(len(history.dates), "batch", "batches")
        return f"No change in {batches}: {name} is at {now} on {date_text(history.dates[-1])}."
    steps = [f"to {percent(one.after[c])} at {date_text(one.date)}" for one in history.changes]
    listed = listing(steps) if len(steps) <= MAX_CHANGES else f"{steps[0]}, ..., {listing(steps[1 - MAX_CHANGES :])}"
    number = "" if len(steps) == 1 else f"{len(steps)} changes. "
    return (
        f"Alarm: {number}{name} changed from {percent(history.changes[0].before[c])} {listed}; the newest estimate is "
        f"{now}."
    )


def _variation(history: History, c: int) -> tuple[Finding, ...]:
    """A caution if batches vary more than chance explains between changes."""
    outside, t = int(history.outside[:, c].sum()), len(history.dates)
    if stats.binom.sf(outside - 1, t, 1 - history.level) > SURPRISING:
        return ()
    reach = (history.batch_upper[:, c] - history.batch_lower[:, c]) / 2 / stats.norm.isf((1 - history.level) / 2)
    extra = float(np.mean((history.estimate[:, c] - history.baseline[:, c]) ** 2 - reach**2))
    advice = ["Some of the detected changes may be such variation."] if history.changes else []
    if extra > 0:
        advice.append(f"If this is normal for your data, set a tolerance of about {max(np.sqrt(extra), 0.001):.2g}.")
    return (
        Finding(
            "tolerance",
            "warning",
            f"{outside:,} of {t:,} batches are outside the range that chance explains, instead of "
            f"{_by_chance((1 - history.level) * t)}: {class_name(history.classes[c])} varies from batch to batch, not "
            "only by lasting changes.",
            " ".join(advice),
        ),
    )


def _by_chance(expected: float) -> str:
    return f"about {expected:,.0f}" if expected >= 0.5 else "none or one"


def _change_finding(history: History) -> Finding:
    risk = f"the probability of a false alarm is at most {level_text(1 - history.level)}, however often you look."
    if history.since is None:
        return Finding("change", "ok", f"No change was detected. As long as nothing changes, {risk}")
    times = f"{many(len(history.changes), 'change')}, the last since" if len(history.changes) > 1 else "A change since"
    return Finding(
        "change",
        "alarm",
        f"{times} {date_text(history.since)}. As long as nothing changes, {risk}",
        "Check the data from that date on.",
    )


def _drift_findings(history: History) -> tuple[Finding, ...]:
    """A note if drift may explain changes."""
    found = [one for one in history.changes if one.may_be_drift]
    if not found:
        return ()
    newest = found[-1]
    c = newest.largest
    assert newest.cost is not None
    others = f" ({len(found)} of {len(history.changes)} changes; this is the last)" if len(history.changes) > 1 else ""
    return (
        Finding(
            "drift",
            "note",
            f"The change since {date_text(newest.date)} may be drift{others}: {class_name(history.classes[c])} changed "
            f"by {points(abs(newest.after[c] - newest.before[c]))}, and drift may cost up to {points(newest.cost[c])}.",
            "Label a few random instances from before and after that date to tell.",
        ),
    )


def _drift_facts(history: History) -> tuple[tuple[str, str], ...]:
    """What drift may cost in the newest window, or why it is unknown."""
    if history.drift is None:
        return ()
    newest = history.drift.of_bag(-1)
    if newest.state == "unknown":
        return (("drift", f"unknown: {newest.source}"),)
    return (("drift may cost, newest estimate", f"up to {points(float(newest.cost.max()))}, {newest.state}"),)


def _change_table(history: History) -> Table:
    """Levels before and after every change, and when it was detected."""
    return Table(
        "Mean shares in % before and after each change",
        (
            *(Column(part, str(name)) for name in history.classes for part in ("before", "after")),
            Column("detected"),
            Column("drift may cost"),
        ),
        tuple(
            (
                date_text(one.date),
                (
                    *(
                        TableEntry(f"{100 * level[c]:.1f}")
                        for c in range(len(history.classes))
                        for level in (one.before, one.after)
                    ),
                    TableEntry(date_text(one.found)),
                    TableEntry(_cost_text(one.cost), "*" * one.may_be_drift),
                ),
            )
            for one in history.changes
        ),
        (
            "Changes are of the sources of the batches, not of exactly these rows.",
            *(["* Drift may explain this change."] if any(one.may_be_drift for one in history.changes) else []),
        ),
        corner="since",
    )


def _cost_text(cost: FloatArray | None) -> str:
    return "unknown" if cost is None or np.isnan(cost).any() else points(float(cost.max()))


def _batch_table(run: MonitorRun, c: int) -> Table:
    """The estimate after each new batch, for one class."""
    level = level_text(run.history.level)
    weighted = f" (of {run.history.weight})" if run.history.weight else ""
    rows = tuple(
        (
            name,
            (
                TableEntry(f"{one.n:,}"),
                *(() if one.effective_n is None else (TableEntry(f"{one.effective_n:,}"),)),
                TableEntry(f"{100 * one.estimate[c]:.1f}"),
                share_entry(one.windowed[c], one.lower[c], one.upper[c]),
                TableEntry(str(one.drift.state)),
                TableEntry(quantity(one.evidence), "*" * one.found),
            ),
        )
        for name, one in zip(run.batches, run.estimates, strict=True)
    )
    effective = () if run.history.effective_sizes is None else (Column("effective n"),)
    notes = ("* A change was detected with this batch.",) if any(one.found for one in run.estimates) else ()
    return Table(
        f"Share of {run.history.classes[c]}{weighted} in %: batch alone, and smoothed with its {level} interval",
        (Column("n"), *effective, Column("batch alone"), Column("smoothed"), Column("drift"), Column("evidence")),
        rows,
        notes,
        "batch",
    )
