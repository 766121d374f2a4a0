"""The job "overview": all batches of a project together, from their states."""

import time

from quanet.corpus import grouped_inputs
from quanet.corpus.state_files import to_bytes
from quanet.serve.store.answers import put_answer
from quanet.serve.store.connection import Connection
from quanet.serve.store.jobs import enqueue
from quanet.serve.store.uploads import read_again
from quanet.serve.work.job_context import Finish, JobContext
from quanet.serve.work.project_batches import batch_files, merge_batches, reading_of
from quanet.serve.work.share_answers import answer_shares


def perform(context: JobContext) -> Finish:
    """Merge the states of new batches into that of the project, and estimate its shares by group."""
    started = time.monotonic()
    row, options = context.project()
    with context.store.read() as connection:
        files = batch_files(connection, row.id, row.model)
    if not row.model or not files.number:
        return lambda _: None
    model = context.model(row, options)
    merged = merge_batches(context, row, options, model)

    def read_outdated(connection: Connection) -> None:
        for id_ in merged.outdated:
            read_again(connection, row.id, id_)

    if merged.merged is None:
        return read_outdated
    reading = grouped_inputs.reading_of(merged.state, model.quantifier, files.title)
    answer = answer_shares(context, model, reading, options, files.title, files.names)
    data = answer.facts | {
        "state": context.store.blobs.put_bytes(to_bytes(merged.state), "arrow"),
        "merged": merged.last,
        "model": row.model,
        "reading": reading_of(options),
        "batches": len(merged.state.partitions),
        "rows": merged.state.rows,
    }
    context.memory[f"seconds {row.id}"] = time.monotonic() - started

    def store_result(connection: Connection) -> None:
        put_answer(
            connection,
            row.id,
            "overview",
            "project",
            request={"merged": merged.last},
            sentence=answer.sentence,
            command=answer.command,
            forms=answer.forms,
            data=data,
        )
        read_outdated(connection)
        enqueue(connection, "monitor", row.id, {}, key=f"monitor:{row.id}")

    return store_result
