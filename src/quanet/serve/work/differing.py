"""The job "difference": by how much the shares of two groups or periods differ."""

from quanet.corpus.grouped_inputs import reading_of
from quanet.files import json_ready
from quanet.report.diff import summarize_differences
from quanet.serve.store.answers import put_answer
from quanet.serve.store.connection import Connection
from quanet.serve.work.job_context import Finish, JobContext, JobRefused
from quanet.serve.work.project_batches import batch_files, merge_batches
from quanet.serve.work.render_answer import stored_forms
from quanet.workflows.diff import compare_groups


def perform(context: JobContext) -> Finish:
    """Compare two groups of the state of all batches."""
    row, options = context.project()
    before, after = (", ".join(map(str, context.job.payload[side])) for side in ("before", "after"))
    with context.store.read() as connection:
        files = batch_files(connection, row.id, row.model)
    if not row.model or not files.number:
        raise JobRefused("No batch has been read yet. Add one.")
    model = context.model(row, options)
    merged = merge_batches(context, row, options, model)
    reading = reading_of(merged.state, model.quantifier, files.title)
    context.report(0.5, "Comparing")
    found = compare_groups(
        model.quantifier,
        reading,
        keys=options.keys,
        between=(before, after),
        level=options.level,
        seed=options.seed,
        source=files.title,
        model=model.about,
    )
    command = options.command("diff", files.names, options=["--between", before, after])
    focus = model.facts["class_names"].find(options.show)
    summary = summarize_differences(found, settings=[("command", command)], focus=focus)
    forms = stored_forms(context.store.blobs, summary)
    data = {"data": json_ready(summary.data()), "before": before, "after": after}

    def store_result(connection: Connection) -> None:
        put_answer(
            connection,
            row.id,
            "difference",
            f"{before}|{after}",
            request=dict(context.job.payload),
            sentence=summary.answer,
            command=command,
            forms=forms,
            data=data,
        )

    return store_result
