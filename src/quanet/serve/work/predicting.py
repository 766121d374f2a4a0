"""The job "predict": the shares in a batch."""

from dataclasses import replace
from typing import Any

from quanet.corpus.group_files import open_files
from quanet.corpus.grouped_inputs import reading_of
from quanet.corpus.state_files import to_bytes
from quanet.serve.store.answers import put_answer
from quanet.serve.store.connection import Connection
from quanet.serve.store.uploads import BatchRow, FileRow, batch, file, finish_batch, start_batch
from quanet.serve.work.job_context import Finish, JobContext
from quanet.serve.work.project_batches import enqueue_overview, partition_of
from quanet.serve.work.share_answers import answer_shares
from quanet.serve.work.share_facts import total_facts


def perform(context: JobContext) -> Finish:
    """Read a batch and estimate its shares. Without a model, it waits: training queues it again."""
    row, options = context.project()
    if not row.model:
        return lambda _: None
    one, upload = batch_of(context, row.id)
    with context.store.write() as connection:
        start_batch(connection, one.id)
    model = context.model(row, options)
    with context.named([upload]) as paths:
        data = open_files(model.quantifier, model.facts, paths, options.of_batches)
        state = data.state(follow=context.follow(options))
        context.check_rows(data.name, state.rows, options)
        reading = reading_of(state, model.quantifier, data.name)
        answer = answer_shares(context, model, reading, options, data.name, [upload.name])
    facts = answer.facts
    stored = context.store.blobs.put_bytes(
        to_bytes(replace(state, partitions=frozenset({partition_of(one.id)}))), "arrow"
    )
    totals: dict[str, Any] = {"classes": facts["classes"], **total_facts(answer.shares)}

    def store_result(connection: Connection) -> None:
        finish_batch(connection, one.id, rows=state.rows, totals=totals, state=stored, model=row.model)
        put_answer(
            connection,
            row.id,
            "batch",
            f"batch:{one.id}",
            request={"batch": one.id, "model": row.model},
            sentence=answer.sentence,
            command=answer.command,
            forms=answer.forms,
            data=facts,
        )
        enqueue_overview(connection, context, row.id)

    return store_result


def batch_of(context: JobContext, project: str) -> tuple[BatchRow, FileRow]:
    """The batch of a job, and its file."""
    with context.store.read() as connection:
        one = batch(connection, project, int(context.job.payload["batch"]))
        return one, file(connection, project, one.file)
