"""The job "train": a model from a labelled file, with the errors and the coverage to expect of it."""

import uuid
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from quanet.base import Quantifier
from quanet.data.columns import ClassNames
from quanet.data.streams import TableSource
from quanet.files import json_ready
from quanet.progress import TITLES, TRAINING_PARTS, listening, part_done
from quanet.report.fit import summarize_training
from quanet.serve.store.answers import put_answer
from quanet.serve.store.blobs import remove
from quanet.serve.store.connection import Connection
from quanet.serve.store.projects import ProjectRow, project, set_model
from quanet.serve.store.uploads import FileRow, file, read_all_again
from quanet.serve.work.job_context import Finish, JobContext
from quanet.serve.work.read_options import ReadOptions
from quanet.serve.work.render_answer import stored_forms
from quanet.simplex import classes_of
from quanet.workflows.fit import DEFAULT_METHOD, Training, held_out_coverage, new_quantifier, save_training, train
from quanet.workflows.labelled import choose_columns, order_posteriors, read_labelled


def perform(context: JobContext) -> Finish:
    """Train a model, store its folder, and let the project use it; batches are read again with it."""
    row, _ = context.project()
    settings = {**row.settings, **(context.job.payload.get("settings") or {})}
    options = ReadOptions.of(settings)
    with context.store.read() as connection:
        upload = file(connection, row.id, int(context.job.payload["file"]))
    with context.named([upload]) as paths:
        quantifier, training = _train(context, options, paths)
    found = replace(options, text=training.inputs.text, features=training.inputs.features, label=training.label)
    command = found.fit_command(upload.name)
    context.report(0.95, "Measuring the coverage of intervals")
    coverage = held_out_coverage(quantifier, level=options.level, seed=options.seed)
    name = _store_model(context, quantifier, training, command)
    classes = ClassNames.of(quantifier.classes_, options.by_label)
    summary = summarize_training(training, settings=[("command", command)], focus=classes.find(options.show))
    forms = stored_forms(context.store.blobs, summary)
    data = _facts(training, classes, command) | {
        "coverage": None if coverage is None else asdict(coverage),
        "file": upload.id,
        "model": name,
        "columns": {"text": training.inputs.text, "features": training.inputs.features, "label": training.label},
    }

    def store_result(connection: Connection) -> None:
        _use_model(connection, row, upload, name)
        put_answer(
            connection,
            row.id,
            "training",
            f"model:{name}",
            request={"file": upload.id, "settings": settings},
            sentence=summary.answer,
            command=command,
            forms=forms,
            data=data,
        )

    return store_result


def _use_model(connection: Connection, row: ProjectRow, upload: FileRow, name: str) -> None:
    file(connection, row.id, upload.id)  # raises if it was deleted in the meantime
    project(connection, row.id)
    set_model(connection, row.id, name)
    read_all_again(connection, row.id)


def _train(context: JobContext, options: ReadOptions, paths: list[str]) -> tuple[Quantifier, Training]:
    quantifier = new_quantifier(options.method or DEFAULT_METHOD, seed=options.seed)
    source = TableSource(paths, **options.table_options)
    follow = context.follow(options)
    source.follow = lambda done: follow(source, done // 8, source.rows)
    groups = [key.column for key in options.keys if key.column in source.columns]  # are neither texts nor labels
    inputs, label, _ = choose_columns(
        source, options.text, options.label, features=options.features, detect=False, exclude=groups
    )
    names = options.by_label
    data = read_labelled(source, inputs, label, normalize=options.normalize_labels, given=names)
    context.check_rows(source.name, source.rows, options)
    ClassNames.of(classes_of(data.y), names).find(options.show)  # raises before the work if the class is unknown
    if inputs.features and getattr(quantifier, "classifier", None) == "precomputed":
        data, inputs = order_posteriors(data, inputs)
    with listening(_reporter(context.report)):
        training = train(
            quantifier,
            data,
            files=tuple(source.names),
            inputs=inputs,
            label=label,
            names=names,
            seed=options.seed,
            progress=lambda what: context.report(0.9, what),
        )
    return quantifier, training


def _reporter(report: Callable[[float | None, str], None]) -> Callable[[str, float], None]:
    """What reports the progress of training, each part by its share of the time, between 10 and 90 %."""

    def listener(what: str, done: float) -> None:
        if what in TRAINING_PARTS:
            report(0.1 + 0.8 * part_done(what, done), TITLES[what])

    return listener


def _store_model(context: JobContext, quantifier: Quantifier, training: Training, command: str) -> str:
    folder = context.store.blobs.incoming() / f"{uuid.uuid4().hex}.model"
    try:
        save_training(quantifier, training, folder, command=command)
        return context.store.models.put(folder)
    finally:
        remove(folder)


def _facts(training: Training, classes: ClassNames, command: str) -> dict[str, Any]:
    errors = training.errors
    return {
        "classes": [str(name) for name in classes.names.tolist()],
        "errors": None if errors is None else json_ready(asdict(errors)),
        "facts": json_ready(training.facts(command)),
        "advice": list(training.advice),
        "drift": None if training.drift is None else training.drift.sentence,
    }
