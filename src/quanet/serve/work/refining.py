"""The job "refine": shares of a batch refined with the labels that people gave, next to those without labels."""

import uuid
from typing import Any

from quanet.corpus.group_files import open_files
from quanet.corpus.grouped_inputs import reading_of
from quanet.data.file_names import shown_as
from quanet.data.streams import TableSource
from quanet.labels.refine import MIN_LABELS
from quanet.report.refine import summarize_refinement
from quanet.serve.store.answers import put_answer
from quanet.serve.store.connection import Connection
from quanet.serve.store.label_queue import labels, plans
from quanet.serve.work.job_context import Finish, JobContext
from quanet.serve.work.label_files import LABELS, filled_sheet, has_gaps
from quanet.serve.work.predicting import batch_of
from quanet.serve.work.render_answer import stored_forms
from quanet.workflows.label_sheet import read_labels
from quanet.workflows.refine import Refinement, refine_shares


def perform(context: JobContext) -> Finish:
    """Refine the shares of a batch with the labels of its newest plan that has enough of them."""
    row, options = context.project()
    one, upload = batch_of(context, row.id)
    with context.store.read() as connection:
        given = [(plan, labels(connection, plan.id)) for plan in plans(connection, one.id)]
    given = [(plan, found) for plan, found in given if len(found) >= MIN_LABELS]
    if not row.model or not given:
        return lambda _: None
    plan, found = given[0]
    model = context.model(row, options)
    column, at_random = str(plan.facts["label"]), has_gaps(found)
    sheet = filled_sheet(context.store.blobs.path(plan.sheet).read_bytes(), found, column)
    path = context.store.blobs.incoming() / f"{uuid.uuid4().hex}.csv"
    path.write_bytes(sheet)
    try:
        with context.named([upload]) as paths, shown_as({str(path): LABELS}):
            data = open_files(model.quantifier, model.facts, paths, options.of_batches)
            reading = reading_of(data.state(follow=context.follow(options)), model.quantifier, data.name)
            source = data.tables("quanet refine")
            known = model.facts["class_names"]
            written = read_labels(
                TableSource([str(path)], **options.table_options),
                source,
                data.reader,
                column,
                known,
                at_random=at_random,
            )
            context.report(0.8, "Refining")
            refined = refine_shares(
                data.reader,
                reading,
                written,
                keys=options.keys,
                level=options.level,
                seed=options.seed,
                source=source.name,
                labels_source=LABELS,
                model=model.about,
            )
            asked = ["--labels", LABELS, *(["--random"] if at_random else [])]
            command = options.command("refine", [upload.name], options=asked)
            summary = summarize_refinement(refined, settings=[("command", command)], focus=known.find(options.show))
            forms = stored_forms(context.store.blobs, summary)
    finally:
        path.unlink(missing_ok=True)

    def store_result(connection: Connection) -> None:
        put_answer(
            connection,
            row.id,
            "refined",
            f"batch:{one.id}",
            request={"batch": one.id, "plan": plan.id, "model": row.model},
            sentence=summary.answer,
            command=command,
            forms=forms,
            data=_facts(refined),
        )

    return store_result


def _facts(refined: Refinement) -> dict[str, Any]:
    """What pages show of refined shares, by class; widths are of the widest interval, in points."""
    before = refined.unlabelled.total
    return {
        "classes": [str(name) for name in refined.classes.tolist()],
        "total": {
            name: [round(value, 6) for value in getattr(refined, name).tolist()]
            for name in ("estimate", "lower", "upper")
        },
        "unlabelled": {
            name: [round(value, 6) for value in getattr(before, name).tolist()]
            for name in ("estimate", "lower", "upper")
        },
        "labels": refined.labelled,
        "counts": refined.counts.tolist(),
        "before": round(100 * float((before.upper - before.lower).max()), 1),
        "after": round(100 * float((refined.upper - refined.lower).max()), 1),
        "more": round(100 * float(refined.more.max()), 1),
    }
