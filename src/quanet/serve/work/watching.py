"""The job "monitor": shares over time, and an alarm for every change.

The monitor sees one batch for every period of the project's first column of dates; without such a column, one for every
uploaded batch, at the time of its arrival. The answer is that of `quanet monitor` with all files.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quanet.corpus.grouped_inputs import GroupedInputs, reading_of
from quanet.corpus.state import regroup
from quanet.data.periods import Key
from quanet.errors import InvalidBags
from quanet.evaluation.monitor import Monitor
from quanet.evaluation.monitor_batches import BatchEstimate, Change, content_of
from quanet.files import json_ready
from quanet.report.monitor import summarize_monitor
from quanet.serve.store.alarms import add_alarm, list_alarms
from quanet.serve.store.answers import put_answer
from quanet.serve.store.connection import Connection
from quanet.serve.store.jobs import enqueue
from quanet.serve.store.projects import ProjectRow
from quanet.serve.work.alarm_facts import alarm_facts, alarm_sentence, is_known
from quanet.serve.work.arrivals import ARRIVAL, arrival_state
from quanet.serve.work.job_context import Finish, JobContext
from quanet.serve.work.project_batches import batch_files, merge_batches
from quanet.serve.work.render_answer import stored_forms
from quanet.workflows.monitor import (
    Batch,
    MonitorRun,
    date_text,
    merged_part,
    monitor_batches,
    open_monitor,
    read_batches,
)

MOST_MONITORS = 20  # kept in memory
MOST_ALARMS = 500  # that are compared with new ones


@dataclass(frozen=True, eq=False)
class _Seen:
    """A monitor that has seen some batches, what identifies them, and its estimates after each."""

    monitor: Monitor
    marks: tuple[Any, ...]
    names: tuple[str, ...]
    estimates: tuple[BatchEstimate, ...]


def perform(context: JobContext) -> Finish:
    """Monitor the periods of a project; changes that were not known become alarms."""
    row, options = context.project()
    with context.store.read() as connection:
        files = batch_files(connection, row.id, row.model)
    if not row.model or not files.number:
        return lambda _: None
    model = context.model(row, options)
    key = options.date_key or ARRIVAL
    if options.date_key:
        state = regroup(merge_batches(context, row, options, model).state, [key])
    else:
        state = arrival_state(context, row, options)
    reading = reading_of(state, model.quantifier, files.title)
    try:
        batches, _ = read_batches(key, reading)
    except InvalidBags:  # a single row
        return lambda _: None
    context.report(0.3, f"Monitoring {len(batches):,} batches")
    classes = model.facts["class_names"]
    watch = open_monitor(classes.with_labels(model.quantifier), key, None, model="", level=options.level)
    run = _follow(context, f"{row.id} {row.model} {key} {options.level}", watch, batches, reading)
    run = run.with_classes(classes.names)
    by = ["--by", f"{key.column}:{key.period}" if key.period else key.column]
    command = options.command("monitor", files.names, options=by, keys=False, seeded=False)
    focus = classes.find(options.show)
    summary = summarize_monitor(run, settings=[("command", command)], focus=focus)
    context.report(0.9, "Drawing charts")
    forms = stored_forms(context.store.blobs, summary)
    data = _facts(run, key, focus)

    def store_result(connection: Connection) -> None:
        put_answer(
            connection,
            row.id,
            "monitor",
            "project",
            request={"by": f"{key}"},
            sentence=summary.answer,
            command=command,
            forms=forms,
            data=data,
        )
        _raise_alarms(connection, row, options.webhook, _changes(run, focus), watch.window)

    return store_result


def _follow(
    context: JobContext, key: str, fresh: Monitor, batches: Sequence[Batch], reading: GroupedInputs
) -> MonitorRun:
    """What the monitor finds in all batches. Those that it has seen before, and that are unchanged, are not repeated.

    The newest period usually grows, so what is kept is the monitor before it.
    """
    marks = tuple(_mark(batch, reading) for batch in batches)
    kept: dict[str, _Seen] = context.memory.setdefault("monitors", {})
    seen = kept.get(key)
    if seen is None or seen.marks != marks[: len(seen.marks)] or len(seen.marks) >= len(batches):
        seen = _Seen(fresh, (), (), ())
    last = len(batches) - 1
    if last > len(seen.marks):
        watch = copy.copy(seen.monitor)
        run = _monitor(watch, batches[len(seen.marks) : last], reading)
        seen = _Seen(watch, marks[:last], (*seen.names, *run.batches), (*seen.estimates, *run.estimates))
        kept.pop(key, None)
        kept[key] = seen
        while len(kept) > MOST_MONITORS:
            del kept[next(iter(kept))]
    run = _monitor(copy.copy(seen.monitor), batches[len(seen.marks) :], reading)
    names, estimates = (*seen.names, *run.batches), (*seen.estimates, *run.estimates)
    return MonitorRun(run.history, names, estimates, 0, run.repeated, run.threshold)


def _monitor(watch: Monitor, batches: Sequence[Batch], reading: GroupedInputs) -> MonitorRun:
    weights, merged = reading.row_weights, reading.merged
    return monitor_batches(watch, reading.instances, batches, weights=weights, merged=merged, weight=reading.weight)


def _mark(batch: Batch, reading: GroupedInputs) -> tuple[Any, ...]:
    """What identifies the instances of a batch."""
    weights = None if reading.row_weights is None else reading.row_weights[batch.indices]
    merged = None if reading.merged is None else merged_part(reading.merged, batch.indices)
    return batch.name, len(batch.indices), int(content_of(reading.instances.take(batch.indices), weights, merged))


def _changes(run: MonitorRun, focus: str | None) -> list[tuple[Change, dict[str, Any]]]:
    """The changes, and what is said of each."""
    classes = run.history.classes
    return [
        (change, alarm_facts(change, classes, focus) | {"sentence": alarm_sentence(change, classes, focus)})
        for change in run.history.changes
    ]


def _facts(run: MonitorRun, key: Key, focus: str | None) -> dict[str, Any]:
    """What pages show besides chart and table."""
    history = run.history
    return {
        "classes": [str(name) for name in history.classes.tolist()],
        "dates": [date_text(history.dates[0]), date_text(history.dates[-1])],
        "batches": len(history.dates),
        "level": history.level,
        "by": str(key),
        "alarm": bool(history.changes),
        "newest": json_ready({name: getattr(history, name)[-1] for name in ("windowed", "lower", "upper")}),
        "changes": [facts for _, facts in _changes(run, focus)],
        "evidence": json_ready(run.estimates[-1].evidence if run.estimates else 0.0),
        "threshold": run.threshold,
    }


def _raise_alarms(
    connection: Connection,
    row: ProjectRow,
    webhook: str,
    changes: list[tuple[Change, dict[str, Any]]],
    window: float,
) -> None:
    """Note the changes that were not known, and announce them."""
    known = list_alarms(connection, row.id, limit=MOST_ALARMS)
    for change, facts in changes:
        if is_known(change, known, window):
            continue
        key = f"{facts['date']} {facts['class']}"
        alarm, new = add_alarm(connection, row.id, key, facts["date"], facts["sentence"], facts)
        if new and webhook:
            enqueue(connection, "webhook", row.id, {"alarm": alarm.id}, key=f"webhook:{alarm.id}")
