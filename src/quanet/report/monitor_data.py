"""What a monitor found as plain data: rows, JSON, and the numbers behind the chart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quanet.workflows.monitor import date_text

if TYPE_CHECKING:
    from quanet.evaluation.monitor_batches import History
    from quanet.workflows.monitor import MonitorRun

COLUMNS = (
    *("batch", "date", "n", "class", "estimate", "smoothed", "lower", "upper", "weighted"),
    *("evidence", "alarm", "since", "drift", "state"),
)


def columns_of(run: MonitorRun) -> list[str]:
    """The columns of the rows; with weights, effective_n follows n."""
    columns = list(COLUMNS)
    if run.history.effective_sizes is not None:
        columns.insert(columns.index("n") + 1, "effective_n")
    return columns


def batch_rows(run: MonitorRun) -> list[dict[str, Any]]:
    """One row for every new batch and class."""
    rows = []
    for batch, one in zip(run.batches, run.estimates, strict=True):
        for c, label in enumerate(run.history.classes.tolist()):
            values = (one.estimate[c], one.windowed[c], one.lower[c], one.upper[c], one.weighted[c])
            since = None if one.since is None else date_text(one.since)
            found = (one.evidence, one.alarm, since, one.drift.cost[c], str(one.drift.state))
            effective = () if one.effective_n is None else (one.effective_n,)
            row = (batch, date_text(one.date), one.n, *effective, label, *values, *found)
            rows.append(dict(zip(columns_of(run), row, strict=True)))
    return rows


def monitor_json(run: MonitorRun, c: int, answer: str) -> dict[str, Any]:
    """The answer as JSON has it."""
    history = run.history
    newest = history.changes[-1] if history.changes else None
    return {
        "answer": answer,
        **({"weight": run.history.weight} if run.history.weight else {}),
        "class": history.classes.tolist()[c],
        "alarm": newest is not None,
        "since": None if newest is None else date_text(newest.date),
        "threshold": run.threshold,
        "classes": history.classes,
        "before": None if newest is None else newest.before,
        "after": None if newest is None else newest.after,
        "changes": _changes(history, date_text),
        "earlier_batches": run.earlier,
        "readings": batch_rows(run),
    }


def history_figures(history: History, c: int) -> dict[str, Any]:
    """The numbers behind the chart."""
    arrays = ("sizes", "estimate", "windowed", "lower", "upper", "weighted", "level")
    return {
        "classes": history.classes,
        "dates": [_iso_date(day) for day in history.dates],
        **({} if history.effective_sizes is None else {"effective_sizes": history.effective_sizes}),
        **{name: getattr(history, name) for name in (*arrays, "baseline", "batch_lower", "batch_upper")},
        "class": history.classes[c],
        "since": None if history.since is None else _iso_date(history.since),
        "changes": _changes(history, _iso_date),
    }


def _changes(history: History, text: Any) -> list[dict[str, Any]]:
    return [
        {
            "since": text(one.date),
            "found": text(one.found),
            "before": one.before,
            "after": one.after,
            "drift": one.cost,
            "may_be_drift": one.may_be_drift,
        }
        for one in history.changes
    ]


def _iso_date(value: Any) -> str:
    """A date in ISO format; midnight is omitted."""
    return str(value).removesuffix(".000000").removesuffix("T00:00:00")
